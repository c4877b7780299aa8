"""A candidate rests on the words of a message, or it is refused."""

from dataclasses import replace
from typing import Any

import pytest

from perdure.artifacts import CID
from perdure.engine.learn.evidence import check_evidence, evidence_of, verified
from perdure.engine.learn.extractors import ProfileExtractor
from perdure.errors import EvidenceError, InvalidValueError
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message

ANA = RequestContext("acme", "ana", session_id="one")
MESSAGES: list[dict[str, object]] = [
    {"role": "assistant", "content": "Where do you live?"},
    {"role": "user", "content": "Well, I live in Porto, by the way.", "name": "Ana"},
]
SESSION = [Message.from_mapping(each) for each in MESSAGES]


@pytest.fixture
def candidate() -> CandidateMemory:
    (found,) = ProfileExtractor().extract(MESSAGES, ANA)
    return found


def with_evidence(candidate: CandidateMemory, **changes: Any) -> CandidateMemory:  # noqa: ANN401 - JSON
    listed: Any = candidate.metadata["evidence"]
    return replace(candidate, metadata={"evidence": [{**listed[0], **changes}]})


def test_evidence_is_the_message_its_cid_and_the_words(candidate: CandidateMemory) -> None:
    content = str(MESSAGES[1]["content"])
    (evidence,) = evidence_of(candidate)

    assert evidence.message == 1
    assert evidence.cid == str(CID.of(content.encode()))
    assert evidence.quote == candidate.quote == "I live in Porto"
    assert candidate.speaker == "Ana"
    check_evidence(candidate, SESSION)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"quote": "I live in Lisbon"}, "is not in message 1"),
        ({"quote": "i live in porto"}, "is not in message 1"),
        ({"quote": " "}, "is not in message 1"),
        ({"message": 2}, "from message 2, which does not exist"),
        ({"message": 0}, "from another text than message 0"),
        ({"cid": str(CID.of(b""))}, "from another text than message 1"),
        ({"message": "1"}, "is not evidence"),
        ({"more": 1}, "is not evidence"),
    ],
)
def test_words_that_are_not_there_are_refused(
    candidate: CandidateMemory, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(EvidenceError, match=rf"{reason}.*Fix: "):
        check_evidence(with_evidence(candidate, **changes), SESSION)


@pytest.mark.parametrize("metadata", [{}, {"evidence": []}, {"evidence": "I live in Porto"}])
def test_a_candidate_without_evidence_is_refused(
    candidate: CandidateMemory, metadata: dict[str, Any]
) -> None:
    with pytest.raises(EvidenceError, match="has no evidence"):
        check_evidence(replace(candidate, metadata=metadata), SESSION)


@pytest.mark.parametrize("change", [{"quote": "I live"}, {"speaker": "Tom"}])
def test_quote_and_speaker_are_those_of_the_evidence(
    candidate: CandidateMemory, change: dict[str, Any]
) -> None:
    with pytest.raises(EvidenceError):
        check_evidence(replace(candidate, **change), SESSION)


def test_a_refused_candidate_has_a_reason(candidate: CandidateMemory) -> None:
    made_up = with_evidence(candidate, quote="I love Porto")
    kept, refused = verified([made_up, candidate], MESSAGES)

    assert kept == [candidate]
    assert [each for each, _ in refused] == [made_up]
    assert "'I love Porto' is not in message 1" in refused[0][1]


def test_a_negative_message_is_none(candidate: CandidateMemory) -> None:
    with pytest.raises(InvalidValueError):
        check_evidence(with_evidence(candidate, message=-1), SESSION)
