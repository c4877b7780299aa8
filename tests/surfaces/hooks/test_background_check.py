"""Of many texts, a hook leaves the look for edits to a process in the background, and says so."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.agents import pending_sessions
from perdure.agents.hook_input import HookInput
from perdure.agents.hooks import run
from perdure.agents.moments import Moment, at_prompt, at_start, for_subagent
from perdure.agents.pending_sessions import capture_lock, start_checking
from perdure.engine import edits

_PROMPT = "Where do the zebras graze in the morning?"
_FEW = "from perdure.engine import edits\nedits.INLINE_TEXTS = 0\n"


@pytest.fixture(params=["notes", "agfs"])
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Return the home of a memory that counts as large, also in the background."""
    home = tmp_path / ".perdure"
    home.mkdir()
    settings = f'[storage]\nlayout = "{request.param}"\n[embedding]\nprovider = "none"\n'
    (home / "config.toml").write_text(settings)
    for name in [*os.environ]:
        if name.startswith("PERDURE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setattr(edits, "INLINE_TEXTS", 0)
    monkeypatch.setattr(pending_sessions, "_RUN", f"{_FEW}{pending_sessions._RUN}")
    with perdure.open(home=home, user="ana") as memory:
        memory.remember("Prefers tabs over spaces.", kind="preference")
    yield home
    done(home)


def moment(home: Path, **given: Any) -> Moment:  # noqa: ANN401 - fields of what agents send
    return Moment("claude-code", home, HookInput(session_id=os.urandom(4).hex(), **given))


def done(home: Path) -> None:
    """Wait until nobody works in the background; what started just now takes the lock first."""
    deadline = time.monotonic() + 60
    is_free = 0
    while is_free < 20 and time.monotonic() < deadline:
        with capture_lock(home) as is_ours:
            is_free = is_free + 1 if is_ours else 0
        time.sleep(0.05)


def edit(home: Path) -> None:
    file = next(each for each in (home / "memory").rglob("*.md") if "tabs" in each.read_text())
    file.write_text(file.read_text() + "\nZebras graze in the morning at the gate.\n")


def test_an_edit_is_known_once_the_background_looked(home: Path) -> None:
    first = moment(home, prompt=_PROMPT)
    edit(home)

    assert "Zebras graze" not in at_prompt(first).text
    assert first.seen.behind

    until = time.monotonic() + 60
    while "Zebras graze" not in at_prompt(moment(home, prompt=_PROMPT)).text:
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_start_says_since_when_edits_are_not_known(home: Path) -> None:
    start = moment(home, source="startup")

    assert "(Memory may be behind: a background process checks for edits" in at_start(start).text
    assert start.seen.behind
    assert start.seen.user == "ana"
    assert start.seen.position > 0

    done(home)
    assert "edits made outside Perdure since 20" in at_start(moment(home, source="startup")).text


def test_what_is_looked_at_at_once_is_not_behind(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "INLINE_TEXTS", 2_000)
    edit(home)
    prompt, start = moment(home, prompt=_PROMPT), moment(home, source="startup")

    assert "Zebras graze" in at_prompt(prompt).text
    assert "tabs" in at_start(start).text
    assert not prompt.seen.behind
    assert not start.seen.behind


@pytest.mark.parametrize("ask", [at_start, for_subagent])
def test_an_edit_is_in_what_a_glance_briefs(
    home: Path, monkeypatch: pytest.MonkeyPatch, ask: object
) -> None:
    monkeypatch.setattr(edits, "INLINE_TEXTS", 2_000)
    with perdure.open(home=home, user="ana") as memory:
        memory.remember("Never edit the tabs of others.", kind="rule")
    assert "tabs of others" in ask(moment(home)).text  # type: ignore[operator]
    time.sleep(0.1)
    assert "tabs of others" in ask(moment(home)).text  # type: ignore[operator]
    for file in (home / "memory").rglob("*.md"):
        file.write_text(file.read_text().replace("of others", "of strangers"))

    assert "tabs of strangers" in ask(moment(home)).text  # type: ignore[operator]


def test_what_the_owner_switched_off_is_not_done_in_the_background(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = home / "config.toml"
    config.write_text(f"{config.read_text()}[index]\ncheck_seconds = 0\n")
    begun = list[object]()
    monkeypatch.setattr(os, "posix_spawn", lambda *words, **_: begun.append(words))

    assert "Fix: set check_seconds" in at_start(moment(home)).text
    assert not begun


def test_a_storm_of_hooks_starts_one_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[object]()
    monkeypatch.setattr(os, "posix_spawn", lambda *words, **_: begun.append(words))
    for _ in range(50):
        start_checking(home, os.environ)

    assert len(begun) == 1


def test_the_process_in_the_background_holds_no_file_of_the_agent(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report"
    waits = f"import time\nwhile not os.path.exists({str(report)!r}): time.sleep(0.1)\n"
    head, named, rest = pending_sessions._RUN.partition("from perdure.agents.hooks")
    monkeypatch.setattr(pending_sessions, "_RUN", f"{head}{waits}{named}{rest}")
    read, write = os.pipe()
    os.set_inheritable(write, True)  # noqa: FBT003 - it takes no names
    try:
        start_checking(home, os.environ)
        os.close(write)
        assert os.read(read, 1) == b""  # while it waits, it does not have the other end
    finally:
        report.touch()
        os.close(read)


def test_nothing_runs_in_the_background_of_a_background_model(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_INTERNAL", "1")
    run(["drain"])
    run(["session-start"])

    assert not (home / "hooks" / "checking").exists()
    assert not (home / "hooks" / "lock").exists()
