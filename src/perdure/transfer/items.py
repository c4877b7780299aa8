"""How items become nodes; nobody's edit is ever overwritten, and the same twice is once."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perdure.context.nodes import Nodes
from perdure.context.relations import Relations
from perdure.dataclass import dataclass, replace
from perdure.engine.forgotten import ForgottenList, of_caller
from perdure.engine.learn import prose
from perdure.engine.learn.evidence import Evidence, Mention, Support, as_metadata, cid_of, texts_of
from perdure.engine.learn.prose import is_paste, pasted_in, user_sentences
from perdure.engine.learn.review import FOREIGN, ORIGINS, id_of
from perdure.engine.learn.rules import written
from perdure.engine.learn.statements import cid_of as statement_cid
from perdure.engine.repeatable import first_step, is_repeatable, procedures_in
from perdure.engine.saving.saving import SessionCommit
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
from perdure.model.anchors import Origin
from perdure.model.messages import read_messages, time_in
from perdure.model.private import Screen
from perdure.model.transcript import Message
from perdure.model.trust import PASTED, AgentSettings, Reason, real_path
from perdure.model.uri import stable_name, stable_slug
from perdure.model.values import (
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    plain,
    shortened,
    words_key,
)
from perdure.safety.secrets import SecretPolicy, secrets_in
from perdure.safety.texts import (
    cleaned_line,
    count_masked,
    refuse_secrets,
    safe,
    same,
    without_secrets,
)
from perdure.times import read_moment
from perdure.transfer.contract import (
    DocumentItem,
    EntityItem,
    ImportItem,
    MessageFields,
    RelationItem,
    SessionItem,
    StatementItem,
    ToolOutput,
)
from perdure.transfer.parsing import digest

if TYPE_CHECKING:
    from perdure.engine.project_registry import Projects

_FEWEST = 4
"""Words. A shorter sentence may be the same by chance."""


@dataclass(frozen=True, slots=True)
class AdmittedSession:
    item: SessionItem
    is_private: bool = False
    """Whether parts of it are private; they are left out."""
    origins: tuple[str, ...] = ()
    """Where words in it may stem from: web, mcp, pasted."""
    foreign_sentences: Mapping[str, str] | None = None
    """For sentences of the user that are not their own, by id, where these words stem from."""

    @property
    def states_anything(self) -> bool:
        return bool(written(self.item.messages))


@dataclass(frozen=True, slots=True)
class Admission:
    settings: AgentSettings
    notes: SessionNotes
    is_named: bool = False
    """Whether the user named the one session, or allowed the run."""

    def admit(self, item: SessionItem, session_id: str = "") -> AdmittedSession | Reason:
        for folder in dict.fromkeys((item.cwd, real_path(item.cwd))):
            if folder or item.headless:
                refusal = self.settings.refusal(
                    folder, is_headless=item.headless, is_named=self.is_named
                )
                if refusal is not None:
                    return refusal
        screen = Screen(self.notes.switches(item.source_id, session_id))
        messages, heard = _public(item, screen)
        if screen.is_used and not messages:
            return Reason.PRIVATE
        public = replace(
            item, messages=messages, tool_outputs=(), title="" if screen.is_used else item.title
        )
        origins, foreign = _origins(messages, heard)
        return AdmittedSession(public, screen.is_used, origins, foreign)


def _public(
    item: SessionItem, screen: Screen
) -> tuple[tuple[MessageFields, ...], list[ToolOutput]]:
    kept: list[MessageFields] = []
    heard: list[ToolOutput] = []
    waiting = list(item.tool_outputs)
    for at, message in enumerate((*item.messages, None)):
        while waiting and waiting[0].messages_before <= at:
            one = waiting.pop(0)
            heard += [] if screen.is_on else [replace(one, messages_before=len(kept))]
        if message is not None:
            time = time_in(message.get("time"))
            content = screen.public(message["role"], message["content"], time)
            kept += [{**message, "content": content}] if content else []
    return tuple(kept), heard


# ---------------------------------------------------------------- words of others
def _origins(
    messages: Sequence[MessageFields], heard: Sequence[ToolOutput]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return where words of a session may stem from, and which sentences of the user do."""
    pasted = [
        ToolOutput(at, PASTED, text)
        for at, each in enumerate(messages)
        if each["role"] == "user" and (text := pasted_in(each["content"]))
    ]
    others = sorted([*heard, *pasted], key=lambda each: each.messages_before)
    marks = {
        each.origin for each in (*heard, *pasted) if each.origin != PASTED or is_paste(each.text)
    }
    foreign: dict[str, str] = {}
    if others:
        for at, key in _stated(messages):
            origin = next(
                (_stems_from(e) for e in others if e.messages_before <= at and _has(e.text, key)),
                "",
            )
            if origin:
                foreign[id_of(key)] = origin
    for at, message in enumerate(messages):
        for text in procedures_in(message["content"]) if message["role"] == "user" else ():
            told = [
                each
                for each in heard
                if each.messages_before <= at and _has(each.text, first_step(text))
            ]
            foreign |= {id_of(text): _stems_from(each) for each in told[:1]}
    return tuple(sorted(marks - {""})), foreign


