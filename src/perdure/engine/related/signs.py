"""What two notes have in common, as their own words have it."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from perdure.engine.merge.grounds import grounds_of
from perdure.engine.recall.planning import content_words
from perdure.index.words import stems
from perdure.model import ContextNode, Uri

ENTITY = "entity"
"""The category of who and what somebody speaks of."""
_ENOUGH = 3
"""So many words in common count in full; one may be chance."""
_MOST_WORDS = 60
_MOST_TOLD = 4


class Kind(Enum):
    """Why two notes should be linked."""

    NAMED = "named"
    """One says the name of the other."""
    WORDS = "words"
    MEANING = "meaning"
    ENTITY = "entity"
    """Both speak of somebody or something."""
    SESSION = "session"
    """Both were learned from one conversation."""
    MENTION = "mention"
    """A third note links to both, or both to a third."""


@dataclass(frozen=True, slots=True)
class Reason:
    kind: Kind
    weight: float
    said: str


@dataclass(frozen=True, slots=True)
class Text:
    """A note, with what is needed to compare it."""

    node: ContextNode
    stems: frozenset[str]
    sessions: frozenset[str]

    @classmethod
    def of(cls, node: ContextNode) -> "Text":
        said = {saying.session for each in grounds_of(node).values() for saying in each.said}
        return cls(node, frozenset(stems(_told(node))), frozenset(said))

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it may be found by, in the order in which it says them."""
        return content_words(_told(self.node))[:_MOST_WORDS]

    def says(self, phrase: str) -> bool:
        """Whether it says these words, one after the other."""
        parts = [re.escape(word) for word in re.findall(r"[^\W_]+", phrase)]
        pattern = r"(?<![^\W_])" + r"[\W_]{1,3}".join(parts) + r"(?![^\W_])"
        return bool(parts) and re.search(pattern, _told(self.node), re.IGNORECASE) is not None


def _told(node: ContextNode) -> str:
    return f"{node.title}\n{node.content}"


def words(other: Text, rare: Mapping[str, float]) -> Iterator[Reason]:
    """Tell which of the rare words of one another says too; `rare` has how rare each is."""
    common = [word for word in rare if set(stems(word)) & other.stems]
    whole = sum(rare.values())
    if common and whole:
        share = sum(rare[word] for word in common) / whole
        most = sorted(common, key=lambda word: (-rare[word], word))[:_MOST_TOLD]
        weight = share * min(1.0, len(common) / _ENOUGH)
        yield Reason(Kind.WORDS, weight, f"both speak of {', '.join(most)}")


def entities(one: Text, other: Text, known: Collection[Uri]) -> Iterator[Reason]:
    """Tell of whom or what both speak, of those that there are notes about."""
    ours = {Uri.parse(one.node.uri), Uri.parse(other.node.uri)}
    for each in sorted(known, key=str):
        name = each.name.replace("-", " ")
        if each not in ours and one.says(name) and other.says(name):
            yield Reason(Kind.ENTITY, 0.3, f"both speak of {name}")


def sessions(one: Text, other: Text) -> Iterator[Reason]:
    shared = sorted(one.sessions & other.sessions)
    if shared:
        yield Reason(Kind.SESSION, 0.2, f"both were said in {', '.join(shared[:_MOST_TOLD])}")


def names(one: Text, other: Text) -> Iterator[Reason]:
    """Tell if one says the name of the other: of an entity, or one of several words."""
    for here, there in ((one, other), (other, one)):
        place = Uri.parse(there.node.uri)
        name = place.name.replace("-", " ")
        if (place.parent.name == ENTITY or len(name.split()) > 1) and here.says(name):
            yield Reason(Kind.NAMED, 0.6, f"{place.name} is named, but not linked")
            return
