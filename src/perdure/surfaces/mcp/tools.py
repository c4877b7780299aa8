"""The tools: each calls a verb of `Memory`, and returns its answer within a budget of tokens."""

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
    Pending,
    Provenance,
    RecallResult,
    Saved,
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
from perdure.harness.projects import identity_at
from perdure.model import RequestContext
from perdure.model.speech import marked
from perdure.model.trust import FIXES, told_origins
from perdure.model.uri import KINDS
from perdure.model.values import JSON, shortened, visible
from perdure.surfaces import out
from perdure.surfaces.mcp.server import without_paths
from perdure.surfaces.telling import counted, gist, picked, sized, utc_time

NOTHING = "Memory has nothing to say to that."
_FORGOTTEN = HintKind.FORGOTTEN
_MOST_NOTES = 3
_LONGEST_NOTE = 160
_LONGEST_GIST = 120
_MOST_EVIDENCE = 5
_MOST_FORMER = 5
_LETTERS = 8
"""No token of a text that people read has more."""
_HIT_TOKENS = 40
"""What a hit takes in the JSON beside its text."""

_FACTS, _OF_FACTS = frozenset({"fact", "task"}), frozenset({"", "entity", "event", "case"})
"""The kinds and categories of what states no order."""

Answer = dict[str, Any]


class Tools:
    """The tools of one memory. The first call opens it; if that fails, the next one tries again.

    Many threads may call at once.
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
        """Return the answer of a tool as JSON, and as the text that a model reads.

        Clients show their model one of the two. So neither has anything that the other lacks.
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
        return with_most(lambda kept: self._recalled(result, kept), hits, budget_tokens)

    def _recalled(self, result: RecallResult, hits: Sequence[Answer]) -> Answer:
        notes = list(self._notes(result))
        kept_back = "".join(f" {each.text}." for each in result.hints if each.kind is _FORGOTTEN)
        text = marked(f"{result.context}\n{kept_back}".strip()) if result.context else NOTHING
        return {
            "text": text if result.context else f"{NOTHING}{kept_back}",
            "hits": hits,
            **picked(result, "left_out index_lag"),
            **({"notes": notes} if notes else {}),
        }

    def _notes(self, result: RecallResult) -> Iterator[str]:
        """Yield what else a model should know; that no model is installed is for people."""
        passed_over = {HintKind.NO_MODEL, _FORGOTTEN}
        hints = [hint.text for hint in result.hints if hint.kind not in passed_over]
        for text in hints[:_MOST_NOTES]:
            yield shortened(without_paths(text, self._environ), _LONGEST_NOTE)

    def _remember(self, memory: Memory, *, text: str, replaces: str, **more: Any) -> Answer:  # noqa: ANN401
        text = text.strip("\n")
        is_fact = more["kind"] in _FACTS and more["category"] in _OF_FACTS and not replaces
        origins = foreign_origins(self._home, self._folder, text, is_fact=is_fact)
        if origins:
            project = "" if more["scope"] == "person" else None
            return _proposed(memory.propose(text, origins=origins, project=project))
        if not (more["category"] or more["slug"] or more["mask_secrets"]):
            return _kept(memory, text, replaces, kind=more["kind"], scope=more["scope"])
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
        of = memory.list(folder, archived=archived, projects="own" if memory.project else "all")
        found = sorted(of, key=lambda each: each.uri)
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
        what = memory.meant(uri)
        is_said = not delete and ("#" in what or len(what.split()) > 1)
        found = None if is_said else memory.deletable(what)
        done = ForgetReport()
        with suppress(BrokenNodeError) if delete else nullcontext():
            done = memory.forget(what, reason=reason)
        hidden = {name: count for name, count in asdict(done.hidden).items() if count}
        more = {"hidden": hidden, "also": list(done.also), "says_it_too": list(done.untouched)}
        told = {name: value for name, value in more.items() if value}
        if found is None:
            changed, undo = bool(done.hidden.sessions or done.also), "perdure remember TEXT"
            return {"uri": what, "state": "hidden", "changed": changed, "undo": undo, **told}
        if delete:
            memory.delete(found.uri, reason=reason)
            undo = f"perdure read {found.name} --at MOMENT shows what it said"
            return {"uri": found.uri, "state": "deleted", "changed": True, "undo": undo, **told}
        undo, changed = f"perdure unarchive {found.name}", bool(done.archived)
        return {"uri": found.uri, "state": "archived", "changed": changed, "undo": undo, **told}

    def _history(self, memory: Memory, *, uri: str, limit: int) -> Answer:
        found, place = memory.history(uri), memory.uri(uri)
        newest = [_version(each) for each in reversed(found[-limit:])]
        return {"notice": INTRODUCTION, "uri": place, "total": len(found), "versions": newest}

    def _why(self, memory: Memory, *, uri: str, budget_tokens: int) -> Answer:
        found = memory.why(uri)
        statements = [_statement(each) for each in found.statements]
        return with_most(lambda kept: _explained(found, kept), statements, budget_tokens)