def _stems_from(heard: ToolOutput) -> str:
    return heard.origin or "tool"


def _stated(messages: Sequence[MessageFields]) -> Iterator[tuple[int, str]]:
    session = [Message.from_mapping(each) for each in messages]
    found = {(each.message, each.key) for each in written(session)}
    found |= {(each.sentence.message, each.sentence.key) for each in prose.candidates(session)}
    found |= {
        (each.message, each.key) for each in user_sentences(session) if is_repeatable(each.plain)
    }
    yield from sorted(each for each in found if len(each[1].split()) >= _FEWEST)


def _has(text: str, key: str) -> bool:
    """Whether a text has the words of a key in a row."""
    longest = max((word for word in key.split() if "'" not in word), key=len, default="")
    return longest in text.casefold() and f" {key} " in f" {words_key(text)} "


SOURCE = "source"
SOURCE_ID = "source_id"
SOURCE_DIGEST = "source_digest"
"""Names in a node's metadata: which format, its own id, and the hash of what was imported."""
SOURCE_LINES = "source_lines"
"""In a node's metadata: the lines of the file that its statements are from, by their CIDs."""


class ItemState(Enum):
    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    REFUSED = "refused"
    FORGOTTEN = "forgotten"


class Verbs(Protocol):
    """The verbs of `Memory` that importers call; a module that `Memory` imports can't name it."""

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


def origin_metadata(item: ImportItem, content: str) -> dict[str, JSON]:
    return {
        SOURCE: item.source,
        SOURCE_ID: item.source_id[:MAX_CONTENT],
        SOURCE_DIGEST: digest(content),
    }


def stored_node(nodes: Nodes, place: Uri, ctx: RequestContext) -> ContextNode | None:
    """Return the node at a place, be it in use or put away; None if there is none."""
    stored = nodes.load(nodes.reach.changed(str(place), ctx))
    return None if stored is None else stored.node


def _ids(item: ImportItem) -> Iterator[JSON]:
    """Yield the id of an item, and what a node keeps of it: nothing that can't be seen."""
    yield item.source_id
    yield safe("-", {SOURCE_ID: item.source_id}, SecretPolicy.MASK).metadata.get(SOURCE_ID)


def item_state(item: ImportItem, content: str, known: ContextNode | None) -> ItemState:
    """Say what a text would be at its place.

    What its owner put away stays away. `NodeExistsError` if something else is there, or if the
    text was edited here and at the source.
    """
    if len(content) > MAX_CONTENT:
        raise InvalidValueError(
            f"it has {len(content):,} characters; {MAX_CONTENT:,} are the most. Fix: split it."
        )
    if known is None:
        return ItemState.NEW
    said = known.metadata
    if said.get(SOURCE) != item.source or said.get(SOURCE_ID) not in _ids(item):
        raise NodeExistsError(
            f"something else is at {known.uri!a}. Fix: move it, and import again."
        )
    if known.status is NodeStatus.ARCHIVED or said.get(SOURCE_DIGEST) == digest(content):
        return ItemState.SAME
    if digest(known.content) not in {said.get(SOURCE_DIGEST), digest(content)}:
        raise NodeExistsError(
            f"{known.uri!a} was edited here, and changed at the source too. It was left alone. "
            "Fix: take over by hand what is missing, or delete it and import again."
        )
    return ItemState.CHANGED


_LEAD = 4_000
"""The characters in which the first paragraph is looked for."""


def document_abstract(text: str, otherwise: str) -> str:
    title = next((each.info for each in headings(text) if each.info), otherwise)
    lead = _lead(text)
    return shortened(f"{title}: {lead}" if lead and lead != title else title, MAX_ABSTRACT)


