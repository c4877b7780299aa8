"""Hide forgotten statements in sessions, and in the memories that were learned from them.

The list of forgotten statements, the hidden texts and the archived nodes change in one commit: a
process that is killed at any point has changed all of it, or nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby

from perdure.context.node_files import CONTENT
from perdure.context.nodes import NodeDraft, Nodes, SessionMarks
from perdure.context.reader import NodeReader, StoredNode
from perdure.dataclass import dataclass, field, fields, replace
from perdure.engine.briefing import sentence_rows
from perdure.engine.briefing_records import likely_in
from perdure.engine.forgotten import ForgottenEntry, ForgottenList, changed, hidden_sentences
from perdure.engine.learn.evidence import Support, as_metadata, support_of
from perdure.engine.learn.prose import scored, sentences
from perdure.engine.learn.statements import statements, without
from perdure.engine.sessions import LearnedMarks, learned_count, messages_in
from perdure.errors import BrokenNodeError
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.model.transcript import (
    HIDDEN,
    TranscriptEntry,
    abstract_of,
    matches_hidden,
    parse,
    section,
)
from perdure.model.values import JSON

_TITLE = "title"
_OWNER_DEPTH = 2


@dataclass(frozen=True, slots=True)
class HiddenCounts:
    statements: int = 0
    """Statements that are new on the list of forgotten statements."""
    memories: int = 0
    """Other memories with the same statement: archived, or without it now."""
    sentences: int = 0
    messages: int = 0
    titles: int = 0
    sessions: int = 0

    def __add__(self, other: "HiddenCounts") -> "HiddenCounts":
        names = [each.name for each in fields(self)]
        return HiddenCounts(*(getattr(self, name) + getattr(other, name) for name in names))


NOTHING_HIDDEN = HiddenCounts()


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """A place to forget, with its present and former statements."""

    place: Uri
    texts: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    name: str = ""
    """The URI of a message, or words; then `place` is that of the user. Empty for a node."""

    @property
    def key(self) -> str:
        """Its key in the list of forgotten statements; for a part of a session, the session's."""
        depth = _OWNER_DEPTH if self.place.session else None
        return self.name or str(Uri(self.place.account, self.place.path[:depth]))

    @classmethod
    def of_message(cls, name: str, nodes: NodeReader, texts: Iterable[str]) -> "ForgetTarget":
        """Return the statements of a message, given texts of its session."""
        uri, _, message = name.partition("#")
        place = Uri.parse(uri)
        user = (nodes.reach.session_owner(place) or "").removeprefix("user:")
        statements_ = tuple(_message_statements(texts, int(message)))
        return cls(Uri(place.account, ("users", user)), statements_, name=name)

    @classmethod
    def of(cls, node: ContextNode, *earlier: str) -> "ForgetTarget":
        """Return a node with its statements and their evidence."""
        if "memories" not in node.place.path:
            return cls(node.place)
        texts = (node.content, *earlier)
        found = dict.fromkeys(each.text for text in texts for each in statements(text))
        return cls(node.place, tuple(found), tuple(_quotes(support_of(node).values())))


def _quotes(found: Iterable[Support]) -> Iterator[str]:
    for mention in (mention for each in found for mention in each.mentions):
        yield from (each.quote for each in mention.evidence if each.quote)
        if mention.wording:
            yield mention.wording


