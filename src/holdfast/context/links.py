"""`[[links]]` in a content: what they name, and what they lead to."""

import re
from collections.abc import Callable, Iterator
from typing import Protocol

from holdfast.errors import InvalidValueError
from holdfast.model import RelationEdge, Uri, slugify
from holdfast.model.uri import PROFILE, SCHEME

_CODE = r"^(?P<fence>```+|~~~+).*?(?:^(?P=fence)|\Z)|(?P<ticks>`+)[^`\n].*?(?P=ticks)"
_LINK = re.compile(
    rf"{_CODE}|(?<!\\)\[\[(?P<target>[^\[\]|#^\n]+)(?P<rest>[#^][^\[\]|\n]*)?"
    r"(?P<shown>\|[^\[\]\n]*)?\]\]",
    re.DOTALL | re.MULTILINE,
)
_FILE = "content"


class Places(Protocol):
    """What must be known of the nodes around to tell where a link leads."""

    def is_active(self, place: Uri) -> bool: ...

    def categories(self, owner: Uri) -> list[str]:
        """Return the categories in which a user or an agent has memories."""


def targets(content: str) -> Iterator[str]:
    """Yield what the links of a content name; what stands in code is none."""
    if "[[" in content:
        for match in _LINK.finditer(content):
            if match["target"]:
                yield match["target"].strip()


def name_in(target: str) -> str:
    """Return the name under which a link's target would be found."""
    return slugify(_segments(target)[-1])


def names_of_edges(edges: tuple[RelationEdge, ...]) -> set[str]:
    return {name_of(Uri.parse(edge.to_uri)) for edge in edges}


def name_of(place: Uri) -> str:
    """Return the name by which links to a place are found."""
    return slugify(place.name)


def resolve(target: str, start: Uri, places: Places) -> Uri | None:
    """Return the node that a link leads to; None if to none.

    A link says a URI, a slug, or a category and a slug. A slug is looked for beside the node that
    holds the link, then in the other categories of its owner, then among the owner's skills and
    what the account shares.
    """
    for place in _candidates(target, start, places):
        if place != start and places.is_active(place):
            return place
    return None


def _candidates(target: str, start: Uri, places: Places) -> Iterator[Uri]:
    if target.startswith(SCHEME):
        try:
            place = Uri.parse(target)
        except InvalidValueError:
            return
        if place.account == start.account and place.is_node:
            yield place
        return
    *above, name = map(slugify, _segments(target))
    yield from _owned_candidates(above[-1] if above else "", name, start, places)
    if not above or above[-1] == "resources":
        yield Uri(start.account, ("resources", name))


def _owned_candidates(category: str, name: str, start: Uri, places: Places) -> Iterator[Uri]:
    if start.path[0] not in {"users", "agents"}:
        return
    owner = Uri(start.account, start.path[:2])
    if name == PROFILE:
        yield owner.child("memories", PROFILE)
    for known in _beside_first(places.categories(owner), start.category):
        if known != PROFILE and category in {"", known}:
            yield owner.child("memories", known, name)
    if start.path[0] == "agents" and category in {"", "skills"}:
        yield owner.child("skills", name)


def _beside_first(categories: list[str], own: str) -> list[str]:
    return sorted(categories, key=lambda category: (category != own, category))


def _segments(target: str) -> list[str]:
    """Return the parts of a target; the name of the file in a node's folder is none."""
    parts = [part for part in target.removesuffix(".md").split("/") if part.strip()]
    if len(parts) > 1 and parts[-1] == _FILE:
        parts.pop()
    return parts or [target]


def relinked(content: str, leads: Callable[[str], bool], start: Uri, new: Uri) -> str:
    """Return the content with the links that `leads` is true for leading to `new`.

    What is shown to a reader stays as it was.
    """

    def follow(match: re.Match[str]) -> str:
        target = match["target"]
        if not target or not leads(target.strip()):
            return match[0]
        shown = match["shown"] or (f"|{target}" if not target.startswith(SCHEME) else "")
        return f"[[{_said(new, start)}{match['rest'] or ''}{shown}]]"

    return _LINK.sub(follow, content) if "[[" in content else content


def _said(place: Uri, start: Uri) -> str:
    """Return the shortest way to name a place that is right from where the link stands."""
    if place.owner_space == start.owner_space and place.category and start.category:
        return place.name if place.category == start.category else f"{place.category}/{place.name}"
    return str(place)
