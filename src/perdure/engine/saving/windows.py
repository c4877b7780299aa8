"""Which messages an extractor is shown: what is new, what was said just before, and who speaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perdure.engine.extract.evidence import evidence_of
from perdure.model import CandidateMemory
from perdure.model.transcript import Message

AT_ONCE = 200
"""So many new messages are learned from at a time; what was learned then is kept at once."""
_BEFORE = 20


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a session, by their indexes; those from `start` on are new."""

    said: Sequence[Message]
    start: int
    end: int

    @property
    def indexes(self) -> list[int]:
        first: dict[tuple[str, str], int] = {}
        for index, message in enumerate(self.said[: self.start]):
            first.setdefault((message.role, message.name), index)
        recent = range(max(0, self.start - _BEFORE), self.end)
        return sorted({*first.values(), *recent})

    @property
    def messages(self) -> list[Mapping[str, object]]:
        return [_as_mapping(self.said[index]) for index in self.indexes]

    def placed(self, candidates: Sequence[CandidateMemory]) -> list[CandidateMemory]:
        """Return what rests on something new, with its evidence counted as the session counts."""
        indexes = self.indexes
        placed = (_placed(candidate, indexes) for candidate in candidates)
        return [
            each
            for each in placed
            if any(evidence.message >= self.start for evidence in evidence_of(each))
        ]


def _placed(candidate: CandidateMemory, indexes: Sequence[int]) -> CandidateMemory:
    found = evidence_of(candidate)
    evidence = [replace(each, message=indexes[each.message]).as_json() for each in found]
    return replace(candidate, metadata={**candidate.metadata, "evidence": evidence})


def _as_mapping(message: Message) -> dict[str, object]:
    told = {"role": message.role, "content": message.content}
    more = {"name": message.name, "time": message.time}
    return {**told, **{name: value for name, value in more.items() if value}}
