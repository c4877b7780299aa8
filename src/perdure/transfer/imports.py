"""Importing: each item goes in on its own, in the order of its file; what can't is told."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from perdure.context.nodes import Nodes
from perdure.context.relations import Relations
from perdure.dataclass import dataclass, field, replace
from perdure.engine.session_notes import SessionNotes
from perdure.errors import ContextError, NodeExistsError, UnreadableSourceError
from perdure.model import Uri
from perdure.model.trust import AgentSettings, Reason
from perdure.plugins import Group, create, offered
from perdure.safety.secrets import SecretPolicy
from perdure.safety.texts import refuse_secrets
from perdure.transfer.contract import (
    DocumentItem,
    EntityItem,
    Format,
    ImportFinding,
    ImportItem,
    RelationItem,
    SessionItem,
    StatementItem,
)
from perdure.transfer.importers.agent_rules import RulesFormat
from perdure.transfer.importers.basic_memory import BasicMemoryFormat
from perdure.transfer.importers.chatgpt import ChatGptFormat
from perdure.transfer.importers.claude import ClaudeFormat
from perdure.transfer.importers.claude_code import ClaudeCodeFormat
from perdure.transfer.importers.codex import CodexFormat
from perdure.transfer.importers.gemini_cli import GeminiCliFormat
from perdure.transfer.importers.letta import LettaFormat
from perdure.transfer.importers.markdown_folder import MarkdownFormat
from perdure.transfer.importers.mcp_memory import McpMemoryFormat
from perdure.transfer.importers.mem0 import Mem0Format
from perdure.transfer.importers.opencode import OpenCodeFormat
from perdure.transfer.importers.specstory import SpecStoryFormat
from perdure.transfer.items import (
    SOURCE_ID,
    Admission,
    AdmittedSession,
    DocumentImporter,
    ItemState,
    MemoryImporter,
    SessionImporter,
    Verbs,
)
from perdure.transfer.parsing import count_and_names, digest
from perdure.transfer.source import ImportSource

_EVERY: tuple[Format, ...] = (
    ChatGptFormat(),
    ClaudeFormat(),
    ClaudeCodeFormat(),
    CodexFormat(),
    GeminiCliFormat(),
    OpenCodeFormat(),
    SpecStoryFormat(),
    Mem0Format(),
    LettaFormat(),
    McpMemoryFormat(),
    BasicMemoryFormat(),
    RulesFormat(),
    MarkdownFormat(),
)
FORMATS: Mapping[str, Format] = {each.name: each for each in _EVERY}


def import_formats() -> tuple[str, ...]:
    return (*FORMATS, *sorted(offered(Group.IMPORTER) - FORMATS.keys()))


def format_by_name(name: str) -> Format:
    """Return a format of ours, or one that an installed package offers; else `PluginError`."""
    if name in FORMATS:
        return FORMATS[name]
    return create(Group.IMPORTER, name, Format)  # type: ignore[type-abstract] # only for isinstance


def detect_format(source: ImportSource) -> Format:
    """Return the format that files look like; if that is none, or several, they are refused.

    What is a format of Markdown files is not taken for plain Markdown. Formats of installed
    packages are tried when none of ours fits.
    """
    found = [each for each in _EVERY if each.detect(source)]
    if any(isinstance(each, SpecStoryFormat | BasicMemoryFormat | RulesFormat) for each in found):
        found = [each for each in found if not isinstance(each, MarkdownFormat)]
    if not found:
        others = map(format_by_name, import_formats()[len(FORMATS) :])
        found = [each for each in others if each.detect(source)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found or _EVERY)
    what = "looks like several formats" if found else "looks like nothing that can be imported"
    raise UnreadableSourceError(
        f"{str(source.path)!a} {what}. Fix: say with --format what it is: {names}."
    )


MOST_FINDINGS = 1_000
_KINDS: dict[type[ImportItem], str] = {
    SessionItem: "sessions",
    StatementItem: "memories",
    EntityItem: "entities",
    RelationItem: "relations",
    DocumentItem: "documents",
}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    dry_run: bool = False
    into: str = ""
    """The folder of the resources that documents go to; by default named as theirs."""
    of: str = ""
    """Whose memories, as the source calls them; by default everybody's."""
    archive_gone: bool = False
    learn: bool = False
    mask_secrets: bool = False
    """Mask secrets; else what holds one is refused. In conversations they are masked anyway."""
    agents: AgentSettings = AgentSettings()
    """Which sessions of agents may contribute."""

    @property
    def secrets(self) -> SecretPolicy:
        return SecretPolicy.MASK if self.mask_secrets else SecretPolicy.REFUSE


