"""The tools: each calls a method of `Memory`, and returns its answer within a token budget."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import date
from pathlib import Path
from typing import Any, Self

from perdure import (
    INTRODUCTION,
    ContextNode,
    Entry,
    ForgetReport,
    HintKind,
    Hit,
    Memory,
    Provenance,
    RecallResult,
    ReviewItem,
    SaveResult,
    SessionInfo,
    StatementProvenance,
    Version,
    presentable,
    tokens_in,
)
from perdure.agents.hooks import home_of
from perdure.agents.switches import foreign_origins, tool_refusal
from perdure.app import open_memory
from perdure.dataclass import asdict
from perdure.errors import BrokenNodeError, ClosedError, InvalidValueError, SwitchedOffError
from perdure.harness.project import identity_at
from perdure.model import RequestContext
from perdure.model.speech import marked
from perdure.model.trust import FIXES, describe_origins
from perdure.model.uri import KINDS
from perdure.model.values import JSON, shortened, visible
from perdure.surfaces import out
from perdure.surfaces.mcp.server import without_paths
from perdure.surfaces.out import counted, gist, picked, sized, utc_time

NOTHING = "Memory has nothing about that."
_FORGOTTEN = HintKind.FORGOTTEN
_MOST_NOTES = 3
_LONGEST_NOTE = 160
_LONGEST_GIST = 120
_MOST_EVIDENCE = 5
_MOST_FORMER = 5
_TOKEN_LETTERS = 8
"""No token of usual text has more letters."""
_HIT_TOKENS = 40
"""The tokens of a hit's JSON beside its text."""

_FACT_KINDS = frozenset({"fact", "task"})
_FACT_CATEGORIES = frozenset({"", "entity", "event", "case"})
"""Kinds and categories of statements that give agents no orders."""

Answer = dict[str, Any]


