"""What commands print: answers on stdout, as text or JSON; everything else on stderr."""

import json as encoding
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

import click

from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.model import ContextNode, RelationEdge

Json = Mapping[str, object]

_UNITS = ("kB", "MB", "GB", "TB")
_THOUSAND = 1000
_ROWS_PER_WRITE = 500
_WIDEST_CELL = 60
_SECONDS_PER_LINE = 10.0
_COLOURS = {"@": "cyan", "+": "green", "-": "red"}
_OPTIONS = {"replace_learned": "replace", "role": "as_role", "session_id": "session"}
"""Arguments of `Memory` whose command line option has another name."""


# ---------------------------------------------------------------- printing
def write(text: str) -> None:
    """Print exactly this text."""
    click.echo(text.encode(errors="backslashreplace"), nl=False)


def text(text: str) -> None:
    """Print a text; on a terminal, control characters are escaped."""
    write(readable(text))


def line(line: str) -> None:
    write(f"{line}\n")


def json(*objects: Json) -> None:
    """Print each object on a line of its own."""
    write("".join(f"{encoding.dumps(each)}\n" for each in objects))


def answer(payload: Json, line: str, *, as_json: bool) -> None:
    """Print an answer as JSON, or as a line of text."""
    write(f"{encoding.dumps(payload) if as_json else line}\n")


def mention(line: str) -> None:
    """Print a line that is not part of the answer, on stderr."""
    click.echo(line, err=True)


@contextmanager
def progress(label: str, *, lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of the number done and the total that moves a bar on a terminal.

    Elsewhere it prints nothing or, with `lines`, a line every ten seconds.
    """
    if not animated():
        yield _line_progress(label) if lines else lambda _done, _total: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        yield show


def _line_progress(label: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_PER_LINE:
            last = time.monotonic()
            mention(f"{label}: {done:,} of {total:,}")

    return show


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Print the rows below their heads; return whether there were any.

    The last column has no maximum width.
    """
    widths = [len(head) for head in heads[:-1]]
    remaining, above = iter(rows), [heads]
    while some := list(islice(remaining, _ROWS_PER_WRITE)):
        for column, width in enumerate(widths):
            widest = max(width_of(row[column]) for row in some)
            widths[column] = max(width, min(widest, _WIDEST_CELL))
        write("".join(f"{_table_line(row, widths)}\n" for row in (*above, *some)))
        above = []
    return not above


def _table_line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [padded_to(width, cell) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*padded, row[-1]]).rstrip()


def diff(changed: str) -> None:
    """Print the unified diff of one text, on a terminal in colours."""
    if not coloured():
        write(readable(changed))
        return
    old, new, *rest = readable(changed).removesuffix("\n").split("\n")
    heads = [click.style(line, bold=True) for line in (old, new)]
    write("".join(f"{line}\n" for line in (*heads, *map(_coloured_line, rest))))


def _coloured_line(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


# ---------------------------------------------------------------- terminals
def coloured() -> bool:
    """Whether stdout is a terminal that shows colours, and the user wants them."""
    return sys.stdout.isatty() and _takes_escapes()


def animated() -> bool:
    """Whether stderr is a terminal that can show a moving progress bar."""
    return sys.stderr.isatty() and _takes_escapes()


def _takes_escapes() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, **style: bool | str) -> str:
    return click.style(text, **style) if coloured() else text  # type: ignore[arg-type] # click's own names


def readable(text: str) -> str:
    """Return the text unchanged or, if stdout is a terminal, with control characters escaped."""
    if not sys.stdout.isatty():
        return text
    from perdure.model.values import visible

    return visible(text)


