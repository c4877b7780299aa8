"""Patterns and words that are kept as text, beside the modules that look for them.

A table has one entry a line, `name = text` or a text alone, below a `[heading]` or none. `{NAME}`
in a text is the entry of that name above it. A line that begins with `#` is a comment.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from perdure.patterns import later

_HEADING = later(r"\[([a-z ]+)\]")
_NAMED = later(r"([A-Za-z][A-Za-z_ ]*) = (.+)")
_REFERENCE = later(r"\{([A-Z_]+)\}")


def entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield heading, name and text of each entry; what has no name is called nothing."""
    known: dict[str, str] = {}
    heading = ""
    for line in path.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and (found := _HEADING.fullmatch(line)):
            heading = found[1]
            continue
        text = _REFERENCE.sub(lambda name: known[name[1]], line) if "{" in line else line
        named = _NAMED.fullmatch(text) if " = " in text else None
        if named:
            known[named[1]] = named[2]
        yield (heading, named[1], named[2]) if named else (heading, "", text)


def table(module: str, name: str, heading: str = "") -> dict[str, str]:
    """Return the named entries of the table beside a module, below one heading."""
    path = Path(module).with_name(name)
    return {name: text for below, name, text in entries(path) if below == heading}


def lists(module: str, name: str) -> dict[str, list[str]]:
    """Return the lines below each heading of the table beside a module, as they are written."""
    found: dict[str, list[str]] = defaultdict(list)
    for heading, key, text in entries(Path(module).with_name(name)):
        found[heading].append(f"{key} = {text}" if key else text)
    return dict(found)
