"""Faulty captures lose sessions or store them twice; the tests detect that."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.agents import capture as sessions
from perdure.agents.pending_sessions import PendingSession, PendingSessions
from perdure.errors import NodeExistsError
from tests.bites import FAILED
from tests.surfaces.hooks import test_hooks as tests
from tests.surfaces.hooks.calling import environment, stored, transcript

pytestmark = pytest.mark.search

Break = Callable[[pytest.MonkeyPatch], None]


def keeps_no_lock(patch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def free(_: Path) -> Iterator[bool]:
        yield True

    patch.setattr(sessions, "capture_lock", free)


def takes_any_note_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingSessions, "done", lambda self, each: self._path(each).unlink())


def knows_notes_by_their_session(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingSession, "__eq__", lambda one, two: one.session_id == two.session_id)


@pytest.mark.parametrize("breaks", [takes_any_note_away, knows_notes_by_their_session])
def test_a_note_that_is_lost_is_missed(
    breaks: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    with pytest.raises((*_failed(), FileNotFoundError)):
        tests.TestManyAtOnce().test_a_note_that_comes_meanwhile_is_not_taken_for_the_one_that_is_done(
            tmp_path
        )


def test_two_that_keep_sessions_at_once_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeps_no_lock(monkeypatch)
    monkeypatch.setenv("USER", "ana")
    with pytest.raises(_failed()):
        tests.TestManyAtOnce().test_only_one_keeps_sessions_at_a_time(tmp_path)


def test_what_comes_while_others_are_stored_is_stored_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that comes after the last look, and before the lock is let go, waits for nobody."""
    monkeypatch.setenv("USER", "ana")
    home, pending = tmp_path / ".perdure", PendingSessions(tmp_path / ".perdure")
    paths = [transcript(tmp_path, f"I like tea {n}.", "Ok.", session=f"s{n}") for n in range(2)]
    notes = [PendingSession("claude-code", path.stem, str(path)) for path in paths]
    pending.add(notes[0])
    once = sessions._drain_once

    def late(*given: object) -> None:
        once(*given)  # type: ignore[arg-type] # what it is given
        if notes[1:]:
            pending.add(notes.pop())

    monkeypatch.setattr(sessions, "_drain_once", late)
    sessions.drain(home, environment(tmp_path))

    assert [name for name, _ in stored(tmp_path)] == ["claude-code-s0", "claude-code-s1"]
    assert not pending


def test_a_failure_that_may_pass_ends_and_keeps_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = PendingSessions(tmp_path / ".perdure")
    pending.add(PendingSession("claude-code", "s", str(transcript(tmp_path, "x", session="s"))))

    def failing(*_: object) -> None:
        raise NodeExistsError("somebody is faster")

    monkeypatch.setattr(sessions, "capture_session", failing)
    sessions.drain(tmp_path / ".perdure", environment(tmp_path))

    assert len(list(pending)) == 1
    monkeypatch.setattr(PendingSessions, "is_older", lambda *_: True)
    sessions.drain(tmp_path / ".perdure", environment(tmp_path))
    assert not pending


def _failed() -> tuple[type[BaseException], ...]:
    return FAILED if isinstance(FAILED, tuple) else (FAILED,)
