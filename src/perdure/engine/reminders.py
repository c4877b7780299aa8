"""Reminders: sentences about what a tool call uses, and fixes of a failed command."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from perdure.dataclass import dataclass, field, replace
from perdure.engine.briefing import (
    LEAST,
    STATED,
    BriefingItem,
    ProjectScope,
    filters_for,
    gathered,
    short_id,
)
from perdure.engine.directives import LONGEST, Directive, directive_in, follows, matches
from perdure.engine.learn.evidence import ENFORCED, enforced_in
from perdure.engine.learn.statements import cid_of, statements
from perdure.engine.recall.result import Confirmation, tokens_in
from perdure.engine.tool_calls import (
    AgentAction,
    fix_name,
    fix_text,
    flags_in,
    may_suggest,
    program_of,
    signature,
)
from perdure.errors import InvalidValueError
from perdure.model import ContextNode, SeedHit
from perdure.model.uri import KIND_TITLES, kind_of
from perdure.model.values import JSON, shortened
from perdure.patterns import later
from perdure.safety.validation import presentable_line
from perdure.times import read_time

MOST_TOKENS = 60
_LOOKED_AT = 60
"""Read at most this many notes that name what is used, the newest first."""
_LABELS = {
    "rule": "Rule",
    "decision": "Decided",
    "rejected": "Rejected",
    "command": "Command",
    "preference": "Preference",
}
_SILENT = frozenset({"task"})


@dataclass(frozen=True, slots=True)
class Reminder:
    text: str
    kind: str
    matched: str
    """The name that the tool call uses."""
    uri: str
    message: int | None = None
    """The message of the session, from 0; None for a memory."""
    date: datetime | None = None
    breaks: bool = False
    """Whether the sentence forbids it."""
    enforced: bool = False
    """Whether the user wants such a call to be refused."""
    note: str = ""
    """What changed in the checkout since; empty for nothing."""

    @property
    def id(self) -> str:
        """A short name that `read` takes."""
        return short_id(self.uri, self.message)

    @property
    def line(self) -> str:
        """The line that an agent is shown: at most 60 tokens."""
        label = "User" if self.message is not None else _LABELS.get(self.kind, "Note")
        when = f" ({self.date.date().isoformat()})" if self.date else ""
        tail = f" ({presentable_line(self.note)})" if self.note else ""
        return fitted(f"{label}{when}: ", self.text, f"{tail} {self.id}")


def fitted(head: str, text: str, tail: str, most: int = MOST_TOKENS) -> str:
    """Return a line of at most `most` tokens; shortens the text in the middle."""
    size = len(text)
    line = f"{head}{presentable_line(text)}{tail}"
    while tokens_in(line) > most and size > 1:
        size = size * 9 // 10
        line = f"{head}{presentable_line(shortened(text, size))}{tail}"
    return line


def reminder_of(item: BriefingItem) -> Reminder:
    """Return the reminder of a sentence that shares words with a tool call."""
    place = item.uri, item.message, item.date
    return Reminder(item.bare, item.kind, "the same words", *place, note=item.verdict.note)


def reminders(
    scope: ProjectScope, action: AgentAction, *, known: Container[str] = ()
) -> tuple[Reminder, ...]:
    """Return the sentences about what a tool call uses, as `Memory.reminders` describes it."""
    hits = scope.noted(_LOOKED_AT, action.keys)
    noted = gathered(hits, scope.names, datetime.now(UTC), "directed")
    confirming = scope.confirming()
    found: list[Reminder] = []
    allowed: list[datetime] = []
    for item in noted.current():
        given = _directive(item)
        each, allows = _reminder(item, given, action), follows(given, action)
        hit = noted.hits[item.uri, item.message]
        stored = confirming.confirmed(hit) if each or allows else None
        if stored is not None and allows and item.date:
            allowed.append(item.date)
        if stored is not None and each is not None:
            may_block = each.breaks and is_unconditional(item.bare, action)
            found.append(replace(each, enforced=may_block and _is_enforced(item, stored.node)))
    return tuple(sorted(_speaking(found, allowed, known), key=_order))


def _directive(item: BriefingItem) -> Directive:
    """Return the directive of an item; empty for a task, or if it may be outdated."""
    is_doubted = item.message is None and item.score <= LEAST
    if is_doubted or item.kind in _SILENT:
        return Directive()
    return directive_in(item.bare, item.kind if item.score >= STATED else "")


def _speaking(
    found: Iterable[Reminder], allowed: Sequence[datetime], known: Container[str]
) -> Iterator[Reminder]:
    for each in found:
        is_old = each.date is not None and any(each.date < date for date in allowed)
        if not is_old and (each.enforced or each.text not in known):
            yield each


def _reminder(item: BriefingItem, given: Directive, action: AgentAction) -> Reminder | None:
    found = matches(given, action)
    if found is None or not _has_flags(item.bare, action):
        return None
    place = (item.uri, item.message, item.date)
    return Reminder(item.bare, item.kind, found.name, *place, found.breaks)


_FLAG = later(r"(?<![\w-])--?[A-Za-z][\w-]*")
_WITHOUT = later(r"\bwithout\b", re.IGNORECASE)
_CONDITION = later(
    r"\b(?:unless|except|if|when|before|after|until|during|while|only|without)\b", re.IGNORECASE
)
_TARGET = later(r"\b(?:to|on|onto|into|from)\s+(?:the\s+)?[`'\"]?([\w./-]*\w)", re.IGNORECASE)


def _has_flags(text: str, action: AgentAction) -> bool:
    """Whether a command has the flags that a sentence names, and lacks those it demands."""
    if not action.commands:
        return True
    used = frozenset().union(*(each.flags for each in action.commands))
    named, *wanted = _WITHOUT.split(text, maxsplit=1)
    demanded = flags_in(_FLAG.findall(wanted[0])) if wanted else frozenset()
    return flags_in(_FLAG.findall(named)) <= used and not (demanded and demanded <= used)


def is_unconditional(text: str, action: AgentAction) -> bool:
    """Whether a sentence forbids a call without a condition, as far as its words show.

    "Never push to main" forbids only a call that names `main`.
    """
    if _CONDITION.search(text):
        return False
    words = {word.casefold() for each in action.commands for word in each.words}
    words |= {segment.casefold() for path in action.written for segment in path}
    targets = (each.casefold().rstrip("/") for each in _TARGET.findall(text))
    return all(set(each.split("/")) & words or each in words for each in targets)


def _is_enforced(item: BriefingItem, node: ContextNode) -> bool:
    if item.message is not None:
        return False
    cids = enforced_in(node)
    return any(
        cid_of(each.text) in cids and shortened(" ".join(each.text.split()), LONGEST) == item.bare
        for each in (statements(node.content) if cids else ())
    )


@dataclass(frozen=True, slots=True)
class Enforcement:
    uri: str
    statements: tuple[str, ...]
    can_block: bool
    """Whether one of them forbids what it names."""
    metadata: dict[str, JSON] = field(default_factory=dict, repr=False)


def _kind_of(node: ContextNode) -> str:
    kind = node.metadata.get("kind")
    return kind if isinstance(kind, str) and kind in KIND_TITLES else kind_of(node.category)


def enforce(node: ContextNode, text: str, *, enforced: bool) -> Enforcement:
    """Return the enforced statements of a node after all, or the one with `text`, are set."""
    stated = [each.text for each in statements(node.content)]
    chosen = [each for each in stated if not text or cid_of(each) == cid_of(text)]
    if not chosen:
        raise InvalidValueError(
            f"{node.uri!a} does not state {text[:80]!a}. Fix: quote one of its statements."
        )
    changed = {cid_of(each) for each in chosen}
    before = enforced_in(node)
    after = before | changed if enforced else before - changed
    remaining = tuple(each for each in stated if cid_of(each) in after)
    can_block = any(directive_in(each, _kind_of(node)).wrong for each in remaining)
    cids: list[JSON] = [cid_of(each) for each in remaining]
    return Enforcement(node.uri, remaining, can_block, {ENFORCED: cids or None})


def _order(each: Reminder) -> tuple[bool, bool, bool, float, str]:
    age = -each.date.timestamp() if each.date else 0.0
    return not each.enforced, not each.breaks, each.message is not None, age, each.text


# ---------------------------------------------------------------- after a failure
@dataclass(frozen=True, slots=True)
class Fix:
    command: str
    signature: str
    uri: str
    message: int
    """The index of the message of the session nearest to it."""
    date: datetime | None = None

    @property
    def id(self) -> str:
        return short_id(self.uri, self.message)

    @property
    def line(self) -> str:
        when = f" ({self.date.date().isoformat()})" if self.date else ""
        return f"Seen before{when}: {fix_text(self.command)} {self.id}"


def fix_for(scope: ProjectScope, command: str, output: str) -> Fix | None:
    """Return the command that worked after the same failure, as `Memory.fix_for` describes it."""
    name = signature(output)
    if not name:
        return None
    names, index = tuple(scope.names), scope.index
    confirming = Confirmation(scope.reader, scope.ctx, names)
    filters = filters_for(index, scope.ctx, names)
    for hit in index.briefing_hits(filters, _LOOKED_AT, [fix_name(name)]):
        if confirming.confirmed(hit) is not None and (found := _fix_in(hit, name, command)):
            return found
    return None


def _fix_in(hit: SeedHit, name: str, command: str) -> Fix | None:
    rows, message = hit.payload.get("fixes"), hit.payload.get("message")
    if not isinstance(message, int) or not isinstance(rows, list | tuple):
        return None
    for row in rows:
        match row:
            case [str() as given, str() as program, str() as fix] if given == name:
                found = Fix(fix, name, hit.uri, message, read_time(hit.payload.get("date")))
                is_other = fix != " ".join(command.split()) and program == program_of(command)
                if is_other and _is_presentable(found):
                    return found
    return None


def _is_presentable(fix: Fix) -> bool:
    is_plain = presentable_line(fix.command) == fix.command and "`" not in fix.command
    return is_plain and may_suggest(fix.command) and tokens_in(fix.line) <= MOST_TOKENS
