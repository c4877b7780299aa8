"""Store imported items as nodes. An edit is never overwritten; an item is stored once.

Of the sessions of agents, it is decided first which may be stored, without private messages, and
whose words they hold.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perdure.context.nodes import Nodes, Relations
from perdure.dataclass import dataclass, replace
from perdure.engine.briefing_records import first_step, is_repeatable, procedures_in
from perdure.engine.forgotten import ForgottenList, of_caller
from perdure.engine.learn import prose
from perdure.engine.learn.evidence import Evidence, Mention, Support, as_metadata, cid_of, texts_of
from perdure.engine.learn.extractors import rule_statements
from perdure.engine.learn.prose import is_paste, pasted_in, sentence_id, user_sentences
from perdure.engine.learn.review_queue import FOREIGN, ORIGINS
from perdure.engine.learn.statements import cid_of as statement_cid
from perdure.engine.session_commit import SessionCommit
from perdure.engine.session_notes import SessionNotes
from perdure.engine.sessions import SessionEnd, Sessions, clean_title, screened
from perdure.errors import BrokenNodeError, InvalidValueError, NodeExistsError, NodeNotFoundError
from perdure.markdown import blocks, headings
from perdure.model import (
    MENTIONS,
    ContextNode,
    NodeStatus,
    RelationEdge,
    RequestContext,
    Uri,
    slugify,
)
from perdure.model.anchors import SessionOrigin
from perdure.model.messages import read_messages, time_in
from perdure.model.privacy import PrivacyFilter
from perdure.model.transcript import Message
from perdure.model.trust import PASTED, AgentSettings, OptOut, resolved_folder
from perdure.model.uri import stable_name, stable_slug
from perdure.model.values import (
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    comparison_key,
    plain,
    shortened,
)
from perdure.safety.secrets import SecretPolicy, secrets_in
from perdure.safety.validation import (
    clean_line,
    count_masked,
    is_continuation,
    make_safe,
    refuse_secrets,
    without_secrets,
)
from perdure.times import read_time
from perdure.transfer.contract import (
    SOURCE,
    SOURCE_DIGEST,
    SOURCE_ID,
    SOURCE_LINES,
    DocumentItem,
    EntityItem,
    ImportItem,
    MessageFields,
    RelationItem,
    SessionItem,
    StatementItem,
    ToolOutput,
)
from perdure.transfer.json_records import digest

if TYPE_CHECKING:
    from perdure.engine.project_registry import Projects

# ---------------------------------------------------------------- admission
_MIN_WORDS = 4
"""A shorter sentence may be the same by chance."""


@dataclass(frozen=True, slots=True)
class AdmittedSession:
    item: SessionItem
    is_private: bool = False
    """Whether parts of it are private, and were removed."""
    origins: tuple[str, ...] = ()
    """Where words in it may come from: web, mcp, pasted."""
    foreign_sentences: Mapping[str, str] | None = None
    """Sentences of the user that are not their own words: the origin of each, by id."""

    @property
    def states_anything(self) -> bool:
        return bool(rule_statements(self.item.messages))


@dataclass(frozen=True, slots=True)
class Admission:
    settings: AgentSettings
    notes: SessionNotes
    is_named: bool = False
    """Whether the user named this one session, or allowed the run."""

    def admit(self, item: SessionItem, session_id: str = "") -> AdmittedSession | OptOut:
        """Return the session without its private messages, or why it is refused."""
        for folder in dict.fromkeys((item.cwd, resolved_folder(item.cwd))):
            if folder or item.headless:
                refusal = self.settings.refusal(
                    folder, is_headless=item.headless, is_named=self.is_named
                )
                if refusal is not None:
                    return refusal
        screen = PrivacyFilter(self.notes.switches(item.source_id, session_id))
        messages, outputs = _public(item, screen)
        if screen.is_used and not messages:
            return OptOut.PRIVATE
        public = replace(
            item, messages=messages, tool_outputs=(), title="" if screen.is_used else item.title
        )
        return AdmittedSession(public, screen.is_used, *_origins(messages, outputs))


def _public(
    item: SessionItem, screen: PrivacyFilter
) -> tuple[tuple[MessageFields, ...], list[ToolOutput]]:
    messages: list[MessageFields] = []
    outputs: list[ToolOutput] = []
    waiting = list(item.tool_outputs)
    for at, message in enumerate((*item.messages, None)):
        while waiting and waiting[0].messages_before <= at:
            output = waiting.pop(0)
            if not screen.is_on:
                outputs.append(replace(output, messages_before=len(messages)))
        if message is not None:
            time = time_in(message.get("time"))
            content = screen.public(message["role"], message["content"], time)
            if content:
                messages.append({**message, "content": content})
    return tuple(messages), outputs


# ---------------------------------------------------------------- words of others
def _origins(
    messages: Sequence[MessageFields], outputs: Sequence[ToolOutput]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return where words of a session may come from, and which sentences of the user do."""
    pasted = [
        ToolOutput(at, PASTED, text)
        for at, each in enumerate(messages)
        if each["role"] == "user" and (text := pasted_in(each["content"]))
    ]
    others = sorted([*outputs, *pasted], key=lambda each: each.messages_before)
    marks = {each.origin for each in others if each.origin != PASTED or is_paste(each.text)}
    foreign: dict[str, str] = {}
    for at, key in _statements(messages) if others else ():
        if origin := _origin_of(key, others, at):
            foreign[sentence_id(key)] = origin
    for at, message in enumerate(messages):
        for text in procedures_in(message["content"]) if message["role"] == "user" else ():
            if origin := _origin_of(first_step(text), outputs, at):
                foreign[sentence_id(text)] = origin
    return tuple(sorted(marks - {""})), foreign