def document_outline(text: str) -> str:
    """Return the headings as a list, indented by their levels; as many as there is room for."""
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
    """Return the first paragraph that is in no list or quotation, and no picture or link."""
    for block in blocks(text[:_LEAD]):
        said = " ".join(text[block.start : block.end].split())
        if block.kind == "paragraph" and not block.depth and not said.startswith(("[", "![")):
            return said
    return ""


_GONE = "source_gone"
"""In the metadata of what was archived because its file went away."""


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
        """Yield the documents that were imported once, and whose files are not there any more."""
        for node in self._below(self._root):
            said = node.metadata
            if said.get(SOURCE) == source and said.get(SOURCE_ID) not in present:
                yield node

    def archive(self, node: ContextNode) -> None:
        """Put a document away, and note why, so that it comes back with its file."""
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
        said = {
            "content": item.text,
            "abstract": document_abstract(item.text, place.name.rpartition(".")[0] or place.name),
            "overview": document_outline(item.text),
            "metadata": {**origin_metadata(item, item.text), _GONE: None},
        }
        new = ContextNode(uri=str(place)).revised(version=1, **said)
        self._nodes.write_node(new if known is None else known.revised(**said), self._ctx)

    def _below(self, place: Uri) -> Iterator[ContextNode]:
        for uri in self._nodes.list_children(str(place), self._ctx):
            with suppress(NodeNotFoundError, BrokenNodeError):  # a folder, or nothing of ours
                yield self._nodes.read_node(uri, self._ctx)
            yield from self._below(Uri.parse(uri))


_ENTITY = "entity"
_CATEGORIES = (_ENTITY, "preference", "event")
_REFERS = "refers-to"
"""What a relation becomes that is called as edges are which only links make."""
_MOST_OF_A_KIND = 100


