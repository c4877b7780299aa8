"""Import the files of another program. Each item is stored on its own, in the order of its file."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from perdure.context.nodes import Nodes, Relations
from perdure.dataclass import dataclass, field, replace
from perdure.engine.session_notes import SessionNotes
from perdure.errors import ContextError, NodeExistsError, UnreadableSourceError
from perdure.model import Uri
from perdure.model.trust import AgentSettings, OptOut
from perdure.plugins import PluginGroup, create, offered
from perdure.safety.secrets import SecretPolicy
from perdure.safety.validation import refuse_secrets
from perdure.transfer.contract import (
    SOURCE_ID,
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
    Admission,
    AdmittedSession,
    DocumentImporter,
    ImportTarget,
    ItemState,
    MemoryImporter,
    SessionImporter,
)
from perdure.transfer.json_records import Items, count_and_names, digest
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
    """Return the names of all formats: the built-in ones, then those of installed packages."""
    return (*FORMATS, *sorted(offered(PluginGroup.IMPORTER) - FORMATS.keys()))


def format_by_name(name: str) -> Format:
    """Return a built-in format, or one of an installed package; `PluginError` if there is none."""
    if name in FORMATS:
        return FORMATS[name]
    return create(PluginGroup.IMPORTER, name, Format)  # type: ignore[type-abstract] # only for isinstance


def detect_format(source: ImportSource) -> Format:
    """Return the format of files; `UnreadableSourceError` if none fits, or several do.

    A more special format of Markdown files comes before plain Markdown. Formats of installed
    packages are tried if no built-in one fits.
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
    what = "matches several formats" if found else "matches no format that can be imported"
    raise UnreadableSourceError(
        f"{str(source.path)!a} {what}. Fix: name its format with --format: {names}."
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
    """The folder of resources for documents; by default it has the name of their folder."""
    of: str = ""
    """The user of the source whose memories are imported; by default all users."""
    archive_gone: bool = False
    learn: bool = False
    mask_secrets: bool = False
    """Mask secrets instead of refusing the item. In sessions they are always masked."""
    agents: AgentSettings = AgentSettings()
    """Which sessions of agents may be stored."""

    @property
    def secrets(self) -> SecretPolicy:
        return SecretPolicy.MASK if self.mask_secrets else SecretPolicy.REFUSE


@dataclass(slots=True)
class ImportReport:
    format: str
    counts: dict[str, Counter[ItemState]] = field(default_factory=dict)
    findings: list[ImportFinding] = field(default_factory=list)
    more: int = 0
    """The number of findings beyond `MOST_FINDINGS`, which are not listed."""
    gone: int = 0
    """The number of documents whose files do not exist any more."""
    learned: Mapping[str, int] = field(default_factory=dict)
    """What was learned from sessions, as the counts of a `SessionCommit`."""
    masked: int = 0

    def count(self, kind: str, state: ItemState) -> None:
        self.counts.setdefault(kind, Counter())[state] += 1

    def add_finding(self, kind: str, finding: ImportFinding) -> None:
        """Add a finding, with secrets masked; beyond the maximum, only count it."""
        if finding.refused:
            self.count(kind, ItemState.REFUSED)
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding.masked())
        else:
            self.more += 1

    def totals(self) -> dict[str, dict[str, int]]:
        """Return for each kind how many items are in which state."""
        forgot = any(counts[ItemState.FORGOTTEN] for counts in self.counts.values())
        states = [state for state in ItemState if forgot or state is not ItemState.FORGOTTEN]
        return {
            kind: {state.value: counts[state] for state in states}
            for kind, counts in self.counts.items()
        }

    @property
    def refused(self) -> int:
        return sum(counts[ItemState.REFUSED] for counts in self.counts.values())


