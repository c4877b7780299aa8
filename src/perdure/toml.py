"""Edits of TOML: set or remove one value, and leave the rest of the text unchanged."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from perdure.errors import InvalidValueError

Table = dict[str, Any]


def parse(text: str) -> Table:
    """Return the values in a text; `InvalidValueError` if it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(str(error)) from error


def with_value(text: str, place: Sequence[str], value: object) -> str:
    """Return the text with a value, or a table, at a place. Tables above are added if needed."""
    *tables, key = place
    wanted = above = parse(text)
    document: Any = None
    with suppress(TOMLKitError, ValueError, TypeError, AttributeError):
        for name in tables:
            above = above.setdefault(name, {})
        above[key] = value
        document = table = tomlkit.parse(text)
        for name in tables:
            if name not in table:
                is_super = name != tables[-1] or isinstance(value, Mapping)
                table[name] = tomlkit.table(is_super_table=is_super)
            table = table[name]
        table[key] = _item(value)
    return _checked(text, document, wanted, place)


def without(text: str, place: Sequence[str]) -> str:
    """Return the text without the value, or the table, at a place; unchanged if there is none.

    A table above that becomes empty is removed too.
    """
    wanted = parse(text)
    try:
        _remove(wanted, place)
    except (KeyError, TypeError):
        return text
    document: Any = None
    with suppress(TOMLKitError, ValueError, TypeError, AttributeError):
        document = tomlkit.parse(text)
        _remove(document, place)
    new = _checked(text, document, wanted, place)
    if text.startswith(new):  # it was the last, and a blank line may have preceded it
        new = re.sub(r"(?<=\n)\r?\n\Z", "", new)
    return new


def _remove(tree: Any, place: Sequence[str]) -> None:  # noqa: ANN401 - as tomlkit has it
    name, *below = place
    if below:
        _remove(tree[name], below)
    if not below or not tree[name]:
        del tree[name]


def _item(value: object) -> object:
    """Return a table whose own tables are inline, or a plain value."""
    if not isinstance(value, Mapping):
        return value
    table = tomlkit.table()
    for name, each in value.items():
        inline = tomlkit.inline_table()
        table[name] = inline | dict(each) if isinstance(each, Mapping) else each
    return table


def _checked(text: str, document: Any, wanted: Table, place: Sequence[str]) -> str:  # noqa: ANN401
    """Return the edited text if it parses to exactly what is wanted, else raise."""
    is_windows = 0 < text.count("\n") == text.count("\r\n")
    new = "" if document is None else document.as_string()
    new = re.sub("\r?\n", "\r\n", new) if is_windows else new
    with suppress(InvalidValueError):
        if document is not None and parse(new) == wanted:
            return str(new)
    raise InvalidValueError(f"{'.'.join(place)} can't be changed safely in this file")