def shown(text: str) -> str:
    """Return the text in one line, with all unprintable characters escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or "-"


def shown_words(text: str) -> str:
    """Return remembered text in one line, made harmless to a terminal and to a model."""
    from perdure import presentable

    return shown(" ".join(presentable(text).split()))


def padded_to(width: int, text: str) -> str:
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def cut_to(width: int, text: str) -> str:
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def wrapped(width: int, text: str) -> Iterator[str]:
    """Yield a text in lines of at most this width, broken at spaces where possible."""
    line = ""
    for word in text.split():
        if line and width_of(line) + 1 + width_of(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
        while width_of(line) > width:
            end = len(line)
            while width_of(line[:end]) > width:
                end -= 1
            yield line[:end]
            line = line[end:]
    if line:
        yield line


# ---------------------------------------------------------------- values
def message_of(error: PerdureError) -> str:
    """Return the message of an error, with its options as the command line spells them."""

    def spelled(name: str, value: object) -> str:
        option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        return option if value is True else f"{option} {value}"

    return error.message(spelled).replace(", or pass --", ", or add --")


def local_time(moment: int | datetime) -> str:
    """Return a time, or milliseconds since the epoch, in the zone of this machine."""
    local = datetime.fromtimestamp(_milliseconds(moment) // _THOUSAND, UTC).astimezone()
    return local.isoformat(timespec="seconds").replace("+00:00", "Z")


def local_date(moment: int | datetime) -> str:
    return local_time(moment)[:10]


def utc_time(moment: int | datetime) -> str:
    """Return a time, or milliseconds since the epoch, as it is written in JSON."""
    seconds, rest = divmod(_milliseconds(moment), _THOUSAND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def _milliseconds(moment: int | datetime) -> int:
    return moment if isinstance(moment, int) else int(moment.timestamp() * _THOUSAND)


def counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


def sized(size: int) -> str:
    if size < _THOUSAND:
        return counted(size, "byte")
    amount = float(size)
    for unit in _UNITS:
        amount /= _THOUSAND
        if amount < _THOUSAND or unit == _UNITS[-1]:
            return f"{amount:.1f} {unit}"
    raise AssertionError


def version_line(uri: str, version: int) -> str:
    return f"{shown(uri)} version {version}"


def gist(node: "ContextNode") -> str:
    """Return one line about a node: its title, and its abstract or the start of its content."""
    title, abstract = node.title, _first_line(node.abstract)
    begins = abstract or _first_line(node.content)
    if begins.startswith(title.removesuffix("…")):
        return begins
    return f"{title}: {abstract}" if abstract else title


def _first_line(text: str) -> str:
    return next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")


# ---------------------------------------------------------------- JSON
def picked(value: object, names: str) -> dict[str, object]:
    """Return the named attributes of a value, as JSON values.

    `new=old` gives an attribute another name; with `name?`, an empty value becomes null.
    """
    found: dict[str, object] = {}
    for each in names.split():
        name, _, attribute = each.rstrip("?").partition("=")
        plain_value = plain(getattr(value, attribute or name))
        found[name] = (plain_value or None) if each.endswith("?") else plain_value
    return found


def plain(value: object) -> object:
    from perdure import CID

    match value:
        case datetime():
            return utc_time(value) if value.timestamp() else None  # a note may have no time
        case Enum():
            return value.value
        case CID() | Path() | bytes():
            return value.hex() if isinstance(value, bytes) else str(value)
        case Sequence() if not isinstance(value, str):
            return list(map(plain, value))
        case Mapping():
            return {key: plain(each) for key, each in value.items()}
    return value


def node_json(node: "ContextNode") -> dict[str, object]:
    """Return the JSON of a node without its texts and edges."""
    known = "uri title abstract status version created_at updated_at problems"
    return picked(node, f"{known} project?")


def full_node_json(node: "ContextNode") -> dict[str, object]:
    """Return the JSON of a node with its texts, without its edges."""
    from perdure import CID

    return {
        **node_json(node),
        **picked(node, "type=context_type category? owner_space overview content"),
        "cid": str(CID.of(node.content.encode())),
        "frontmatter": node.frontmatter,
        "metadata": plain(node.metadata),
    }


def edge_json(edge: "RelationEdge") -> dict[str, object]:
    return picked(edge, "from_uri to_uri type=relation_type weight reason created_at")


def edges_json(edges: "Iterable[RelationEdge]") -> list[dict[str, object]]:
    return [edge_json(edge) for edge in edges]
