"""What is printed: answers on stdout, for people or as JSON; all else on stderr."""

import json as encoding
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

import click

from perdure.surfaces.telling import animated, coloured, padded_to, readable, width_of

Json = Mapping[str, object]

_AT_ONCE = 500
_WIDEST = 60
_SECONDS_PER_LINE = 10.0
_COLOURS = {"@": "cyan", "+": "green", "-": "red"}


def tell(text: str) -> None:
    """Print exactly this."""
    click.echo(text.encode(errors="backslashreplace"), nl=False)


def text(text: str) -> None:
    """Print a text: on a terminal what can be read of it, elsewhere every byte."""
    tell(readable(text))


def line(line: str) -> None:
    tell(f"{line}\n")


def json(*objects: Json) -> None:
    """Print each on a line of its own."""
    tell("".join(f"{encoding.dumps(each)}\n" for each in objects))


def answer(told: Json, line: str, *, as_json: bool) -> None:
    """Print an answer as JSON, or as a line for people."""
    tell(f"{encoding.dumps(told) if as_json else line}\n")


def mention(line: str) -> None:
    """Say something that is not the answer."""
    click.echo(line, err=True)


@contextmanager
def progress(label: str, *, lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of what is done and of the whole, which moves a bar on a terminal.

    Elsewhere it prints nothing or, with `lines`, a line now and then.
    """
    if not animated():
        yield _lines(label) if lines else lambda _done, _whole: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, whole: int) -> None:
            bar.length = max(whole, 1)
            bar.update(done - bar.pos)

        yield show


def _lines(label: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def show(done: int, whole: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_PER_LINE:
            last = time.monotonic()
            mention(f"{label}: {done:,} of {whole:,}")

    return show


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Print the rows below their heads, and say whether there were any.

    The last cell of each may be as long as it is.
    """
    widths = [len(head) for head in heads[:-1]]
    waiting, above = iter(rows), [heads]
    while some := list(islice(waiting, _AT_ONCE)):
        for place, width in enumerate(widths):
            longest = max(width_of(row[place]) for row in some)
            widths[place] = max(width, min(longest, _WIDEST))
        tell("".join(f"{_line(row, widths)}\n" for row in (*above, *some)))
        above = []
    return not above


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [padded_to(width, cell) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*padded, row[-1]]).rstrip()


def diff(changed: str) -> None:
    """Print the unified diff of one text, on a terminal in colours."""
    if not coloured():
        tell(readable(changed))
        return
    old, new, *rest = readable(changed).removesuffix("\n").split("\n")
    heads = [click.style(line, bold=True) for line in (old, new)]
    tell("".join(f"{line}\n" for line in (*heads, *map(_coloured_line, rest))))


def _coloured_line(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line