class Importer:
    """One import. Repeating it changes nothing.

    Each item is stored completely, with its source, so that an interrupted import can be repeated:
    items that are stored already are skipped.
    """

    def __init__(
        self,
        memory: ImportTarget,
        nodes: Nodes,
        relations: Relations,
        options: ImportOptions | None = None,
    ) -> None:
        self._memory = memory
        self._nodes = nodes
        self._options = options or ImportOptions()
        self._admission = Admission(self._options.agents, SessionNotes(memory.home))
        self._sessions = SessionImporter(memory, nodes, learn=self._options.learn)
        self._memories = MemoryImporter(memory, nodes, relations, self._options.secrets)
        self._seen: dict[tuple[str, str], str] = {}
        self._relations: list[RelationItem] = []
        """Relations, which are stored after all entities."""
        self._owners: Counter[str] = Counter()
        self._in_place = 0

    def import_path(
        self,
        path: Path,
        name: str | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> ImportReport:
        """Import the files at a path, in the format `name`; without it, the format is detected.

        `progress` is called with the bytes that were read, and the size of all files.
        """
        from perdure.transfer.export import is_export  # noqa: PLC0415 - 40 ms that no hook needs

        if name is None and is_export(path):
            raise UnreadableSourceError(
                f"{str(path)!a} is an export of a whole memory. "
                "Fix: run `perdure import` with a home that has no memory yet."
            )
        with closing(ImportSource(path, self._store())) as source:
            if name is None and not source.is_folder and self._is_in_place(source, path.name):
                name = MarkdownFormat.name
            format_ = detect_format(source) if name is None else format_by_name(name)
            if progress is None:
                return self.run(format_, source)
            show, size = progress, source.size
            return self.run(format_, source, lambda: show(source.bytes_read, size))

    def _is_in_place(self, source: ImportSource, name: str) -> bool:
        """Return whether a file is a note in place, so that importing would duplicate it."""
        tree = Path(self._nodes.backend.whereabouts)
        path = source.below(tree, name) if tree.is_absolute() else None
        return path is not None and self._nodes.place_at(path) is not None

    def _store(self) -> tuple[Path, ...]:
        """Return the folders of the memory itself, which are never imported."""
        tree = Path(self._nodes.backend.whereabouts)
        account = self._nodes.folder(Uri(self._memory.caller.account_id, ("resources",))).parent
        return (self._memory.home, *([tree / account.key] if tree.is_absolute() else []))

    def run(
        self, format_: Format, source: ImportSource, progress: Callable[[], None] = lambda: None
    ) -> ImportReport:
        report = ImportReport(format_.name)
        self._admission = replace(self._admission, is_named=not source.is_folder)
        named = source.name if format_.kind == _KINDS[DocumentItem] else format_.name
        documents = DocumentImporter(
            self._nodes,
            self._memory.caller,
            self._options.into or named or "imported",
            self._options.secrets,
        )
        for found in self._items(format_, source):
            if isinstance(found, ImportFinding):
                report.add_finding(format_.kind, found)
            elif isinstance(found, RelationItem):
                self._relations.append(found)
            else:
                self._import_item(found, documents, report)
            progress()
        for relation in self._relations:
            self._import_item(relation, documents, report)
            progress()
        self._report_gone(format_, source, documents, report)
        if not self._options.dry_run:
            self._memory.settle()
        report.masked = self._sessions.masked + self._memories.masked + documents.masked
        report.learned = {name: each for name, each in self._sessions.learned.items() if each}
        return report

    def _items(self, format_: Format, source: ImportSource) -> Items:
        for name in source.links:
            what = "it is a link or a device, which is not followed"
            yield ImportFinding(name, "", what, "import its target", refused=False)
        for name, why in source.unlisted:
            fix = "make it readable for this user"
            yield ImportFinding(name, "", f"it can't be read: {why}", fix)
        for found in format_.items(source):
            if isinstance(found, StatementItem | RelationItem):
                self._owners[found.owner] += 1
                if self._options.of not in {"", found.owner}:
                    continue
            if isinstance(found, DocumentItem) and self._is_in_place(source, found.file):
                self._in_place += 1
                continue
            yield found
        for what, fix in self._left_out(source):
            yield ImportFinding("", "", what, fix, refused=False)

    def _left_out(self, source: ImportSource) -> Iterator[tuple[str, str]]:
        """Yield what was not imported, with the number of each, and the fix."""
        if self._in_place:
            are = "note is" if self._in_place == 1 else "notes are"
            what = f"{self._in_place:,} {are} memory already, and not copied"
            yield what, "nothing; a recall finds them"
        if source.memory_files:
            what = f"files of a memory were left out: {source.memory_files:,}"
            yield what, "nothing; they are remembered already"
        if source.hidden:
            what = f"hidden files and folders were left out: {count_and_names(source.hidden)}"
            yield what, "name one of them to import it"
        unread = [each.name for each in source.entries if each.name not in source.names_read]
        if unread:
            what = f"files that this format does not use were left out: {count_and_names(unread)}"
            yield what, "import them as another --format"
        of = self._options.of
        count = self._owners.total() - self._owners[of]
        users = [each for each in self._owners if each not in {"", of}]
        names = count_and_names(users)
        if of and count:
            what = f"memories of others were left out: {count:,}, of users: {names}"
            yield what, "choose another user with --of"
        elif len(users) > 1:
            yield (
                f"the memories of several users were imported as yours: {names}",
                "import those of one user with --of",
            )

    # ------------------------------------------------------------ one item
    def _import_item(
        self, item: ImportItem, documents: DocumentImporter, report: ImportReport
    ) -> None:
        kind = _KINDS[type(item)]
        admitted = self._admitted(item, report) if isinstance(item, SessionItem) else item
        if admitted is None:
            return
        try:
            self._check_name(item)
            if self._is_duplicate(item):
                return
            report.count(kind, self._put(admitted, documents))
        except ContextError as error:  # only this item can't be stored
            what, _, fix = " ".join(str(error).split()).partition(" Fix: ")
            report.add_finding(kind, item.finding(what.removesuffix("."), fix.removesuffix(".")))

    def _admitted(self, item: SessionItem, report: ImportReport) -> AdmittedSession | None:
        """Return the part of a session that may be stored; None, and a finding, if nothing may."""
        found = self._admission.admit(item)
        if isinstance(found, AdmittedSession) and found.item.messages:
            return found
        what, fix = "it has no messages", "nothing"
        if isinstance(found, OptOut):
            what, fix = f"it was left out: {found.value}", "nothing, or see [agents] in the config"
        report.add_finding(_KINDS[SessionItem], item.finding(what, fix, refused=False))
        return None

    def _check_name(self, item: ImportItem) -> None:
        """Refuse an id that is a secret: places and findings contain it."""
        refuse_secrets(item.source_id, "name", "give it another one, and import again.")

    def _put(self, item: ImportItem | AdmittedSession, documents: DocumentImporter) -> ItemState:
        dry_run = self._options.dry_run
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

    def _is_duplicate(self, item: ImportItem) -> bool:
        key = type(item).__name__, item.source_id
        content = digest(repr(replace(item, file="", where="")))
        before = self._seen.get(key)
        self._seen[key] = before or content
        if before not in {None, content}:
            raise NodeExistsError(
                f"an earlier item with the id {item.source_id[:80]!a} was imported. "
                "Fix: give it an id of its own, or leave it out."
            )
        return before is not None

    # ------------------------------------------------------------ removed files
    def _report_gone(
        self,
        format_: Format,
        source: ImportSource,
        documents: DocumentImporter,
        report: ImportReport,
    ) -> None:
        """Report documents whose files were removed; archive them if the options say so."""
        if source.unlisted or format_.kind != _KINDS[DocumentItem]:
            return  # the files may be in a folder that can't be read, or are not documents
        for node in documents.gone({entry.name for entry in source.entries}, format_.name):
            report.gone += 1
            name = str(node.metadata.get(SOURCE_ID))
            if not self._options.archive_gone:
                what, fix = (
                    f"its file is gone; {node.uri} stays",
                    "add --archive-gone, or delete it",
                )
                finding = ImportFinding(name, "", what, fix, refused=False)
                report.add_finding(format_.kind, finding)
            elif not self._options.dry_run:
                documents.archive(node)
