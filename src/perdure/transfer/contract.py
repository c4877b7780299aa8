"""What a format promises, and what it finds in a file."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol, runtime_checkable

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError
from perdure.model.values import JSON
from perdure.safety.secrets import masked
from perdure.transfer.source import ImportSource, SourceFile

MessageFields = Mapping[str, str]
"""A message: role and content, perhaps name and time."""


@dataclass(frozen=True, slots=True)
class ImportFinding:
    """Something in a file that does not go in, or not all of it."""

    file: str
    where: str
    what: str
    fix: str
    refused: bool = True
    """False if that is as it should be, and is only told."""

    def masked(self) -> "ImportFinding":
        texts = self.file, self.where, self.what, self.fix
        file, where, what, fix = (masked(each)[0] for each in texts)
        return ImportFinding(file, where, what, fix, self.refused)

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.file, self.where) if part)
        return f"{place}{': ' if place else ''}{self.what}. Fix: {self.fix}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportItem:
    """Something that goes in. Its id is the source's own, and tells it from all others there."""

    file: str
    where: str = ""
    source: str
    source_id: str

    def finding(self, what: str, fix: str, *, refused: bool = True) -> ImportFinding:
        return ImportFinding(self.file, self.where, what, fix, refused)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returned to the agent. It is compared with what the user wrote, and not kept."""

    messages_before: int
    """How many messages are before it."""
    origin: str
    """Where it stems from: `web` or `mcp`; empty if from this machine."""
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionItem(ImportItem):
    """What was said, in order: the branch that its owner sees."""

    title: str = ""
    messages: tuple[MessageFields, ...]
    created_at: str = ""
    updated_at: str = ""
    cwd: str = field(default="", compare=False)
    """The folder in which the agent worked, as it recorded it, or where the file lies."""
    branch: str = ""
    commit: str = ""
    headless: bool = False
    """Whether no person took part: a program ran the agent."""
    tool_outputs: tuple[ToolOutput, ...] = field(default=(), repr=False, compare=False)
    commands: tuple[tuple[str, bool], ...] = field(default=(), repr=False, compare=False)
    """The shell commands that ended, in order, and whether each worked."""
    state: JSON = field(default=None, repr=False, compare=False)
    """What `Resumable.resume` needs to read on behind the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementItem(ImportItem):
    content: str
    category: str
    owner: str = ""
    """Whose it is, as the source calls them."""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    cwd: str = field(default="", compare=False)
    """The folder whose project it belongs to."""
    project: str | None = None
    """The project that it belongs to; None for the one that is imported into."""
    quote: tuple[str, str] | None = None
    """What it rests on: the id of a conversation of the same source, and words of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityItem(ImportItem):
    """Somebody or something, and what is known of it."""

    kind: str
    observations: tuple[str, ...]
    title: str = ""
    """What it is called, if not by its id."""
    text: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationItem(ImportItem):
    """How one entity stands to another, by their ids."""

    start: str
    target: str
    kind: str
    owner: str = ""
    """Whose it is, as the source calls them."""
    creates_entities: bool = False
    """Whether the source has no entities but in its relations, so that they are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentItem(ImportItem):
    text: str


@runtime_checkable
class Resumable(Protocol):
    """A format whose files grow at their end, and which can be read on from there."""

    name: str

    def read(self, entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        """Yield what one file says from its start on."""

    def resume(
        self, entry: SourceFile, stream: BinaryIO, state: Mapping[str, JSON]
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield what was added since: a conversation with only the new messages.

        `NotResumableError` if the new lines belong elsewhere than behind those that were read.
        """


class NotResumableError(InvalidValueError): ...


@runtime_checkable
class Selective(Protocol):
    """A format whose files hold many sessions, of which one can be read alone."""

    def session(
        self, source: ImportSource, session_id: str | None
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield what one session says; with None, all of them."""


@runtime_checkable
class Format(Protocol):
    """Reads the files of one program.

    Whatever the files say, it raises nothing but `PerdureError`: what can't be used is a finding,
    and the rest goes on. It writes nothing.
    """

    name: str
    kind: str
    """What its items are called when they are counted; of several kinds, the first."""

    def detect(self, source: ImportSource) -> bool:
        """Whether these look like such files, by their names and the beginnings of a few."""

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        """Yield what is in the files, in the order in which it stands there.

        The same files give the same items with the same ids. What was added to a file since comes
        after what was there, so that a conversation only ever grows.
        """