def _origin_of(key: str, outputs: Sequence[ToolOutput], at: int) -> str:
    """Return where the words of a key in message `at` come from; "" if they are the user's."""
    found = (e for e in outputs if e.messages_before <= at and _contains(e.text, key))
    return next((each.origin or "tool" for each in found), "")


def _statements(messages: Sequence[MessageFields]) -> Iterator[tuple[int, str]]:
    session = [Message.from_mapping(each) for each in messages]
    found = {(each.message, each.key) for each in rule_statements(session)}
    found |= {(each.sentence.message, each.sentence.key) for each in prose.candidates(session)}
    found |= {
        (each.message, each.key) for each in user_sentences(session) if is_repeatable(each.plain)
    }
    yield from sorted(each for each in found if len(each[1].split()) >= _MIN_WORDS)


def _contains(text: str, key: str) -> bool:
    """Return whether a text contains the words of a key in a row."""
    longest = max((word for word in key.split() if "'" not in word), key=len, default="")
    return longest in text.casefold() and f" {key} " in f" {comparison_key(text)} "


# ---------------------------------------------------------------- items
class ImportTarget(Protocol):
    """The methods of `Memory` that an import calls. `Memory` imports this package."""

    caller: RequestContext

    @property
    def home(self) -> Path: ...
    @property
    def projects(self) -> "Projects": ...
    @property
    def save(self) -> Callable[..., object]: ...
    @property
    def commit_session(self) -> Callable[..., SessionCommit]: ...
    @property
    def append(self) -> Callable[..., SessionCommit]: ...
    def settle(self) -> None: ...


class ItemState(Enum):
    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    REFUSED = "refused"
    FORGOTTEN = "forgotten"


def origin_metadata(item: ImportItem, content: str) -> dict[str, JSON]:
    return {
        SOURCE: item.source,
        SOURCE_ID: item.source_id[:MAX_CONTENT],
        SOURCE_DIGEST: digest(content),
    }


def stored_node(nodes: Nodes, place: Uri, ctx: RequestContext) -> ContextNode | None:
    """Return the node at a place, active or archived; None if there is none."""
    stored = nodes.load(nodes.reach.require_writable(str(place), ctx))
    return None if stored is None else stored.node


def item_state(item: ImportItem, content: str, known: ContextNode | None) -> ItemState:
    """Return what storing a text at the place of `known` would change.

    A node that its owner archived stays archived. Raises `NodeExistsError` if another node is
    there, or if the text was edited both here and at the source.
    """
    if len(content) > MAX_CONTENT:
        raise InvalidValueError(
            f"it has {len(content):,} characters; the maximum is {MAX_CONTENT:,}. Fix: split it."
        )
    if known is None:
        return ItemState.NEW
    metadata = known.metadata
    if metadata.get(SOURCE) != item.source or not _is_id_of(item, metadata.get(SOURCE_ID)):
        raise NodeExistsError(f"another node is at {known.uri!a}. Fix: move it, and import again.")
    if known.status is NodeStatus.ARCHIVED or metadata.get(SOURCE_DIGEST) == digest(content):
        return ItemState.SAME
    if digest(known.content) not in {metadata.get(SOURCE_DIGEST), digest(content)}:
        raise NodeExistsError(
            f"{known.uri!a} was edited here and at the source. It was not changed. "
            "Fix: copy what is missing by hand, or delete it and import again."
        )
    return ItemState.CHANGED


