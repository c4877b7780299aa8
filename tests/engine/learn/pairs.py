"""The labelled pairs, and how a judge does on them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.engine.learn.judge import Agreement, Comparison

SET = Path(__file__).parents[2] / "data" / "statements.json"
HALVES = ("tune", "held")
Judge = Callable[[str, str], Comparison]


@dataclass(frozen=True, slots=True)
class Labelled:
    id: str
    old: str
    new: str
    label: str
    kind: str
    half: str


def pairs(half: str | None = None) -> list[Labelled]:
    found = [Labelled(**each) for each in json.loads(SET.read_text(encoding="utf-8"))]
    return [each for each in found if half in {None, each.half}]


def kept_apart(judge: Judge, some: Sequence[Labelled]) -> float:
    """Return the share of pairs that must not be merged and are not."""
    apart = [each for each in some if each.label != "same"]
    return sum(not _is_same(judge, each) for each in apart) / len(apart)


def found_same(judge: Judge, some: Sequence[Labelled]) -> float:
    """Return the share of pairs that say the same and are found to."""
    same = [each for each in some if each.label == "same"]
    return sum(_is_same(judge, each) for each in same) / len(same)


def _is_same(judge: Judge, pair: Labelled) -> bool:
    return judge(pair.old, pair.new).agreement is Agreement.SAME