@dataclass(slots=True)
class ImportReport:
    format: str
    counts: dict[str, Counter[ItemState]] = field(default_factory=dict)
    findings: list[ImportFinding] = field(default_factory=list)
    more: int = 0
    """Findings beyond the most that are kept."""
    gone: int = 0
    """Documents whose files are not there any more."""
    learned: Mapping[str, int] = field(default_factory=dict)
    """What came of learning from conversations, as the counts of a `SessionCommit`."""
    masked: int = 0

    def count(self, kind: str, state: ItemState) -> None:
        self.counts.setdefault(kind, Counter())[state] += 1

    def add_finding(self, kind: str, finding: ImportFinding) -> None:
        """Note a finding; of very many, how many there are. It tells no secret."""
        if finding.refused:
            self.count(kind, ItemState.REFUSED)
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding.masked())
        else:
            self.more += 1

    def totals(self) -> dict[str, dict[str, int]]:
        """Return by kind how many items are new, changed, the same, refused, and forgotten."""
        forgot = any(counts[ItemState.FORGOTTEN] for counts in self.counts.values())
        states = [state for state in ItemState if forgot or state is not ItemState.FORGOTTEN]
        return {
            kind: {state.value: counts[state] for state in states}
            for kind, counts in self.counts.items()
        }

    @property
    def refused(self) -> int:
        return sum(counts[ItemState.REFUSED] for counts in self.counts.values())


