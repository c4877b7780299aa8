"""Instruction files, which agents load by themselves, such as `CLAUDE.md`.

They are read-only sources of a project. A briefing does not repeat them, and names a line that the
user contradicted after the file was last changed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

from perdure.dataclass import dataclass
from perdure.engine.learn.slugs import words_of
from perdure.engine.recall.question import STOP_WORDS
from perdure.markdown import without_code, without_markers
from perdure.model.values import comparison_key
from perdure.patterns import later

ALIKE = 0.8
"""The share of common words from which two lines say the same."""
_NOT = "not"
_EMPTY_WORDS = STOP_WORDS - {_NOT}
_SENTENCE = later(r"(?<=[.!?])\s+")
_EMPHASIS = later(r"\*\*|__")
_LONGEST_COMPARED = 200
"""Characters. A longer sentence is not checked for contradictions."""
_MOST_COMPARED = 600
"""Check at most this many sentences for contradictions, the first ones."""
_MOST_OTHER = 4
"""The most words by which a sentence and a text that contradicts it differ."""
_CHANGED = later(
    r"\b(?:instead|rather|place|switch\w*|mov\w+|migrat\w+|chang\w+|convert\w+|upgrad\w+|renamed?|replaced?|not"
    r"|never|longer|stopped|using)\b",
    re.IGNORECASE,
)
_LONGEST_LIMITED = 1_000
_LIMIT = later(
    r"\b(?:only|except|unless|excluding|other than|if|when|whenever|while|during|in|inside|under"
    r"|within)\b(?P<one>[^.;,:!?]*)|\bfor\s+(?P<two>[^\s,;]*[./*][^\s,;]*|[\w -]*files?)\b",
    re.IGNORECASE,
)
_EVERYWHERE = frozenset(
    "project repo repository codebase code file files place places general case "  # noqa: SIM905 - a few lines, not thirty
    "cases time here session sessions work all every any each always whole entire new "
    "existing".split()
)


@cache
def _negations() -> frozenset[str]:
    return frozenset(words_of("negations") | {"don't", "dont", "avoid"})


@dataclass(frozen=True, slots=True)
class InstructionFile:
    name: str
    """Its path as the agent in the folder would write it."""
    text: str
    """Its lines, with the same numbers as in the file; frontmatter is blank."""
    changed: datetime | None = None
    """When it was last changed; if unknown, nothing contradicts it."""
    globs: tuple[str, ...] = ()
    """The files that it applies to; empty for all."""


class InstructionLine(NamedTuple):
    file: str
    number: int
    """The line, from 1."""
    text: str


class _Sentence(NamedTuple):
    line: InstructionLine
    words: frozenset[str]
    changed: datetime | None
    is_prose: bool
    """Whether it is prose that applies to all files."""


class Instructions:
    """The sentences of instruction files, to find those that a text repeats or contradicts."""

    def __init__(self, files: Sequence[InstructionFile] | str) -> None:
        given = [InstructionFile("", files)] if isinstance(files, str) else files
        self._sentences: list[_Sentence] = []
        self._with: defaultdict[str, set[int]] = defaultdict(set)
        """The indexes of the sentences with a word."""
        for sentence in (each for file in given for each in _sentences(file)):
            for word in sentence.words:
                self._with[word].add(len(self._sentences))
            self._sentences.append(sentence)

    def cover(self, text: str) -> bool:
        """Whether a sentence has most words of a text, its negation, and its scope."""
        words = _meaning(text)
        shared = Counter(at for word in words for at in self._with.get(word, ()))
        return any(
            count >= ALIKE * len(words) and _covers(self._sentences[at], words, text)
            for at, count in shared.items()
        )

    def may_contradict(self, text: str) -> bool:
        """Whether a sentence may contradict a text. Fast and imprecise."""
        words = _meaning(text)
        shared = Counter(at for word in words for at in self._with.get(word, ()))
        if shared and _CHANGED.search(text):
            return True
        if len(words) <= _MOST_OTHER and self._has_short:
            return True
        return any(
            count >= max(len(words), len(self._sentences[at].words)) - _MOST_OTHER
            for at, count in shared.items()
        )

    @cached_property
    def _has_short(self) -> bool:
        return any(len(each.words) <= _MOST_OTHER for each in self._sentences)

    @cached_property
    def dated(self) -> list[tuple[datetime, InstructionLine]]:
        """The first sentences that a statement may contradict, with the times of their files."""
        found = (
            (each.changed, each.line)
            for each in self._sentences
            if each.changed and each.is_prose and len(each.line.text) <= _LONGEST_COMPARED
        )
        return list(islice(found, _MOST_COMPARED))


def _sentences(file: InstructionFile) -> Iterator[_Sentence]:
    named = re.findall(r"[a-z0-9]+", " ".join(file.globs), re.IGNORECASE)
    scope = f" in {' '.join(named)} files" if file.globs else ""
    prose = without_code(file.text).split("\n")
    for number, line in enumerate(file.text.split("\n"), start=1):
        is_code = line != prose[number - 1]
        bare = _EMPHASIS.sub("", without_markers(line)).strip()
        for each in _SENTENCE.split(bare):
            text = f"{each.rstrip('.')}{scope}" if each else ""
            if words := _meaning(text):
                placed = InstructionLine(file.name, number, text)
                yield _Sentence(placed, words, file.changed, not is_code and not scope)


def _meaning(text: str) -> frozenset[str]:
    """Return the significant words of a text, roughly stemmed; all negations are the same word."""
    words = (_NOT if word in _negations() else word for word in comparison_key(text).split())
    return frozenset(_stem(word) for word in words if word not in _EMPTY_WORDS)


def _stem(word: str) -> str:
    return word[:5].rstrip("s")


def _covers(sentence: _Sentence, words: frozenset[str], text: str) -> bool:
    """Whether a sentence with most words of a text has its negation and its scope."""
    if (_NOT in words) is not (_NOT in sentence.words):
        return False
    missing = words - sentence.words
    if missing and not sentence.words.isdisjoint(_other_values(text, missing)):
        return False
    has_number = any(map(str.isdigit, "".join(missing)))
    return not has_number and all(each <= words for each in _limits(sentence.line.text))


def _other_values(text: str, missing: frozenset[str]) -> set[str]:
    """Return the values that exclude a word that a sentence does not have: npm for pnpm."""
    from perdure.engine.learn.judge import group_of  # noqa: PLC0415 - few lines are that similar

    words = (word for word in comparison_key(text).split() if _stem(word) in missing)
    return {_stem(other) for word in words for other in group_of(word) if other != word}


def _limits(text: str) -> Iterator[frozenset[str]]:
    """Yield the words of each clause that limits a sentence: where, when, with which exception."""
    for found in _LIMIT.finditer(text[:_LONGEST_LIMITED]):
        words = comparison_key(found["one"] or found["two"] or "").split()
        yield _meaning(" ".join(each for each in words if each not in _EVERYWHERE))


def is_limited(text: str) -> bool:
    """Whether a sentence holds only somewhere or sometimes."""
    return any(_limits(text))