def _is_id_of(item: ImportItem, known: JSON) -> bool:
    """Return whether a stored id is that of an item: as the source has it, or cleaned."""
    if known == item.source_id:
        return True
    cleaned = make_safe("-", {SOURCE_ID: item.source_id}, SecretPolicy.MASK)
    return known == cleaned.metadata.get(SOURCE_ID)


_LEAD_LENGTH = 4_000
"""The first paragraph is searched for in this many characters."""


def document_abstract(text: str, default: str) -> str:
    title = next((each.info for each in headings(text) if each.info), default)
    lead = _lead(text)
    return shortened(f"{title}: {lead}" if lead and lead != title else title, MAX_ABSTRACT)


def document_outline(text: str) -> str:
    """Return the headings as a list, indented by level; as many as fit into an overview."""
    found = [each for each in headings(text) if each.info]
    top = min((each.level for each in found), default=1)
    lines: list[str] = []
    left = MAX_OVERVIEW - 2
    for each in found:
        line = f"{'  ' * (each.level - top)}- {shortened(each.info, MAX_ABSTRACT)}\n"
        left -= len(line)
        if left < 0:
            return f"{''.join(lines)}…\n"
        lines.append(line)
    return "".join(lines)


def _lead(text: str) -> str:
    """Return the first paragraph that is not in a list or quotation, nor an image or link."""
    for block in blocks(text[:_LEAD_LENGTH]):
        line = " ".join(text[block.start : block.end].split())
        if block.kind == "paragraph" and not block.depth and not line.startswith(("[", "![")):
            return line
    return ""


_GONE = "source_gone"
"""Metadata of a document that was archived because its file was removed."""


class DocumentImporter:
    def __init__(
        self, nodes: Nodes, ctx: RequestContext, folder: str, secrets: SecretPolicy
    ) -> None:
        self._nodes = nodes.because("import")
        self._ctx = ctx
        self._secrets = secrets
        self.masked = 0
        self._root = Uri(ctx.account_id, ("resources", folder))

    def put(self, item: DocumentItem, *, dry_run: bool) -> ItemState:
        fix = "take it out, or let secrets be masked with --mask-secrets."
        text = without_secrets(item.text, "document", self._secrets, fix)
        found = len(secrets_in(item.text)) if text != item.text else 0
        item = replace(item, text=text)
        place = self._root.child(*item.source_id.split("/"))
        known = stored_node(self._nodes, place, self._ctx)
        if known is not None and known.metadata.get(_GONE) is True:
            return self._bring_back(item, known, dry_run=dry_run)
        state = item_state(item, item.text, known)
        if state is not ItemState.SAME and not dry_run:
            self._write(item, place, known)
            self.masked += found
        return state

    def gone(self, present: set[str], source: str) -> Iterator[ContextNode]:
        """Yield the imported documents whose files are not present any more."""
        for node in self._below(self._root):
            metadata = node.metadata
            if metadata.get(SOURCE) == source and metadata.get(SOURCE_ID) not in present:
                yield node

    def archive(self, node: ContextNode) -> None:
        """Archive a document, and record why, so that it is unarchived with its file."""
        if node.metadata.get(_GONE) is not True:
            self._nodes.write_node(node.revised(metadata={_GONE: True}), self._ctx)
        self._nodes.archive_node(node.uri, self._ctx)

    def _bring_back(self, item: DocumentItem, known: ContextNode, *, dry_run: bool) -> ItemState:
        if not dry_run:
            if known.status is NodeStatus.ARCHIVED:
                self._nodes.unarchive_node(known.uri, self._ctx)
            self._write(item, known.place, self._nodes.read_node(known.uri, self._ctx))
        return ItemState.CHANGED

    def _write(self, item: DocumentItem, place: Uri, known: ContextNode | None) -> None:
        fields = {
            "content": item.text,
            "abstract": document_abstract(item.text, place.name.rpartition(".")[0] or place.name),
            "overview": document_outline(item.text),
            "metadata": {**origin_metadata(item, item.text), _GONE: None},
        }
        new = ContextNode(uri=str(place)).revised(version=1, **fields)
        self._nodes.write_node(new if known is None else known.revised(**fields), self._ctx)

    def _below(self, place: Uri) -> Iterator[ContextNode]:
        for uri in self._nodes.list_children(str(place), self._ctx):
            with suppress(NodeNotFoundError, BrokenNodeError):  # a folder, or not a node of ours
                yield self._nodes.read_node(uri, self._ctx)
            yield from self._below(Uri.parse(uri))


