"""What a statement says has changed: "we switched to pnpm", "Mondays instead of Thursdays"."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perdure.engine.learn.judge import group_of, is_other_of_group, plain_words
from perdure.engine.learn.naming import singular, words_of
from perdure.engine.tables import table
from perdure.patterns import later

_FORMS, _TYPES = (
    [later(text, re.IGNORECASE) for text in table(__file__, "patterns.txt", name).values()]
    for name in ("changes", "values")
)
_ADJUSTED = later(
    r"^(?:no,? |actually,? |ok,? |sorry,? )*(?:make|let's make|set|change) (?:it|that) (?:to )?"
    r"(?P<value>.*?\d.*?|[a-z]+days?)[.!]?$",
    re.IGNORECASE,
)
_SPARE = words_of("stop") | words_of("verbs") | {"is", "have", "always", "repo", "project"}
"""Words that say nothing by themselves."""
_PURPOSE = later(
    r" for (?:all |the |our |any |unit |dev )*(?:tests?|testing|everything|packages|dependencies|"
    r"installs?|installing|builds?|building|linting|formatting)[.!]?$",
    re.IGNORECASE,
)
"""What all tools of a group are for."""
_FRAGMENT = 6
"""Words. A shorter "X instead of Y" names neither what it is about nor what is done."""


class Change(NamedTuple):
    """What came, and what is gone; either may be missing."""

    came: tuple[str, ...]
    gone: tuple[str, ...]


def change_in(text: str) -> Change | None:
    for form in _FORMS:
        if found := form.search(text.replace("\u2019", "'")):
            part = {"came": "", "gone": ""} | found.groupdict(default="")
            return Change(plain_words(part["came"]), plain_words(part["gone"]))
    return None


def outdates(new: str, old: str) -> bool | None:
    """Return whether it is certain that a newer statement ends an older one; None if it does not.

    It is certain only if the older one says nothing but what is gone, and at most what that is for
    if what came is for the same.
    """
    change = change_in(new)
    if change is None or change_in(old) == change:
        return None
    was = [singular(word) for word in plain_words(old)]
    gone = _gone(change, was)
    if not gone or (change.came and {*map(singular, change.came)} <= set(was)):
        return None
    spare = {singular(word) for word in (*plain_words(new), *_SPARE)}
    came = [singular(word) for word in change.came]
    if any(is_other_of_group(word, other) for word in gone for other in came):
        was = [singular(word) for word in plain_words(_PURPOSE.sub("", old))]
    return all(word in gone or word in spare for word in was)


def _gone(change: Change, was: Sequence[str]) -> set[str]:
    named = {singular(word) for word in change.gone} - _SPARE
    if named:
        return named if named <= set(was) else set()
    came = [singular(word) for word in change.came]
    return {word for word in was for other in came if is_other_of_group(word, other)}


def searched(text: str) -> str:
    """Return a statement with the words by which what it ends is found."""
    change = change_in(text)
    if change is None:
        return text
    others = (word for came in change.came for word in group_of(singular(came)))
    return " ".join((text, *others))


def completions(new: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """Return what a fragment says in full, with each known statement that it may change.

    "Mondays instead of Thursdays" and "actually make it every 15 minutes" name the new value only.
    """
    return [(whole, old) for old in known if (whole := _whole(new, old))]


def is_fragment(text: str) -> bool:
    """Whether a text only names a new value."""
    if _ADJUSTED.match(text):
        return True
    change = change_in(text)
    if change is None or not (change.came and change.gone) or len(text.split()) >= _FRAGMENT:
        return False
    verbs = words_of("verbs") | {"is", "switched", "moved", "renamed", "replace", "rename"}
    return verbs.isdisjoint(plain_words(text))


def _whole(new: str, old: str) -> str | None:
    if found := _ADJUSTED.match(new):
        return _with_value(found["value"], old)
    form = _FORMS[0].search(new)
    if form is None or not is_fragment(new):
        return None
    named, came = form["gone"].rstrip(".,!").rstrip("s"), form["came"].split()[-1]
    gone = re.compile(rf"(?<!\w){re.escape(named)}s?(?!\w)", re.IGNORECASE)
    return gone.sub(came, old, count=1) if len(gone.findall(old)) == 1 else None


def _with_value(value: str, old: str) -> str | None:
    for kind in _TYPES:
        if new := kind.search(value):
            found = kind.findall(old)
            changed = kind.sub(new[0], old, count=1)
            return changed if len(found) == 1 and changed != old else None
    return None
