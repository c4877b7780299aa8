"""What the files of a project say to every agent, to leave out what they say already."""

from collections import Counter, defaultdict
from functools import cache

from perdure.engine.learn.naming import words_of
from perdure.engine.recall.planning import STOP_WORDS
from perdure.model.values import words_key
from perdure.patterns import later

ALIKE = 0.8
"""The share of words from which two lines say the same."""
_NOT = "not"
_EMPTY_WORDS = STOP_WORDS - {_NOT}
_SENTENCE = later(r"(?<=[.!?])\s+|\n+")


@cache
def _negations() -> frozenset[str]:
    return frozenset(words_of("negations") | {"don't", "dont", "avoid"})


class Instructions:
    """What an agent is told by the files of its project, to leave out what says the same."""

    def __init__(self, text: str) -> None:
        self._lines: list[frozenset[str]] = []
        self._of: defaultdict[str, set[int]] = defaultdict(set)
        """By word, the lines that have it."""
        for line in _SENTENCE.split(text):
            words = _meaning(line)
            for word in words:
                self._of[word].add(len(self._lines))
            self._lines.append(words)

    def say(self, text: str) -> bool:
        """Whether a line has most of the words of a text, and denies as much."""
        words = _meaning(text)
        shared = Counter(line for word in words for line in self._of.get(word, ()))
        return any(
            count >= ALIKE * len(words) and (_NOT in words) is (_NOT in self._lines[line])
            for line, count in shared.items()
        )


def _meaning(text: str) -> frozenset[str]:
    """Return the words of a text that count, about as stems; every negation is the same."""
    words = (_NOT if word in _negations() else word for word in words_key(text).split())
    return frozenset(word[:5].rstrip("s") for word in words if word not in _EMPTY_WORDS)
