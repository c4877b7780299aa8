"""The properties at the top of a Markdown text: parsed within limits, and changed in place.

With merges and aliases, 495 bytes of YAML can hang a reader. So values are built from the events of
the parser, which stops at a limit. What can't be parsed is a finding, and the text below it can
still be read. A change replaces the bytes of one property only.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, NamedTuple

from perdure.errors import InvalidValueError
from perdure.patterns import later

Value = None | bool | int | float | str | date | list["Value"] | dict[str, "Value"]
"""The value of a property; a datetime is a date too."""

MAX_CHARACTERS = 64_000
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
"""The characters that YAML requires to be escaped, in addition to those of JSON."""


class Frontmatter(NamedTuple):
    values: Mapping[str, Value]
    """The properties; empty if there are none, or if they can't be parsed."""
    lines: str
    body: str
    finding: str | None
    """Why the values can't be parsed, and the fix; the body can be read in any case."""


def frontmatter(text: str) -> Frontmatter:
    """Return the frontmatter of a text, and its body. Any text is accepted."""
    lines, body = split(text)
    if body is text:
        return Frontmatter({}, "", text, NO_END if has_no_end(text) else None)
    try:
        return Frontmatter(properties(lines), lines, body, None)
    except InvalidValueError as error:
        return Frontmatter({}, lines, body, str(error))


NO_END = "frontmatter has no end. Fix: add a line --- after it, or remove the first line."


def fences(text: str) -> tuple[str, str, str, str] | None:
    """Return the first fence, the lines, the second fence and the body; None without fences."""
    opened = _OPENING.match(text)
    closed = _CLOSING.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        return None
    return opened[0], text[opened.end() : closed.start()], closed[0], text[closed.end() :]


def split(text: str) -> tuple[str, str]:
    """Return the lines between the fences, and the body; without fences the text itself."""
    found = fences(text) if text.startswith(("---", "\ufeff")) else None
    return (found[1], found[3]) if found else ("", text)


def has_no_end(text: str) -> bool:
    """Whether a text begins with a fence and has no second one, so that all of it is body."""
    return _OPENING.match(text) is not None and split(text)[1] is text


def join(lines: str, body: str) -> str:
    """Return the text that `split` splits into these two."""
    return f"---\n{lines}---\n{body}" if lines or _OPENING.match(body) else body


def properties(lines: str) -> dict[str, Value]:
    """Return the values in some lines; `InvalidValueError` with the reason if they are invalid."""
    return _Reader(lines).values


def text_list(value: object, separators: str) -> list[str]:
    """Return the items of a property that is a list, or a text with separators."""
    if isinstance(value, str):
        found: Iterable[str] = re.split(separators, value)
    elif isinstance(value, list):
        found = [str(each) for each in value if isinstance(each, str | int | date)]
    else:
        return []
    return [each for each in map(str.strip, found) if each]


# ---------------------------------------------------------------- reading
class _Reader:
    def __init__(self, lines: str) -> None:
        self.lines = lines
        self.values: dict[str, Value] = {}
        self._known: dict[str, tuple[Value, int] | None] = {}
        """Each value by its anchor, with the number of values in it; None while it is parsed."""
        self._count = self._aliases = 0
        if not lines.strip():
            return
        if _CLOSING.search(lines):
            raise InvalidValueError("frontmatter has a line ---. Fix: remove that line.")
        if len(lines) > MAX_CHARACTERS:
            what = f"has {len(lines):,} characters; the limit is {MAX_CHARACTERS:,}"
            raise InvalidValueError(f"frontmatter {what}. Fix: shorten it.")
        import yaml  # noqa: PLC0415 - slow, and most texts that hooks read have no frontmatter

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
                case "DocumentStart" if not self.values:
                    continue
                case "MappingStart":
                    value = self._value(event, events, 0)
                    self.values = value if isinstance(value, dict) else {}
                case "DocumentEnd" | "StreamEnd":
                    continue
                case _:
                    raise InvalidValueError(
                        "frontmatter is not a mapping of names to values. "
                        "Fix: write lines such as 'title: A name'."
                    )

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Value:  # noqa: ANN401 - an event of one of two parsers
        self._check(event, depth)
        kind = _kind(event)
        if kind == "Alias":
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
        return found

    def _list(self, events: Iterator[Any], depth: int) -> list[Value]:
        found: list[Value] = []
        while _kind(event := next(events)) != "SequenceEnd":
            found.append(self._value(event, events, depth + 1))
        return found

    def _alias(self, event: Any) -> Value:  # noqa: ANN401 - as above
        self._aliases += 1
        known = self._known.get(event.anchor)
        if known is None or self._aliases > _ALIASES:
            what = f"has more than {_ALIASES} aliases" if known else "has an undefined alias"
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


def _refused(event: Any, what: str, fix: str) -> InvalidValueError:  # noqa: ANN401 - as above
    return InvalidValueError(f"frontmatter {what}, line {event.start_mark.line + 2}. Fix: {fix}.")