@dataclass(slots=True)
class HidingPlan:
    nodes: Nodes
    ctx: RequestContext
    erased: bool = False
    """Whether it is an erasure: then the list gets no hash of a single word."""
    changed: set[str] = field(default_factory=set)
    """The URIs of nodes in which something is hidden."""
    untouched: set[str] = field(default_factory=set)
    """The URIs of other memories that contain it among other text, and are not changed."""
    clean: dict[str, int] = field(default_factory=dict)
    """Nodes of sessions in which nothing is to be hidden, with their versions."""

    def plan(self, draft: NodeDraft, targets: Iterable[ForgetTarget]) -> HiddenCounts:
        """Add targets to the lists of their users, and hide them in all nodes of these users."""
        by_user: dict[str, list[ForgetTarget]] = defaultdict(list)
        for target in targets:
            by_user[self._user(target.place)].append(target)
        total = HiddenCounts()
        for user, of_user in by_user.items():
            total += self._plan_user(draft, user, of_user)
        return total

    def _user(self, place: Uri) -> str:
        """Return the user whose list has a place: its owner, else the caller."""
        session = self.nodes.reach.session_owner(place) if place.session else ""
        kind, _, name = (session or place.owner_space).partition(":")
        return name if kind == "user" else self.ctx.user_id

    def _plan_user(self, draft: NodeDraft, user: str, targets: list[ForgetTarget]) -> HiddenCounts:
        account = targets[0].place.account
        total = HiddenCounts()

        def change(known: ForgottenList) -> ForgottenList:
            nonlocal total
            found = [*self._entries(known, targets)]
            finder = known.of(found)
            new = (entry for entry in found if entry not in known.entries)
            statements = sum(len(entry.words) for entry in new)
            gone = {target.place for target in targets}
            hidden: set[str] = set()
            total = HiddenCounts(
                statements=statements, memories=self._memories(draft, user, finder, gone)
            )
            total += self._sessions(draft, account, user, finder, gone, hidden)
            done = (known.completed(each, hidden, erased=self.erased) for each in found)
            return known.added(*done)

        changed(draft, account, user, change)
        return total

    def _entries(
        self, known: ForgottenList, targets: Iterable[ForgetTarget]
    ) -> Iterator[ForgottenEntry]:
        for target in targets:
            entry = known.entry(target.key, target.texts, target.quotes)
            if target.place.session or entry.sentences:
                yield entry

    # ------------------------------------------------------------ sessions
    def _sessions(  # noqa: PLR0913, PLR0917 - the user, the finder, and what to skip
        self,
        draft: NodeDraft,
        account: str,
        user: str,
        finder: ForgottenList,
        gone: Collection[Uri],
        hidden: set[str],
    ) -> HiddenCounts:
        total = HiddenCounts()
        for session, stored in sessions_of(self.nodes, account, user):
            new: dict[str, ContextNode] = {}
            for each in stored:
                node = each.node
                if node.place in gone or self.clean.get(node.uri) == node.version:
                    continue
                masked = finder.masked(node.content)
                title = node.metadata.get(_TITLE)
                titled = finder.masked(title) if isinstance(title, str) else None
                if masked.hidden or (titled and titled.hidden):
                    hidden.update(hidden_sentences(node.content, finder))
                    more = {_TITLE: titled.text} if titled and titled.hidden else {}
                    new[node.uri] = _rewritten(node, masked.text, more)
                    total += HiddenCounts(sentences=masked.hidden, titles=len(more))
                else:
                    self.clean[node.uri] = node.version
            if new:
                self.changed.update(new)
                messages = write_session(draft, self.nodes, session, stored, new, self.ctx)
                total += HiddenCounts(messages=messages, sessions=1)
        return total

    # ------------------------------------------------------------ other memories
    def _memories(
        self, draft: NodeDraft, user: str, finder: ForgottenList, gone: Collection[Uri]
    ) -> int:
        """Archive memories with no other statement; remove it from those that were learned."""
        account = next(iter(gone)).account
        count = 0
        for place in list(self.nodes.walk(Uri(account, ("users", user, "memories")))):
            stored = None if place in gone else readable_node(self.nodes, place)
            if stored is None or stored.meta.status is not NodeStatus.ACTIVE:
                continue
            if finder.is_all(stored.node.content):
                self.nodes.plan_archive(draft, place)
            elif (node := _without(stored.node, finder)) is not None:
                draft.write(node, stored)
            else:
                self.untouched |= {str(place)} if finder.matches(stored.node.content) else set()
                continue
            self.changed.add(str(place))
            count += 1
        return count


def hide(
    nodes: Nodes,
    targets: Sequence[ForgetTarget],
    ctx: RequestContext,
    before: HidingPlan | None = None,
    *,
    erased: bool = False,
) -> HiddenCounts:
    """Hide the targets repeatedly, until nothing is left to hide; return what was hidden.

    A session that was saved during one pass is found by the next one. A session that is saved
    after the list was written is screened by the list.
    """
    total, clean = HiddenCounts(), before.clean if before else {}
    while True:
        counted = HiddenCounts()

        def plan(draft: NodeDraft) -> None:
            nonlocal counted
            counted = HidingPlan(nodes, ctx, erased, clean=clean).plan(draft, targets)

        nodes.change(plan, ctx)
        total += counted
        if replace(counted, statements=0) == HiddenCounts():
            return total


def _without(node: ContextNode, finder: ForgottenList) -> ContextNode | None:
    """Return a node without its learned statements that are forgotten; None if there are none."""
    support, content = support_of(node), node.content
    for each in reversed(statements(content)):
        if each.cid in support and finder.is_all(each.text):
            content = without(content, each)
            del support[each.cid]
    before = as_metadata(support)["statements"]
    masked = finder.value(before)
    if content == node.content and masked == before:
        return None
    abstract = finder.masked(node.abstract).text
    return node.revised(content=content, abstract=abstract, metadata={"statements": masked})


def readable_node(nodes: NodeReader, place: Uri) -> StoredNode | None:
    """Return the node at a place; None if there is none, or if it is broken."""
    with suppress(BrokenNodeError):
        return nodes.load(place)
    return None


