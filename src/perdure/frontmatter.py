"""The properties at the top of a Markdown text: read within limits, and changed in place.

YAML lets 495 bytes hang a reader, by merges and aliases. So a value is made from the events of its
parser, which end where a limit is reached; what can't be read is a finding, and the text below it
can be read. A change replaces the bytes of one property, and no others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, NamedTuple

from perdure.errors import InvalidValueError
from perdure.patterns import later

Value = None | bool | int | float | str | date | list["Value"] | dict[str, "Value"]
"""What a property can be; a datetime is a date too."""

MOST_CHARACTERS = 64_000
_DEPTH, _NODES, _ALIASES, _DIGITS = 32, 4_096, 32, 40
_OPENING = later(r"\A\ufeff?---[ \t]*\r?\n")
_CLOSING = later(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_TAG = "tag:yaml.org,2002:"
_TAGS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
    "timestamp": (date,),
    "str": (str,),
    "seq": (list,),
    "map": (dict,),
}
_INTEGER = later(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = later(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DAY = later(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = later(
    r"\d{4}-\d\d-\d\d(?:[Tt]|[ \t]+)\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?"
    r"[ \t]*(?:Z|[-+]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
_WORDS: dict[str, Value] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_UNPRINTABLE = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
"""What YAML does not let stand as it is, beyond what JSON escapes."""
_PLAIN = later(r"[A-Za-z](?:[\w ./+-]*\w)?", re.ASCII)
"""What needs no quotes, unless it is a word with a meaning."""
_NAME = later(r"[A-Za-z_][\w-]*", re.ASCII)
_COLON = later(r"[ \t]*:(?=[ \t\r\n]|\Z)")


class Frontmatter(NamedTuple):
    values: Mapping[str, Value]
    """The properties; none if there are none, or if they can't be read."""
    lines: str
    """What is between the fences, to the letter."""
    body: str
    """What follows the closing fence, to the letter."""
    finding: str | None
    """Why the values can't be read, and the fix; the body can be read in any case."""


def frontmatter(text: str) -> Frontmatter:
    """Return what is at the top of a text, and its body. Takes any text."""
    lines, body = split(text)
    if body is text:
        return Frontmatter({}, "", text, NO_END if has_no_end(text) else None)
    try:
        return Frontmatter(properties(lines), lines, body, None)
    except InvalidValueError as error:
        return Frontmatter({}, lines, body, str(error))


NO_END = "frontmatter has no end. Fix: add a line --- after it, or remove the first line."


def split(text: str) -> tuple[str, str]:
    """Return the lines between the fences, and the body; without fences the text itself."""
    opened = _OPENING.match(text)
    closed = _CLOSING.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        return "", text
    return text[opened.end() : closed.start()], text[closed.end() :]


def has_no_end(text: str) -> bool:
    """Whether a text begins with a fence that no other follows, so that all of it is body."""
    return _OPENING.match(text) is not None and split(text)[1] is text


def join(lines: str, body: str) -> str:
    """Return the text of which `split` makes these two."""
    return f"---\n{lines}---\n{body}" if lines or _OPENING.match(body) else body


def properties(lines: str) -> dict[str, Value]:
    """Return the values in some lines; `InvalidValueError` says why they can't be read."""
    return _Reader(lines).values


def texts(value: object, separators: str) -> list[str]:
    """Return the texts of a property that is a list, or one text with separators."""
    if isinstance(value, str):
        found: Iterable[str] = re.split(separators, value)
    elif isinstance(value, list):
        found = [str(each) for each in value if isinstance(each, str | int | date)]
    else:
        return []
    return [each for each in map(str.strip, found) if each]


# ---------------------------------------------------------------- reading
class _Entry(NamedTuple):
    """Where a property is: its name, and its value, which may be empty."""

    start: int
    name_end: int
    end: int