def _scalar(event: Any) -> Value:  # noqa: ANN401 - as above
    text = str(event.value)
    tag = event.tag or ""
    is_plain = event.implicit[0] if not tag else tag not in {"!", f"{_TAG}str"}
    return _resolved(text) if is_plain else text


def _resolved(text: str) -> Value:
    """Return the value of a text without quotes: by the core schema of YAML 1.2, or a date."""
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


# ---------------------------------------------------------------- line by line
_PROPERTY = later(
    r"""(?:(?P<bare>[^\s#\-'"{\[&*!|>%@`:,\]}?][^:\n]*?)|"(?P<quoted>[^"\n]*)")[ \t]*:(?=\s)"""
)
_ITEM = later(r"  - (.*)")
_BARE = later(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w-]*(?=: )')
_NAME = later(r"[A-Za-z_][\w-]*", re.ASCII)
_PLAIN = later(r"[^\W_][\w .,;()/@+'-]*(?::[^\s:][\w .,;()/@+'-]*)*")
_NUMBER = later(r"[-+.\d][\d_.,eExXoO+-]*")
_MOMENT = later(r"\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_MEANT = frozenset(["~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"])
"""Words that some YAML parsers do not read as text."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
JSON = None | bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"]


class FrontmatterEntry(NamedTuple):
    """Whole lines of a frontmatter: a property, or lines between properties."""

    name: str
    """Empty for blank lines and comments."""
    raw: str


def entries(lines: str) -> Iterator[FrontmatterEntry]:
    """Yield the entries of a frontmatter; blank lines and comments have their own."""
    name, raw, blank = "", "", ""
    for line in lines.splitlines(keepends=True) if "\x0b" not in lines else [lines]:
        is_inside = line[0] in " \t-" and line.strip() and name
        found = None if is_inside else _PROPERTY.match(line)
        if is_inside:
            raw += blank + line
            blank = ""
        elif found:
            if raw:
                yield FrontmatterEntry(name, raw)
            if blank:
                yield FrontmatterEntry("", blank)
            name, raw, blank = found["bare"] or found["quoted"] or "", line, ""
        else:
            blank += line
    if raw:
        yield FrontmatterEntry(name, raw)
    if blank:
        yield FrontmatterEntry("", blank)


def value_of(entry: FrontmatterEntry) -> JSON:
    try:
        return _own_value(entry.raw)
    except ValueError:
        return _any_value(entry)


@lru_cache(maxsize=1024)
def _own_value(raw: str) -> JSON:
    """Return a value in the form of `render_property`; `ValueError` for any other."""
    first, *items = raw.rstrip("\r\n").splitlines()
    value = first.partition(":")[2].strip()
    if value and not items:
        return _read(value)
    if value or not items:
        raise ValueError
    return [_read(_item(line)) for line in items]


def _item(line: str) -> str:
    found = _ITEM.fullmatch(line)
    if found is None:
        raise ValueError
    return found[1]


def _read(value: str) -> JSON:
    if value[0] in '"{[':
        return json.loads(_BARE.sub(_quoted_name, value))  # type: ignore[no-any-return] # it is JSON
    if value in {"true", "false"} or _NUMBER.fullmatch(value):
        return value if _MOMENT.fullmatch(value) else json.loads(value)
    if _is_plain(value):
        return value
    raise ValueError


def _quoted_name(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == '"' else f'"{found[0]}"'


def _any_value(entry: FrontmatterEntry) -> JSON:
    try:
        return as_json(properties(entry.raw).get(entry.name))
    except InvalidValueError:
        return None


def as_json(value: object) -> JSON:
    if isinstance(value, dict):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return value if isinstance(value, (str, bool, int, float)) else None


def render_property(name: str, value: JSON, line_end: str) -> str:
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, Mapping) for v in value):
        return "".join((f"{name}:{line_end}", *(f"  - {_flow(each)}{line_end}" for each in value)))
    shown = value if isinstance(value, str) and _is_plain(value) else _flow(value)
    return f"{name}: {shown}{line_end}"


def _flow(value: JSON) -> str:
    if isinstance(value, Mapping):
        pairs = (
            f"{name if is_plain_name(name) else quoted(name)}: {_flow(each)}"
            for name, each in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    return quoted(value) if isinstance(value, str) else _encode(value)


def is_plain_name(name: str) -> bool:
    """Whether a name needs no quotes."""
    return bool(_NAME.fullmatch(name)) and name.lower() not in _MEANT


def _is_plain(text: str) -> bool:
    """Whether a text without quotes is that same text in YAML."""
    if not _PLAIN.fullmatch(text) or text[-1] in " :" or text.lower() in _MEANT:
        return False
    if _MOMENT.fullmatch(text):
        return True
    is_number = _NUMBER.fullmatch(text) or re.fullmatch(r"\d[\d:.]*", text)
    return not is_number and _resolved(text) == text


def quoted(text: str) -> str:
    """Return a text in quotes, for YAML and JSON alike."""
    value = encode_basestring(text)
    if not text.isprintable():
        value = re.sub(_UNPRINTABLE, lambda found: f"\\u{ord(found[0]):04x}", value)
    return value
