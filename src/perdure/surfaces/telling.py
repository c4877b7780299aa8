"""What is printed: answers on stdout, for people or as JSON; all else on stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from unicodedata import combining, east_asian_width

import click

from perdure.errors import PerdureError

Json = Mapping[str, object]

_AT_ONCE = 500
_WIDEST = 40
_UNITS = ("kB", "MB", "GB", "TB")
_THOUSAND = 1000
_OPTIONS = {"replace_learned": "replace", "role": "as_role", "session_id": "session"}
"""Arguments of verbs whose option has another name."""
_COLOURS = {"@": "cyan", "+": "green", "-": "red"}


def tell(text: str) -> None:
    """Print exactly this."""
    click.echo(text.encode(errors="backslashreplace"), nl=False)


def tell_text(text: str) -> None:
    """Print a text: on a terminal what can be read of it, elsewhere every byte."""
    tell(readable(text))


def readable(text: str) -> str:
    """Return a text as it is or, if it is printed on a terminal, so that it does nothing to it."""
    if not sys.stdout.isatty():
        return text
    from perdure.model.values import visible

    return visible(text)


def tell_line(line: str) -> None:
    tell(f"{line}\n")


def tell_json(*objects: Json) -> None:
    """Print each on a line of its own."""
    tell("".join(f"{json.dumps(each)}\n" for each in objects))


def message_of(error: PerdureError) -> str:
    """Return the message of an error, with its options as the command line spells them."""

    def spelled(name: str, value: object) -> str:
        option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        return option if value is True else f"{option} {value}"

    return error.message(spelled).replace(", or pass --", ", or add --")


def mention(line: str) -> None:
    """Say something that is not the answer."""
    click.echo(line, err=True)


# ---------------------------------------------------------------- tables
def tell_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
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


def padded_to(width: int, text: str) -> str:
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    """Return how many columns a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def cut_to(width: int, text: str) -> str:
    """Return as much of a text as there is room for."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def wrapped(width: int, text: str) -> Iterator[str]:
    """Yield a text in lines that are no wider; it is broken at spaces, where there are some."""
    line = ""
    for word in text.split():
        if line and width_of(line) + 1 + width_of(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
        while width_of(line) > width:
            most = len(line)
            while width_of(line[:most]) > width:
                most -= 1
            yield line[:most]
            line = line[most:]
    if line:
        yield line


def shown(text: str) -> str:
    """Return the text in one line that does nothing to a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or "-"


def shown_words(text: str) -> str:
    """Return remembered words in one line that does nothing to a terminal or its reader."""
    from perdure import presentable

    return shown(" ".join(presentable(text).split()))


# ---------------------------------------------------------------- terminals
def coloured() -> bool:
    """Whether whoever reads the answer sees colours, and wants them."""
    return sys.stdout.isatty() and _is_lively()


def animated() -> bool:
    """Whether somebody looks at stderr who sees a bar that moves."""
    return sys.stderr.isatty() and _is_lively()


def _is_lively() -> bool:
    """Whether a terminal may be sent more than text."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of what is done and of the whole, which moves a bar on a terminal."""
    if not animated():
        yield lambda _done, _whole: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, whole: int) -> None:
            bar.length = max(whole, 1)
            bar.update(done - bar.pos)

        yield show


def styled(text: str, **style: bool | str) -> str:
    return click.style(text, **style) if coloured() else text  # type: ignore[arg-type] # click's own names


def tell_diff(changed: str) -> None:
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


# ---------------------------------------------------------------- values
def local_time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // _THOUSAND, UTC).astimezone()
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def local_date(milliseconds: int) -> str:
    return local_time(milliseconds)[:10]


def utc_time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, _THOUSAND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def milliseconds_of(moment: datetime) -> int:
    return int(moment.timestamp() * _THOUSAND)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun.removesuffix('y')}{_s(noun)}"


def _s(noun: str) -> str:
    return "ies" if noun.endswith("y") else "s"


def sized(size: int) -> str:
    if size < _THOUSAND:
        return counted(size, "byte")
    amount = float(size)
    for unit in _UNITS:
        amount /= _THOUSAND
        if amount < _THOUSAND or unit == _UNITS[-1]:
            return f"{amount:.1f} {unit}"
    raise AssertionError
