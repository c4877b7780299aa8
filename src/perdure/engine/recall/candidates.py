"""What the searches found, by message: a message of several passages is one candidate."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from perdure.model import SeedHit

Key = tuple[str, int]
"""A session and which message of it, or a node and which passage of it."""


class Candidate:
    """A message, or a passage of a note, that may be an answer."""

    __slots__ = (
        "asks",
        "cosine",
        "hit",
        "key",
        "length",
        "near",
        "parts",
        "party",
        "role",
        "speaker",
        "words",
    )

    def __init__(self, key: Key, hit: SeedHit) -> None:
        told = hit.payload.get
        self.key = key
        self.hit = hit
        """The passage that speaks best for it."""
        self.words = 0.0
        """How well it matches by words."""
        self.cosine: float | None = None
        """How near it is in meaning; None if it is not among the nearest."""
        self.parts: dict[str, float] = {}
        self.speaker = str(told("speaker") or "")
        self.role = str(told("role") or "")
        self.party: tuple[str, ...] = tuple(told("party") or ())  # type: ignore[arg-type] # of texts, as it was put
        """Who speaks in its session."""
        self.length = max(1, int(told("length") or 1))  # type: ignore[arg-type] # as before
        self.asks = told("asks") is True
        """Whether the message ends with a question."""
        self.near: tuple[int, ...] = tuple(told("near") or ())  # type: ignore[arg-type] # as before
        """Where the message before begins, the one after, and the one after that; -1 is none."""

    @property
    def score(self) -> float:
        return sum(self.parts.values())

    @property
    def date(self) -> datetime | None:
        said = self.hit.payload.get("date")
        return datetime.fromisoformat(said) if isinstance(said, str) else None


class Candidates:
    """Everything that was found so far, each once."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Candidate] = {}

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

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
