"""Where a memory belongs, and where it goes when it no longer holds."""

import re
from hashlib import sha256

from perdure.model import CandidateMemory, Uri, slugify
from perdure.model.uri import PROFILE

FORMER = "former"
"""The category of what held once. Each such node leads to what superseded it."""
TAKEN_APART = "apart"
"""The category of what was taken out of a profile, which has but one page."""
_SKILLS = frozenset({"skill", "tool"})
_LONGEST = 100
_DIGEST = 8


def owner_place(account: str, owner_space: str) -> Uri:
    kind, _, name = owner_space.partition(":")
    return Uri(account, (f"{kind}s", name))


def place_of(candidate: CandidateMemory, account: str) -> Uri:
    """Return where a candidate belongs if nothing stands in the way."""
    owner = owner_place(account, candidate.owner_space)
    if candidate.category in _SKILLS and owner.path[0] == "agents":
        return owner.child("skills", candidate.slug)
    memories = owner.child("memories", candidate.category)
    return memories if candidate.category == PROFILE else memories.child(candidate.slug)


def of_project(place: Uri, project: str) -> Uri:
    """Return the place of a memory whose own is taken by another project's."""
    own = f"--{project or 'person'}"
    return place.parent.child(f"{place.name.removesuffix(own)[: _LONGEST - len(own)]}{own}")


def beside(place: Uri, text: str) -> Uri:
    """Return a place near another one that is taken: named by what stands there, too."""
    end = f"-{digest(text)}"
    return place.parent.child(place.name[: _LONGEST - len(end)].rstrip("-") + end)


def apart_place(page: Uri, text: str) -> Uri:
    """Return where a statement goes that its owner took out of a page."""
    if not is_profile(page):
        return beside(page, text)
    name = slugify(text)[: _LONGEST - _DIGEST - 1].strip("-")
    return page.parent.child(TAKEN_APART, f"{name}-{digest(text)}".strip("-"))


def is_profile(place: Uri) -> bool:
    return place.path[2:] == ("memories", PROFILE)


def former_place(page: Uri, text: str, until: str) -> Uri:
    """Return where a statement of a page goes that held until a day."""
    owner = Uri(page.account, page.path[:2])
    said = slugify(f"{'-'.join(page.path[3:])} {text[:_LONGEST]}")
    end = f"-{digest(text, until, str(page))}"
    name = said[: _LONGEST - len(end)].strip("-") + end
    return owner.child("memories", FORMER, name)


def digest(*texts: str) -> str:
    return sha256("\n".join(texts).encode()).hexdigest()[:_DIGEST]


def is_near(one: str, other: str) -> bool:
    """Whether two slugs name the same thing: the same words, in whatever order and number."""
    first, second = _words(one), _words(other)
    return bool(first) and (
        first == second
        or (min(len(first), len(second)) > 1 and (first <= second or second <= first))
    )


def differ_by_value(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two slugs differ only by what their texts say differently of the same thing.

    Each is a slug and its text: "database-sqlite" of "The database is SQLite", beside Postgres.
    """
    names = _words(one[0]), _words(other[0])
    texts = _words(slugify(one[1])), _words(slugify(other[1]))
    values = texts[0] - texts[1], texts[1] - texts[0]
    own = names[0] - names[1], names[1] - names[0]
    return bool(names[0] & names[1]) and own[0] <= values[0] and own[1] <= values[1]


def _words(slug: str) -> frozenset[str]:
    words = (word for word in re.split(r"[-_]+", slug) if word)
    return frozenset(_singular(word) for word in words)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):  # noqa: PLR2004 - "ties" is no "ty"
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):  # noqa: PLR2004 - "gas" stays
        return word[:-1]
    return word
