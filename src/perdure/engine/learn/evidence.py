"""Which words of which message a candidate rests on, and whether they are there.

A candidate keeps its evidence in `metadata["evidence"]`: a list of mappings with `message`, `cid`
and `quote`. The first is the statement itself; its words and who said them are the candidate's
`quote` and `speaker` too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.artifacts import CID
from perdure.errors import EvidenceError
from perdure.model import CandidateMemory
from perdure.model.transcript import Message
from perdure.model.values import JSON, counted, shown


@dataclass(frozen=True, slots=True)
class Evidence:
    """Words that somebody said."""

    message: int
    """Which message of the session, from 0."""
    cid: str
    """The CID of the message's content."""
    quote: str

    @classmethod
    def at(cls, index: int, message: Message, start: int, end: int) -> "Evidence":
        return cls(index, cid_of(message.content), message.content[start:end])

    def as_json(self) -> dict[str, JSON]:
        return {"message": self.message, "cid": self.cid, "quote": self.quote}


@dataclass(frozen=True, slots=True)
class Refused:
    candidate: CandidateMemory
    reason: str


def cid_of(content: str) -> str:
    return str(CID.of(content.encode()))


def evidence_of(candidate: CandidateMemory) -> tuple[Evidence, ...]:
    """Return what a candidate says that it rests on; `EvidenceError` if it says nothing."""
    told = candidate.metadata.get("evidence")
    if isinstance(told, str) or not isinstance(told, Sequence) or not told:
        raise EvidenceError(
            f"the candidate {shown(candidate.content)} has no evidence. "
            'Fix: list the words it rests on in metadata["evidence"].'
        )
    return tuple(map(_read, told))


def check_evidence(
    candidate: CandidateMemory, messages: Sequence[Message | Mapping[str, object]]
) -> None:
    """Let a candidate pass whose words are there to the letter; else `EvidenceError`."""
    said = _messages(messages)
    found = evidence_of(candidate)
    for each in found:
        _check_words(each, said)
    first = found[0]
    if candidate.quote != first.quote:
        raise _unfounded(candidate.quote, "is not the quote of its first evidence")
    if candidate.speaker != said[first.message].speaker:
        raise _unfounded(candidate.speaker, f"did not say message {first.message}")


def verified(
    candidates: Iterable[CandidateMemory], messages: Sequence[Message | Mapping[str, object]]
) -> tuple[list[CandidateMemory], list[Refused]]:
    """Return the candidates whose evidence holds, and those that are refused, with the reason."""
    said = _messages(messages)
    kept: list[CandidateMemory] = []
    refused: list[Refused] = []
    for candidate in candidates:
        try:
            check_evidence(candidate, said)
        except EvidenceError as error:
            refused.append(Refused(candidate, str(error)))
        else:
            kept.append(candidate)
    return kept, refused


def _messages(given: Sequence[Message | Mapping[str, object]]) -> list[Message]:
    return [each if isinstance(each, Message) else Message.from_mapping(each) for each in given]


def _read(told: JSON) -> Evidence:
    match told:
        case {"message": int(message), "cid": str(cid), "quote": str(quote), **rest} if not rest:
            return Evidence(counted(message, "message of an evidence"), cid, quote)
    raise EvidenceError(f"{shown(told)} is no evidence. Fix: give message, cid and quote.")


def _check_words(evidence: Evidence, said: Sequence[Message]) -> None:
    if evidence.message >= len(said):
        raise _unfounded(evidence.quote, f"is of message {evidence.message}, which there is not")
    content = said[evidence.message].content
    if evidence.cid != cid_of(content):
        raise _unfounded(evidence.quote, f"is of another text than message {evidence.message}")
    if not evidence.quote.strip() or evidence.quote not in content:
        raise _unfounded(evidence.quote, f"is not in message {evidence.message}")


def _unfounded(what: str, why: str) -> EvidenceError:
    return EvidenceError(f"{shown(what)} {why}. Fix: quote what was said, to the letter.")
