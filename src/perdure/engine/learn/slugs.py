"""Slugs, owners and URIs of memories, and the word lists of `words.txt`."""

import re
import unicodedata
from hashlib import sha256

from perdure.model import CandidateMemory, RequestContext, Uri, slugify
from perdure.model.uri import PROFILE
from perdure.patterns import later, lists

_LISTS = lists(__file__, "words.txt")


def words_of(section: str) -> frozenset[str]:
    """Return the words of a section of `words.txt`."""
    return frozenset(word.replace("_", " ") for word in " ".join(_LISTS[section]).split())


def groups_of(section: str) -> list[tuple[str, ...]]:
    return [tuple(group.split()) for line in _LISTS[section] for group in line.split(" / ")]


_STOP = words_of("stop")
_MOST_WORDS = 7
_MOST = 60
_DIGEST = 8
_SHARP = later(r"(?<=\w)#(?!\w)")
_PLUS = later(r"(?<=[\w+])\+(?=\+*(?:\W|\Z))")
_DOT = later(r"(?<!\S)\.(?=[a-z])")
_EMOJI = 0x2190
"""Symbols from this code point on are emoji."""
_ATTITUDE = later(
    rf"\b(?:{'|'.join(sorted(words_of('attitudes'), key=len, reverse=True))})(?!\w)", re.IGNORECASE
)


def slug_of(text: str, prefix: str = "") -> str:
    """Return a slug of the significant words; a digest represents other letters than a to z."""
    text = _spelt(unicodedata.normalize("NFC", text).casefold())
    words = [word for word in re.findall(r"[\w']+", text) if word not in _STOP][:_MOST_WORDS]
    wanted = " ".join([*prefix.split(), *(words or text.split()[:_MOST_WORDS])])
    letters = unicodedata.normalize("NFKD", wanted)
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    slug = slugify(plain.replace("'", ""))[:_MOST].strip("-")
    if re.search(r"[^\W_]", re.sub(r"[\x00-\x7f]", "", plain)) or slug in {"", "untitled"}:
        return f"{slug or 'note'}-{digest(wanted)}"
    return slug


def _spelt(text: str) -> str:
    """Spell out signs that distinguish words: C# and C++, and emoji."""
    text = _DOT.sub("dot ", _PLUS.sub(" plus ", _SHARP.sub(" sharp", text)))
    return "".join(_named(letter) for letter in text)


def _named(letter: str) -> str:
    if ord(letter) < _EMOJI or unicodedata.category(letter) != "So":
        return letter
    return f" {unicodedata.name(letter, '').casefold().replace('-', ' ')} "


def thing_of(about: str) -> str:
    """Return what is liked or disliked, without the verb, so that both have the same slug."""
    plain = " ".join(about.replace("\u2019", "'").split())
    return " ".join(_ATTITUDE.sub(" ", plain).split()) or plain


def digest(*texts: str) -> str:
    return sha256("\n".join(texts).encode()).hexdigest()[:_DIGEST]


_SHARED = frozenset({"skill", "case"})
"""Categories of what an agent learns at work, for all of its users."""


def owner_space(category: str, ctx: RequestContext) -> str:
    """Return the owner of a candidate.

    An agent has many users. A rule that one of them states must not reach the others: "always run
    this before you answer" would be an order to everyone's agent. So it belongs to the user who
    stated it. Users share the purpose of a command, and what solved an error.
    """
    return f"agent:{ctx.agent_id}" if category in _SHARED else f"user:{ctx.user_id}"


FORMER = "former"
"""The category of superseded statements. Each node links to the one that superseded it."""
_SEPARATE = "apart"
"""The category of statements that were separated from the profile, which is one node."""
_SKILLS = frozenset({"skill", "tool"})
_LONGEST = 100


def place_of(candidate: CandidateMemory, account: str) -> Uri:
    kind, _, name = candidate.owner_space.partition(":")
    owner = Uri(account, (f"{kind}s", name))
    if candidate.category in _SKILLS and kind == "agent":
        return owner.child("skills", candidate.slug)
    memories = owner.child("memories", candidate.category)
    return memories if candidate.category == PROFILE else memories.child(candidate.slug)


def of_project(place: Uri, project: str) -> Uri:
    """Return another place for a memory whose place has a node of another project."""
    own = f"--{project or 'person'}"
    return place.parent.child(f"{place.name.removesuffix(own)[: _LONGEST - len(own)]}{own}")


def beside(place: Uri, text: str) -> Uri:
    """Return a place beside a taken one, with a digest of the text in its name."""
    return place.parent.child(_ended(place.name, digest(text)))


def separate_place(node: Uri, text: str) -> Uri:
    """Return the place of a statement that its owner separated from a node."""
    if not is_profile(node):
        return beside(node, text)
    return node.parent.child(_SEPARATE, _ended(slugify(text), digest(text)))


def former_place(node: Uri, text: str, until: str) -> Uri:
    """Return the place of a statement of a node that held until a day."""
    name = slugify(f"{'-'.join(node.path[3:])} {text[:_LONGEST]}")
    owner = Uri(node.account, node.path[:2])
    return owner.child("memories", FORMER, _ended(name, digest(text, until, str(node))))


def _ended(name: str, end: str) -> str:
    return f"{name[: _LONGEST - len(end) - 1].strip('-')}-{end}".strip("-")


def is_profile(place: Uri) -> bool:
    return place.path[2:] == ("memories", PROFILE)


def is_near(one: str, other: str) -> bool:
    """Whether two slugs name the same thing: the same words in any order, singular or plural."""
    first, second = _words(one), _words(other)
    several = min(len(first), len(second)) > 1
    return bool(first) and (first == second or (several and (first <= second or second <= first)))


def differ_by_value(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two slugs differ only by the values in which their texts differ.

    Each is a slug and its text: "database-sqlite" of "The database is SQLite", beside Postgres.
    """
    names = _words(one[0]), _words(other[0])
    texts = _words(slugify(one[1])), _words(slugify(other[1]))
    is_value = all(names[i] - names[1 - i] <= texts[i] - texts[1 - i] for i in (0, 1))
    return bool(names[0] & names[1]) and is_value


def _words(slug: str) -> frozenset[str]:
    return frozenset(singular(word) for word in re.split(r"[-_]+", slug) if word)


def singular(word: str) -> str:
    if re.search(r"\w{2}ies$", word):
        return f"{word[:-3]}y"
    return word[:-1] if re.search(r"\w{3}(?<![sui])s$", word) else word