class MemoryImporter:
    """Saves what was remembered elsewhere: statements, entities, and how entities are related."""

    def __init__(
        self, memory: Verbs, nodes: Nodes, relations: Relations, secrets: SecretPolicy
    ) -> None:
        self._memory = memory
        self._nodes = nodes
        self._relations = relations
        self._secrets = secrets
        self._sessions = Sessions(nodes)
        self._arriving: set[str] = set()
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
                "the message that it rests on was not kept. Fix: nothing, if that is private."
            )
        metadata = {**item.metadata, **support}
        return self._save(item, item.content, metadata, place, before, project, dry_run=dry_run)

    def put_entity(self, item: EntityItem, *, dry_run: bool) -> ItemState:
        """Save an entity as one memory; relations wait until all entities are there."""
        place = self._place(_ENTITY, stable_slug(item.source_id))
        before = stored_node(self._nodes, place, self._memory.caller)
        metadata = {**item.metadata, "entity_type": item.kind or None}
        state = self._save(item, _described(item), metadata, place, before, dry_run=dry_run)
        self._arriving.add(str(place))
        return state

    def _support(self, item: StatementItem) -> dict[str, JSON] | None:
        """Return the message that a statement rests on; None if the user forgot one of both."""
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
                when = read_moment(item.metadata.get("source_updated_at"))
                support = Support(when, mentions=(mention,), kind="fact", by="agent")
                return as_metadata({statement_cid(item.content): support})
        return {}

    def _save(  # noqa: PLR0913, PLR0917 - what, where, and what is there
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
        clean = safe(content, metadata, self._secrets)
        forgotten = of_caller(self._nodes, self._memory.caller)
        if forgotten.is_all(clean.content):
            return ItemState.FORGOTTEN
        clean = replace(clean, content=forgotten.masked(clean.content).text)
        state = item_state(item, clean.content, before)
        if state is ItemState.SAME and before and SOURCE_LINES in clean.metadata:
            is_own = digest(before.content) == digest(clean.content)
            given = clean.metadata[SOURCE_LINES]
            moved = plain(before.metadata.get(SOURCE_LINES)) != plain(given)
            state = ItemState.CHANGED if is_own and moved else state
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
            there = self._nodes.exists(end, self._memory.caller)
            if not there and item.creates_entities:
                self.put_entity(_implied(item, name), dry_run=dry_run)
            elif not there and not (dry_run and end in self._arriving):
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
            raise InvalidValueError("it leads to where it starts. Fix: leave it out.")
        refuse_secrets(item.kind, "relation", "choose another name.")
        kind = slugify(item.kind[:_MOST_OF_A_KIND])
        kind = _REFERS if kind == MENTIONS else kind
        reason = "" if kind == item.kind else _reason(item.kind)
        start, target = (stable_slug(end) for end in (item.start, item.target))
        ends = str(self._place(_ENTITY, start)), str(self._place(_ENTITY, target))
        return RelationEdge(*ends, kind, reason=reason)

    def _place(self, category: str, slug: str) -> Uri:
        ctx = self._memory.caller
        return Uri(ctx.account_id, ("users", ctx.user_id, "memories", category, slug))


def _reason(kind: str) -> str:
    """Return how the source calls a relation, on one line that does nothing."""
    line = shortened(" ".join(kind.split()), MAX_ABSTRACT // 2)
    return shortened(cleaned_line(line, "relation").text, MAX_ABSTRACT)


def _is_newer(node: ContextNode, item: StatementItem) -> bool:
    known, given = (
        read_moment(each.get("source_updated_at")) for each in (node.metadata, item.metadata)
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


def _described(item: EntityItem) -> str:
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
"""The node with the first messages of a session; its metadata says where the session is from."""


def _origin(item: SessionItem) -> Origin | None:
    branch = cleaned_line(item.branch[:MAX_ABSTRACT], "branch", SecretPolicy.MASK).text
    return Origin(item.cwd, branch, item.commit) if item.cwd else None


class SessionImporter:
    """Archives conversations. One that grew is continued; one that differs is left alone."""

    def __init__(self, memory: Verbs, nodes: Nodes, *, learn: bool = False) -> None:
        self._memory = memory
        self._nodes = nodes
        self._sessions = Sessions(nodes)
        self._learn = learn
        self.learned: Counter[str] = Counter()
        self.masked = 0
        """How many secrets were masked in what is new, in titles too."""

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
        is_other = self._tell_origin(admitted, place, ctx, dry_run=dry_run)
        return ItemState.CHANGED if state is ItemState.SAME and is_other else state

    def extend(self, admitted: AdmittedSession, end: SessionEnd) -> SessionEnd:
        """Keep the new messages of a conversation that ended so, and return how it ends now.

        `VersionMismatchError` or `NodeExistsError` if it does not end so: then nothing was done.
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
            self._tell_origin(admitted, place, ctx, dry_run=False)
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
        """Say how the messages stand to those that are there; `NodeExistsError` if they differ."""
        before = self._sessions.messages(place, ctx)
        if not before and not forgotten.entries:  # screened when it is kept
            return ItemState.NEW
        said = screened(read_messages(item.messages).messages, forgotten, before).messages
        if not same(before, said):
            raise NodeExistsError(
                f"the session {place.name[:80]!a} is there with other messages. It was left alone. "
                "Fix: move or delete it, and import again."
            )
        if len(said) <= len(before):
            return ItemState.SAME
        return ItemState.CHANGED if before else ItemState.NEW

    def _tell_origin(
        self, admitted: AdmittedSession, place: Uri, ctx: RequestContext, *, dry_run: bool
    ) -> bool:
        """Note where a session is from; whether something else was noted before."""
        item = admitted.item
        first = stored_node(self._nodes, place.child(_FIRST), ctx)
        if first is None or first.status is NodeStatus.ARCHIVED:
            return False
        title = clean_title(item.title)
        wanted: dict[str, JSON] = {
            SOURCE: item.source,
            SOURCE_ID: item.source_id[:MAX_CONTENT],
            "title": of_caller(self._nodes, ctx).masked(title.text).text,
            "source_created_at": item.created_at,
            "cwd": cleaned_line(item.cwd[:MAX_OVERVIEW], "folder", SecretPolicy.MASK).text,
            "branch": first.metadata.get("branch")
            or cleaned_line(item.branch[:MAX_ABSTRACT], "branch", SecretPolicy.MASK).text,
            "commit": first.metadata.get("commit")
            or cleaned_line(item.commit[:MAX_ABSTRACT], "commit", SecretPolicy.MASK).text,
        }
        told = first.metadata
        if admitted.origins:
            wanted[ORIGINS] = sorted({*texts_of(told.get(ORIGINS)), *admitted.origins})
        if admitted.foreign_sentences:
            known = told.get(FOREIGN)
            wanted[FOREIGN] = {
                **(known if isinstance(known, Mapping) else {}),
                **admitted.foreign_sentences,
            }
        new = {
            name: each for name, each in wanted.items() if each and plain(told.get(name)) != each
        }
        if new and not dry_run:
            self._nodes.because("import").write_node(first.revised(metadata=new), ctx)
            self.masked += count_masked(title.notes)
        return bool(new) and told.get(SOURCE) == item.source
