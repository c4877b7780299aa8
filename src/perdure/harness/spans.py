"""The paths, symbols and commands that a statement names, and the lines of a file it refers to.

Code is read by lines, without a parser. A definition extends as far as any sign shows: indentation,
open brackets, an open string. If the signs disagree, it is too long rather than too short, so that
a change in it is detected.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from perdure.patterns import later

_LIMIT = 8
_LONGEST_STATEMENT = 4_000
_LONGEST_LINE = 240
_MENTION_LIMIT = 100
_NEAR = 300
"""How many lines up and down moved lines are searched."""
_DIGEST = 24


class NamedPath(NamedTuple):
    path: str
    first: int = 0
    """The first line that is named, from 1; 0 for none."""
    last: int = 0


_PATH = later(
    r"(?<![\w/.:@%-])(?P<path>(?:\./)?(?:[\w.@+-]+/)*[\w.@+-]+/?)"
    r"(?:(?::|#L)(?P<first>\d{1,7})(?:-L?(?P<last>\d{1,7}))?)?(?![\w/%])"
)
_FILES = frozenset({"makefile", "gnumakefile", "justfile", "dockerfile", "rakefile", "gemfile"})
_CODE = later(r"`([^`\n]{1,300})`")
_SYMBOL = later(
    r"(?<![\w./-])(?:[A-Za-z_]\w*(?:\.|::|#))*(?P<name>[A-Za-z_]\w{2,79})(?P<call>\(\))?(?![\w/-]|\.\w)"
)
_LOOKS_DEFINED = later(r"\w_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|^[A-Z][A-Z0-9]{2,}$")
_SNIPPET = later(r"(?=.*[\W_])(?=.*\w).{8,}")


@lru_cache(maxsize=512)
def paths_in(text: str) -> tuple[NamedPath, ...]:
    """Return the possible paths in a text, each once, with the line numbers after them."""
    found: dict[str, NamedPath] = {}
    for each in _PATH.finditer(text[:_LONGEST_STATEMENT]):
        path = each["path"].removeprefix("./").rstrip("/.")
        name = path.rpartition("/")[2]
        is_one = "/" in each["path"] or re.search(r"\w\.\w", name) or name.casefold() in _FILES
        if is_one and is_within(path):
            first = int(each["first"] or 0)
            found.setdefault(path, NamedPath(path, first, int(each["last"] or 0) or first))
    return tuple(islice(found.values(), _LIMIT))


def is_within(path: str) -> bool:
    """Whether a relative path stays inside its checkout, and outside of `.git`."""
    names = path.split("/")
    return bool(path) and not {"", ".", "..", ".git"}.intersection(names) and "\0" not in path


def symbols_in(text: str) -> list[str]:
    """Return the names in a text that look like symbols of code, each once."""
    text = text[:_LONGEST_STATEMENT]
    quoted = {name for code in _CODE.findall(text) for name in _names(code)}
    names = (each for each in _SYMBOL.finditer(text) if each["name"])
    found = dict.fromkeys(
        each["name"]
        for each in names
        if each["call"] or each["name"] in quoted or _LOOKS_DEFINED.search(each["name"])
    )
    return list(found)[:_LIMIT]


def _names(code: str) -> Iterator[str]:
    match = _SYMBOL.fullmatch(code.strip())
    if match:
        yield match["name"]


def snippets_in(text: str) -> list[str]:
    found = (each.strip() for each in _CODE.findall(text[:_LONGEST_STATEMENT]))
    return [each for each in found if _SNIPPET.fullmatch(each)][:_LIMIT]


# ---------------------------------------------------------------- definitions
_WORDS = (
    "export default declare public private protected internal static async abstract final "
    "override unsafe extern inline virtual open data sealed suspend local readonly"
)
_KINDS = (
    r"def class function\*? fn func fun struct enum trait interface type typedef union module mod "
    "namespace const let var val record protocol sub proc"
)
_CONTROL = r"(?!(?:return|if|else|elif|while|for|switch|await|throw|new|yield|assert|raise)\b)"


@lru_cache(maxsize=64)
def _definition(name: str) -> re.Pattern[str]:
    words, kinds = _WORDS.replace(" ", "|"), _KINDS.replace(" ", "|")
    before = rf"(?:(?:{words}|pub(?:\([^)]*\))?)\s+)*"
    return re.compile(
        rf"{before}(?:"
        rf"(?:{kinds})\s+(?:mut\s+)?(?:\([^)]*\)\s*)?(?:self\.|\w+(?:\.|::))?{name}\b"
        rf"|(?:self\.)?{name}\s*(?::[^=]*)?=(?![=>])"
        rf"|{_CONTROL}[\w<>\[\],:*&~\s]*\b{name}\s*\([^;]*\{{\s*(?://.*)?$)"
    )


class Definition(NamedTuple):
    hash: str
    line: int
    """The first line, from 1."""


def definition(text: str, name: str, path: str) -> Definition | None:
    """Return where a name is defined in a file; None if it is not, or too often.

    If it is defined several times, as overloads and methods are, all definitions are hashed.
    """
    if name not in text:
        return None
    lines = text.split("\n")
    having = [at for at, line in enumerate(lines) if name in line and len(line) <= _LONGEST_LINE]
    if len(having) > _MENTION_LIMIT:
        return None
    starts = [at for at in having if _definition(name).match(lines[at].strip())]
    if not 0 < len(starts) <= _LIMIT:
        return None
    bodies = [_normal(lines[_top(lines, at) : _end(lines, at, path)]) for at in starts]
    return Definition(_hash(bodies), starts[0] + 1)


def _hash(texts: Iterable[str]) -> str:
    return sha256("\n\n".join(texts).encode(errors="surrogatepass")).hexdigest()[:_DIGEST]


def _top(lines: Sequence[str], start: int) -> int:
    """Return where a definition starts, with its decorators, which may have several lines."""
    margin, top = _indent(lines[start]), start
    for at in range(start - 1, max(-1, start - 40), -1):
        line = lines[at].strip()
        if not line or _indent(lines[at]) < margin:
            break
        if _indent(lines[at]) == margin:
            if line.startswith(("@", "#[")):
                top = at
            elif line[0] not in ")]}":
                break
    return top


_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_HASH_COMMENTS = frozenset(("py", "pyi", "rb", "sh", "bash", "zsh", "pl", "r", "jl", "ex", "exs"))
_SIGN = r"\"\"\"|'''|`|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|/\*|[(){}\[\]]"
_TOKENS = {True: later(rf"{_SIGN}|\#"), False: later(rf"{_SIGN}|//")}
_OPEN = {'"""': '"""', "'''": "'''", "`": "`", "/*": "*/"}


class _Nesting:
    """How many brackets are open after a line, and whether a string or comment is."""

    def __init__(self, path: str) -> None:
        self._tokens = _TOKENS[path.rpartition(".")[2] in _HASH_COMMENTS]
        self.brackets = 0
        self.until = ""

    def read(self, line: str) -> None:
        at = 0
        while at < len(line):
            if self.until:
                end = line.find(self.until, at)
                if end < 0:
                    return
                at, self.until = end + len(self.until), ""
                continue
            token = self._tokens.search(line, at)
            if token is None or token[0] in {"#", "//"}:
                return
            at, self.until = token.end(), _OPEN.get(token[0], "")
            self.brackets = max(0, self.brackets + _BRACKETS.get(token[0], 0))

    @property
    def is_open(self) -> bool:
        return bool(self.brackets or self.until)


def _end(lines: Sequence[str], start: int, path: str) -> int:
    """Return the line after the end of the definition that starts at `start`."""
    margin, depth, end = _indent(lines[start]), _Nesting(path), start + 1
    depth.read(lines[start])
    for at in range(start + 1, len(lines)):
        line = lines[at].strip()
        is_aside = not line or line.startswith(("#", "//"))
        is_inside = (
            depth.is_open
            or lines[at - 1].rstrip().endswith("\\")
            or _indent(lines[at]) > margin
            or line[:1] in {")", "]", "}", "{"}
        )
        if not is_aside and not is_inside:
            break
        depth.read(lines[at])
        if line and (is_inside or not is_aside):
            end = at + 1
    return end


def _indent(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _normal(lines: Sequence[str]) -> str:
    """Return lines with their nesting depth in place of the indentation."""
    margins = sorted({_indent(line) for line in lines if line.strip()})
    depth = {margin: at for at, margin in enumerate(margins)}
    return "\n".join(f"{depth[_indent(line)]} {line.strip()}" for line in lines if line.strip())


# ---------------------------------------------------------------- lines
def hash_of_lines(text: str, first: int, count: int) -> str:
    """Return the hash of lines, counted from 1; empty if they are absent or blank."""
    lines = [line.strip() for line in text.split("\n")[first - 1 : first - 1 + count]]
    return _hash(lines) if first and len(lines) == count and any(lines) else ""


def find_lines(text: str, hash_: str, first: int, count: int) -> int:
    """Return where lines with this hash are, the nearest to `first`; 0 if not found."""
    lines = [line.strip() for line in text.split("\n")]
    for away in range(_NEAR):
        for at in {first - away, first + away}:
            if 0 < at <= len(lines) - count + 1 and _hash(lines[at - 1 : at - 1 + count]) == hash_:
                return at
    return 0


def line_with(text: str, snippet: str) -> int:
    """Return the line that contains a snippet, from 1; 0 if none does."""
    at = text.find(snippet)
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


# ---------------------------------------------------------------- commands
_COMMANDS = (
    (
        later(r"\b(?:npm|pnpm|yarn|bun)(?:\s+run)?(?:\s+-\S+)*\s+(?P<name>[\w:.-]*\w)"),
        ("package.json",),
    ),
    (
        later(r"\bmake(?:\s+-\S+)*\s+(?P<name>[\w./-]*\w)"),
        ("Makefile", "makefile", "GNUmakefile"),
    ),
    (
        later(r"\bjust\s+(?P<name>[A-Za-z_][\w-]*)"),
        ("justfile", "Justfile", ".justfile"),
    ),
    (
        later(
            r"\b(?:poe|(?:uv|pdm|poetry|hatch|rye|pixi)\s+run)(?:\s+-\S+)*\s+(?P<name>[\w:.-]*\w)"
        ),
        ("pyproject.toml",),
    ),
)


class NamedCommand(NamedTuple):
    text: str
    name: str
    files: tuple[str, ...]
    """The files that may define it."""


def commands_in(text: str) -> list[NamedCommand]:
    """Return the possible commands in a text that a checkout may define, each once."""
    found = {
        match[0]: NamedCommand(match[0], match["name"], files)
        for pattern, files in _COMMANDS
        for match in pattern.finditer(text[:_LONGEST_STATEMENT])
    }
    return list(found.values())[:_LIMIT]


_TARGETS = later(r"^(?P<names>[\w./%-][\w./% \t-]*)::?(?![:=])", re.MULTILINE)
_RECIPES = later(r"^@?(?P<names>[A-Za-z_][\w-]*)(?:[ \t][^:\n]*)?:(?!=)", re.MULTILINE)
_TABLE = later(r"^\[(?P<table>[\w.\"'-]+)\]|^(?P<key>[\"']?[\w:.-]+[\"']?)[ \t]*=", re.MULTILINE)
_SCRIPTS = later(r"(?:scripts|gui-scripts|tasks)(?:\.(?P<name>[\w:.\"'-]+))?$")


def defines(path: str, text: str, name: str) -> bool:
    file = path.rpartition("/")[2].casefold()
    if file == "package.json":
        return name in _scripts(text)
    if file == "pyproject.toml":
        return name in _tasks(text)
    pattern = _RECIPES if "just" in file else _TARGETS
    return any(name in match["names"].split() for match in pattern.finditer(text))


def _scripts(text: str) -> Iterable[str]:
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        scripts = found.get("scripts") if isinstance(found, dict) else None
        return scripts if isinstance(scripts, dict) else ()
    return ()


def _tasks(text: str) -> set[str]:
    """Return the names in tables called scripts or tasks; read by lines, which is fast."""
    found, is_table = set(), False
    for match in _TABLE.finditer(text):
        if match["table"]:
            scripts = _SCRIPTS.search(match["table"])
            is_table = bool(scripts and not scripts["name"])
            if scripts and scripts["name"]:
                found.add(scripts["name"].strip("\"'"))
        elif is_table:
            found.add(match["key"].strip("\"'"))
    return found
