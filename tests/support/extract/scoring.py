"""Conversations with labels, and how well extractors find what is labelled.

A conversation is a YAML file: `half`, `style`, `user`, `at`, `messages`, `expected`, perhaps
`allowed`. A label is a category, a message, the words that say it, and key words. A candidate is
right if it has the category and the message of a label that is still free, and its content has all
key words. One that only fits to what is allowed counts neither way; all others are wrong.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from perdure.engine.learn.evidence import evidence_of
from perdure.engine.learn.extractors import CandidateExtractor
from perdure.model import CandidateMemory, RequestContext

_APART = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Label:
    category: str
    message: int
    quote: str
    key_words: tuple[str, ...]

    def fits(self, candidate: CandidateMemory) -> bool:
        content = candidate.content.casefold()
        return (
            candidate.category == self.category
            and evidence_of(candidate)[0].message == self.message
            and all(word.casefold() in content for word in self.key_words)
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    half: str
    style: str
    user: str
    messages: tuple[dict[str, object], ...]
    expected: tuple[Label, ...]
    allowed: tuple[Label, ...]

    @classmethod
    def read(cls, file: Path) -> "Conversation":
        fields = yaml.safe_load(file.read_text(encoding="utf-8"))
        return cls(
            file.stem,
            fields["half"],
            fields["style"],
            fields["user"],
            tuple(_messages(fields["messages"], fields["at"])),
            tuple(map(_label, fields["expected"])),
            tuple(map(_label, fields.get("allowed", []))),
        )

    @property
    def context(self) -> RequestContext:
        return RequestContext("acme", self.user, session_id=self.name)


@dataclass(slots=True)
class Score:
    """What was right, wrong and missed, by category."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)
    """A line for each that was wrong or missed."""

    @property
    def categories(self) -> list[str]:
        return sorted(self.right | self.wrong | self.missed)

    def precision(self, *categories: str) -> float:
        """Return the share of candidates that are right; of all categories if none is given."""
        return self._share(self.wrong, categories)

    def recall(self, *categories: str) -> float:
        """Return the share of labels that were found."""
        return self._share(self.missed, categories)

    def _share(self, other: Counter[str], categories: Sequence[str]) -> float:
        chosen = categories or self.categories
        right = sum(self.right[each] for each in chosen)
        total = right + sum(other[each] for each in chosen)
        return right / total if total else 1.0


def conversations(folder: Path, half: str = "") -> list[Conversation]:
    """Return the conversations of a folder, or of one half of it."""
    found = [Conversation.read(file) for file in sorted(folder.glob("*.yaml"))]
    return [each for each in found if half in {"", each.half}]


def score(extractors: Sequence[CandidateExtractor], given: Iterable[Conversation]) -> Score:
    """Return how well extractors do together on conversations."""
    total = Score()
    for conversation in given:
        found = [
            candidate
            for extractor in extractors
            for candidate in extractor.extract(conversation.messages, conversation.context)
        ]
        _count(conversation, found, total)
    return total


def _count(conversation: Conversation, found: Iterable[CandidateMemory], total: Score) -> None:
    free = list(conversation.expected)
    for candidate in found:
        label = next((label for label in free if label.fits(candidate)), None)
        if label is not None:
            free.remove(label)
            total.right[label.category] += 1
        elif not any(label.fits(candidate) for label in conversation.allowed):
            total.wrong[candidate.category] += 1
            total.misses.append(_line("wrong", conversation, candidate.category, candidate.content))
    for label in free:
        total.missed[label.category] += 1
        total.misses.append(_line("missed", conversation, label.category, label.quote))


def _line(what: str, conversation: Conversation, category: str, text: str) -> str:
    return f"{what:7} {conversation.name:24} {category:11} {text}"


def _messages(listed: list[dict[str, str]], at: datetime) -> Iterable[dict[str, object]]:
    for number, message in enumerate(listed):
        ((speaker, content),) = message.items()
        role, _, name = speaker.partition(" ")
        time = at + number * _APART
        yield {"role": role, "content": content, "time": time, **({"name": name} if name else {})}


def _label(row: Any) -> Label:  # noqa: ANN401 - as YAML has it
    category, message, quote, key_words = row
    return Label(category, message, quote, tuple(map(str, key_words)))