class _Reader:
    def __init__(self, lines: str) -> None:
        self.lines = lines
        self.values: dict[str, Value] = {}
        self.entries: dict[str, _Entry] = {}
        self.is_flow = False
        self._known: dict[str, tuple[Value, int] | None] = {}
        """By its anchor each value, and how many it holds; None while it is read."""
        self._count = self._aliases = self._end = 0
        if not lines.strip():
            return
        if _CLOSING.search(lines):
            raise InvalidValueError("frontmatter has a line ---. Fix: remove that line.")
        if len(lines) > MOST_CHARACTERS:
            what = f"has {len(lines):,} characters; {MOST_CHARACTERS:,} are the most"
            raise InvalidValueError(f"frontmatter {what}. Fix: shorten it.")
        import yaml  # noqa: PLC0415 - hooks wait, and most texts that they read have none

        try:
            self._read(iter(yaml.parse(lines, getattr(yaml, "CSafeLoader", yaml.SafeLoader))))
        except InvalidValueError:
            raise
        except (yaml.YAMLError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 2}" if mark else ""
            what = getattr(error, "problem", None) or str(error).partition("\n")[0]
            raise InvalidValueError(
                f"frontmatter is not valid YAML{where}: {what}. Fix: correct that line."
            ) from error

    def _read(self, events: Iterator[Any]) -> None:
        next(events)
        for event in events:
            match _kind(event):
                case "DocumentStart" if not self.entries and not self.is_flow:
                    continue
                case "MappingStart":
                    self.is_flow = bool(event.flow_style)
                    value = self._value(event, events, 0)
                    self.values = value if isinstance(value, dict) else {}
                case "DocumentEnd" | "StreamEnd":
                    continue
                case _:
                    raise InvalidValueError(
                        "frontmatter is not a list of names and values. "
                        "Fix: write lines such as 'title: A name'."
                    )

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Value:  # noqa: ANN401 - an event of one of two parsers
        self._check(event, depth)
        kind = _kind(event)
        if kind == "Alias":
            self._end = event.end_mark.index
            return self._alias(event)
        if event.anchor:
            self._known[event.anchor] = None
        before = self._count
        if kind == "MappingStart":
            value: Value = self._mapping(events, depth)
        elif kind == "SequenceStart":
            value = self._list(events, depth)
        else:
            value = _scalar(event)
            self._end = event.end_mark.index
        tag = (event.tag or "").removeprefix(_TAG)
        if tag not in {"", "!"} and not isinstance(value, _TAGS.get(tag, ())):
            raise _refused(event, f"has the tag {tag[:80]!r}", "remove the tag")
        if event.anchor:
            self._known[event.anchor] = value, self._count - before
        return value

    def _mapping(self, events: Iterator[Any], depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while _kind(key := next(events)) != "MappingEnd":
            self._check(key, depth)
            if _kind(key) != "Scalar":
                raise _refused(key, "has a name that is not text", "write it as text")
            name = str(key.value)
            if name == "<<":
                raise _refused(key, "has a merge key (<<)", "write the values out")
            if name in found:
                raise _refused(key, f"has {name[:80]!r} twice", "remove one of them")
            found[name] = self._value(next(events), events, depth + 1)
            if depth == 0:
                place = key.start_mark.index, key.end_mark.index, self._end
                self.entries[name] = _Entry(*place)
        self._end = max(self._end, _end_of_flow(key))
        return found

    def _list(self, events: Iterator[Any], depth: int) -> list[Value]:
        found: list[Value] = []
        while _kind(event := next(events)) != "SequenceEnd":
            found.append(self._value(event, events, depth + 1))
        self._end = max(self._end, _end_of_flow(event))
        return found

    def _alias(self, event: Any) -> Value:  # noqa: ANN401 - as above
        self._aliases += 1
        known = self._known.get(event.anchor)
        if known is None or self._aliases > _ALIASES:
            what = f"has more than {_ALIASES} aliases" if known else "has an alias of nothing"
            raise _refused(event, what, "write the values out")
        self._count += known[1]
        self._check(event, 0)
        return known[0]

    def _check(self, event: Any, depth: int) -> None:  # noqa: ANN401 - as above
        self._count += 1
        if self._count > _NODES:
            raise _refused(event, f"has more than {_NODES:,} values", "shorten it")
        if depth > _DEPTH:
            raise _refused(event, f"is nested more than {_DEPTH} levels deep", "make it flatter")


def _kind(event: object) -> str:
    return type(event).__name__.removesuffix("Event")


def _end_of_flow(event: Any) -> int:  # noqa: ANN401 - as above
    """Return where a bracket ends; the end of a list without brackets is where the next starts."""
    is_bracket = event.end_mark.index > event.start_mark.index
    return int(event.end_mark.index) if is_bracket else 0


def _refused(event: Any, what: str, fix: str) -> InvalidValueError:  # noqa: ANN401 - as above
    return InvalidValueError(f"frontmatter {what}, line {event.start_mark.line + 2}. Fix: {fix}.")


def _scalar(event: Any) -> Value:  # noqa: ANN401 - as above
    text = str(event.value)
    tag = event.tag or ""
    is_plain = event.implicit[0] if not tag else tag not in {"!", f"{_TAG}str"}
    return _resolved(text) if is_plain else text


def _resolved(text: str) -> Value:
    """Return what a text without quotes is: by the core schema of YAML 1.2, or a date."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _DIGITS or text[0] not in "+-.0123456789":
        return text
    try:
        return _number_or_time(text)
    except ValueError:  # such as the 30th of February
        return text


def _number_or_time(text: str) -> Value:
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
    if _FLOAT.fullmatch(text):
        return number if isfinite(number := float(text)) else text
    if _DAY.fullmatch(text):
        return date.fromisoformat(text)
    if _TIME.fullmatch(text):
        clock = "".join(text[10:].strip("Tt").split())
        return datetime.fromisoformat(f"{text[:10]}T{clock}")
    return text


# ---------------------------------------------------------------- changing
def with_frontmatter(text: str, changes: Mapping[str, Value]) -> str:
    """Return a text with properties set, or removed where None is given; all other bytes stay.

    `InvalidValueError` if its frontmatter can't be read, or can't be changed without more.
    """
    before = frontmatter(text)
    has_fences = before.body is not text
    if before.finding and has_fences:
        raise InvalidValueError(before.finding)
    line_end = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
    lines = _changed(_Reader(before.lines), changes, line_end)
    wanted = {**before.values, **changes}
    kept = {name: each for name, each in wanted.items() if each is not None or name not in changes}
    if repr(sorted(properties(lines).items())) != repr(sorted(kept.items())):
        raise InvalidValueError(
            "frontmatter can't be changed in this place alone. "
            "Fix: write one property per line, without anchors."
        )
    if has_fences:
        fence = text.rindex("---", 0, len(text) - len(before.body))
        return text[: fence - len(before.lines)] + lines + text[fence:]
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    fences = f"---{line_end}{lines}---{line_end}"
    return f"{mark}{fences}{text.removeprefix(mark)}" if lines else text


def _changed(found: _Reader, changes: Mapping[str, Value], line_end: str) -> str:
    if found.is_flow:
        raise InvalidValueError("frontmatter is in braces. Fix: write one property per line.")
    lines, added = found.lines, ""
    for name in sorted(changes, key=lambda name: found.entries.get(name, (0,))[0], reverse=True):
        value, entry = changes[name], found.entries.get(name)
        if entry and value is None:
            start = lines.rfind("\n", 0, entry.start) + 1
            end = lines.find("\n", len(lines[: entry.end].rstrip()))
            lines = lines[:start] + (lines[end + 1 :] if end >= 0 else "")
        elif entry:
            colon = _COLON.match(lines, entry.name_end)
            start = colon.end() if colon else entry.end
            end = max(start, len(lines[: entry.end].rstrip()))
            lines = lines[:start] + _written(value, line_end) + lines[end:]
    for name, value in changes.items():
        if name not in found.entries and value is not None:
            added += f"{_written_name(name)}:{_written(value, line_end)}{line_end}"
    return lines + (line_end if added and lines and not lines.endswith("\n") else "") + added


def _written(value: Value, line_end: str) -> str:
    """Return a value as it follows the colon: a list with a line for each, as editors write it."""
    if isinstance(value, list) and value:
        return "".join(f"{line_end}  - {_flow(each)}" for each in value)
    return f" {_flow(value)}"


def _flow(value: Value) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and _resolved(value) == value else quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_written_name(name)}: {_flow(each)}" for name, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return f"{'-' * (value < 0)}.{'nan' if value != value else 'inf'}"  # noqa: PLR0124 - so it is NaN
    return "null" if value is None else str(value).lower()


def _written_name(name: str) -> str:
    return name if _NAME.fullmatch(name) and name not in _WORDS else quoted(name)


def quoted(text: str) -> str:
    """Return a text in quotes that YAML and JSON read alike."""
    said = encode_basestring(text)
    if not text.isprintable():
        said = re.sub(_UNPRINTABLE, lambda found: f"\\u{ord(found[0]):04x}", said)
    return said