# ---------------------------------------------------------------- the sessions of a user
def sessions_of(
    nodes: NodeReader, account: str, user: str
) -> Iterator[tuple[Uri, list[StoredNode]]]:
    """Yield the sessions of a user, including archived ones, each with its nodes."""
    below = nodes.walk(Uri(account, ("sessions",)))
    for session, places in groupby(below, key=lambda place: Uri(account, place.path[:2])):
        if nodes.reach.session_owner(session) != f"user:{user}":
            continue
        stored = [found for place in places if (found := readable_node(nodes, place)) is not None]
        stored.sort(key=lambda each: (len(each.node.uri), each.node.uri))  # messages, messages-2
        yield session, stored


def _rewritten(node: ContextNode, content: str, metadata: Mapping[str, JSON]) -> ContextNode:
    return node.revised(content=content, abstract=abstract_of(content), metadata=metadata)


def write_session(  # noqa: PLR0913, PLR0917 - the session, before and after
    draft: NodeDraft,
    nodes: Nodes,
    session: Uri,
    stored: Iterable[StoredNode],
    new: Mapping[str, ContextNode],
    ctx: RequestContext,
) -> int:
    """Write nodes of a session, and keep its mark of learning; return the changed messages."""
    before = [each.node for each in stored]
    for each in stored:
        if each.node.uri in new:
            draft.write(new[each.node.uri], each, status=each.meta.status)
    was, will = messages_in(before), messages_in([new.get(node.uri, node) for node in before])
    marks = SessionMarks(nodes)
    mark = marks.read(session, replace(ctx, session_id=session.name))
    learned = learned_count(mark, was)
    if learned:
        marks.moved(session, mark, LearnedMarks(will).mark(learned))(draft)
    return sum(old != now for old, now in zip(was, will, strict=False))


# ---------------------------------------------------------------- lifting
def plan_lift(draft: NodeDraft, nodes: Nodes, uris: Iterable[str], ctx: RequestContext) -> None:
    """Remove places from the lists of forgotten statements, and unhide them from history."""
    by_user: dict[tuple[str, str], list[str]] = defaultdict(list)
    hiding = HidingPlan(nodes, ctx)
    for uri in uris:
        place = Uri.parse(uri)
        name = str(Uri(place.account, place.path[:_OWNER_DEPTH])) if place.session else uri
        by_user[place.account, hiding._user(place)].append(name)  # noqa: SLF001 - of this module
    for (account, user), names in by_user.items():
        before, after = changed(draft, account, user, lambda known: known.without(names))  # noqa: B023 - called before the loop continues
        if before.entries != after.entries:
            _unhide(draft, nodes, account, user, after, ctx)


def _unhide(  # noqa: PLR0913, PLR0917 - as `write_session`
    draft: NodeDraft,
    nodes: Nodes,
    account: str,
    user: str,
    forgotten: ForgottenList,
    ctx: RequestContext,
) -> None:
    for session, stored in sessions_of(nodes, account, user):
        new: dict[str, ContextNode] = {}
        for each in stored:
            content = (
                _unhidden_text(nodes, each.node, forgotten) if HIDDEN in each.node.content else ""
            )
            if content and content != each.node.content:
                new[each.node.uri] = _rewritten(each.node, content, {})
        if new:
            write_session(draft, nodes, session, stored, new, ctx)


def _unhidden_text(nodes: NodeReader, node: ContextNode, forgotten: ForgottenList) -> str:
    """Return the text of a node with earlier, unhidden messages that are not forgotten now."""
    texts = nodes.backend.earlier(nodes.file(node.place, CONTENT))
    earlier: dict[tuple[int, int], list[TranscriptEntry]] = defaultdict(list)
    for each in (entry for text in texts for entry in parse(text)):
        earlier[each.index, each.piece].append(each)
    content = node.content
    for entry in parse(content):
        if HIDDEN not in entry.message.content:
            continue
        known = [
            each.message
            for each in earlier[entry.index, entry.piece]
            if matches_hidden(entry.message, each.message)
        ]
        least = min(known, key=lambda each: each.content.count(HIDDEN), default=entry.message)
        shown = replace(entry.message, content=forgotten.masked(least.content).text)
        old, new = (section(entry.index, entry.piece, each) for each in (entry.message, shown))
        content = content.replace(old, new, 1)
    return content


def _message_statements(texts: Iterable[str], message: int) -> list[str]:
    """Return the sentences of a message that a briefing could show.

    `texts` are those of its session, newest first. The sentences are those that may be remembered,
    the only one of a message, and the first one of the last message of the newest text.
    """
    found: dict[str, None] = {}
    for number, text in enumerate(texts):
        entries = [each for each in parse(text) if each.message.role == "user"]
        content = "\n".join(each.message.content for each in entries if each.index == message)
        found |= dict.fromkeys(row[0] for row in sentence_rows(likely_in(scored(content))))
        own = [each.text for each in sentences(content)]
        is_last = not number and entries[-1:] and entries[-1].index == message
        if is_last or (len(own) == 1 and HIDDEN not in content):
            found |= dict.fromkeys(own[:1])
    return [each for each in found if each != HIDDEN]
