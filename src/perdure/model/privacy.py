"""Removes what a user marked as private, so that it is never stored.

`<private>…</private>` in a prompt is private; without an end tag, the rest of the message is. All
messages from `/private on` to `/private off` are private. A `PrivacyFilter` takes the messages of
one session in order. Its result for a message depends on earlier messages only, so that a session
can be filtered in several runs, or again when it has grown.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from perdure.model.trust import PrivacySwitch
from perdure.patterns import later

PRIVATE = "[private]"
"""Replaces private words in a message."""
_TAG = later(r"(?:<|&lt;)\s*(?P<close>/?)\s*private\b[^<>\n]{0,200}?(?:>|&gt;)", re.IGNORECASE)
_SWITCH = later(r"\s*/?(?:[\w.-]+:)?private\s+(?P<state>on|off)\s*[.!]?\s*", re.IGNORECASE)
_COMMAND = later(r"<command-name>\s*/?(?:[\w.-]+:)?private\s*</command-name>", re.IGNORECASE)
_ARGUMENT = later(r"<command-args>\s*(?P<state>on|off)?\s*</command-args>", re.IGNORECASE)
_WORD = later(r"[^\W_](?:[\w'-]*\w)?")
_END = later(r"[.!?]+(?=\s|$)|\n+")
_RUN = 4
"""A later message that has this many private words in a row repeats them."""
_LONG_RUN = 6
"""The same for words of a message in private mode."""
_LEAST = 4
"""A private text with fewer letters is not searched in later messages."""
_LONGEST_SWITCH = 300
_SHORTEST_NAME = 3
_NEAR = 20
_WORD_BREAK = later(r"[-_']|(?<=[a-z])(?=[A-Z])")
_NOT_NAMES = frozenset(
    _WORD.findall(
        "private api url http https json sql html css todo readme english i'm i'll i've i'd "
        "monday tuesday wednesday thursday friday saturday sunday january february march april may "
        "june july august september october november december"
    )
)
"""Capitalized words that are not names."""


def switch_in(content: str) -> bool | None:
    """Return whether a prompt switches private mode on or off; None if it does neither.

    A bare `/private` switches it on. Two forms are accepted: as typed, and as Claude Code writes a
    slash command into its transcript.
    """
    if len(content) > _LONGEST_SWITCH:
        return None
    if _COMMAND.search(content):
        given = _ARGUMENT.search(content)
        return given is None or (given["state"] or "on").lower() == "on"
    if content.strip().lower() == "/private":
        return True
    typed = _SWITCH.fullmatch(content)
    return typed["state"].lower() == "on" if typed else None


class PrivacyFilter:
    def __init__(self, switches: Sequence[PrivacySwitch] = ()) -> None:
        self._switches = sorted(switches)
        self._private_words = _PrivateWords()
        self._public: list[str] = []
        self.is_on = False
        self.is_used = bool(switches)
        """Whether anything in the session was private."""

    def public(self, role: str, content: str, time: datetime | None = None) -> str:
        """Return what may be stored of the next message; empty if nothing may."""
        self._move_to(time)
        switched = switch_in(content) if role == "user" else None
        if switched is not None:
            self.is_on, self.is_used = switched, True
            return ""
        if self.is_on:
            self._private_words.add_message(content)
            return ""
        if role == "system" and self.is_used:
            return ""  # a summary may paraphrase what was private
        blocks, public = _split(content, to_end=role == "user")
        if blocks:
            self.is_used = True
            self._private_words.add(blocks, self._public)
        public = self._private_words.masked(public)
        self._public.append(public)
        return public if _WORD.search(public.replace(PRIVATE, "")) else ""

    def _move_to(self, time: datetime | None) -> None:
        """Apply the switches up to a time; without a time, any pending switch to on applies."""
        while self._switches and time is not None and self._switches[0].time <= time:
            self.is_on = self._switches.pop(0).is_on
        if time is None and any(each.is_on for each in self._switches):
            self.is_on = True


def without_private(text: str) -> str:
    return PrivacyFilter().public("user", text)


def _split(content: str, *, to_end: bool) -> tuple[list[str], str]:
    """Return the private blocks of a message, and the rest of it.

    With `to_end`, a block without a start tag begins with the message, and one without an end tag
    reaches to its end. An agent may merely mention a tag, so only whole blocks count for it.
    """
    if "private" not in content.lower():
        return [], content
    blocks: list[str] = []
    public: list[str] = []
    opened: list[re.Match[str]] = []
    at = 0
    for tag in _TAG.finditer(content):
        if not tag["close"]:
            opened.append(tag)
        elif opened and len(opened) > 1:
            opened.pop()
        elif opened or to_end:
            start = opened.pop() if opened else None
            public.append(content[at : start.start()] if start else "")
            blocks.append(content[start.end() if start else at : tag.start()])
            at = tag.end()
    if opened and to_end:
        public.append(content[at : opened[0].start()])
        blocks.append(content[opened[0].end() :])
        at = len(content)
    return blocks, PRIVATE.join([*public, content[at:]])


class _PrivateWords:
    """Finds words that were private before: whole sentences, runs of words, numbers and names."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, ...]] = set()
        self._names: dict[str, bool] = {}
        """Each with whether it is certainly a name: it does not only begin a sentence."""

    def add(self, blocks: Sequence[str], public: Sequence[str]) -> None:
        """Add what is between the tags, except names that were public before."""
        for name, is_sure in (each for block in blocks for each in _names(block)):
            pattern = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
            if not any(map(pattern.search, public)):
                self._names[name] = is_sure or self._names.get(name, False)
        for words in (words for block in blocks for words in _sentences(block)):
            if sum(map(len, words)) >= _LEAST:
                self._runs.update(_runs(words, min(_RUN, len(words))))
                self._runs.update((word,) for word in words if _is_number(word))

    def add_message(self, content: str) -> None:
        """Add a whole message; only long runs, because short ones may occur in any message."""
        for words in _sentences(content):
            self._runs.update(_runs(words, _LONG_RUN))

    def masked(self, text: str) -> str:
        if not (self._runs or self._names):
            return text
        spans = list(self._spans(text))
        for start, end in reversed(spans):
            text = text[:start] + PRIVATE + text[end:]
        return text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of private words, in order; adjacent and overlapping ones are merged."""
        found = list(_WORD.finditer(text))
        words = [each[0].casefold() for each in found]
        start = last = -1
        for at in range(len(words)):
            sizes = (n for n in (_LONG_RUN, *range(_RUN, 0, -1)) if at + n <= len(words))
            size = next((n for n in sizes if (*words[at : at + n],) in self._runs), 0)
            size = size or self._is_name(found[at])
            if size and at > last:
                if last >= 0:
                    yield found[start].start(), found[last].end()
                start = at
            last = max(last, at + size - 1) if size else last
        if last >= 0:
            yield found[start].start(), found[last].end()

    def _is_name(self, word: re.Match[str]) -> bool:
        forms = (word[0], *_WORD_BREAK.split(word[0]))
        known = {self._names.get(each.casefold()) for each in forms}
        return True in known or (False in known and word[0][0].isupper() and not _opens(word))


def _names(block: str) -> Iterator[tuple[str, bool]]:
    """Yield capitalized words, and whether they do not only begin a sentence."""
    for word in _WORD.finditer(block):
        name = _WORD_BREAK.split(word[0])[0] if "'" in word[0] else word[0]
        is_long = len(name) >= _SHORTEST_NAME and word[0].casefold() not in _NOT_NAMES
        if is_long and any(map(str.isupper, name)):
            yield name.casefold(), not _opens(word) or not name[1:].islower()


def _opens(word: re.Match[str]) -> bool:
    before = word.string[max(0, word.start() - _NEAR) : word.start()].rstrip(" \t\"'`*(#>-")
    return before[-1:] in {"", ".", "!", "?", ":", "\n"}


def _sentences(text: str) -> Iterator[list[str]]:
    for sentence in _END.split(text):
        yield [found[0].casefold() for found in _WORD.finditer(sentence)]


def _runs(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for at in range(len(words) - size + 1):
        yield tuple(words[at : at + size])


def _is_number(word: str) -> bool:
    return len(word) >= _LEAST and any(map(str.isdigit, word))
