"""Versions of texts: what they say of themselves, and what differs between them."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.artifacts import CID, ArtifactStore, Hash, IndexState, Literal, NewBinding
from perdure.artifacts.artifact import Value
from perdure.errors import AbsentError, NotTextError
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import SAVE, Circumstances, History, Version
from tests.support.artifacts.memory_disk import MemoryDisk

NOTE = Locator("notes/today.md")
ONE, TWO = CID.of(b"one"), CID.of(b"two")
NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def pass_by(self, **span: float) -> None:
        self.now += timedelta(**span) // timedelta(milliseconds=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(clock: Clock) -> History:
    disk = MemoryDisk()
    return History(ArtifactStore(disk, clock=clock), disk)


@pytest.fixture
def recorded(history: History) -> Recorded:
    return Recorded(MemoryBackend(), history)


class TestCircumstances:
    def test_they_come_back_as_they_went(self) -> None:
        mapping = Circumstances("ana", "a hunch", "merge", (ONE, TWO), {"session": "7"})

        assert Circumstances.from_mapping(mapping.to_mapping()) == mapping

    def test_what_goes_without_saying_is_not_written(self) -> None:
        assert Circumstances().to_mapping() == {"origin": SAVE}

    @pytest.mark.parametrize(
        "mapping",
        [
            {"actor": 5},
            {"reason": None, "origin": ["save"]},
            {"derived_from": "bafkrei"},
            {"derived_from": [ONE, "bafkrei"]},
            {"derived_from": {"a": ONE}},
            {"more": {"deeper": [1]}},
        ],
    )
    def test_what_another_program_wrote_is_retained_as_it_is(
        self, mapping: dict[str, Value]
    ) -> None:
        read = Circumstances.from_mapping(mapping)

        assert read.more == mapping
        assert read.to_mapping() == {"origin": SAVE, **mapping}

    @given(
        st.dictionaries(
            st.sampled_from(["actor", "reason", "origin", "derived_from", "else"]),
            st.sampled_from([None, 1, "text", [ONE], [ONE, 2], b"bytes", {}]),
        )
    )
    def test_no_table_is_too_odd_to_be_read(self, mapping: dict[str, Value]) -> None:
        Circumstances.from_mapping(mapping)


class TestVersions:
    def test_a_text_has_a_version_for_each_change(self, recorded: Recorded, clock: Clock) -> None:
        recorded.because(actor="ana", reason="begun").write(NOTE, "one")
        clock.pass_by(seconds=5)
        merging = recorded.because(actor="ben", origin="merge", derived_from=[ONE], session="7")
        merging.write(NOTE, "two")
        recorded.remove(NOTE)

        first, second, third = recorded.history.versions(NOTE)

        assert (first.number, first.cid, first.time, first.unbound) == (1, ONE, NOON, False)
        assert (first.actor, first.reason, first.origin) == ("ana", "begun", SAVE)
        assert (second.number, second.cid, second.time) == (2, TWO, NOON + 5000)
        assert (second.actor, second.origin, second.derived_from) == ("ben", "merge", (ONE,))
        assert second.circumstances.more == {"session": "7"}
        assert (third.number, third.cid, third.unbound) == (3, None, True)
        assert first.commit < second.commit < third.commit

    def test_a_key_that_was_never_written_has_none(self, history: History) -> None:
        assert history.versions(NOTE) == []
        assert history.current(NOTE) is None
        assert history.blame(NOTE) == []

    def test_earlier_states_know_fewer(self, recorded: Recorded) -> None:
        history = recorded.history
        states = [recorded.commit({NOTE: text}) for text in ("one", "two", "three")]

        assert [len(history.versions(NOTE, state)) for state in states] == [1, 2, 3]
        event = history.current(NOTE, states[1])
        assert event is not None
        assert event.cid == TWO

    def test_a_version_is_found_by_number_content_or_itself(self, recorded: Recorded) -> None:
        for text in ("one", "two", "one"):
            recorded.write(NOTE, text)
        history = recorded.history
        versions = history.versions(NOTE)

        assert history.version(NOTE, 2) == versions[1]
        assert history.version(NOTE, ONE) == versions[2]
        assert history.version(NOTE, versions[0]) == versions[0]
        for missing in (0, 4, CID.of(b"never")):
            with pytest.raises(AbsentError, match=r"notes/today\.md"):
                history.version(NOTE, missing)

    def test_texts_of_versions_are_read(self, recorded: Recorded) -> None:
        texts = ["one\r\n", "", "dré\n"]
        for text in texts:
            recorded.write(NOTE, text)
        history = recorded.history

        assert [history.text(version) for version in history.versions(NOTE)] == texts

    def test_a_version_without_a_text_says_so(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.remove(NOTE)
        history = recorded.history
        first, second = history.versions(NOTE)
        with pytest.raises(AbsentError, match="removed"):
            history.text(second)

        history.store.tombstone(ONE, "private")
        with pytest.raises(AbsentError, match="was erased"):
            history.text(first)

    def test_what_another_program_bound_may_be_no_text(self, history: History) -> None:
        history.record([NewBinding(NOTE.key, b"\xff")])
        with pytest.raises(NotTextError, match="0xff"):
            history.text(history.versions(NOTE)[0])

    def test_another_hash_makes_no_difference(self) -> None:
        pytest.importorskip("blake3")
        disk = MemoryDisk()
        recorded = Recorded(MemoryBackend(), History(ArtifactStore(disk, hash=Hash.BLAKE3), disk))
        for text in ("one", "one", "two", "one"):
            recorded.write(NOTE, text)

        history = recorded.history
        assert [history.text(version) for version in history.versions(NOTE)] == [
            "one",
            "two",
            "one",
        ]


class TestDifferences:
    def test_two_versions_are_compared(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "a\nb\n")
        recorded.write(NOTE, "a\nc\n")

        assert recorded.history.diff(NOTE, 1, 2) == (
            "--- notes/today.md\tversion 1\n+++ notes/today.md\tversion 2\n"
            "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        )
        assert recorded.history.diff(NOTE, CID.of(b"a\nb\n"), 1) == ""

    def test_a_removal_takes_every_line_out(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "a\n")
        recorded.remove(NOTE)

        assert recorded.history.diff(NOTE, 1, 2).endswith("@@ -1 +0,0 @@\n-a\n")

    def test_each_line_tells_who_wrote_it_and_why(self, recorded: Recorded) -> None:
        recorded.because(actor="ana", reason="begun").write(NOTE, "a\nb\n")
        recorded.because(actor="ben", reason="mended").write(NOTE, "a\nB\n")

        message = [
            (line.text, line.version.number, line.version.actor, line.version.reason)
            for line in recorded.history.blame(NOTE)
        ]

        assert message == [("a\n", 1, "ana", "begun"), ("B\n", 2, "ben", "mended")]

    def test_versions_that_are_gone_are_passed_over(self, recorded: Recorded) -> None:
        for text in ("a\n", "a\nsecret\n", "a\nb\n"):
            recorded.write(NOTE, text)
        history = recorded.history
        history.store.tombstone(CID.of(b"a\nsecret\n"), "private")

        assert [line.version.number for line in history.blame(NOTE)] == [1, 3]
        history.store.tombstone(CID.of(b"a\nb\n"), "private")
        with pytest.raises(AbsentError):
            history.blame(NOTE)

    def test_what_was_removed_has_no_lines(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "a\n")
        recorded.remove(NOTE)

        assert recorded.history.blame(NOTE) == []


class TestChanges:
    def test_each_event_comes_once_and_in_order(self, recorded: Recorded) -> None:
        recorded.write(NOTE, "one")
        recorded.history.store.put(Literal(b"of no name"))
        recorded.commit({Locator("a"): "1", Locator("b"): "2"})
        recorded.remove(NOTE)

        events = list(recorded.history.changes())

        assert [event.key for event in events] == [NOTE.key, "a", "b", NOTE.key]
        assert [event.unbound for event in events] == [False, False, False, True]
        positions = [event.position for event in events]
        assert positions == sorted(set(positions))

    def test_a_reader_that_resumes_from_the_last_event_misses_none(
        self, recorded: Recorded
    ) -> None:
        history = recorded.history
        recorded.commit({Locator("a"): "1", Locator("b"): "2"})
        recorded.write(NOTE, "one")
        every = list(history.changes())

        for count, event in enumerate(every, 1):
            assert list(history.changes(after=event.position)) == every[count:]

    def test_they_are_the_versions(self, recorded: Recorded) -> None:
        recorded.because(actor="ana").write(NOTE, "one")
        recorded.write(NOTE, "two")
        versions = [
            Version(e.key, e.position, e.commit, e.time, e.cid, e.circumstances, number)
            for number, e in enumerate(recorded.history.changes(), 1)
        ]

        assert versions == recorded.history.versions(NOTE)


class TestStates:
    @pytest.mark.parametrize(
        ("when", "expected"),
        [
            ("2026-02-28", 0),
            (date(2026, 2, 28), 0),
            ("2026-03-01T11:59:59.999Z", 0),
            ("2026-03-01T12:00:00Z", 1),
            ("2026-03-01T12:00:00", 1),
            ("2026-03-01 13:00:00.5+01:00", 1),
            (datetime(2026, 3, 1, 12, tzinfo=UTC), 1),
            (datetime(2026, 3, 1, 12, tzinfo=UTC) - timedelta(microseconds=1), 0),
            (datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=1))), 2),
            (datetime(2026, 3, 1, 13), 2),  # noqa: DTZ001 - what is under test
            ("2026-03-01", 2),
            (date(2026, 3, 1), 2),
            ("20260301", 2),
            ("2026-03-02", 3),
            (date.max, 3),
            ("1969-12-31", 0),
        ],
    )
    def test_a_time_means_the_last_commit_at_or_before_it(
        self, recorded: Recorded, clock: Clock, when: datetime | date | str, expected: int
    ) -> None:
        states = [IndexState(0, 0)]
        for text in ("one", "two", "three"):
            states.append(recorded.commit({NOTE: text}))
            clock.pass_by(hours=1)
            if text == "two":
                clock.pass_by(days=1)

        assert recorded.history.state_at(when) == states[expected]

    @pytest.mark.parametrize("nonsense", ["", "yesterday", "2026-13-01", "12:00"])
    def test_what_is_no_time_is_refused(self, history: History, nonsense: str) -> None:
        with pytest.raises(ValueError, match="2026-03-01"):
            history.state_at(nonsense)


class TestOpening:
    def test_a_history_in_a_folder_is_there_when_opened_again(self, tmp_path: Path) -> None:
        folder = str(tmp_path / "home" / "history")
        inner = MemoryBackend()
        with History.open(folder) as history:
            Recorded(inner, history).because(actor="ana").write(NOTE, "one")
        with History.open(folder) as history:
            (version,) = history.versions(NOTE)

            assert history.text(version) == "one"
            assert version.actor == "ana"

    def test_looking_into_one_that_is_not_there_makes_none(self, tmp_path: Path) -> None:
        folder = tmp_path / "history"
        with History.open(str(folder)) as history:
            Recorded(MemoryBackend(), history)
            assert list(history.changes()) == []
            assert history.versions(NOTE) == []
            assert history.state_at("2026-03-01") == (0, 0)

        assert not folder.exists()
