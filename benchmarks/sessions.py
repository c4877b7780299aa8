"""What sessions cost: to keep, to continue by one message, and on disk.

Each figure is of processes as agents start them (`perdure hook stop`, with its worker in the
foreground), in seconds of CPU of all of them. A no-op hook is one whose transcript has nothing new.
Usage: python benchmarks/sessions.py [--messages 100000] [--megabytes 10]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

TEXT = "the parser drops an item when two fences meet so look at the lines above it again"
WORDS = TEXT.split()
OUTPUT = "src/parser.py:12: in parse\n    found = match(line)\n" * 40
RESULT = 2
"""Of four lines, the one that is a tool's output."""
ROUNDS = 5


def lines(session: str, count: int, *, tool_output: bool) -> Iterator[str]:
    """Yield a transcript of Claude Code: questions, answers and, if wished, calls with output."""
    parent = None
    for at in range(count):
        role = "assistant" if at % 2 else "user"
        said = " ".join(WORDS[(at + i) % len(WORDS)] for i in range(8 + at % 40))
        content: list[dict[str, object]] = [{"type": "text", "text": f"{said} ({at})"}]
        if tool_output and at % 4 == RESULT:
            content = [{"type": "tool_result", "tool_use_id": f"t{at}", "content": OUTPUT}]
        yield line(session, f"u{at}", parent, role, content)
        parent = f"u{at}"


def line(session: str, name: str, parent: str | None, role: str, content: object) -> str:
    return json.dumps(
        {
            "type": role,
            "uuid": name,
            "parentUuid": parent,
            "sessionId": session,
            "isSidechain": False,
            "timestamp": "2026-03-02T10:00:00.000Z",
            "cwd": "/srv/app",
            "message": {"role": role, "content": content},
        }
    )


class Agent:
    """An agent with a home of its own and one session, whose transcript grows."""

    def __init__(self, folder: Path) -> None:
        self.session = str(uuid.uuid4())
        self.transcript = folder / f"{self.session}.jsonl"
        self.home = folder / "home"
        self._last = ""

    def say(self, said: Iterator[str]) -> None:
        with self.transcript.open("a", encoding="utf-8") as file:
            for each in said:
                file.write(each + "\n")
                self._last = each

    def say_one_more(self) -> None:
        parent = json.loads(self._last)["uuid"]
        name = uuid.uuid4().hex
        self.say(iter([line(self.session, name, parent, "user", f"Now look at {name[:6]}.")]))

    def stop(self) -> float:
        """Call the Stop hook; return its seconds of CPU."""
        given = {"session_id": self.session, "transcript_path": str(self.transcript)}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(  # noqa: S603 - ourselves
            [Path(sys.executable).with_name("perdure"), "hook", "stop", "--foreground", "--strict"],
            input=json.dumps({**given, "cwd": "/srv/app"}).encode(),
            env={**os.environ, "PERDURE_HOME": str(self.home)},
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(after[:2]) - sum(before[:2])

    def files(self) -> list[Path]:
        return list(self.home.glob("memory/Sessions/**/*.md"))

    def stored(self) -> int:
        """Return how many messages are kept."""
        return sum(path.read_text("utf-8").count(" ^m") for path in self.files())


def best(agent: Agent, *, more: bool) -> float:
    figures = []
    for _ in range(ROUNDS):
        if more:
            agent.say_one_more()
        figures.append(agent.stop())
    return min(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--megabytes", type=float, default=10)
    wished = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(Path(folder))
        agent.say(lines(agent.session, 20, tool_output=False))
        agent.stop()
        text = sum(
            len(json.loads(each)["message"]["content"][0]["text"].encode())
            for each in agent.transcript.read_text("utf-8").splitlines()
        )
        files = agent.files()
        size = sum(path.stat().st_size for path in files)
        print(f"20 messages, {text:,} bytes of text: {len(files)} files of the session (without")
        print(f"  history and index), {size:,} bytes = {size / text:.1f} times its text")
        nothing, one = best(agent, more=False), best(agent, more=True)
        print(f"  no-op hook {nothing:.3f} s, one more message {one:.3f} s: {one - nothing:+.3f} s")

    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(Path(folder))
        count = int(wished.megabytes * 1_000_000 / 900)
        agent.say(lines(agent.session, count, tool_output=True))
        size = agent.transcript.stat().st_size
        print(f"a transcript of {size / 1e6:.1f} MB, {count:,} lines: first {agent.stop():.1f} s")
        nothing, one = best(agent, more=False), best(agent, more=True)
        print(f"  no-op hook {nothing:.3f} s, one more message {one:.3f} s: {one - nothing:+.3f} s")

    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(Path(folder))
        agent.say(lines(agent.session, wished.messages, tool_output=False))
        seconds = agent.stop()
        print(f"{wished.messages:,} messages: {agent.stored():,} are kept, in {seconds:.1f} s")


if __name__ == "__main__":
    main()
