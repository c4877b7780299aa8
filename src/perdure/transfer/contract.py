"""The contract of an import format, and the items that it yields."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol, runtime_checkable

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError
from perdure.model.values import JSON
from perdure.safety.secrets import mask
from perdure.transfer.source import ImportSource, SourceFile

MessageFields = Mapping[str, str]
"""A message: `role` and `content`, and optionally `name` and `time`."""

SOURCE = "source"
SOURCE_ID = "source_id"
SOURCE_DIGEST = "source_digest"
"""Metadata of a node: its format, the id in the source, and the hash of the imported text."""
SOURCE_LINES = "source_lines"
"""Metadata of a node: for each statement, by CID, the line of the imported file."""


@dataclass(frozen=True, slots=True)
class ImportFinding:
    """A part of a file that is not imported, or not completely."""

    file: str
    where: str
    what: str
    fix: str
    refused: bool = True
    """False if nothing is wrong, and the finding is only information."""

    def masked(self) -> "ImportFinding":
        texts = self.file, self.where, self.what, self.fix
        file, where, what, fix = (mask(each)[0] for each in texts)
        return ImportFinding(file, where, what, fix, self.refused)

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.file, self.where) if part)
        return f"{place}{': ' if place else ''}{self.what}. Fix: {self.fix}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportItem:
    """Something to import. `source_id` is the source's own id, unique among items of its type."""

    file: str
    where: str = ""
    source: str
    source_id: str

    def finding(self, what: str, fix: str, *, refused: bool = True) -> ImportFinding:
        return ImportFinding(self.file, self.where, what, fix, refused)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returned to the agent. It is compared with the user's words, and not stored."""

    messages_before: int
    origin: str
    """`web` or `mcp`; empty if it is from this machine."""
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionItem(ImportItem):
    """The messages of a conversation in order, on the branch that its owner sees."""

    title: str = ""
    messages: tuple[MessageFields, ...]
    created_at: str = ""
    updated_at: str = ""
    cwd: str = field(default="", compare=False)
    """The working directory of the agent, as it was recorded, or the folder of the file."""
    branch: str = ""
    commit: str = ""
    headless: bool = False
    """True if a program ran the agent, and no person took part."""
    tool_outputs: tuple[ToolOutput, ...] = field(default=(), repr=False, compare=False)
    commands: tuple[tuple[str, bool], ...] = field(default=(), repr=False, compare=False)
    """The shell commands that finished, in order, and whether each succeeded."""
    state: JSON = field(default=None, repr=False, compare=False)
    """What `Resumable.resume` needs to continue after the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementItem(ImportItem):
    content: str
    category: str
    owner: str = ""
    """The user of the source whose memory it is."""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    cwd: str = field(default="", compare=False)
    """The folder whose project it belongs to."""
    project: str | None = None
    """The project that it belongs to; None for the project of the caller."""
    quote: tuple[str, str] | None = None
    """Its evidence: the id of a session of the same source, and words of one of its messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityItem(ImportItem):
    """A person or a thing, with observations about it."""

    kind: str
    observations: tuple[str, ...]
    title: str = ""
    """Its name, if that differs from its id."""
    text: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationItem(ImportItem):
    """A relation between two entities, which are named by their ids."""

    start: str
    target: str
    kind: str
    owner: str = ""
    """The user of the source whose relation it is."""
    creates_entities: bool = False
    """True if the source names entities only in relations, so that the import creates them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentItem(ImportItem):
    text: str


@runtime_checkable
class Resumable(Protocol):
    """A format whose files grow at their end, so that reading can continue there."""

    name: str

    def read(self, entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        """Yield the contents of one file from its start."""

    def resume(
        self, entry: SourceFile, stream: BinaryIO, state: Mapping[str, JSON]
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield what was added since `state`: a session with only the new messages.

        Raises `NotResumableError` if the new lines do not follow those that were read.
        """


class NotResumableError(InvalidValueError): ...


@runtime_checkable
class Selective(Protocol):
    """A format whose files hold many sessions, of which one can be read alone."""

    def session(
        self, source: ImportSource, session_id: str | None
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield one session; with None, all of them."""


@runtime_checkable
class Format(Protocol):
    """Reads the files of one program. It writes nothing.

    Whatever the files contain, it raises only `PerdureError`: what can't be used is a finding,
    and reading continues.
    """

    name: str
    kind: str
    """The plural under which its items are counted; with several types of items, the first."""

    def detect(self, source: ImportSource) -> bool:
        """Return whether these look like files of the program, by names and first bytes."""

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        """Yield the contents of the files in their order.

        The same files give the same items with the same ids. What was added to a file follows
        what was there before, so that sessions only grow.
        """
