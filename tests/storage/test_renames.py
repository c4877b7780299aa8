"""The history of a text goes on where it is moved."""

import pytest

from perdure.artifacts import CID
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import EXTERNAL, RESTORE, SAVE, History
from tests.support.artifacts.memory_disk import MemoryDisk

A, B, C = Locator("a.md"), Locator("b.md"), Locator("c.md")


@pytest.fixture
def inner() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def memory(inner: MemoryBackend) -> Recorded:
    return Recorded(inner, History.on_disk(MemoryDisk()))


def move(memory: Recorded, old: Locator, new: Locator, text: str | None = None) -> None:
    moved = memory.read(old) if text is None else text
    memory.because(moved_from={new.key: old.key}).commit({new: moved, old: None})


def message(memory: Recorded, locator: Locator) -> list[tuple[int, str, str | None]]:
    history = memory.history
    return [
        (version.number, version.key, None if version.unbound else history.text(version))
        for version in history.versions(locator)
    ]


def test_versions_of_the_former_key_come_first(memory: Recorded) -> None:
    memory.write(A, "one")
    memory.write(A, "two")
    move(memory, A, B)
    memory.write(B, "three")

    assert message(memory, B) == [
        (1, A.key, "one"),
        (2, A.key, "two"),
        (3, B.key, "two"),
        (4, B.key, "three"),
    ]
    assert message(memory, A) == [(1, A.key, "one"), (2, A.key, "two"), (3, A.key, None)]


def test_what_was_at_a_place_before_is_another_text(memory: Recorded) -> None:
    memory.write(B, "something else")
    memory.remove(B)
    memory.write(A, "one")
    move(memory, A, B)
    memory.write(A, "a new one")

    assert message(memory, B) == [(1, A.key, "one"), (2, B.key, "one")]
    assert message(memory, A) == [(1, A.key, "one"), (2, A.key, None), (3, A.key, "a new one")]


def test_there_and_back_again_comes_to_an_end(memory: Recorded) -> None:
    memory.write(A, "one")
    move(memory, A, B)
    move(memory, B, A, "two")
    move(memory, A, B)
    move(memory, B, C)

    keys = [(key, text) for _, key, text in message(memory, C)]
    assert keys == [
        ("a.md", "one"),
        ("b.md", "one"),
        ("a.md", "two"),
        ("b.md", "two"),
        ("c.md", "two"),
    ]


def test_two_texts_that_change_places_keep_their_histories(memory: Recorded) -> None:
    memory.write(A, "first")
    memory.write(B, "second")
    memory.because(moved_from={A.key: B.key, B.key: A.key}).commit({A: "second", B: "first"})

    assert [text for _, _, text in message(memory, A)] == ["second", "second"]
    assert [text for _, _, text in message(memory, B)] == ["first", "first"]


def test_an_edit_that_was_found_when_it_was_moved_is_part_of_it(
    memory: Recorded, inner: MemoryBackend
) -> None:
    memory.write(A, "one")
    inner.write(A, "by hand")
    move(memory, A, B)

    versions = memory.history.versions(B)
    assert [(version.key, version.origin) for version in versions] == [
        (A.key, SAVE),
        (A.key, EXTERNAL),
        (B.key, SAVE),
    ]


def test_moved_from_may_be_one_key_for_one_text(memory: Recorded) -> None:
    memory.write(A, "one")
    memory.because(moved_from=A.key).write(B, "one")

    assert message(memory, B) == [(1, A.key, "one"), (2, B.key, "one")]


def test_a_removal_is_no_arrival(memory: Recorded) -> None:
    memory.write(A, "one")
    memory.because(moved_from=A.key).commit({B: "one", A: None})

    assert [key for _, key, _ in message(memory, A)] == [A.key, A.key]
    assert [key for _, key, _ in message(memory, B)] == [A.key, B.key]


@pytest.mark.parametrize("nonsense", [7, b"a.md", ["a.md"], "never.md", "../up", "b.md"])
def test_what_is_no_former_key_is_passed_over(memory: Recorded, nonsense: object) -> None:
    memory.because(moved_from=nonsense).write(B, "one")  # type: ignore[arg-type]

    assert message(memory, B) == [(1, B.key, "one")]


def test_the_past_knows_nothing_of_a_later_move(memory: Recorded) -> None:
    memory.write(A, "one")
    before = memory.history.store.current()
    move(memory, A, B)

    assert memory.history.versions(B, before) == []
    assert len(memory.history.versions(A, before)) == 1


def test_lines_are_blamed_on_the_version_that_wrote_them(memory: Recorded) -> None:
    memory.write(A, "one\n")
    move(memory, A, B, "one\ntwo\n")
    memory.write(B, "one\ntwo\nthree\n")

    blamed = [(line.version.number, line.version.key) for line in memory.history.blame(B)]
    assert blamed == [(1, A.key), (2, B.key), (3, B.key)]
    assert "-one" not in memory.history.diff(B, 1, 3)


def test_a_version_of_a_former_key_can_be_restored(memory: Recorded) -> None:
    memory.write(A, "one")
    move(memory, A, B, "two")
    version = memory.restore(B, 1)

    assert memory.read(B) == "one"
    assert (version.number, version.key, version.origin) == (3, B.key, RESTORE)
    assert memory.history.version(B, CID.of(b"two")).number == 2
