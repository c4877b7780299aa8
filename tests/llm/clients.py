"""A command-line client that does what a test tells it to, in the place of `claude` or `codex`."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """\
#!{python} -IS
import json, os, sys, time
from pathlib import Path

here = Path(__file__).parent
does = (here / "does").read_text()
seen = {{"words": sys.argv[1:], "environ": dict(os.environ), "work": os.listdir("."),
        "question": sys.stdin.read(), "pid": os.getpid(), "session": os.getsid(0),
        "home": sorted(p.name for p in Path(os.environ["HOME"]).parent.iterdir())}}
with (here / "seen.jsonl").open("a") as file:
    file.write(json.dumps(seen) + "\\n")
Path(os.environ["HOME"], "transcript").write_text(seen["question"])

def announce():
    with (here / "pids").open("w") as file:
        print(os.getpid(), file=file, flush=True)

def hang():
    while True:
        time.sleep(60)

if does in ("fork", "leave"):
    ready, done = os.pipe()
    if os.fork() == 0:
        os.setsid()
        announce()
        os.write(done, b".")
        hang()
    os.read(ready, 1)
if does == "hang":
    announce()
if does in ("hang", "fork"):
    hang()
if does == "flood":
    for _ in range(100):
        sys.stdout.write("x" * 1_000_000)
if does == "fail":
    sys.exit(1)
print("garbage" if does == "garbage" else (here / "says").read_text())
"""


@dataclass(frozen=True, slots=True)
class Fake:
    """A folder in PATH with a client."""

    folder: Path
    program: str

    @classmethod
    def put(cls, folder: Path, program: str) -> "Fake":
        folder.mkdir(exist_ok=True)
        path = folder / program
        path.write_text(_PROGRAM.format(python=sys.executable), encoding="utf-8")
        path.chmod(0o755)
        os.mkfifo(folder / "pids")
        fake = cls(folder, program)
        fake.does("answer")
        return fake

    def does(self, what: str) -> None:
        """Let it answer, hang, fork and hang, leave a child, flood, fail, or print garbage."""
        (self.folder / "does").write_text(what, encoding="utf-8")

    def says(self, answer: object, usage: Mapping[str, int] | None = None) -> None:
        """Let it answer with some JSON, as its original prints it."""
        text, used = json.dumps(answer), usage or {"input_tokens": 100, "output_tokens": 10}
        if self.program == "claude":
            report = {"type": "result", "is_error": False, "result": text, "usage": used}
            self.prints(json.dumps(report | {"stop_reason": "end_turn"}))
            return
        item = {"type": "agent_message", "text": text}
        events = [
            {"type": "item.completed", "item": item},
            {"type": "turn.completed", "usage": used},
        ]
        self.prints("\n".join(map(json.dumps, events)))

    def prints(self, text: str) -> None:
        (self.folder / "says").write_text(text, encoding="utf-8")

    @property
    def seen(self) -> list[dict[str, object]]:
        """What it found at each start."""
        path = self.folder / "seen.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def environ(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), os.environ["PATH"]])
        return {"PATH": path, "HOME": str(self.folder.parent), "USER": "ana"}

    def hanging(self) -> int:
        """Wait until one of its processes hangs, and return a descriptor that ends with it."""
        with (self.folder / "pids").open() as file:
            return os.pidfd_open(int(file.readline()))
