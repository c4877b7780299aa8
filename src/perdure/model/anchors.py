"""The anchors of a statement: what it names in a checkout, and whether that changed since."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from perdure.dataclass import asdict, dataclass
from perdure.model.values import JSON

FRESH, MOVED, CHANGED, UNKNOWN = "fresh", "moved", "changed", "unknown"
ON_EVERY_BRANCH = frozenset({"rule", "preference"})
"""Kinds that hold on every branch, unless they have anchors."""


@dataclass(frozen=True, slots=True)
class FileAnchor:
    """A file that a statement names, or a part of it."""

    path: str
    """From the top of the checkout."""
    blob: str = ""
    """The git hash of the whole file; empty for a folder, and for a file that was not read."""
    symbol: str = ""
    """The function, class or constant that is defined there."""
    hash: str = ""
    """Of the definition, or of the lines; empty if the whole file is meant."""
    line: int = 0
    lines: int = 0
    """How many lines; 0 for a definition or a whole file."""


@dataclass(frozen=True, slots=True)
class CommandAnchor:
    """A command that the checkout defines, such as `make test`."""

    text: str
    path: str
    """The file that defines it."""
    blob: str = ""


@dataclass(frozen=True, slots=True)
class Anchors:
    """What a statement names in a checkout, as of the time of the statement."""

    repository: str = ""
    """Host and path of the remote; empty if there is none."""
    branch: str = ""
    commit: str = ""
    date: str = ""
    spans: tuple[FileAnchor, ...] = ()
    commands: tuple[CommandAnchor, ...] = ()

    @property
    def names_code(self) -> bool:
        return bool(self.spans or self.commands)

    def as_json(self) -> dict[str, JSON]:
        found: dict[str, JSON] = {
            name: getattr(self, name) for name in ("repository", "branch", "commit", "date")
        }
        found["spans"] = [_compact(asdict(each)) for each in self.spans]
        found["commands"] = [_compact(asdict(each)) for each in self.commands]
        return _compact(found)


def _compact(given: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in given.items() if value}


def anchors_of(given: object) -> Anchors | None:
    """Parse what `Anchors.as_json` returns; None if it is not a mapping."""
    if not isinstance(given, Mapping):
        return None
    spans = (_span(each) for each in _mappings(given.get("spans")))
    commands = (
        CommandAnchor(*_texts(each, "text", "path", "blob"))
        for each in _mappings(given.get("commands"))
    )
    repository, branch, commit, date = _texts(given, "repository", "branch", "commit", "date")
    return Anchors(repository, branch, commit, date, tuple(spans), tuple(commands))


def _span(given: Mapping[object, object]) -> FileAnchor:
    path, blob, symbol, hash_ = _texts(given, "path", "blob", "symbol", "hash")
    line, lines = _numbers(given, "line", "lines")
    return FileAnchor(path, blob, symbol, hash_, line, lines)


def _mappings(given: object) -> Iterator[Mapping[object, object]]:
    listed = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
    return (each for each in listed if isinstance(each, Mapping))


def _texts(given: Mapping[Any, object], *names: str) -> tuple[str, ...]:
    found = (given.get(name) for name in names)
    return tuple(each if isinstance(each, str) else "" for each in found)


def _numbers(given: Mapping[Any, object], *names: str) -> tuple[int, ...]:
    found = (given.get(name) for name in names)
    return tuple(each if type(each) is int and each > 0 else 0 for each in found)


def session_anchors(metadata: Mapping[str, JSON]) -> tuple[Anchors, ...]:
    """Return the branch and commit in the metadata of the first node of a session."""
    branch, commit = _texts(metadata, "branch", "commit")
    return (Anchors(branch=branch, commit=commit),) if branch or commit else ()


class SessionOrigin(NamedTuple):
    """Where a session worked; branch and commit are empty if unknown."""

    folder: str
    branch: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class AnchoredStatement:
    """A statement to check, or a sentence of a session."""

    text: str
    kind: str
    date: datetime | None = None
    anchors: tuple[Anchors, ...] = ()
    """One for each time that it was stated, the newest last; none if unknown."""


@dataclass(frozen=True, slots=True)
class AnchorStatus:
    """Whether the anchors of a statement are unchanged, and whether it applies to this checkout."""

    state: str = UNKNOWN
    """`fresh`, `moved`, `changed`, or `unknown` if there is nothing to check, or no time left."""
    note: str = ""
    """What to add to the statement: `src/a.py changed since 2026-03-02`; may be empty."""
    held_back: str = ""
    """Why the statement is not shown here; empty if it is shown."""
    is_abandoned: bool = False
    """Whether its branch was deleted and never merged."""


UNCHECKED = AnchorStatus()


def hedged(text: str, verdict: AnchorStatus) -> str:
    """Return a line with the note of its status."""
    return f"{text} ({verdict.note})" if verdict.note else text


class AnchorChecker(Protocol):
    def anchors_of(
        self, text: str, when: datetime | None, origin: SessionOrigin | None
    ) -> Anchors | None:
        """Return the anchors of a statement of that time; None if they can't be known.

        Without `origin`, branch and commit are the current ones.
        """

    def check(self, stated: Sequence[AnchoredStatement], seconds: float) -> list[AnchorStatus]:
        """Return a status for each; those not checked within the time are unknown."""