def _proposed(found: Pending) -> Answer:
    why = f"this session {told_origins(found.origins)}, and the user did not type these words"
    return {
        "text": presentable(found.text),
        "outcome": "proposed",
        "note": f"kept for the user's review: {why}. `perdure review` shows it",
    }


def _kept(memory: Memory, text: str, replaces: str, *, kind: str, scope: str) -> Answer:
    """Keep a statement; say what it is one with, what it replaced, and what it casts doubt on."""
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
) -> Saved:
    """Save what a model or a program wants kept; in place of `old`, it becomes its next version."""
    if category:
        return memory.save(text, category=category, slug=slug, mask_secrets=mask_secrets)
    told: dict[str, JSON] = {"kind": kind, "scope": scope}
    category = KINDS[kind]
    if old is not None:
        category, _, slug = memory.deletable(old.uri).name.partition("/")
        if not old.uri.endswith(f"/memories/{category}/{slug}"):
            raise InvalidValueError(f"{old.uri!a} is not a memory. Fix: leave `replaces` out.")
    return memory.save(
        text,
        category=category,
        slug=slug,
        metadata=told,
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
    """Return as much of a text, from an offset on, as fits; it ends with a line, if one does."""
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

    length = longest(part, min(len(text) - offset, budget * _LETTERS), budget)
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
        says = "it can't be read; the user should run `perdure repair`"
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
            "session": visible(said.session),
            **({"origins": list(said.origins)} if said.origins else {}),
            "message": quote.message,
            "speaker": presentable(said.speaker),
            "quote": presentable(quote.text),
            "holds": quote.holds,
            "trouble": visible(quote.trouble),
        }
        for said in claim.evidence
        for quote in said.quotes
    ]
    return {
        "text": presentable(claim.text),
        "origin": "said" if claim.extracted else "written",
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
    told = {"note": claim.verdict.note, "held_back": claim.verdict.held_back}
    return {
        "state": claim.verdict.state,
        **{name: presentable(value) for name, value in told.items() if value},
    }


def _day(moment: date | None) -> str:
    return moment.isoformat()[:10] if moment else ""


# ---------------------------------------------------------------- budgets
def fits(answer: Answer, budget: int) -> bool:
    """Whether an answer has no more tokens than that, as JSON; they are counted generously."""
    return tokens_in(json.dumps(answer)) <= budget


def with_most(
    make: Callable[[Sequence[Answer]], Answer], items: Sequence[Answer], budget: int
) -> Answer:
    """Return the answer with as many items as fit, in their order; a smaller one has its chance."""
    answer, kept = make([]), list[Answer]()
    for item in items:
        more = make([*kept, item])
        if fits(more, budget):
            answer, kept = more, [*kept, item]
    return answer


def longest(make: Callable[[int], Answer], most: int, budget: int) -> int:
    """Return the greatest length, of 1 to `most`, whose answer fits; 1 if none does."""
    if most <= 1 or fits(make(most), budget):
        return most
    least = 1
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(make(middle), budget) else (least, middle - 1)
    return least
