"""The tools: each calls a verb of `Memory`, and returns its answer within a budget of tokens."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Self, TypeVar

from mcp_types import CallToolResult, TextContent

from perdure import (
    Claim,
    ContextNode,
    Entry,
    Former,
    HintKind,
    Hit,
    Memory,
    Provenance,
    RecallResult,
    SessionInfo,
    Version,
    presentable,
    tokens_in,
)
from perdure.app import open_memory
from perdure.errors import ClosedError, InvalidValueError
from perdure.model import RequestContext
from perdure.model.speech import marked
from perdure.model.values import JSON, shortened, visible
from perdure.surfaces import out
from perdure.surfaces.mcp import schema
from perdure.surfaces.mcp.refusing import without_paths
from perdure.surfaces.telling import counted, gist, sized, utc_time

NOTHING = "Memory has nothing to say to that."
_MOST_NOTES = 3
_LONGEST_NOTE = 160
_LONGEST_GIST = 120
_MOST_EVIDENCE = 5
_MOST_FORMER = 5
_LETTERS = 8
"""No token of a text that people read has more."""

Item = TypeVar("Item")
Given = TypeVar("Given", bound=schema.Answer)


class Tools:
    """The tools of one memory. The first call opens it; if that fails, the next one tries again.

    Many threads may call at once.
    """

    def __init__(self, environ: Mapping[str, str], caller: RequestContext) -> None:
        self.environ = environ
        self._caller = caller
        self._lock = threading.Lock()
        self._opened: Memory | None = None
        self._is_closed = False

    def _memory(self) -> Memory:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the server is ending. Fix: start it again.")
            if self._opened is None:
                self._opened = open_memory(self.environ, self._caller)
            return self._opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            memory, self._opened, self._is_closed = self._opened, None, True
        if memory is not None:
            warnings = memory.warnings()
            memory.close()
            if warnings:
                out.mention(warnings)

    # ------------------------------------------------------------ the tools
    def recall(  # noqa: PLR0913, PLR0917 - a name for each, as a model sees them
        self,
        query: schema.Query,
        top_k: schema.TopK = 10,
        budget_tokens: schema.Budget = 2000,
        at: schema.At = "",
        valid_at: schema.ValidAt = "",
        category: schema.Filter = "",
    ) -> Annotated[CallToolResult, schema.Recalled]:
        """Find what is remembered about something.

        Use it before you answer or decide anything that may depend on earlier conversations: what
        the user prefers, who and what they speak of, what was decided, how something was solved.
        Ask in the words of the question. Each hit has a URI to cite, to read on, or to ask why.
        """
        filters: dict[str, JSON] = {"category": category} if category else {}
        result = self._memory().recall(
            query,
            top_k=top_k,
            budget_tokens=budget_tokens,
            at=at or None,
            valid_at=valid_at or None,
            filters=filters,
        )
        return answered(self._recalled(result, budget_tokens), result.context or NOTHING)

    def remember(
        self,
        text: schema.Text,
        category: schema.Category = "note",
        slug: schema.Slug = "",
        mask_secrets: schema.MaskSecrets = False,  # noqa: FBT002 - a client names each
    ) -> Annotated[CallToolResult, schema.Saved]:
        """Keep one thing for later conversations.

        Use it when the user states a lasting preference or fact, decides something, or asks you to
        remember; and for what cost effort to find out. Not for what only matters now, nor for what
        a file already says. To correct a memory, give its category and slug again: the old text
        stays in its history. The same twice changes nothing.
        """
        text = text.strip("\n")
        saved = self._memory().save(text, category=category, slug=slug, mask_secrets=mask_secrets)
        return answered(
            schema.Saved(
                uri=str(saved),
                version=saved.version,
                written=saved.written,
                created=saved.created,
                changed=saved.changed,
            )
        )

    def read(
        self,
        uri: schema.Name,
        at: schema.At = "",
        offset: schema.Offset = 0,
        budget_tokens: schema.Budget = 4000,
    ) -> Annotated[CallToolResult, schema.Read]:
        """Read the whole text of one memory.

        Use it when a hit of recall is cut off, or before you correct a memory. With `at` it is the
        text as it was then. A long text comes in parts: go on from next_offset.
        """
        memory = self._memory()
        node = memory.at(at).read(uri) if at else memory.read(uri)
        return answered(_part(node, offset, budget_tokens))

    def list(
        self,
        folder: schema.Folder = "",
        limit: schema.Limit = 50,
        after: schema.After = "",
        archived: schema.Archived = False,  # noqa: FBT002 - a client names each
    ) -> Annotated[CallToolResult, schema.Listed]:
        """List what is remembered, by category.

        Use it to see what there is when no question fits, or to find the slug of a memory that you
        want to correct. To look for something, recall is better.
        """
        memory = self._memory()
        found = sorted(memory.list(folder, archived=archived), key=lambda each: each.uri)
        rest = [each for each in found if each.uri > after]
        place = memory.uri(folder)
        is_sessions = not archived and memory.name(place) == "sessions"
        sessions = {each.uri: each for each in memory.sessions()} if is_sessions else {}
        return answered(
            schema.Listed(
                folder=place,
                entries=tuple(_entry(each, sessions.get(each.uri)) for each in rest[:limit]),
                total=len(found),
                more_after=rest[limit - 1].uri if len(rest) > limit else "",
            )
        )

    def forget(
        self,
        uri: schema.Name,
        reason: schema.Reason = "",
        delete: schema.Delete = False,  # noqa: FBT002 - a client names each
    ) -> Annotated[CallToolResult, schema.Forgotten]:
        """Put a memory away, so that nothing finds it any more.

        Use it when the user asks to forget something, or says that it was never true. If something
        changed, remember what holds now instead. The user can take it back.
        """
        memory = self._memory()
        found = memory.deletable(uri)
        if delete:
            memory.delete(found.uri, reason=reason)
            undo = f"perdure read {found.name} --at MOMENT shows what it said"
            return answered(
                schema.Forgotten(uri=found.uri, state="deleted", changed=True, undo=undo)
            )
        done = memory.forget(found.uri, reason=reason)
        undo, changed = f"perdure unarchive {found.name}", bool(done.archived)
        return answered(
            schema.Forgotten(uri=found.uri, state="archived", changed=changed, undo=undo)
        )

    def history(
        self, uri: schema.Name, limit: schema.Limit = 20
    ) -> Annotated[CallToolResult, schema.Versions]:
        """List the versions of a memory: who wrote each, when, and why.

        Use it when the user asks what a memory used to say, or who changed it. `read` with the
        time of a version as `at` shows its text.
        """
        memory = self._memory()
        found, place = memory.history(uri), memory.uri(uri)
        newest = tuple(map(_version, reversed(found[-limit:])))
        return answered(schema.Versions(uri=place, total=len(found), versions=newest))

    def why(
        self, uri: schema.Name, budget_tokens: schema.Budget = 2000
    ) -> Annotated[CallToolResult, schema.Explained]:
        """Say why memory says something: who said it, where, and what it superseded.

        Use it when the user doubts a memory, when two contradict each other, or before you rely on
        one for something that matters. Evidence is looked up anew each time.
        """
        found = self._memory().why(uri)

        def make(statements: tuple[schema.Statement, ...]) -> schema.Explained:
            return _explained(found, statements)

        return answered(with_most(make, [_statement(each) for each in found.claims], budget_tokens))

    # ------------------------------------------------------------ what recall found
    def _recalled(self, result: RecallResult, budget: int) -> schema.Recalled:
        """Return as many hits as fit into the budget as JSON, too."""
        found, notes = result.left_out + len(result.hits), tuple(self._notes(result))

        def make(hits: tuple[schema.Hit, ...]) -> schema.Recalled:
            left = found - len(hits)
            return schema.Recalled(
                hits=hits, left_out=left, index_lag=result.index_lag, notes=notes
            )

        return with_most(make, [_hit(each) for each in result.hits], budget)

    def _notes(self, result: RecallResult) -> Iterator[str]:
        """Yield what a model should know; that no embedding model is installed is for people."""
        hints = [hint.text for hint in result.hints if hint.kind is not HintKind.NO_MODEL]
        for text in hints[:_MOST_NOTES]:
            yield shortened(without_paths(text, self.environ), _LONGEST_NOTE)


def _hit(found: Hit) -> schema.Hit:
    return schema.Hit(
        uri=found.uri,
        title=presentable(found.title),
        text=presentable(found.snippet),
        where=found.where,
        category=found.category,
        date=_day(found.date),
        holds=found.holds,
        validity=found.validity,
        speaker=presentable(found.speaker),
        session_id=visible(found.session_id),
        cid=found.cid,
        score=round(found.score, 4),
    )


# ---------------------------------------------------------------- nodes
def _part(node: ContextNode, offset: int, budget: int) -> schema.Read:
    """Return as much of a text, from an offset on, as fits; it ends with a line, if one does."""
    text = presentable(node.content)
    if offset and offset >= len(text):
        raise InvalidValueError(
            f"{node.uri!a} has {len(text):,} characters. Fix: take an offset below that."
        )

    def part(length: int) -> schema.Read:
        end = offset + length
        return schema.Read(
            uri=node.uri,
            title=shortened(presentable(node.title), _LONGEST_GIST),
            category=node.category,
            text=text[offset:end],
            version=node.version,
            created_at=utc_time(node.created_at),
            updated_at=utc_time(node.updated_at),
            offset=offset,
            next_offset=end if end < len(text) else None,
            problems=tuple(shortened(visible(each), _LONGEST_GIST) for each in node.problems),
        )

    length = longest(part, min(len(text) - offset, budget * _LETTERS), budget)
    if offset + length < len(text):
        length = (text.rfind("\n", offset, offset + length) + 1 - offset) or length
    return part(length)


def _entry(found: Entry, session: SessionInfo | None) -> schema.Entry:
    node = found.node
    if session is not None:
        size = f"{counted(session.messages, 'message')}, {sized(session.bytes)}"
        says = f"{presentable(shortened(session.title, _LONGEST_GIST))} ({size})"
    elif found.is_folder:
        says = counted(len(found.below), "entry")
    elif node is None:
        says = "it can't be read; the user should run `perdure repair`"
    else:
        says = presentable(shortened(gist(node), _LONGEST_GIST))
    changed = node.updated_at if node else session.date if session else None
    return schema.Entry(
        uri=found.uri,
        name=found.name,
        kind="folder" if found.is_folder else "memory",
        says=says,
        updated_at=utc_time(changed) if changed else "",
        version=node.version if node else 0,
    )


def _version(version: Version) -> schema.Version:
    return schema.Version(
        version=version.number,
        time=utc_time(version.time),
        actor=visible(version.actor),
        origin=visible(version.origin),
        reason=presentable(version.reason),
        cid="" if version.cid is None else str(version.cid),
    )


# ---------------------------------------------------------------- provenance
def _explained(found: Provenance, statements: tuple[schema.Statement, ...]) -> schema.Explained:
    return schema.Explained(
        uri=found.uri,
        title=presentable(found.title),
        kind=found.kind.value,
        version=found.version,
        holds=found.holds,
        source=visible(found.source),
        statements=statements,
        superseded=tuple(map(_former, found.superseded[:_MOST_FORMER])),
        superseded_by=tuple(each.uri for each in found.superseded_by[:_MOST_FORMER]),
        left_out=len(found.claims) - len(statements),
    )


def _statement(claim: Claim) -> schema.Statement:
    quotes = [
        schema.Quote(
            session=visible(said.session),
            message=quote.message,
            speaker=presentable(said.speaker),
            quote=presentable(quote.text),
            holds=quote.holds,
            trouble=visible(quote.trouble),
        )
        for said in claim.said
        for quote in said.quotes
    ]
    return schema.Statement(
        text=presentable(claim.text),
        origin="said" if claim.extracted else "written",
        since=_day(claim.since),
        confidence=claim.confidence,
        holds=claim.holds,
        evidence=tuple(quotes[:_MOST_EVIDENCE]),
        out_of_reach=claim.out_of_reach,
    )


def _former(former: Former) -> schema.Former:
    return schema.Former(
        uri=former.uri,
        text=presentable(former.text),
        reason=presentable(former.reason),
        valid_until=_day(former.valid_until),
    )


def _day(moment: date | None) -> str:
    return moment.isoformat()[:10] if moment else ""


def answered(answer: schema.Answer, text: str | None = None) -> CallToolResult:
    """Return an answer as programs read it, and as a text for a model."""
    return CallToolResult(
        content=[TextContent(type="text", text=marked(text) if text else answer.model_dump_json())],
        structured_content=answer.model_dump(mode="json"),
    )


def fits(answer: schema.Answer, budget: int) -> bool:
    """Whether an answer has no more tokens than that, as JSON; they are counted generously."""
    return tokens_in(answer.model_dump_json()) <= budget


def with_most(
    make: Callable[[tuple[Item, ...]], Given], items: Sequence[Item], budget: int
) -> Given:
    """Return the answer with as many items as fit, in their order; a smaller one has its chance."""
    answer, kept = make(()), tuple[Item, ...]()
    for item in items:
        more = make((*kept, item))
        if fits(more, budget):
            answer, kept = more, (*kept, item)
    return answer


def longest(make: Callable[[int], schema.Answer], most: int, budget: int) -> int:
    """Return the greatest length, of 1 to `most`, whose answer fits; 1 if none does."""
    if most <= 1 or fits(make(most), budget):
        return most
    least = 1
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(make(middle), budget) else (least, middle - 1)
    return least
