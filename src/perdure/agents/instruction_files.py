"""The instruction files that agents load by themselves. They are read in place, never changed.

A repository may be hostile, so reading is bounded: regular text files inside the repository or the
user's own folders, no links out of these, and a limit of files, bytes and time.
"""

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from perdure.engine.instruction_lines import InstructionFile
from perdure.frontmatter import split
from perdure.harness.project import checkout_at
from perdure.markdown import without_code
from perdure.patterns import later

MOST_BYTES = 200_000
MOST_FILES = 50
_MOST_LISTED = 12_000
"""Entries of a folder of rules and everything below it."""
_DEEPEST = 5
_MOST_PARENTS = 30
_SECONDS = 0.1
_FILES = (
    *("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.override.md", "AGENTS.md"),
    *("GEMINI.md", ".cursorrules", ".github/copilot-instructions.md"),
)
_RULES = ((".claude/rules", ".md"), (".cursor/rules", ".mdc"))
_IMPORTING = frozenset({"CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"})
_IMPORT = later(r"(?:^|\s)@((?:\./|\.\./)*[\w][\w./-]*)")
_CODE = later(r"`[^`\n]*`")
_GLOBS = later(
    r"^(?:globs|paths):[ \t]*(?P<inline>[^\n]*)(?P<block>(?:\n[ \t]*-[ \t]+[^\n]*)*)", re.MULTILINE
)
_MEMORY_LINES, _MEMORY_BYTES = 200, 25_000
"""The part of its MEMORY.md that Claude Code loads."""
_LONGEST_SLUG = 200


def instruction_files(
    cwd: str, agent: str = "", environ: Mapping[str, str] | None = None
) -> list[InstructionFile]:
    """Return the instruction files that an agent loads in a folder; without an agent, of all.

    First those of the folder and of its parents up to the top of the repository, the nearest first;
    then the user's own.
    """
    if not Path(cwd).is_absolute() or "\0" in cwd:
        return []
    folder = Path(os.path.realpath(cwd))
    return _InstructionReader(folder).all(agent, os.environ if environ is None else environ)


class _InstructionReader:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._top = _top_of(folder)
        self._until = time.monotonic() + _SECONDS
        self._left = MOST_BYTES
        self._seen: set[tuple[int, int]] = set()
        self._found: list[InstructionFile] = []

    def all(self, agent: str, environ: Mapping[str, str]) -> list[InstructionFile]:
        folders = [each for each in (self._folder, *self._folder.parents) if self._is_inside(each)]
        for folder in folders[:_MOST_PARENTS]:
            for name in _FILES:
                self._read_with_imports(folder / name)
        for folder in folders[:_MOST_PARENTS]:
            for name, suffix in _RULES:
                for path in _below(folder / name, suffix):
                    self._read(path, self._top)
        if home := environ.get("HOME", ""):
            for path in _own_files(agent, Path(home), environ, self._main):
                is_at_home = Path(home) in path.parents
                shown = f"~/{path.relative_to(home)}" if is_at_home else str(path)
                self._read(path, Path(home) if is_at_home else path.parent, shown)
        return self._found

    @property
    def _main(self) -> Path:
        """The top of the main working tree: Claude Code has one memory for all of them."""
        checkout = checkout_at(self._top)
        return (checkout.main if checkout else None) or self._top

    def _is_inside(self, folder: Path) -> bool:
        return folder == self._top or self._top in folder.parents

    def _read_with_imports(self, path: Path) -> None:
        file = self._read(path, self._top)
        if file is None or path.name not in _IMPORTING:
            return
        for name in dict.fromkeys(_IMPORT.findall(_CODE.sub("", without_code(file.text)))):
            self._read(Path(os.path.normpath(path.parent / name)), self._top)

    def _read(self, path: Path, within: Path, shown: str = "") -> InstructionFile | None:
        if len(self._found) >= MOST_FILES or time.monotonic() > self._until:
            return None
        with suppress(OSError, ValueError):
            real, root = os.path.realpath(path), os.path.realpath(within)
            if os.path.commonpath([real, root]) != root:
                return None
            found = _text_of(real, self._left, self._seen)
            if found is None:
                return None
            text, changed = found
            self._left -= len(text.encode())
            limit = _MEMORY_LINES if path.name == "MEMORY.md" else None
            body, globs = _without_frontmatter(text)
            body = "\n".join(body[:_MEMORY_BYTES].split("\n")[:limit]) if limit else body
            name = shown or os.path.relpath(path, self._folder)
            file = InstructionFile(name, body, changed, globs)
            self._found.append(file)
            return file
        return None


