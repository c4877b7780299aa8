"""One table at the end of a TOML file, and one value. All else stays as it is, to the letter."""

import json
import re
import tomllib
from collections.abc import Mapping

from perdure.errors import InvalidValueError

Entry = Mapping[str, object]


def tables_in(text: str) -> dict[str, object]:
    """Return what a text says; `InvalidValueError` if it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValueError(str(error)) from error


def entry_in(text: str, parent: str, name: str) -> object:
    """Return what stands at a place; None if nothing does."""
    above = tables_in(text).get(parent, {})
    if not isinstance(above, dict):
        raise InvalidValueError(f"{parent} is no table")
    return above.get(name)


def with_table(text: str, parent: str, name: str, entry: Entry) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{parent}.{name}]", *(f"{key} = {_told(each)}" for key, each in entry.items())]
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    new = text + gap + newline.join(lines) + newline
    wanted = tables_in(text)
    above = wanted.setdefault(parent, {})
    if isinstance(above, dict):
        above[name] = dict(entry)
    _check(new, wanted, parent)
    return new


def _told(value: object) -> str:
    """Return a text, a list of texts, or texts by name, as TOML writes them."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_told(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


def without_table(text: str, parent: str, name: str) -> str:
    wanted = tables_in(text)
    above = wanted.get(parent)
    if not isinstance(above, dict) or name not in above:
        return text
    del above[name]
    header = rf"\[\s*{re.escape(parent)}\s*\.\s*[\"']?{re.escape(name)}[\"']?\s*[.\]]"
    block = re.compile(
        rf"(?:(?<=\n)\r?\n)?^[ \t]*{header}.*?(?=^[ \t]*\[(?!\s*{re.escape(parent)}\s*\.\s*[\"']?"
        rf"{re.escape(name)}[\"']?\s*[.\]])|\Z)",
        re.MULTILINE | re.DOTALL,
    )
    new = block.sub("", text)
    _check(new, wanted, parent)
    return new


def with_value(text: str, table: str, key: str, value: tuple[object, ...]) -> str:
    """Return the text with another value of a key in a table; without the key if there is none.

    A table that is not there is added at the end, and removed when nothing is left in it.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    wanted = tables_in(text)
    values = wanted.setdefault(table, {})
    if not isinstance(values, dict):
        raise InvalidValueError(f"{table} is not a table")
    values.pop(key, None)
    if value:
        values[key] = value[0]
    line = f"{key} = {_told(value[0])}" if value else ""
    header = re.search(rf"^[ \t]*\[\s*{re.escape(table)}\s*\][^\n]*(?:\n|\Z)", text, re.MULTILINE)
    if header is None:
        gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        new = f"{text}{gap}[{table}]{newline}{line}{newline}"
    elif values:
        new = text[: header.end()] + _with_line(text[header.end() :], key, line, newline)
    else:
        before = re.sub(r"(?<=\n)\r?\n\Z", "", text[: header.start()])
        new = before + _with_line(text[header.end() :], key, "", newline)
    _check(new, wanted, table)
    return new


def _with_line(text: str, key: str, line: str, newline: str) -> str:
    """Return what follows a table's header with another line for a key, or without it."""
    found = re.search(rf"^[ \t]*{re.escape(key)}[ \t]*=[^\r\n#]*", text, re.MULTILINE)
    if found is None:
        return f"{line}{newline}{text}" if line else text
    if line:
        return text[: found.start()] + line + text[found.end() :]
    return text[: found.start()] + text[found.end() :].partition("\n")[2]


def _check(new: str, wanted: dict[str, object], parent: str) -> None:
    """Refuse a change that would do anything else than it should."""
    if not wanted.get(parent):
        wanted.pop(parent, None)
    try:
        found = tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        found = {}
    if not found.get(parent):
        found.pop(parent, None)
    if found != wanted:
        raise InvalidValueError(f"[{parent}] is written in a way that can't be changed safely")
