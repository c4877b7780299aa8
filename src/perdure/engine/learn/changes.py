"""What a statement says has changed: "we switched to pnpm", "Mondays instead of Thursdays"."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from perdure.engine.learn.judge import line_of_word, plain_words, same_line
from perdure.engine.learn.slugs import words_of

_X, _Y = r"(?P<came>[\w`@./+#-]+(?: [\w`@./+#-]+)?)", r"(?P<gone>[\w`@./+#-]+(?: [\w`@./+#-]+)?)"
_TO = r"(?:switched|switch|moved|move|migrated|migrate|changed|change|converted|upgraded|upgrade)"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_X} (?:instead of|rather than|in place of) {_Y}",
        rf"\b{_TO} (?:\w+ ){{0,2}}?from {_Y} to {_X}",
        rf"\b(?:rename|renamed) {_Y} (?:to|as|into) (?:be )?{_X}",
        rf"\b(?:replace|replaced) {_Y} (?:with|by|to be) {_X}",
        rf"\b{_X}, not {_Y}",
        rf"\b{_TO} (?:over )?to {_X}",
        rf"\b(?:no longer|not) (?:use|using|used) {_Y}(?: any ?more)?",
        rf"\bstopped using {_Y}",
    )
)
_ADJUSTED = re.compile(
    r"^(?:no,? |actually,? |ok,? |sorry,? )*(?:make|let's make|set|change) (?:it|that) (?:to )?"
    r"(?P<value>.*?\d.*?|[a-z]+days?)[.!]?$",
    re.IGNORECASE,
)
_TYPES = (
    re.compile(r"\bevery \d+ (?:second|minute|hour|day|week|month)s?\b", re.IGNORECASE),
    re.compile(
        r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds?|minutes?|hours?|days?|weeks?|%|[kmg]b)\b", re.IGNORECASE
    ),
    re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b", re.IGNORECASE),
    re.compile(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\b\d{1,2}:\d\d\b", re.IGNORECASE),
    re.compile(r"\bv?\d+(?:\.\d+)+\b|\b\d+\b"),
)
_FRAGMENT = 6
"""Words. A shorter "X instead of Y" names neither what it is about nor what is done."""


class Certainty(Enum):
    CERTAIN = "certain"
    """The older statement says nothing else, and ends."""
    MAYBE = "maybe"
    """The older statement speaks of what changed, among other things."""


@dataclass(frozen=True, slots=True)
class Change:
    """What came, and what is gone; either may not be said."""

    came: tuple[str, ...]
    gone: tuple[str, ...]


def change_in(text: str) -> Change | None:
    """Return the change that a statement tells of; None if it tells of none."""
    for form in _FORMS:
        if found := form.search(text.replace("\u2019", "'")):
            said = found.groupdict()
            return Change(plain_words(said.get("came") or ""), plain_words(said.get("gone") or ""))
    return None


def outdates(new: str, old: str) -> Certainty | None:
    """Return how sure it is that a newer statement ends an older one; None if it does not.

    It is certain only if the older one says nothing but what is gone.
    """
    change = change_in(new)
    if change is None or change_in(old) == change:
        return None
    was = [_stem(word) for word in plain_words(old)]
    gone = _gone(change, was)
    if not gone or (change.came and {*map(_stem, change.came)} <= set(was)):
        return None
    spare = {_stem(word) for word in (*plain_words(new), *_spare())}
    rest = [word for word in was if word not in gone and word not in spare]
    return Certainty.MAYBE if rest else Certainty.CERTAIN


def _gone(change: Change, was: Sequence[str]) -> set[str]:
    """Return the words of an older statement that are gone with a change."""
    said = {_stem(word) for word in change.gone} - _spare()
    if said:
        return said if said <= set(was) else set()
    came = [_stem(word) for word in change.came]
    return {word for word in was for other in came if same_line(word, other)}


def searched(text: str) -> str:
    """Return a statement with the words by which what it ends is found."""
    change = change_in(text)
    if change is None:
        return text
    others = (word for came in change.came for word in line_of_word(_stem(came)))
    return " ".join((text, *others))


def _spare() -> frozenset[str]:
    """Return the words that say nothing by themselves."""
    return words_of("stop") | words_of("verbs") | {"is", "have", "always"}


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004 - "bus"


# ---------------------------------------------------------------- what only says the new value
def completed(new: str, known: Iterable[str]) -> tuple[str, str] | None:
    """Return what a fragment says in full, and the one known statement that it changes.

    "Mondays instead of Thursdays" and "actually make it every 15 minutes" name the new value only.
    None if it is not such a fragment, or if several statements could be meant.
    """
    found = [(old, told) for old in known if (told := _told(new, old))]
    return (found[0][1], found[0][0]) if len(found) == 1 else None


def is_fragment(text: str) -> bool:
    """Whether a text only names a new value."""
    if _ADJUSTED.match(text):
        return True
    change = change_in(text)
    return (
        change is not None
        and bool(change.came and change.gone)
        and len(text.split()) < _FRAGMENT
        and not _has_verb(text)
    )


def _has_verb(text: str) -> bool:
    verbs = words_of("verbs") | {"is", "switched", "moved", "renamed", "replace", "rename"}
    return any(word in verbs for word in plain_words(text))


def _told(new: str, old: str) -> str | None:
    """Return an older statement with its value replaced by that of a fragment."""
    if found := _ADJUSTED.match(new):
        return _with_value(found["value"], old)
    form = _FORMS[0].search(new)
    if form is None or not is_fragment(new):
        return None
    gone = re.compile(rf"(?<!\w){re.escape(form['gone'].rstrip('s'))}s?(?!\w)", re.IGNORECASE)
    came = form["came"].split()[-1]
    return gone.sub(came, old, count=1) if len(gone.findall(old)) == 1 else None


def _with_value(value: str, old: str) -> str | None:
    for kind in _TYPES:
        if new := kind.search(value):
            found = kind.findall(old)
            changed = kind.sub(new[0], old, count=1)
            return changed if len(found) == 1 and changed != old else None
    return None
