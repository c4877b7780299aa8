"""Results that the caller computed, many at a time, are found by their structure."""

from pathlib import Path

import pytest

from perdure.artifacts import ArtifactStore, Derived, Literal
from perdure.artifacts.artifact import SID, sid_of
from perdure.artifacts.cid import CID


def shout(text: bytes, *, model: str = "m") -> Derived:
    return Derived("shout", "1", (Literal(text),), {"model": model})


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore.open(tmp_path / "memo")


def sids(*artifacts: Derived) -> list[SID]:
    return [sid_of(each) for each in artifacts]


def test_what_was_recorded_is_remembered_also_by_another_process(
    store: ArtifactStore, tmp_path: Path
) -> None:
    store.record_results([(shout(b"a"), b"A"), (shout(b"b"), b"B")])

    again = ArtifactStore.open(tmp_path / "memo")

    assert again.results_of(sids(shout(b"b"), shout(b"c"), shout(b"a"))) == [b"B", None, b"A"]


def test_what_is_recorded_after_a_query_is_remembered_too(
    store: ArtifactStore, tmp_path: Path
) -> None:
    other = ArtifactStore.open(tmp_path / "memo")
    for number, teller in enumerate((store, store, other), start=1):
        text = b"a" * number
        assert [each.results_of(sids(shout(text))) for each in (store, other)] == [[None]] * 2

        teller.record_results([(shout(text), text.upper())])

        assert [each.results_of(sids(shout(text))) for each in (store, other)] == [
            [text.upper()]
        ] * 2


def test_another_parameter_is_another_result(store: ArtifactStore) -> None:
    store.record_results([(shout(b"a"), b"A")])

    assert store.results_of(sids(shout(b"a", model="other"))) == [None]


def test_the_input_is_named_and_not_stored(store: ArtifactStore) -> None:
    store.record_results([(shout(b"a"), b"A")])

    assert store.get(CID.of(b"a")) is None
    assert store.structure(sid_of(Literal(b"a"))) is not None
    assert store.structure(sid_of(shout(b"a"))) is not None


def test_the_first_result_stays_the_result(store: ArtifactStore) -> None:
    store.record_results([(shout(b"a"), b"A")])
    store.record_results([(shout(b"a"), b"other")])

    assert store.results_of(sids(shout(b"a"))) == [b"A"]


def test_the_same_recorded_twice_is_retained_once(store: ArtifactStore) -> None:
    first = store.record_results([(shout(b"a"), b"A")])

    assert store.record_results([(shout(b"a"), b"A")]).position == first.position


def test_more_than_a_query_can_ask_for_are_found(store: ArtifactStore) -> None:
    texts = [b"%d" % number for number in range(2_500)]
    store.record_results((shout(text), text * 2) for text in texts)

    assert store.results_of(sids(*map(shout, texts))) == [text * 2 for text in texts]
