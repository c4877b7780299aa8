"""What the searches found, by message: a message of several passages is one candidate."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.model import SeedHit

Key = tuple[str, int]
"""A session and which message of it, or a node and which passage of it."""


@dataclass(slots=True)
class Candidate:
    """A message, or a passage of a note, that may be an answer."""

    key: Key
    hit: SeedHit
    """The passage that speaks best for it."""
    words: float = 0.0
    """How well it matches by words."""
    cosine: float | None = None
    """How near it is in meaning; None if it is not among the nearest."""
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        return sum(self.parts.values())

    def told(self, name: str) -> str:
        value = self.hit.payload.get(name)
        return value if isinstance(value, str) else ""

    @property
    def date(self) -> datetime | None:
        said = self.told("date")
        return datetime.fromisoformat(said) if said else None

    @property
    def length(self) -> int:
        length = self.hit.payload.get("length")
        return max(1, length) if isinstance(length, int) else 1

    @property
    def asks(self) -> bool:
        """Whether the message ends with a question."""
        return self.hit.payload.get("asks") is True

    @property
    def party(self) -> tuple[str, ...]:
        """Who speaks in its session."""
        party = self.hit.payload.get("party")
        return tuple(map(str, party)) if isinstance(party, tuple) else ()

    @property
    def near(self) -> tuple[int, int, int]:
        """The first passages of the message before, the one after, and the one after that."""
        match self.hit.payload.get("near"):
            case (int(before), int(after), int(second)):
                return before, after, second
        return -1, -1, -1


class Candidates:
    """Everything that was found so far, each once."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Candidate] = {}

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: Key) -> Candidate | None:
        return self._by_key.get(key)

    def add_by_words(self, hits: Iterable[SeedHit]) -> None:
        for hit in hits:
            candidate = self.add(hit)
            if hit.score > candidate.words:
                candidate.words, candidate.hit = hit.score, hit

    def add_by_vector(self, hits: Iterable[SeedHit]) -> None:
        for hit in hits:
            candidate = self.add(hit)
            if candidate.cosine is None or hit.score > candidate.cosine:
                candidate.cosine = hit.score
                if not candidate.words:
                    candidate.hit = hit

    def add(self, hit: SeedHit) -> Candidate:
        key = key_of(hit)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = Candidate(key, hit)
        return found


def key_of(hit: SeedHit) -> Key:
    message, passage = hit.payload.get("message"), hit.payload.get("passage")
    if isinstance(message, int):
        return f"{hit.payload.get('session_id')}#", message
    return hit.uri, passage if isinstance(passage, int) else 0