class Tools:
    """The tools of one memory. The first call opens it; if that fails, the next one tries again.

    Thread-safe.
    """

    def __init__(self, environ: Mapping[str, str], caller: RequestContext) -> None:
        self._environ = environ
        self._caller = caller
        self._folder = str(Path.cwd())
        self._home = home_of(environ) or Path(self._folder)
        self._lock = threading.Lock()
        self._opened: Memory | None = None
        self._is_closed = False

    def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Answer, str]:
        """Return the answer of a tool as JSON and as text.

        A client shows its model one of the two, so both have the same content.
        """
        tools: dict[str, Callable[..., Answer]] = {
            "recall": self._recall,
            "remember": self._remember,
            "read": self._read,
            "list": self._list,
            "forget": self._forget,
            "history": self._history,
            "why": self._why,
        }
        self._refuse_switched_off(name)
        answer = tools[name](self._memory(), **arguments)
        return answer, answer["text"] if name == "recall" else json.dumps(answer)

    def _refuse_switched_off(self, name: str) -> None:
        reason = tool_refusal(self._home, self._environ, self._folder, writes=name == "remember")
        if reason is not None:
            raise SwitchedOffError(
                f"memory is switched off here: {reason.value}. Nothing was done. "
                f"Fix: {FIXES[reason]}."
            )

    def _memory(self) -> Memory:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the server is ending. Fix: start it again.")
            if self._opened is None:
                project = identity_at(self._folder)
                self._opened = open_memory(self._environ, self._caller, project=project)
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
    def _recall(  # noqa: PLR0913 - a name for each
        self,
        memory: Memory,
        *,
        query: str,
        top_k: int,
        budget_tokens: int,
        at: str,
        valid_at: str,
        category: str,
        details: bool,
    ) -> Answer:
        """Return the text of the hits, and as many of their URIs as fit beside it."""
        if visible(query) != query:
            raise InvalidValueError("the query has a control character. Fix: leave it out.")
        filters: dict[str, JSON] = {"category": category} if category else {}
        share = max(budget_tokens * 3 // 4, budget_tokens - _HIT_TOKENS * top_k)
        while True:
            result = memory.recall(
                query,
                top_k=top_k,
                budget_tokens=share,
                at=at or None,
                valid_at=valid_at or None,
                filters=filters,
            )
            answer = self._recalled(result, [])
            if fits(answer, budget_tokens) or share < _HIT_TOKENS:
                break
            share = share * 3 // 4
        hits = [_hit(hit) if details else {"uri": hit.uri} for hit in result.hits]
        return with_most(lambda some: self._recalled(result, some), hits, budget_tokens)

    def _recalled(self, result: RecallResult, hits: Sequence[Answer]) -> Answer:
        notes = list(self._notes(result))
        withheld = "".join(f" {each.text}." for each in result.hints if each.kind is _FORGOTTEN)
        text = marked(f"{result.context}\n{withheld}".strip()) if result.context else NOTHING
        return {
            "text": text if result.context else f"{NOTHING}{withheld}",
            "hits": hits,
            **picked(result, "left_out index_lag"),
            **({"notes": notes} if notes else {}),
        }

    def _notes(self, result: RecallResult) -> Iterator[str]:
        """Yield the hints that concern a language model."""
        ignored = {HintKind.NO_MODEL, _FORGOTTEN}
        hints = [hint.text for hint in result.hints if hint.kind not in ignored]
        for text in hints[:_MOST_NOTES]:
            yield shortened(without_paths(text, self._environ), _LONGEST_NOTE)

    def _remember(self, memory: Memory, *, text: str, replaces: str, **more: Any) -> Answer:  # noqa: ANN401
        text = text.strip("\n")
        is_fact = (
            more["kind"] in _FACT_KINDS and more["category"] in _FACT_CATEGORIES and not replaces
        )
        origins = foreign_origins(self._home, self._folder, text, is_fact=is_fact)
        if origins:
            project = "" if more["scope"] == "person" else None
            return _proposed(memory.propose(text, origins=origins, project=project))
        if not (more["category"] or more["slug"] or more["mask_secrets"]):
            return _remembered(memory, text, replaces, kind=more["kind"], scope=more["scope"])
        old = memory.read(replaces) if replaces else None
        saved = _save(memory, text, old, **more)
        return {
            "uri": str(saved),
            **picked(saved, "version written created changed"),
            **({} if saved.written else {"same_as": str(saved)}),
            **({} if old is None else {"replaced": _gist(old)}),
            **({"lifted": saved.lifted} if saved.lifted else {}),
        }

    def _read(
        self, memory: Memory, *, uri: str, at: str, offset: int, budget_tokens: int
    ) -> Answer:
        node = memory.at(at).read(uri) if at else memory.read(uri)
        return _part(node, offset, budget_tokens)

    def _list(
        self, memory: Memory, *, folder: str, limit: int, after: str, archived: bool
    ) -> Answer:
        entries = memory.list(
            folder, archived=archived, projects="own" if memory.project else "all"
        )
        found = sorted(entries, key=lambda each: each.uri)
        rest = [each for each in found if each.uri > after]
        place = memory.uri(folder)
        is_sessions = not archived and memory.name(place) == "sessions"
        sessions = {each.uri: each for each in memory.sessions()} if is_sessions else {}
        return {
            "notice": INTRODUCTION,
            "folder": place,
            "entries": [_entry(each, sessions.get(each.uri)) for each in rest[:limit]],
            "total": len(found),
            "more_after": rest[limit - 1].uri if len(rest) > limit else "",
        }

    def _forget(self, memory: Memory, *, uri: str, reason: str, delete: bool) -> Answer:
        what = memory.forget_target(uri)
        is_sentence = not delete and ("#" in what or len(what.split()) > 1)
        found = None if is_sentence else memory.deletable(what)
        done = ForgetReport()
        with suppress(BrokenNodeError) if delete else nullcontext():
            done = memory.forget(what, reason=reason)
        hidden = {name: count for name, count in asdict(done.hidden).items() if count}
        more = {"hidden": hidden, "also": list(done.also), "says_it_too": list(done.untouched)}
        rest = {name: value for name, value in more.items() if value}
        if found is None:
            changed, undo = bool(done.hidden.sessions or done.also), "perdure remember TEXT"
            return {"uri": what, "state": "hidden", "changed": changed, "undo": undo, **rest}
        if delete:
            memory.delete(found.uri, reason=reason)
            undo = f"perdure read {found.name} --at MOMENT shows the deleted text"
            return {"uri": found.uri, "state": "deleted", "changed": True, "undo": undo, **rest}
        undo, changed = f"perdure unarchive {found.name}", bool(done.archived)
        return {"uri": found.uri, "state": "archived", "changed": changed, "undo": undo, **rest}

    def _history(self, memory: Memory, *, uri: str, limit: int) -> Answer:
        found, place = memory.history(uri), memory.uri(uri)
        newest = [_version(each) for each in reversed(found[-limit:])]
        return {"notice": INTRODUCTION, "uri": place, "total": len(found), "versions": newest}

    def _why(self, memory: Memory, *, uri: str, budget_tokens: int) -> Answer:
        found = memory.why(uri)
        statements = [_statement(each) for each in found.statements]
        return with_most(lambda some: _explained(found, some), statements, budget_tokens)


def _proposed(found: ReviewItem) -> Answer:
    why = f"this session {describe_origins(found.origins)}, and the user did not type these words"
    return {
        "text": presentable(found.text),
        "outcome": "proposed",
        "note": f"the user must review it: {why}. `perdure review` shows it",
    }


def _remembered(memory: Memory, text: str, replaces: str, *, kind: str, scope: str) -> Answer:
    """Store a statement; return what it was merged with, what it replaced and what it doubts."""
    project = "" if scope == "person" else None
    old = (memory.read(replaces).uri,) if replaces else ()
    done = memory.remember(text, kind=kind, project=project, replaces=old)
    more = {
        "merged_with": done.merged_with,
        "replaced": list(done.replaced),
        "may_be_outdated": list(done.doubted),
        "lifted": done.lifted,
    }
    return {
        "uri": done.uri,
        "text": presentable(done.text),
        "outcome": done.outcome,
        **{name: value for name, value in more.items() if value},
    }


def _save(  # noqa: PLR0913 - a name for each
    memory: Memory,
    text: str,
    old: ContextNode | None,
    *,
    kind: str,
    scope: str,
    category: str,
    slug: str,
    mask_secrets: bool,
) -> SaveResult:
    """Save a text as a memory or, if there is an `old` one, as its next version."""
    if category:
        return memory.save(text, category=category, slug=slug, mask_secrets=mask_secrets)
    metadata: dict[str, JSON] = {"kind": kind, "scope": scope}
    category = KINDS[kind]
    if old is not None:
        category, _, slug = memory.deletable(old.uri).name.partition("/")
        if not old.uri.endswith(f"/memories/{category}/{slug}"):
            raise InvalidValueError(f"{old.uri!a} is not a memory. Fix: leave `replaces` out.")
    return memory.save(
        text,
        category=category,
        slug=slug,
        metadata=metadata,
        mask_secrets=mask_secrets,
        replace_learned=old is not None,
    )


def _gist(node: ContextNode) -> Answer:
    return {"uri": node.uri, "text": presentable(shortened(gist(node), _LONGEST_GIST))}


def _hit(found: Hit) -> Answer:
    return {
        "uri": found.uri,
        "title": presentable(found.title),
        "text": presentable(found.snippet),
        **picked(found, "where category"),
        "date": _day(found.date),
        **picked(found, "holds validity"),
        "speaker": presentable(found.speaker),
        "session_id": visible(found.session_id),
        "cid": found.cid,
        "score": round(found.score, 4),
    }


# ---------------------------------------------------------------- nodes
def _part(node: ContextNode, offset: int, budget: int) -> Answer:
    """Return as much of a text as fits, from an offset on; it ends at a line break if possible."""
    text = presentable(node.content)
    if offset and offset >= len(text):
        raise InvalidValueError(
            f"{node.uri!a} has {len(text):,} characters. Fix: take an offset below that."
        )

    def part(length: int) -> Answer:
        end = offset + length
        return {
            "notice": INTRODUCTION,
            "uri": node.uri,
            "title": shortened(presentable(node.title), _LONGEST_GIST),
            "category": node.category,
            "text": text[offset:end],
            **picked(node, "version created_at updated_at"),
            "offset": offset,
            "next_offset": end if end < len(text) else None,
            "problems": [shortened(visible(each), _LONGEST_GIST) for each in node.problems],
        }

    length = longest(part, min(len(text) - offset, budget * _TOKEN_LETTERS), budget)
    if offset + length < len(text):
        length = (text.rfind("\n", offset, offset + length) + 1 - offset) or length
    return part(length)


def _entry(found: Entry, session: SessionInfo | None) -> Answer:
    node = found.node
    if session is not None:
        size = f"{counted(session.messages, 'message')}, {sized(session.bytes)}"
        says = f"{presentable(shortened(session.title, _LONGEST_GIST))} ({size})"
    elif found.is_folder:
        says = counted(len(found.below), "entry")
    elif node is None:
        says = "unreadable; the user should run `perdure repair`"
    else:
        says = presentable(shortened(gist(node), _LONGEST_GIST))
    changed = node.date if node else session.date if session else None
    return {
        "uri": found.uri,
        "name": found.name,
        "kind": "folder" if found.is_folder else "memory",
        "says": says,
        "updated_at": utc_time(changed) if changed else "",
        "version": node.version if node else 0,
        "project": node.project if node else session.project if session else "",
    }


def _version(version: Version) -> Answer:
    return {
        "version": version.number,
        "time": utc_time(version.time),
        "actor": visible(version.actor),
        "origin": visible(version.origin),
        "reason": presentable(version.reason),
        "cid": "" if version.cid is None else str(version.cid),
    }


# ---------------------------------------------------------------- provenance
def _explained(found: Provenance, statements: Sequence[Answer]) -> Answer:
    return {
        "notice": INTRODUCTION,
        "uri": found.uri,
        "title": presentable(found.title),
        **picked(found, "kind version holds"),
        "source": visible(found.source),
        "statements": statements,
        "superseded": [
            {
                "uri": each.uri,
                "text": presentable(each.text),
                "reason": presentable(each.reason),
                "valid_until": _day(each.valid_until),
            }
            for each in found.superseded[:_MOST_FORMER]
        ],
        "superseded_by": [each.uri for each in found.superseded_by[:_MOST_FORMER]],
        "left_out": len(found.statements) - len(statements),
    }


def _statement(claim: StatementProvenance) -> Answer:
    quotes = [
        {
            "session": visible(each.session),
            **({"origins": list(each.origins)} if each.origins else {}),
            "message": quote.message,
            "speaker": presentable(each.speaker),
            "quote": presentable(quote.text),
            "holds": quote.holds,
            "trouble": visible(quote.trouble),
        }
        for each in claim.evidence
        for quote in each.quotes
    ]
    return {
        "text": presentable(claim.text),
        "origin": "learned" if claim.extracted else "written",
        **({"by": claim.by} if claim.by else {}),
        "since": _day(claim.since),
        **({"date": _day(claim.when)} if claim.when and claim.confidence is None else {}),
        **picked(claim, "confidence holds"),
        **_checked(claim),
        "evidence": quotes[:_MOST_EVIDENCE],
        "out_of_reach": claim.out_of_reach,
    }


def _checked(claim: StatementProvenance) -> Answer:
    if claim.verdict is None:
        return {}
    notes = {"note": claim.verdict.note, "held_back": claim.verdict.held_back}
    return {
        "state": claim.verdict.state,
        **{name: presentable(value) for name, value in notes.items() if value},
    }


def _day(moment: date | None) -> str:
    return moment.isoformat()[:10] if moment else ""


# ---------------------------------------------------------------- budgets
def fits(answer: Answer, budget: int) -> bool:
    """Whether the JSON of an answer fits into the budget, by an estimate that errs upwards."""
    return tokens_in(json.dumps(answer)) <= budget


def with_most(
    make: Callable[[Sequence[Answer]], Answer], items: Sequence[Answer], budget: int
) -> Answer:
    """Return the answer with the items that fit, in order; one that does not fit is skipped."""
    answer, chosen = make([]), list[Answer]()
    for item in items:
        more = make([*chosen, item])
        if fits(more, budget):
            answer, chosen = more, [*chosen, item]
    return answer


def longest(make: Callable[[int], Answer], most: int, budget: int) -> int:
    """Return the greatest length, from 1 to `most`, whose answer fits; 1 if none does."""
    if most <= 1 or fits(make(most), budget):
        return most
    least = 1
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(make(middle), budget) else (least, middle - 1)
    return least
