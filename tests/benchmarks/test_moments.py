"""The benchmark of moments replays sessions, and says which rules arrived before their breach."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "moments.py"
RULE = "Never write tests through the command line, call the functions of the domain instead."


def said(role: str, content: str, minute: int) -> dict[str, str]:
    return {"role": role, "content": content, "time": f"2026-03-02T10:{minute:02}:00+00:00"}


def session(name: str, day: int, *messages: dict[str, str]) -> dict[str, object]:
    started = f"2026-03-{day:02}T10:00:00+00:00"
    return {"session": name, "project": "harbour", "started": started, "messages": messages}


def call(tool: str, text: str) -> str:
    return f"[called {tool}] " + json.dumps({"input": text})


def folder_of(path: Path) -> Path:
    """Make a folder of two sessions: the second breaks the rule of the first."""
    first = session("one", 1, said("user", RULE, 0), said("assistant", "I will do that.", 1))
    second = session(
        "two",
        2,
        said("user", "add a test for the list of ships", 2),
        said("assistant", call("edit", "+ spawn('harbour', ['list'])"), 3),
        said("assistant", call("shell", "make test"), 4),
        said("tool", "Exit code 2\nmake: *** No rule to make target 'test'.", 5),
    )
    for each in (first, second):
        (path / f"{each['session']}.json").write_text(json.dumps(each))
    item = {"kind": "rule", "said": "user explicit", "messages": [0], "quote": RULE}
    row = {"session": "one", "items": [{**item, "statement": RULE}], "questions": []}
    (path / "labels.json").write_text(json.dumps([row]))
    return path


def test_a_rule_that_the_briefing_has_arrives_before_the_call_that_breaks_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "labels").mkdir()
    rule = {"session": "one", "message": 0, "start": 0, "end": len(RULE)}
    case = {"id": 1, "rule": rule, "broken_by": {"session": "two", "message": 1}}
    case |= {"names": "words", "same_session": False}
    (tmp_path / "labels" / "moments.json").write_text(json.dumps([case]))

    run = subprocess.run(
        [sys.executable, SCRIPT, folder_of(tmp_path / "sessions"), "--labels", tmp_path / "labels"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    lines = run.stdout.splitlines()
    assert lines[0].startswith("2 sessions, 1 rules that were broken")
    start = next(line.split() for line in lines if line.startswith("start "))
    assert start[1:4] == ["2", "1", "2"]  # the rule, and how the last session ended
    failure = next(line.split() for line in lines if line.startswith("failure "))
    assert failure[1] == "1"
    arrived = next(line for line in lines if line.startswith("all "))
    assert "1 of  1 (100 %): 1 at start" in arrived
