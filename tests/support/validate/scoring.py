"""How well secrets and instructions are recognised in labelled texts.

A set is a JSON file of mappings with `id`, `label`, `half` and `text`. In a text, `«kind/number»`
stands for a value of `tokens`; those in a text with the label `secret` are to be found, whole. What
is found elsewhere is wrong. An instruction is found if any part of its text is.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.support.validate.tokens import token

_MARKER = re.compile("«([^»]+)»")
_WANTED = frozenset({"secret", "instruction"})


class Found(Protocol):
    """Where something is."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Labelled:
    name: str
    half: str
    text: str
    wanted: tuple[tuple[int, int], ...]
    """From where to where something is to be found."""


@dataclass(slots=True)
class Score:
    right: int = 0
    wrong: int = 0
    missed: int = 0
    lines: list[str] = field(default_factory=list)
    """What was wrong or missed, a line for each."""

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def labelled(file: Path, half: str = "") -> list[Labelled]:
    """Return the texts of a set, or of one half of it, with their values in them."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [_read(row) for row in rows if not half or row["half"] == half]


def score(
    find: Callable[[str], Sequence[Found]], texts: Iterable[Labelled], *, whole: bool
) -> Score:
    """Return how well `find` does; `whole` asks that all of what is wanted is found."""
    total = Score()
    for each in texts:
        found = find(each.text)
        hit = [
            any(_covers(f, start, end, whole=whole) for f in found) for start, end in each.wanted
        ]
        wrong = [f for f in found if not any(f.start < e and s < f.end for s, e in each.wanted)]
        total.right += sum(hit)
        total.missed += len(hit) - sum(hit)
        total.wrong += len(wrong)
        total.lines += [f"missed  {each.name:16} {each.text[:100]!r}"] * (not all(hit))
        total.lines += [f"wrong   {each.name:16} {each.text[f.start : f.end]!r}" for f in wrong]
    return total


def _covers(found: Found, start: int, end: int, *, whole: bool) -> bool:
    if whole:
        return found.start <= start and end <= found.end
    return found.start < end and start < found.end


def _read(row: dict[str, str]) -> Labelled:
    pieces: list[str] = []
    wanted: list[tuple[int, int]] = []
    at = 0
    for index, part in enumerate(_MARKER.split(row["text"])):
        shown = token(part) if index % 2 else part
        if index % 2 and row["label"] in _WANTED:
            wanted.append((at, at + len(shown)))
        pieces.append(shown)
        at += len(shown)
    text = "".join(pieces)
    if row["label"] == "instruction":
        wanted = [(0, len(text))]
    return Labelled(row["id"], row["half"], text, tuple(wanted))