_ENTITY = "entity"
_CATEGORIES = (_ENTITY, "preference", "event")
_REFERS = "refers-to"
"""Replaces the name of an imported relation that is reserved for edges of links."""
_MAX_KIND = 100


class MemoryImporter:
    """Saves memories of other programs: statements, entities, and relations of entities."""

    def __init__(
        self, memory: ImportTarget, nodes: Nodes, relations: Relations, secrets: SecretPolicy
    ) -> None:
        self._memory = memory
        self._nodes = nodes
        self._relations = relations
        self._secrets = secrets
        self._sessions = Sessions(nodes)
        self._planned: set[str] = set()
        """The URIs of entities, which a dry run does not write."""
        self.masked = 0

    def put(self, item: StatementItem, *, dry_run: bool) -> ItemState:
        project = (self._memory.projects.at(item.cwd) or None) if item.cwd else item.project
        above = project or item.cwd
        named = f"{above}/{item.source_id}" if above else item.source_id
        slug = slugify(stable_name(item.source, stable_slug(named)))
        places = [self._place(each, slug) for each in (item.category, *_CATEGORIES)]
        known = (stored_node(self._nodes, place, self._memory.caller) for place in places)
        before = next(filter(None, known), None)
        place = places[0] if before is None else before.place
        if before is not None and _is_newer(before, item):
            return ItemState.SAME
        if item.cwd and not dry_run:
            project = self._memory.projects.enter(item.cwd) or None
        support = self._support(item)
        if support is None:
            return ItemState.FORGOTTEN
        if item.quote and not support and not dry_run:
            raise InvalidValueError(
                "the message that it rests on is not stored. Fix: nothing, if that is private."
            )
        metadata = {**item.metadata, **support}
        return self._save(item, item.content, metadata, place, before, project, dry_run=dry_run)

    def put_entity(self, item: EntityItem, *, dry_run: bool) -> ItemState:
        place = self._place(_ENTITY, stable_slug(item.source_id))
        before = stored_node(self._nodes, place, self._memory.caller)
        metadata = {**item.metadata, "entity_type": item.kind or None}
        state = self._save(item, _entity_text(item), metadata, place, before, dry_run=dry_run)
        self._planned.add(str(place))
        return state

    def _support(self, item: StatementItem) -> dict[str, JSON] | None:
        """Return the evidence of a statement; None if the user forgot it or its session."""
        if item.quote is None:
            return {}
        session, quote = item.quote
        name = stable_name(item.source, session)
        place = Uri(self._memory.caller.account_id, ("sessions", name))
        ctx = replace(self._memory.caller, session_id=name)
        forgotten = of_caller(self._nodes, ctx)
        if forgotten.hides_session(place) or forgotten.is_all(item.content):
            return None
        for at, message in enumerate(self._sessions.messages(place, ctx)):
            if quote in message.content:
                evidence = Evidence(at, cid_of(message.content), quote)
                mention = Mention(name, (evidence,), message.speaker)
                when = read_time(item.metadata.get("source_updated_at"))
                support = Support(when, mentions=(mention,), kind="fact", by="agent")
                return as_metadata({statement_cid(item.content): support})
        return {}

    def _save(  # noqa: PLR0913, PLR0917 - the item, its place, and the node that is there
        self,
        item: ImportItem,
        content: str,
        metadata: Mapping[str, JSON],
        place: Uri,
        before: ContextNode | None,
        project: str | None = None,
        *,
        dry_run: bool,
    ) -> ItemState:
        clean = make_safe(content, metadata, self._secrets)
        forgotten = of_caller(self._nodes, self._memory.caller)
        if forgotten.is_all(clean.content):
            return ItemState.FORGOTTEN
        clean = replace(clean, content=forgotten.masked(clean.content).text)
        state = item_state(item, clean.content, before)
        if state is ItemState.SAME and before and SOURCE_LINES in clean.metadata:
            is_unedited = digest(before.content) == digest(clean.content)
            lines = clean.metadata[SOURCE_LINES]
            moved = plain(before.metadata.get(SOURCE_LINES)) != plain(lines)
            state = ItemState.CHANGED if is_unedited and moved else state
        if state is not ItemState.SAME and not dry_run:
            self._memory.save(
                clean.content,
                category=place.path[-2],
                slug=place.name,
                metadata={**clean.metadata, **origin_metadata(item, clean.content)},
                project=project,
                replace_learned=True,
            )
            self.masked += count_masked(clean.notes)
        return state

    def relate(self, item: RelationItem, *, dry_run: bool) -> ItemState:
        edge = self._edge(item)
        for end, name in ((edge.from_uri, item.start), (edge.to_uri, item.target)):
            exists = self._nodes.exists(end, self._memory.caller)
            if not exists and item.creates_entities:
                self.put_entity(_implied(item, name), dry_run=dry_run)
            elif not exists and not (dry_run and end in self._planned):
                raise NodeNotFoundError(
                    f"there is no entity {name[:80]!a}. Fix: add it to the file."
                )
        known = self._relations.get_edges(edge.from_uri, self._memory.caller)
        if edge.identity in {each.identity for each in known}:
            return ItemState.SAME
        if not dry_run:
            self._relations.upsert_edges([edge], self._memory.caller)
        return ItemState.NEW

    def _edge(self, item: RelationItem) -> RelationEdge:
        if item.start == item.target:
            raise InvalidValueError("it relates an entity to itself. Fix: leave it out.")
        refuse_secrets(item.kind, "relation", "choose another name.")
        kind = slugify(item.kind[:_MAX_KIND])
        kind = _REFERS if kind == MENTIONS else kind
        reason = "" if kind == item.kind else _reason(item.kind)
        start, target = (stable_slug(end) for end in (item.start, item.target))
        ends = str(self._place(_ENTITY, start)), str(self._place(_ENTITY, target))
        return RelationEdge(*ends, kind, reason=reason)

    def _place(self, category: str, slug: str) -> Uri:
        ctx = self._memory.caller
        return Uri(ctx.account_id, ("users", ctx.user_id, "memories", category, slug))


