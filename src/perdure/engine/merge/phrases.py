"""Turns of phrase, each with the words that stand for it."""

from collections import defaultdict
from collections.abc import Sequence

from perdure.engine.merge.english import lines_of
from perdure.engine.merge.tokens import Kind, Token


def _by_first() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    found: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = defaultdict(dict)
    for line in lines_of("turns"):
        said, stands = (tuple(half.split()) for half in line.split(" = "))
        found[said[0]][said] = stands
    return {
        first: sorted(turns.items(), key=lambda turn: -len(turn[0]))
        for first, turns in found.items()
    }


_BY_FIRST = _by_first()


def rephrased(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with each turn of phrase in its plain words, the longest first."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        stands, length = _turn(tokens, at)
        if length:
            found += [Token(word, Kind.WORD, is_first=True) for word in stands]
        else:
            found.append(tokens[at])
        at += length or 1
    return found


def _turn(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    for said, stands in _BY_FIRST.get(tokens[at].word, ()):
        after = tokens[at : at + len(said)]
        if not any(token.is_name for token in after) and said == tuple(t.word for t in after):
            return stands, len(said)
    return (), 0
