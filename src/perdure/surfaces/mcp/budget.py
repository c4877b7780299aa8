"""Answers that are no longer than they may be."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from perdure.engine.recall.packing import tokens_in
from perdure.surfaces.mcp.answers import Answer

Item = TypeVar("Item")
Told = TypeVar("Told", bound=Answer)


def fits(answer: Answer, budget: int) -> bool:
    """Whether an answer has no more tokens than that, as JSON; they are counted generously."""
    return tokens_in(answer.model_dump_json()) <= budget


def with_most(make: Callable[[tuple[Item, ...]], Told], items: Sequence[Item], budget: int) -> Told:
    """Return the answer with as many items as fit, in their order; a smaller one has its chance."""
    told, kept = make(()), tuple[Item, ...]()
    for item in items:
        more = make((*kept, item))
        if fits(more, budget):
            told, kept = more, (*kept, item)
    return told


def longest(make: Callable[[int], Answer], most: int, budget: int) -> int:
    """Return the greatest length, of 1 to `most`, whose answer fits; 1 if none does."""
    if most <= 1 or fits(make(most), budget):
        return most
    least = 1
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(make(middle), budget) else (least, middle - 1)
    return least
