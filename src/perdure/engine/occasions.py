"""Occasions: the prompts and tool calls at which a sentence of the user is repeated.

A sentence with a condition ("when you are asked to work on a task: 1. …") is repeated at prompts
that meet it. A sentence that objects, or says how to work, is repeated at tool calls that use its
words: the subcommands that it names, the document that it is about.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from perdure.patterns import later

if TYPE_CHECKING:
    from perdure.engine.tool_calls import AgentAction

_FEWEST_SHARED, _SHARE = 2, 0.66
"""Words that a clause of a prompt shares with a condition, and their share of the shorter one."""
_LONGEST_PROMPT = 400
"""Characters. A longer prompt asks for more than one thing."""
FEWEST_STEPS, LONGEST_STEPS = 3, 720
"""The fewest steps of a dictated procedure, and its most characters, about 180 tokens."""

_STOPPED = (
    "the and for with that this these those from into onto about your our their its his her you we "
    "they them him she are was were been being has have had does did will would should could can "
    "may must not but all any some each every other another such only just also then than there "
    "here what which who whom how why where let lets want need ask asked request requested prompt "
    "prompted go ahead going please particular specific now again still too very"
)
_STOP = frozenset(_STOPPED.split())
_WORD = later(r"[A-Za-z][A-Za-z']+")
_ENDING = later(r"(?<=\w\w\w)(?:ing|ed|es|s|e)$")
_NUMBERED = later(r"#\d+\b")
_CONDITION = later(
    r"\b(?:when(?:ever)?|if|once|before|after|every time|each time|while|unless|until)\s+(.+)",
    re.IGNORECASE,
)
_CLAUSE = later(r"[,;:.!?()\n]|\b(?:then|but)\b")
_STEP_INSIDE = later(r"(?<=\s)\d{1,2}[.)]\s")
_DOCUMENT = later(r"\b(?:changelog|readme|license|contributing|makefile|dockerfile)", re.IGNORECASE)
_FILE = later(r"[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{1,5}\b")


def _stem(word: str) -> str:
    return _ENDING.sub("", word.casefold())


def _stems(text: str) -> list[str]:
    """Return the stems of the significant words of a text; `#12` stands for a task."""
    words = (each.casefold() for each in _WORD.findall(_NUMBERED.sub(" task ", text)))
    return [_stem(each) for each in words if each not in _STOP and len(each) > 2]  # noqa: PLR2004


# ---------------------------------------------------------------- sentences
@lru_cache(maxsize=4096)
def condition_in(text: str) -> frozenset[str]:
    """Return the stems of the condition of a sentence; empty if it has none."""
    found = _CONDITION.search(text)
    words = frozenset(_stems(_CLAUSE.split(found[1])[0])) if found else frozenset()
    return words if len(words) >= _FEWEST_SHARED else frozenset()


@lru_cache(maxsize=4096)
def phrases_in(text: str) -> frozenset[str]:
    """Return what a tool call can share with a sentence: pairs of stems, documents, files."""
    pairs = pairwise(each.casefold() for each in _WORD.findall(text))
    phrases = (f"{_stem(one)} {_stem(two)}" for one, two in pairs if not {one, two} & _STOP)
    named = (*_DOCUMENT.findall(text), *_FILE.findall(text))
    return frozenset({*phrases, *(each.casefold() for each in named)})


def names_in(text: str) -> set[str]:
    return {f"?{word}" for word in condition_in(text)} | {f"&{each}" for each in phrases_in(text)}


def is_procedure(text: str) -> bool:
    return ": 1" in text and len(_STEP_INSIDE.findall(text)) >= FEWEST_STEPS


# ---------------------------------------------------------------- prompts and tool calls
Occasion = tuple[set[str], Callable[[str], bool]]
"""The names to search for, and a function that tells whether a sentence fits."""


def of_prompt(prompt: str) -> Occasion:
    """Return the occasion of a prompt: the conditions that it meets, the files that it names."""
    clauses = [frozenset(_stems(each)) for each in _CLAUSE.split(prompt[: _LONGEST_PROMPT + 1])]
    asked = [each for each in clauses if len(each) >= _FEWEST_SHARED]
    files = frozenset(each.casefold() for each in _FILE.findall(prompt))
    if len(prompt) > _LONGEST_PROMPT:
        asked = []

    def fits(text: str) -> bool:
        condition = condition_in(text)
        if any(_share(each, condition) >= _SHARE for each in asked):
            return True
        return bool(files & phrases_in(text)) and not is_procedure(text)

    return {f"?{word}" for each in asked for word in each} | {f"&{each}" for each in files}, fits


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / min(len(one), len(other)) if shared >= _FEWEST_SHARED else 0.0


def of_action(action: "AgentAction") -> Occasion:
    """Return the occasion of a tool call: its subcommands, the documents that it changes."""
    found: set[str] = set()
    for each in action.commands:
        if not each.is_reading:
            words = [word for word in each.words[:6] if word.isalpha() and word.islower()]
            found.update(" ".join(map(_stem, pair)) for pair in pairwise(words))
    for path in action.written:
        found.update(each.casefold() for each in _DOCUMENT.findall(path[-1])[:1])

    def fits(text: str) -> bool:
        return bool(found & phrases_in(text)) and not is_procedure(text)

    return {f"&{each}" for each in found}, fits