def import_path(
    importing: "Importer",
    path: Path,
    name: str | None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Import the files at a path; `progress` is called with the bytes read, and all bytes."""
    from perdure.transfer.export import is_export  # noqa: PLC0415 - 40 ms that no hook needs

    if name is None and is_export(path):
        raise UnreadableSourceError(
            f"{str(path)!a} is a whole memory. Fix: `perdure import`, where there is none yet."
        )
    with closing(ImportSource(path, importing.store)) as source:
        if name is None and not source.is_folder and importing.is_in_place(source, path.name):
            name = MarkdownFormat.name
        format_ = detect_format(source) if name is None else format_by_name(name)
        if progress is None:
            return importing.run(format_, source)
        show, size = progress, source.size
        return importing.run(format_, source, lambda: show(source.bytes_read, size))


class Importer:
    """Takes in what a source holds. The same twice changes nothing the second time.

    Each item is whole when it is in, and names where it came from; so who is stopped in the middle
    does it again, and what is there already is passed over.
    """

    def __init__(
        self, memory: Verbs, nodes: Nodes, relations: Relations, wishes: ImportOptions | None = None
    ) -> None:
        self._memory = memory
        self._nodes = nodes
        self._wishes = wishes or ImportOptions()
        self._admission = Admission(self._wishes.agents, SessionNotes(memory.home))
        self._sessions = SessionImporter(memory, nodes, learn=self._wishes.learn)
        self._memories = MemoryImporter(memory, nodes, relations, self._wishes.secrets)
        self._seen: dict[tuple[str, str], str] = {}
        self._waiting: list[RelationItem] = []
        self._owners: Counter[str] = Counter()
        self._in_place = 0

    def is_in_place(self, source: ImportSource, name: str) -> bool:
        """Whether a file of a source is a node where it lies, so that a copy would be another."""
        tree = Path(self._nodes.backend.whereabouts)
        path = source.below(tree, name) if tree.is_absolute() else None
        return path is not None and self._nodes.place_at(path) is not None

    @property
    def store(self) -> tuple[Path, ...]:
        """The folders that hold the memory itself, which are no source."""
        tree = Path(self._nodes.backend.whereabouts)
        account = self._nodes.folder(Uri(self._memory.caller.account_id, ("resources",))).parent
        return (self._memory.home, *([tree / account.key] if tree.is_absolute() else []))

    def run(
        self, format_: Format, source: ImportSource, progress: Callable[[], None] = lambda: None
    ) -> ImportReport:
        report = ImportReport(format_.name)
        self._admission = replace(self._admission, is_named=not source.is_folder)
        documents = self._documents(format_, source)
        for found in self._found(format_, source):
            if isinstance(found, ImportFinding):
                report.add_finding(format_.kind, found)
            elif isinstance(found, RelationItem):
                self._waiting.append(found)
            else:
                self._take(found, documents, report)
            progress()
        for relation in self._waiting:
            self._take(relation, documents, report)
            progress()
        self._tell_gone(format_, source, documents, report)
        if not self._wishes.dry_run:
            self._memory.settle()
        parts = self._sessions, self._memories, documents
        report.masked = sum(each.masked for each in parts)
        report.learned = {name: each for name, each in self._sessions.learned.items() if each}
        return report

    def _documents(self, format_: Format, source: ImportSource) -> DocumentImporter:
        named = source.name if format_.kind == _KINDS[DocumentItem] else format_.name
        folder = self._wishes.into or named or "imported"
        return DocumentImporter(self._nodes, self._memory.caller, folder, self._wishes.secrets)

    def _found(self, format_: Format, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for name in source.links:
            what = "it is a link or a device, which is not followed"
            yield ImportFinding(name, "", what, "import what it leads to", refused=False)
        for name, why in source.unlisted:
            yield ImportFinding(
                name, "", f"it can't be read: {why}", "make it readable for this user"
            )
        for found in format_.items(source):
            if isinstance(found, StatementItem | RelationItem):
                self._owners[found.owner] += 1
                if self._wishes.of not in {"", found.owner}:
                    continue
            if isinstance(found, DocumentItem) and self.is_in_place(source, found.file):
                self._in_place += 1
                continue
            yield found
        yield from self._left_out(source)

    def _left_out(self, source: ImportSource) -> Iterator[ImportFinding]:
        """Yield what of a source did not go in, each with how many there are."""
        if self._in_place:
            are = "note is" if self._in_place == 1 else "notes are"
            what = f"{self._in_place:,} {are} memory already, and not copied"
            yield ImportFinding("", "", what, "nothing; a recall finds them", refused=False)
        if source.memory_files:
            what = f"files of a memory were left out: {source.memory_files:,}"
            yield ImportFinding("", "", what, "nothing; they are remembered already", refused=False)
        if source.hidden:
            what = f"hidden files and folders were left out: {count_and_names(source.hidden)}"
            yield ImportFinding("", "", what, "name one of them to import it", refused=False)
        unread = [each.name for each in source.entries if each.name not in source.names_read]
        if unread:
            what = (
                f"files in which this format keeps nothing were left out: {count_and_names(unread)}"
            )
            yield ImportFinding("", "", what, "import them as another --format", refused=False)
        count = self._owners.total() - self._owners[self._wishes.of]
        users = [each for each in self._owners if each not in {"", self._wishes.of}]
        if self._wishes.of and count:
            what = (
                f"memories of others were left out: {count:,}, of users: {count_and_names(users)}"
            )
            yield ImportFinding("", "", what, "choose another user with --of", refused=False)
        elif len(users) > 1:
            what = f"the memories of several users went in as yours: {count_and_names(users)}"
            yield ImportFinding("", "", what, "take those of one user with --of", refused=False)

    # ------------------------------------------------------------ one item
    def _take(self, item: ImportItem, documents: DocumentImporter, report: ImportReport) -> None:
        kind = _KINDS[type(item)]
        admitted = self._admitted(item, report) if isinstance(item, SessionItem) else item
        if admitted is None:
            return
        try:
            self._check_name(item)
            if self._is_double(item):
                return
            report.count(kind, self._put(admitted, documents))
        except ContextError as error:  # the storage is well; it is this item
            what, _, fix = " ".join(str(error).split()).partition(" Fix: ")
            report.add_finding(kind, item.finding(what.removesuffix("."), fix.removesuffix(".")))

    def _admitted(self, item: SessionItem, report: ImportReport) -> AdmittedSession | None:
        """Return what may be kept of a conversation; None if nothing, which is reported."""
        found = self._admission.admit(item)
        if isinstance(found, AdmittedSession) and found.item.messages:
            return found
        what, fix = "nothing was said in it", "nothing"
        if isinstance(found, Reason):
            what, fix = f"it was left out: {found.value}", "nothing, or see [agents] in the config"
        report.add_finding(_KINDS[SessionItem], item.finding(what, fix, refused=False))
        return None

    def _check_name(self, item: ImportItem) -> None:
        """Refuse an id that is a secret: places and findings are named by it."""
        refuse_secrets(item.source_id, "name", "give it another one, and import again.")

    def _put(self, item: ImportItem | AdmittedSession, documents: DocumentImporter) -> ItemState:
        dry_run = self._wishes.dry_run
        match item:
            case AdmittedSession():
                return self._sessions.put(item, dry_run=dry_run)
            case StatementItem():
                return self._memories.put(item, dry_run=dry_run)
            case EntityItem():
                return self._memories.put_entity(item, dry_run=dry_run)
            case RelationItem():
                return self._memories.relate(item, dry_run=dry_run)
            case DocumentItem():
                return documents.put(item, dry_run=dry_run)
        raise AssertionError(item)

    def _is_double(self, item: ImportItem) -> bool:
        key = type(item).__name__, item.source_id
        said = digest(repr(replace(item, file="", where="")))
        before = self._seen.get(key)
        self._seen[key] = before or said
        if before not in {None, said}:
            raise NodeExistsError(
                f"another one with the id {item.source_id[:80]!a} came before it, and went in. "
                "Fix: give it an id of its own, or leave it out."
            )
        return before is not None

    # ------------------------------------------------------------ what went away
    def _tell_gone(
        self,
        format_: Format,
        source: ImportSource,
        documents: DocumentImporter,
        report: ImportReport,
    ) -> None:
        """Say which documents have no file any more, and put them away if that is wished for."""
        if source.unlisted or format_.kind != _KINDS[DocumentItem]:
            return  # they may be where nobody could look, or are no files
        for node in documents.gone({entry.name for entry in source.entries}, format_.name):
            report.gone += 1
            name = str(node.metadata.get(SOURCE_ID))
            if not self._wishes.archive_gone:
                fix = "add --archive-gone to put it away, or delete it"
                report.add_finding(
                    format_.kind,
                    ImportFinding(
                        name, "", f"its file is gone; {node.uri} stays", fix, refused=False
                    ),
                )
            elif not self._wishes.dry_run:
                documents.archive(node)
