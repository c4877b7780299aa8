"""How `perdure mcp` starts, ends and is killed."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.surfaces.mcp.server import MOST_BYTES, TOO_LONG, VERSIONS, _stdout, lines
from tests.surfaces.mcp.agents import in_process, message, over_stdio
from tests.surfaces.processes import PERDURE, Running

HELLO = message(
    "initialize",
    0,
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)
READY = message("notifications/initialized")


class Server(Running):
    """A server that lines are written to by hand."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process)
        self.process = process

    def say(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write(line)
        self.process.stdin.flush()

    def call(self, number: int, tool: str, **arguments: object) -> None:
        self.say(message("tools/call", number, name=tool, arguments=arguments))

    def heard(self) -> dict[str, object]:
        given_text: dict[str, object] = json.loads(self.line())
        return given_text

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None


@contextmanager
def serving(home: Path, *words: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [PERDURE, "mcp", *words],
        env={**os.environ, "HOME": str(home), "USER": "ana"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield Server(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as server:
        server.say(HELLO, READY)
        assert server.heard()["id"] == 0
        yield server


def test_it_ends_with_its_input_and_says_nothing_else(server: Server, tmp_path: Path) -> None:
    server.call(1, "remember", text="Prefers tabs.", category="preference", slug="tabs")
    assert server.heard()["id"] == 1
    server.close_input()

    assert server.end() == (0, "", "")


def test_nothing_is_opened_or_created_before_a_tool_is_called(
    server: Server, tmp_path: Path
) -> None:
    server.say(message("tools/list", 1))
    assert server.heard()["id"] == 1

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_a_signal(server: Server, number: signal.Signals) -> None:
    server.call(1, "remember", text="Prefers tabs.", category="preference", slug="tabs")
    assert server.heard()["id"] == 1
    server.tell(number)

    assert server.end() == (0, "", "")


def test_it_finishes_its_step_at_a_signal(server: Server, tmp_path: Path) -> None:
    server.call(1, "remember", text="x", category="warm", slug="up")
    server.heard()
    for number in range(2, 12):
        server.call(number, "remember", text=f"Fact {number}.", category="fact", slug=f"f{number}")
    server.heard()
    server.tell()
    code, _, complained = server.end()

    assert (code, complained) == (0, "")
    with over_stdio(tmp_path) as agent:
        for entry in agent.answer("list", folder="fact")["entries"]:
            agent.answer("read", uri=entry["uri"])


def test_a_reader_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.process.stdout is not None
        server.say(HELLO, READY)
        server.heard()
        server.process.stdout.close()
        server.say(message("tools/list", 1), message("tools/list", 2))
        server.close_input()
        assert server.process.stderr is not None
        complained = server.process.stderr.read().decode()

        assert server.process.wait(60) == 0
        assert "Traceback" not in complained


def test_what_is_no_message_stops_nothing(server: Server) -> None:
    server.say(b"not JSON\n", b"\xff\xfe\n", b"[]\n", b'{"jsonrpc": "2.0", "id": "\\ud800"}\n')
    server.say(b"x" * (MOST_BYTES + 70_000) + b"\n")
    server.call(7, "recall", query="anything")
    while (heard := server.heard()).get("id") != 7:
        assert "error" in heard

    assert "result" in heard


def test_the_end_of_a_message_that_is_too_long_is_no_message(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(b"x" * (MOST_BYTES + 65536) + b'{"a": 1}\nnext\nlast')

    never, _ = os.pipe()
    with sent.open("rb") as file:
        assert list(lines(file.fileno(), never)) == [TOO_LONG, "next", "last"]


def test_each_tool_reports_a_broken_config_until_it_is_fixed(
    server: Server, tmp_path: Path
) -> None:
    config = tmp_path / ".perdure" / "config.toml"
    config.parent.mkdir()
    config.write_text("[storage]\nbackend = 'no-such'\n")
    server.call(1, "recall", query="anything")
    refused = json.dumps(server.heard()["result"])
    config.unlink()
    server.call(2, "recall", query="anything")

    assert '"isError": true' in refused
    assert "no-such" in refused
    assert "Fix: " in refused
    assert str(tmp_path) not in refused
    assert '"isError": true' not in json.dumps(server.heard()["result"])


def test_a_server_that_is_killed_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    answered: list[int] = []
    for start in (0, 100, 200):
        with serving(tmp_path) as server:
            server.say(HELLO, READY)
            server.heard()
            for number in range(start + 1, start + 9):
                given_text = {"text": f"Fact {number}.", "category": "fact", "slug": f"f{number}"}
                server.call(number, "remember", **given_text)
            for _ in range(3):
                heard = server.heard()
                assert "error" not in heard
                answered.append(int(str(heard["id"])))
            server.process.kill()
    with over_stdio(tmp_path) as agent:
        for number in answered:
            assert agent.answer("read", uri=f"fact/f{number}")["text"] == f"Fact {number}."
        every = agent.answer("list", folder="fact")
        for entry in every["entries"]:
            assert agent.answer("read", uri=entry["uri"])["text"].startswith("Fact ")
        found = agent.answer("recall", query=f"fact {answered[-1]}")
        assert found["index_lag"] == 0
        assert found["hits"]
    assert every["total"] >= len(answered)


def test_it_can_be_started_with_no_input_at_all(tmp_path: Path) -> None:
    done = subprocess.run(
        [PERDURE, "mcp"],
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_unexpected_error_is_reported_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise KeyError("/home/ana/secret")

    monkeypatch.setattr("perdure.engine.memory.Memory.recall", explode)
    with in_process(tmp_path) as agent:
        given_text = agent.refusal("recall", query="x")

    assert "KeyError" in given_text
    assert "Fix: " in given_text
    assert "secret" not in given_text


def test_initialize_takes_less_than_half_a_second_of_cpu(tmp_path: Path) -> None:
    """An agent's first turn has no tools if the server takes longer than about a second."""
    with serving(tmp_path) as server:
        server.say(HELLO, READY, message("tools/list", 1))
        assert [server.heard()["id"] for _ in range(2)] == [0, 1]
        spent = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="utf-8")
        user, system = map(int, spent.rpartition(")")[2].split()[11:13])

    assert (user + system) / os.sysconf("SC_CLK_TCK") < 0.5


@pytest.mark.parametrize(
    ("asked", "given"),
    [(each, each) for each in VERSIONS] + [("1999-01-01", VERSIONS[-1]), (None, VERSIONS[-1])],
)
def test_the_protocol_is_the_one_that_was_asked_for(
    tmp_path: Path, asked: str | None, given: str
) -> None:
    with serving(tmp_path) as server:
        server.say(message("initialize", 0, protocolVersion=asked))
        result = server.heard()["result"]

    assert isinstance(result, dict)
    assert result["protocolVersion"] == given
    assert result["capabilities"] == {"tools": {}}


def test_a_batch_is_answered_as_one(server: Server) -> None:
    pings = [json.loads(message("ping", number)) for number in (1, 2)]
    server.say(json.dumps([*pings, json.loads(READY)]).encode() + b"\n")

    heard = json.loads(server.line())
    assert [each["id"] for each in heard] == [1, 2]


def test_what_is_not_offered_is_no_method(server: Server) -> None:
    for number, method in enumerate(("resources/list", "prompts/list", "nonsense"), 1):
        server.say(message(method, number))
        heard = server.heard()
        assert heard["id"] == number
        assert "there is no method" in json.dumps(heard["error"])


def test_a_call_that_is_cancelled_is_not_answered(server: Server) -> None:
    server.say(message("notifications/cancelled", requestId=1))
    server.call(1, "recall", query="x")
    server.close_input()

    assert server.end() == (0, "", "")


def test_what_is_printed_does_not_mix_with_the_protocol(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with _stdout() as outgoing:
        os.write(1, b"stray")
        outgoing.write({"a": 1})

    assert capfd.readouterr() == ('{"a": 1}\n', "stray")
