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
    Conversation,
    Document,
    Entity,
    Finding,
    Format,
    Item,
    Relation,
    Statement,
)
from perdure.transfer.importers.agent_rules import Rules
from perdure.transfer.importers.basic_memory import BasicMemory
from perdure.transfer.importers.chatgpt import ChatGpt
from perdure.transfer.importers.claude import Claude
from perdure.transfer.importers.claude_code import ClaudeCode
from perdure.transfer.importers.codex import Codex
from perdure.transfer.importers.gemini_cli import GeminiCli
from perdure.transfer.importers.letta import Letta
from perdure.transfer.importers.markdown_folder import Markdown
from perdure.transfer.importers.mcp_memory import McpMemory
from perdure.transfer.importers.mem0 import Mem0
from perdure.transfer.importers.opencode import OpenCode
from perdure.transfer.importers.specstory import SpecStory
from perdure.transfer.items import (
    SOURCE_ID,
    Admission,
    Admitted,
    DocumentImporter,
    MemoryImporter,
    SessionImporter,
    State,
    Verbs,
)
from perdure.transfer.parsing import digest, listed
from perdure.transfer.source import Source

_EVERY: tuple[Format, ...] = (
    ChatGpt(),
    Claude(),
    ClaudeCode(),
    Codex(),
    GeminiCli(),
    OpenCode(),
    SpecStory(),
    Mem0(),
    Letta(),
    McpMemory(),
    BasicMemory(),
    Rules(),
    Markdown(),
)
FORMATS: Mapping[str, Format] = {each.name: each for each in _EVERY}


def import_formats() -> tuple[str, ...]:
    return (*FORMATS, *sorted(offered(Group.IMPORTER) - FORMATS.keys()))


def format_named(name: str) -> Format:
    """Return a format of ours, or one that an installed package offers; else `PluginError`."""
    if name in FORMATS:
        return FORMATS[name]
    return create(Group.IMPORTER, name, Format)  # type: ignore[type-abstract] # only for isinstance


def detected(source: Source) -> Format:
    """Return the format that files look like; if that is none, or several, they are refused.

    What is a format of Markdown files is not taken for plain Markdown. Formats of installed
    packages are tried when none of ours fits.
    """
    found = [each for each in _EVERY if each.detect(source)]
    if any(isinstance(each, SpecStory | BasicMemory | Rules) for each in found):
        found = [each for each in found if not isinstance(each, Markdown)]
    if not found:
        others = map(format_named, import_formats()[len(FORMATS) :])
        found = [each for each in others if each.detect(source)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found or _EVERY)
    what = "looks like several formats" if found else "looks like nothing that can be imported"
    raise UnreadableSourceError(
        f"{str(source.path)!a} {what}. Fix: say with --format what it is: {names}."
    )


MOST_FINDINGS = 1_000
_KINDS: dict[type[Item], str] = {
    Conversation: "sessions",
    Statement: "memories",
    Entity: "entities",
    Relation: "relations",
    Document: "documents",
}


@dataclass(frozen=True, slots=True)
class Wishes:
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
class Imported:
    format: str
    counts: dict[str, Counter[State]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    more: int = 0
    """Findings beyond the most that are kept."""
    gone: int = 0
    """Documents whose files are not there any more."""
    learned: Mapping[str, int] = field(default_factory=dict)
    """What came of learning from conversations, as the counts of a `SessionCommit`."""
    masked: int = 0

    def count(self, kind: str, state: State) -> None:
        self.counts.setdefault(kind, Counter())[state] += 1

    def tell(self, kind: str, finding: Finding) -> None:
        """Note a finding; of very many, how many there are. It tells no secret."""
        if finding.refused:
            self.count(kind, State.REFUSED)
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding.masked())
        else:
            self.more += 1

    def totals(self) -> dict[str, dict[str, int]]:
        """Return by kind how many items are new, changed, the same, refused, and forgotten."""
        forgot = any(counts[State.FORGOTTEN] for counts in self.counts.values())
        states = [state for state in State if forgot or state is not State.FORGOTTEN]
        return {
            kind: {state.value: counts[state] for state in states}
            for kind, counts in self.counts.items()
        }

    @property
    def refused(self) -> int:
        return sum(counts[State.REFUSED] for counts in self.counts.values())


