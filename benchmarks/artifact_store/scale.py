"""How much of everything, and what it is made of."""

import os
from dataclasses import dataclass

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True)
class Scale:
    legs: int
    """Turns of twenty puts in one round."""
    stored: int
    """Objects of 1 KiB that are read from."""
    verified: tuple[tuple[int, int], ...]
    """Objects that are verified: how many, of how many bytes."""
    opened: int
    """Entries of the store that is opened."""
    grown: tuple[int, ...]
    """Entries of the stores between which a cost may grow."""


FULL = Scale(
    legs=10,
    stored=10_000,
    verified=((4_096, 64 * KIB), (65_536, KIB)),
    opened=1_000_000,
    grown=(1_000, 10_000, 100_000),
)
QUICK = Scale(
    legs=2,
    stored=2_000,
    verified=((512, 64 * KIB), (8_192, KIB)),
    opened=100_000,
    grown=(1_000, 10_000),
)


def payloads(count: int, size: int) -> list[bytes]:
    """Return bytes that nobody has seen before, and nobody can compress."""
    source = memoryview(os.urandom(count * size))
    return [bytes(source[at : at + size]) for at in range(0, count * size, size)]