def _top_of(folder: Path) -> Path:
    """Return the top of a folder's repository; without one, the folder itself."""
    for each in (folder, *folder.parents)[:_MOST_PARENTS]:
        if os.path.lexists(each / ".git"):
            return each
    return folder


def _below(folder: Path, suffix: str) -> list[Path]:
    """Return the first files below a folder with a suffix; ignores linked folders."""
    found: list[str] = []
    waiting = [(str(folder), 0)]
    listed = 0
    while waiting and listed < _MOST_LISTED:
        place, depth = waiting.pop()
        with suppress(OSError), os.scandir(place) as entries:
            for entry in islice(entries, _MOST_LISTED - listed):
                listed += 1
                if entry.name.endswith(suffix):
                    found.append(entry.path)
                elif depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))
    return [Path(each) for each in sorted(found)[:MOST_FILES]]


def _text_of(path: str, most: int, seen: set[tuple[int, int]]) -> tuple[str, datetime] | None:
    """Return the text of a regular file, and its mtime; None if it is not text, or known."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        key = status.st_dev, status.st_ino
        if not stat.S_ISREG(status.st_mode) or status.st_size > most or key in seen:
            return None
        data = file.read(most)
    seen.add(key)
    if b"\0" in data:
        return None
    return data.decode(errors="replace"), datetime.fromtimestamp(status.st_mtime, UTC)


def _without_frontmatter(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text with blank lines in place of its frontmatter, and the globs in that."""
    lines, rest = split(text)
    body = "\n" * (text.count("\n") - rest.count("\n")) + rest
    named = _GLOBS.search(lines)
    if named is None:
        return body, ()
    given = [
        *re.split(r",(?![^{]*\})", named["inline"].strip().removeprefix("[").removesuffix("]")),
        *(each.strip().lstrip("- ") for each in named["block"].split("\n")),
    ]
    return body, tuple(filter(None, (each.strip().strip("\"'") for each in given)))


# ---------------------------------------------------------------- the user's own
def _own_files(agent: str, home: Path, environ: Mapping[str, str], top: Path) -> Iterator[Path]:
    """Yield what an agent loads for its user in every folder, and the agent's own memory."""
    if agent in {"", "claude-code"}:
        folder = _folder(environ, "CLAUDE_CONFIG_DIR", home / ".claude")
        yield folder / "CLAUDE.md"
        yield from _below(folder / "rules", ".md")
        if memory := _memory_folder(folder / "projects", str(top)):
            yield memory / "MEMORY.md"
    if agent in {"", "codex"}:
        folder = _folder(environ, "CODEX_HOME", home / ".codex")
        yield folder / "AGENTS.override.md"
        yield folder / "AGENTS.md"
        yield folder / "memories" / "memory_summary.md"
    if agent in {"", "gemini-cli"}:
        yield home / ".gemini" / "GEMINI.md"
    if agent in {"", "opencode"}:
        yield _folder(environ, "XDG_CONFIG_HOME", home / ".config") / "opencode" / "AGENTS.md"


def _folder(environ: Mapping[str, str], name: str, usual: Path) -> Path:
    given = environ.get(name, "")
    return Path(given) if Path(given).is_absolute() else usual


def _memory_folder(projects: Path, top: str) -> Path | None:
    """Return where Claude Code stores its memory of a repository; a long path by its start."""
    slug = re.sub(r"[^a-zA-Z0-9]", "-", top)
    if len(slug) <= _LONGEST_SLUG:
        return projects / slug / "memory"
    with suppress(OSError):
        begun = f"{slug[:_LONGEST_SLUG]}-"
        found = [each for each in projects.iterdir() if each.name.startswith(begun)]
        return found[0] / "memory" if len(found) == 1 else None
    return None