def import_from(
    importing: "Importing",
    path: Path,
    name: str | None,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Import the files at a path; `progress` is called with the bytes read, and all bytes."""
    from perdure.transfer.export import is_export  # noqa: PLC0415 - 40 ms that no hook needs

    if name is None and is_export(path):
        raise UnreadableSourceError(
            f"{str(path)!a} is a whole memory. Fix: `perdure import`, where there is none yet."
        )
    with closing(Source(path, importing.store)) as source:
        if name is None and not source.is_folder and importing.is_in_place(source, path.name):
            name = Markdown.name
        format_ = detected(source) if name is None else format_named(name)
        if progress is None:
            return importing.run(format_, source)
        show, size = progress, source.size
        return importing.run(format_, source, lambda: show(source.bytes_read, size))


class Importing:
    """Takes in what a source holds. The same twice changes nothing the second time.

    Each item is whole when it is in, and names where it came from; so who is stopped in the middle
    does it again, and what is there already is passed over.
    """

    def __init__(
        self, memory: Verbs, nodes: Nodes, relations: Relations, wishes: Wishes | None = None
    ) -> None:
        self._memory = memory
        self._nodes = nodes
        self._wishes = wishes or Wishes()
        self._admission = Admission(self._wishes.agents, SessionNotes(memory.home))
        self._sessions = SessionImporter(memory, nodes, learn=self._wishes.learn)
        self._memories = MemoryImporter(memory, nodes, relations, self._wishes.secrets)
        self._seen: dict[tuple[str, str], str] = {}
        self._waiting: list[Relation] = []
        self._owners: Counter[str] = Counter()
        self._in_place = 0

    def is_in_place(self, source: Source, name: str) -> bool:
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
        self, format_: Format, source: Source, progress: Callable[[], None] = lambda: None
    ) -> Imported:
        report = Imported(format_.name)
        self._admission = replace(self._admission, is_named=not source.is_folder)
        documents = self._documents(format_, source)
        for found in self._found(format_, source):
            if isinstance(found, Finding):
                report.tell(format_.kind, found)
            elif isinstance(found, Relation):
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

    def _documents(self, format_: Format, source: Source) -> DocumentImporter:
        named = source.name if format_.kind == _KINDS[Document] else format_.name
        folder = self._wishes.into or named or "imported"
        return DocumentImporter(self._nodes, self._memory.caller, folder, self._wishes.secrets)

    def _found(self, format_: Format, source: Source) -> Iterator[Item | Finding]:
        for name in source.links:
            what = "it is a link or a device, which is not followed"
            yield Finding(name, "", what, "import what it leads to", refused=False)
        for name, why in source.unlisted:
            yield Finding(name, "", f"it can't be read: {why}", "make it readable for this user")
        for found in format_.items(source):
            if isinstance(found, Statement | Relation):
                self._owners[found.owner] += 1
                if self._wishes.of not in {"", found.owner}:
                    continue
            if isinstance(found, Document) and self.is_in_place(source, found.file):
                self._in_place += 1
                continue
            yield found
        yield from self._left_out(source)

    def _left_out(self, source: Source) -> Iterator[Finding]:
        """Yield what of a source did not go in, each with how many there are."""
        if self._in_place:
            are = "note is" if self._in_place == 1 else "notes are"
            what = f"{self._in_place:,} {are} memory already, and not copied"
            yield Finding("", "", what, "nothing; a recall finds them", refused=False)
        if source.own:
            what = f"files of a memory were left out: {source.own:,}"
            yield Finding("", "", what, "nothing; they are remembered already", refused=False)
        if source.hidden:
            what = f"hidden files and folders were left out: {listed(source.hidden)}"
            yield Finding("", "", what, "name one of them to import it", refused=False)
        unread = [each.name for each in source.entries if each.name not in source.read]
        if unread:
            what = f"files in which this format keeps nothing were left out: {listed(unread)}"
            yield Finding("", "", what, "import them as another --format", refused=False)
        count = self._owners.total() - self._owners[self._wishes.of]
        users = [each for each in self._owners if each not in {"", self._wishes.of}]
        if self._wishes.of and count:
            what = f"memories of others were left out: {count:,}, of users: {listed(users)}"
            yield Finding("", "", what, "choose another user with --of", refused=False)
        elif len(users) > 1:
            what = f"the memories of several users went in as yours: {listed(users)}"
            yield Finding("", "", what, "take those of one user with --of", refused=False)

    # ------------------------------------------------------------ one item
    def _take(self, item: Item, documents: DocumentImporter, report: Imported) -> None:
        kind = _KINDS[type(item)]
        admitted = self._admitted(item, report) if isinstance(item, Conversation) else item
        if admitted is None:
            return
        try:
            self._check_name(item)
            if self._is_double(item):
                return
            report.count(kind, self._put(admitted, documents))
        except ContextError as error:  # the storage is well; it is this item
            what, _, fix = " ".join(str(error).split()).partition(" Fix: ")
            report.tell(kind, item.finding(what.removesuffix("."), fix.removesuffix(".")))

    def _admitted(self, item: Conversation, report: Imported) -> Admitted | None:
        """Return what may be kept of a conversation; None if nothing, which is reported."""
        found = self._admission.admit(item)
        if isinstance(found, Admitted) and found.item.messages:
            return found
        what, fix = "nothing was said in it", "nothing"
        if isinstance(found, Reason):
            what, fix = f"it was left out: {found.value}", "nothing, or see [agents] in the config"
        report.tell(_KINDS[Conversation], item.finding(what, fix, refused=False))
        return None

    def _check_name(self, item: Item) -> None:
        """Refuse an id that is a secret: places and findings are named by it."""
        refuse_secrets(item.source_id, "name", "give it another one, and import again.")

    def _put(self, item: Item | Admitted, documents: DocumentImporter) -> State:
        dry_run = self._wishes.dry_run
        match item:
            case Admitted():
                return self._sessions.put(item, dry_run=dry_run)
            case Statement():
                return self._memories.put(item, dry_run=dry_run)
            case Entity():
                return self._memories.put_entity(item, dry_run=dry_run)
            case Relation():
                return self._memories.relate(item, dry_run=dry_run)
            case Document():
                return documents.put(item, dry_run=dry_run)
        raise AssertionError(item)

    def _is_double(self, item: Item) -> bool:
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
        self, format_: Format, source: Source, documents: DocumentImporter, report: Imported
    ) -> None:
        """Say which documents have no file any more, and put them away if that is wished for."""
        if source.unlisted or format_.kind != _KINDS[Document]:
            return  # they may be where nobody could look, or are no files
        for node in documents.gone({entry.name for entry in source.entries}, format_.name):
            report.gone += 1
            name = str(node.metadata.get(SOURCE_ID))
            if not self._wishes.archive_gone:
                fix = "add --archive-gone to put it away, or delete it"
                report.tell(
                    format_.kind,
                    Finding(name, "", f"its file is gone; {node.uri} stays", fix, refused=False),
                )
            elif not self._wishes.dry_run:
                documents.archive(node)
