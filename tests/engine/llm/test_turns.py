"""Who asks the same waits, but not for ever."""

from pathlib import Path

import pytest

from perdure.artifacts import Literal
from perdure.artifacts.artifact import sid_of
from perdure.engine.llm.memo import turn
from perdure.errors import ServiceUnreachableError

QUESTION = sid_of(Literal(b"a question"))
OTHER = sid_of(Literal(b"another question"))


class Time:
    """A clock that only goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    for module in ("perdure.files", "perdure.engine.llm.memo"):
        monkeypatch.setattr(f"{module}.time", time)
    return time


def test_who_asks_the_same_is_not_kept_waiting_for_ever(tmp_path: Path, time: Time) -> None:
    with turn(tmp_path, QUESTION, 60):
        with (
            pytest.raises(ServiceUnreachableError, match="another process") as caught,
            turn(tmp_path, QUESTION, 5),
        ):
            pass
        assert 5 <= time.now < 6
        assert (caught.value.passing, caught.value.billed) == (False, False)
        with turn(tmp_path, OTHER, 5):
            pass


def test_the_time_that_was_waited_is_no_longer_there(
    tmp_path: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = turn(tmp_path, QUESTION, 60)
    first.__enter__()

    def sleep(seconds: float) -> None:
        time.now += 2
        first.__exit__(None, None, None)

    monkeypatch.setattr(time, "sleep", sleep)
    with turn(tmp_path, QUESTION, 5) as left:
        assert left == 3


def test_a_turn_ends_also_with_an_error(tmp_path: Path, time: Time) -> None:
    with pytest.raises(KeyError), turn(tmp_path, QUESTION, 5):
        raise KeyError

    with turn(tmp_path, QUESTION, 5) as left:
        assert left == 5
        assert time.now == 0
