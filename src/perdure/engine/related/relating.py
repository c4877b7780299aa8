"""Finds notes that should be linked and are not, by the index: never by looking at all pairs."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice

from perdure.context.files import META
from perdure.context.reading import NodeReader
from perdure.context.relations import RelationReader
from perdure.engine.related.signs import (
    ENTITY,
    Kind,
    Reason,
    Text,
    entities,
    names,
    sessions,
    words,
)
from perdure.errors import ContextError
from perdure.index.contract import Embedder, Filters, KeptIndex
from perdure.model import SUPERSEDED_BY, Level, RequestContext, Uri
from perdure.model.record import ACCOUNT, OWNER_SPACE, VALID_UNTIL
from perdure.model.uri import PROFILE
from perdure.model.values import read_moment

_ENOUGH = 0.5
"""What two notes have in common must weigh so much."""
_ENOUGH_BESIDE = 0.8
"""In one folder they stand beside each other anyway: more is asked, or two reasons."""
_CLOSE, _SAME = 0.45, 0.75
"""From this cosine on, texts are taken to be about the same; and from that on, surely."""
_MOST_EMBEDDED = 2_000
"""Characters; models read no more."""
_RARE = 12
_NEAR = 30
_THROUGH = 40
"""So many notes are looked at that lead to one, or that it leads to."""
_KNOWN = 20_000
_LEARNED = 2_000
"""Of so many notes it is looked up which session they come from."""
_SESSION = re.compile(r'"session": ("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked: canonical state, and the index that leads to it."""

    reader: NodeReader
    relations: RelationReader
    index: KeptIndex
    embedder: Embedder | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Two notes that should be linked, and why."""

    uri: str
    to: str
    score: float
    reasons: tuple[Reason, ...]


class Related:
    """Suggests links between notes that the caller may see. It writes nothing."""

    def __init__(self, sources: Sources, ctx: RequestContext, now: datetime | None = None) -> None:
        self._reader = sources.reader
        self._relations = sources.relations
        self._index = sources.index
        self._embedder = sources.embedder
        self._ctx = ctx
        self._now = now or datetime.now(UTC)
        self._text = lru_cache(_KNOWN)(self._read)
        self._weighed = lru_cache(_KNOWN)(self._weigh)
        self._linked = lru_cache(_KNOWN)(self._read_links)
        self._sessions_of = lru_cache(_KNOWN)(self._read_sessions)
        self._entities_of = lru_cache(_KNOWN)(self._list_entities)

    # ------------------------------------------------------------ questions
    def of(self, uri: str, most: int) -> list[Suggestion]:
        """Return what one note should be linked to, the best first."""
        text = self._text(uri)
        if text is None:
            return []
        meant = self._near_in_meaning(text)
        rare = self._rare(text)
        met = self._met(uri)
        found = (
            self._suggestion(text, other, rare, meant.get(other), met.get(other))
            for other in self._candidates(text, rare, meant, met)
        )
        return sorted(filter(None, found), key=lambda each: (-each.score, each.to))[:most]

    def among(self, uris: Sequence[str], most: int) -> list[Suggestion]:
        """Return the best for some notes together, each pair once."""
        pairs: dict[frozenset[str], Suggestion] = {}
        for uri in uris:
            for each in self.of(uri, most):
                pairs.setdefault(frozenset({each.uri, each.to}), each)
        return sorted(pairs.values(), key=lambda each: (-each.score, each.uri, each.to))[:most]

    # ------------------------------------------------------------ candidates
    def _candidates(
        self,
        text: Text,
        rare: dict[str, float],
        meant: dict[str, float],
        met: dict[str, str],
    ) -> list[str]:
        """Return whom to compare a note with; those it is linked with already are left out."""
        uri = text.node.uri
        found = dict.fromkeys((*self._index.match(list(rare), self._filters, _NEAR), *meant, *met))
        for entity in self._entities(uri):
            name = entity.name.replace("-", " ")
            if text.says(name):
                found |= dict.fromkeys(self._index.match(name.split(), self._filters, _NEAR))
                found[str(entity)] = None
        for session in sorted(text.sessions):
            found |= dict.fromkeys(self._learned_from(uri).get(session, ()))
        own = Uri.parse(uri).name.replace("-", " ").split()
        found |= dict.fromkeys(self._index.match(own, self._filters, _NEAR))
        linked = self._linked(uri)
        return [each for each in found if each != uri and each not in linked]

    def _rare(self, text: Text) -> dict[str, float]:
        """Return the rarest words of a note that others say too, and how rare they are."""
        weighed = {}
        for word in text.words:
            said_by, weight = self._weighed(word)
            if said_by - {text.node.uri}:
                weighed[word] = weight
        rarest = sorted(weighed, key=lambda word: (-weighed[word], word))[:_RARE]
        return {word: weighed[word] for word in rarest if weighed[word] > 0}

    def _weigh(self, word: str) -> tuple[frozenset[str], float]:
        """Return two notes that say a word, if there are two, and how rare it is."""
        said_by = frozenset(self._index.match([word], self._filters, 2))
        return said_by, self._index.ceiling(self._ctx.account_id, [word])

    def _near_in_meaning(self, text: Text) -> dict[str, float]:
        if self._embedder is None or not text.node.content.strip():
            return {}
        vector = self._embedder.embed_texts([text.node.content[:_MOST_EMBEDDED]])[0]
        hits = self._index.search_by_vector(vector, self._filters, _NEAR)
        found: dict[str, float] = {}
        for hit in hits:
            if hit.score >= _CLOSE:
                found[hit.uri] = max(hit.score, found.get(hit.uri, 0.0))
        return found

    def _met(self, uri: str) -> dict[str, str]:
        """Return the notes that a third one links to as well, or that link to the same, and it."""
        edges = self._relations.get_edges(uri, self._ctx)[:_THROUGH]
        into = self._relations.get_incoming(uri, self._ctx)[:_THROUGH]
        met: dict[str, str] = {}
        for edge in into:
            for other in self._relations.get_edges(edge.from_uri, self._ctx)[:_THROUGH]:
                met.setdefault(other.to_uri, edge.from_uri)
        for edge in edges:
            for other in self._relations.get_incoming(edge.to_uri, self._ctx)[:_THROUGH]:
                met.setdefault(other.from_uri, edge.to_uri)
        met.pop(uri, None)
        return met

    # ------------------------------------------------------------ one pair
    def _suggestion(
        self,
        text: Text,
        other_uri: str,
        rare: dict[str, float],
        meaning: float | None,
        through: str | None,
    ) -> Suggestion | None:
        other = self._text(other_uri)
        if other is None:
            return None
        known = self._entities(text.node.uri)
        near = [*words(other, rare)]
        if meaning is not None:
            weight = min(1.0, 0.5 + 0.5 * (meaning - _CLOSE) / (_SAME - _CLOSE))
            near.append(Reason(Kind.MEANING, weight, f"close in meaning ({meaning:.2f})"))
        more = [
            *names(text, other),
            *islice(entities(text, other, known), 2),
            *sessions(text, other),
        ]
        if through is not None:
            met = f"both are linked with {Uri.parse(through).name}"
            more.append(Reason(Kind.MENTION, 0.3, met))
        score = max((each.weight for each in near), default=0.0) + sum(e.weight for e in more)
        reasons = tuple(sorted((*near, *more), key=lambda each: (-each.weight, each.said)))
        suggestion = Suggestion(text.node.uri, other_uri, round(score, 3), reasons)
        return suggestion if _is_enough(suggestion) else None

    # ------------------------------------------------------------ what is known
    @cached_property
    def _filters(self) -> Filters:
        spaces = self._index.owner_spaces(self._ctx.account_id)
        seen = sorted(space for space in spaces if self._ctx.reaches(space))
        return {
            ACCOUNT: self._ctx.account_id,
            OWNER_SPACE: tuple(seen) or f"user:{self._ctx.user_id}",
            "level": Level.CONTENT.value,
        }

    def _read(self, uri: str) -> Text | None:
        """Return a note in use that still holds, and that a person could link to."""
        place = Uri.parse(uri)
        if not place.is_node or place.session or place.name == PROFILE:
            return None  # a profile speaks of all there is
        with suppress(ContextError):
            node = self._reader.read_node(uri, self._ctx)
            until = read_moment(node.metadata.get(VALID_UNTIL))
            former = any(edge.relation_type == SUPERSEDED_BY for edge in node.relations)
            if not former and (until is None or until > self._now):
                return Text.of(node)
        return None

    def _read_links(self, uri: str) -> frozenset[str]:
        out = (edge.to_uri for edge in self._relations.get_edges(uri, self._ctx))
        into = (edge.from_uri for edge in self._relations.get_incoming(uri, self._ctx))
        return frozenset((*out, *into))

    def _entities(self, uri: str) -> tuple[Uri, ...]:
        """Return the entities that the owner of a note has notes about."""
        place = Uri.parse(uri)
        owner = Uri(place.account, place.path[:2])
        return self._entities_of(str(owner.child("memories").child(ENTITY)))

    def _learned_from(self, uri: str) -> dict[str, list[str]]:
        """Return by session what the owner of a note learned from it; of so many notes at most."""
        place = Uri.parse(uri)
        return self._sessions_of(str(Uri(place.account, place.path[:2]).child("memories")))

    def _read_sessions(self, memories: str) -> dict[str, list[str]]:
        learned: dict[str, list[str]] = {}
        for place in islice(self._reader.walk(Uri.parse(memories)), _LEARNED):
            said = self._reader.look(place, META)
            for session in set(_SESSION.findall(said)) if isinstance(said, str) else ():
                with suppress(ValueError):
                    learned.setdefault(json.loads(session), []).append(str(place))
        return learned

    def _list_entities(self, folder: str) -> tuple[Uri, ...]:
        with suppress(ContextError):
            return tuple(map(Uri.parse, self._reader.list_children(folder, self._ctx)))
        return ()


def _is_enough(suggestion: Suggestion) -> bool:
    beside = Uri.parse(suggestion.uri).parent == Uri.parse(suggestion.to).parent
    kinds = {each.kind for each in suggestion.reasons}
    if beside and len(kinds) < 2:  # noqa: PLR2004 - two reasons
        return suggestion.score >= _ENOUGH_BESIDE
    return suggestion.score >= _ENOUGH


def sampled(uris: Iterable[str], most: int) -> Iterator[str]:
    """Yield some of many, spread over all of them; always the same ones."""
    chosen = sorted(uris, key=lambda uri: sha256(uri.encode()).digest())
    yield from chosen[:most]