def _reason(kind: str) -> str:
    """Return the source's name of a relation as one line of harmless text."""
    line = shortened(" ".join(kind.split()), MAX_ABSTRACT // 2)
    return shortened(clean_line(line, "relation").text, MAX_ABSTRACT)


def _is_newer(node: ContextNode, item: StatementItem) -> bool:
    known, given = (
        read_time(each.get("source_updated_at")) for each in (node.metadata, item.metadata)
    )
    return known is not None and given is not None and known > given


def _implied(item: RelationItem, name: str) -> EntityItem:
    return EntityItem(
        file=item.file,
        where=item.where,
        source=item.source,
        source_id=name,
        kind="",
        observations=(),
    )


def _entity_text(item: EntityItem) -> str:
    lines = [f"# {' '.join((item.title or item.source_id).split())}"]
    if item.kind:
        lines += ["", f"Type: {' '.join(item.kind.split())}"]
    if item.observations:
        lines.append("")
    for observation in item.observations:
        first, *more = observation.splitlines()
        lines += [f"- {first}", *(f"  {line}".rstrip() for line in more)]
    if item.text:
        lines += ["", item.text]
    return "\n".join(lines) + "\n"


_FIRST = "messages"
"""The node with the first messages of a session; its metadata names the source."""


def _clean(text: str, what: str, limit: int = MAX_ABSTRACT) -> str:
    return clean_line(text[:limit], what, SecretPolicy.MASK).text


def _origin(item: SessionItem) -> SessionOrigin | None:
    return SessionOrigin(item.cwd, _clean(item.branch, "branch"), item.commit) if item.cwd else None


class SessionImporter:
    """Archives conversations. It appends to one that grew, and refuses one that differs."""

    def __init__(self, memory: ImportTarget, nodes: Nodes, *, learn: bool = False) -> None:
        self._memory = memory
        self._nodes = nodes
        self._sessions = Sessions(nodes)
        self._learn = learn
        self.learned: Counter[str] = Counter()
        self.masked = 0
        """The number of secrets that were masked in new messages and titles."""

    def put(self, admitted: AdmittedSession, *, dry_run: bool) -> ItemState:
        item = admitted.item
        place, ctx = self._place(item)
        forgotten = of_caller(self._nodes, ctx)
        if forgotten.hides_session(place):
            return ItemState.FORGOTTEN
        state = self._state(item, place, ctx, forgotten)
        if not dry_run and (state is not ItemState.SAME or self._learn):
            project = self._memory.projects.enter(item.cwd) if item.cwd else None
            done = self._memory.commit_session(
                item.messages,
                session_id=place.name,
                title=item.title,
                project=project,
                extract=self._learn,
                foreign=admitted.foreign_sentences,
                origin=_origin(item),
            )
            self._count(done)
        is_changed = self._write_origin(admitted, place, ctx, dry_run=dry_run)
        return ItemState.CHANGED if state is ItemState.SAME and is_changed else state

    def extend(self, admitted: AdmittedSession, end: SessionEnd) -> SessionEnd:
        """Append the new messages of a session that ended at `end`, and return its new end.

        Raises `VersionMismatchError` or `NodeExistsError`, and changes nothing, if the stored
        session has another end.
        """
        item = admitted.item
        place, ctx = self._place(item)
        if item.messages:
            origin = _origin(item)
            done = self._memory.append(
                place.name, item.messages, extract=self._learn, after=end, origin=origin
            )
            self._count(done)
        if admitted.origins:
            self._write_origin(admitted, place, ctx, dry_run=False)
        return self._sessions.end(place, ctx, end)

    def end(self, item: SessionItem) -> SessionEnd:
        return self._sessions.end(*self._place(item))

    def _count(self, done: SessionCommit) -> None:
        self.learned += Counter(done.counts)
        self.masked += done.masked

    def _place(self, item: SessionItem) -> tuple[Uri, RequestContext]:
        name = stable_name(item.source, item.source_id)
        caller = self._memory.caller
        return Uri(caller.account_id, ("sessions", name)), replace(caller, session_id=name)

    def _state(
        self, item: SessionItem, place: Uri, ctx: RequestContext, forgotten: ForgottenList
    ) -> ItemState:
        """Compare the messages with the stored ones; raise `NodeExistsError` if they differ."""
        before = self._sessions.messages(place, ctx)
        if not before and not forgotten.entries:  # messages are screened when they are stored
            return ItemState.NEW
        messages = screened(read_messages(item.messages).messages, forgotten, before).messages
        if not is_continuation(before, messages):
            raise NodeExistsError(
                f"the session {place.name[:80]!a} exists with other messages. It was not changed. "
                "Fix: move or delete it, and import again."
            )
        if len(messages) <= len(before):
            return ItemState.SAME
        return ItemState.CHANGED if before else ItemState.NEW

    def _write_origin(
        self, admitted: AdmittedSession, place: Uri, ctx: RequestContext, *, dry_run: bool
    ) -> bool:
        """Write where a session comes from; return whether that changes an earlier import."""
        item = admitted.item
        first = stored_node(self._nodes, place.child(_FIRST), ctx)
        if first is None or first.status is NodeStatus.ARCHIVED:
            return False
        title, metadata = clean_title(item.title), first.metadata
        wanted: dict[str, JSON] = {
            SOURCE: item.source,
            SOURCE_ID: item.source_id[:MAX_CONTENT],
            "title": of_caller(self._nodes, ctx).masked(title.text).text,
            "source_created_at": item.created_at,
            "cwd": _clean(item.cwd, "folder", MAX_OVERVIEW),
            "branch": metadata.get("branch") or _clean(item.branch, "branch"),
            "commit": metadata.get("commit") or _clean(item.commit, "commit"),
        }
        if admitted.origins:
            wanted[ORIGINS] = sorted({*texts_of(metadata.get(ORIGINS)), *admitted.origins})
        if admitted.foreign_sentences:
            known = metadata.get(FOREIGN)
            foreign = known if isinstance(known, Mapping) else {}
            wanted[FOREIGN] = {**foreign, **admitted.foreign_sentences}
        new = {
            name: each
            for name, each in wanted.items()
            if each and plain(metadata.get(name)) != each
        }
        if new and not dry_run:
            self._nodes.because("import").write_node(first.revised(metadata=new), ctx)
            self.masked += count_masked(title.notes)
        return bool(new) and metadata.get(SOURCE) == item.source
