"""The briefing: what an agent gets at the start of a session, in few tokens, rules first."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.instruction_lines import ALIKE, InstructionFile, InstructionLine, Instructions
from perdure.engine.recall.result import Confirmation, Hint, tokens_in
from perdure.errors import InvalidValueError
from perdure.index.contract import Filters, NodeIndex
from perdure.model import ContextNode, RequestContext, SeedHit, Uri
from perdure.model.anchors import (
    UNCHECKED,
    AnchoredStatement,
    Anchors,
    AnchorStatus,
    anchors_of,
    hedged,
    session_anchors,
)
from perdure.model.node import ACCOUNT, NOTED, OWNER_SPACE, PROJECT
from perdure.model.transcript import parse
from perdure.model.uri import FIRST_NODE, KIND_TITLES, OF_THE_PERSON
from perdure.model.values import JSON, comparison_key, shortened
from perdure.times import read_time

if TYPE_CHECKING:
    from perdure.engine.tool_calls import AgentAction
    from perdure.model.anchors import AnchorChecker

BUDGET = 294
SECONDS = 0.02
"""The time limit for checking the lines of one briefing against the checkout."""
_LOOKED_AT = 600
"""Read at most this many records of a project, the newest first."""
_LOOKED_AT_FOR_OCCASIONS = 60
"""Read at most this many notes with a word of the occasion, the newest first."""
_REPEATED = frozenset({"rule", "rejected", "preference"})
_HALF_LIFE = 180.0
"""Days after which the score of a sentence is halved."""
_SHORTEST = 8
"""Tokens of the shortest line that is useful."""
LEAST = 0.33
"""The least score of a sentence of a session; most sentences below it do not last."""
_BREVITY = 0.4
"""The exponent of the number of tokens that the score of a line is divided by."""
STATED = 2.0
"""The score of a statement that was stored on purpose; a rule gives less, a session least."""
_ORDER = tuple(KIND_TITLES)
_HEAD = "From earlier sessions (`read ~id` for more):"
_MOST_CONTRADICTIONS = 2
_MOST_COMPARED = 150
"""Compare at most this many items with instruction files, those with the best scores."""
_LONGEST_QUOTE = 80
LONGEST_END = 100
"""Characters of the last request of the user."""
_DAY_SECONDS = 86_400
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class BriefingItem:
    kind: str
    text: str
    uri: str
    date: datetime | None
    message: int | None = None
    """The message of the session, from 0; None for a memory."""
    score: float = STATED
    pinned: bool = False
    evidence: tuple[tuple[str, int], ...] = ()
    """The messages that it rests on, each as session id and index."""
    quotes: tuple[str, ...] = ()
    """The quotes from these messages, of a statement."""
    bare: str = ""
    """The text without the days at its end, for comparisons."""
    confirmed: datetime | None = None
    """The time of its message, or when its memory was last written."""
    anchors: tuple[Anchors, ...] = ()
    """The files and branches that it names, each time that it was stated."""
    verdict: AnchorStatus = UNCHECKED
    """Whether it still holds in the folder of the briefing."""
    contradicts: InstructionLine | None = None
    """The older line of an instruction file that it contradicts."""

    @property
    def id(self) -> str:
        """A short name that `read` takes."""
        return short_id(self.uri, self.message)


@dataclass(frozen=True, slots=True)
class Briefing:
    items: tuple[BriefingItem, ...]
    text: str
    """Markdown for a prompt; empty without items."""
    tokens: int
    last: str = ""
    """The last request of the user, if the text has it."""
    end: BriefingItem | None = None
    """The line of the last request."""
    memories: int = 0
    """How many memories were considered, of the project and of the person."""
    hints: tuple[Hint, ...] = ()
    """Why edits made outside Perdure may be missing."""


class _Former(NamedTuple):
    """The words of a statement that ended; an older sentence with them is left out."""

    until: datetime
    words: frozenset[str]


_MOST_CHECKED = 100
"""Check at most this many items, far more than fit."""
_MOST_SESSIONS = 8
_MOST_ENDS = 4
"""Consider at most this many sessions for the last request."""


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The memories of a project, by its names, and of the person, for one caller."""

    reader: NodeReader
    index: NodeIndex
    ctx: RequestContext
    names: Sequence[str]
    checkout: "AnchorChecker | None" = None
    """The working tree that statements are checked against."""

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.names, "")))

    def noted(self, most: int, names: Collection[str] | None = None) -> list[SeedHit]:
        return self.index.briefing_hits(
            filters_for(self.index, self.ctx, self.projects), most, names
        )

    def confirming(self) -> Confirmation:
        return Confirmation(self.reader, self.ctx, self.projects)

    # ------------------------------------------------------------ as `Memory` describes them
    def briefing(  # noqa: PLR0913 - as `Memory.briefing`
        self,
        *,
        known: str | Sequence[InstructionFile] = "",
        kinds: Collection[str] = (),
        budget_tokens: int = BUDGET,
        seconds: float = SECONDS,
        now: datetime | None = None,
        leaves_out: Callable[[BriefingItem], bool] = lambda _item: False,
    ) -> Briefing:
        if unknown := {*kinds} - {*_ORDER}:
            raise InvalidValueError(
                f"{min(unknown)[:80]!a} is not a kind. Fix: use some of {', '.join(_ORDER)}."
            )
        now = now or datetime.now(UTC)
        noted = gathered(self.noted(_LOOKED_AT), self.names, now)
        confirming = self.confirming()

        def holds(uri: str, message: int | None) -> bool:
            return confirming.confirmed(noted.hits[uri, message]) is not None

        instructions = Instructions(known)
        ends = [] if kinds else sorted(noted.ends, key=_newest)[:_MOST_ENDS]
        current = [
            item
            for item in noted.current()
            if (not kinds or item.kind in kinds) and not leaves_out(item)
        ]
        if not kinds:
            current = _with_contradictions(current, instructions)
        ranked = sorted(current, key=_rank)
        if self.checkout is not None:
            first = list(_with_origins([*ends, *ranked[:_MOST_CHECKED]], confirming))
            shown = list(_checked(first, self.checkout, seconds))
            ends = [each for each in shown if not each.bare]
            ranked = [*(each for each in shown if each.bare), *ranked[_MOST_CHECKED:]]
        end = next((each for each in ends if holds(each.uri, each.message)), None)
        last = _last(end, instructions, now)
        if tokens_in(last) > budget_tokens // 4:  # lasting lines come first
            last = ""
        chosen = _fitting(ranked, instructions, budget_tokens - tokens_in(last), now, holds)
        text = _written(chosen, last, now)
        memories = sum(message is None for _, message in noted.hits)
        briefing = Briefing(tuple(chosen), text, tokens_in(text), memories=memories)
        if end is None or not last:
            return briefing
        shown_end = replace(end, text=shortened(end.text, LONGEST_END))
        return replace(briefing, last=end.text, end=shown_end)

    def checked(
        self, lines: Iterable[tuple[str, int | None, str]], *, seconds: float = SECONDS
    ) -> tuple[AnchorStatus, ...]:
        from perdure.engine.learn.statements import verdicts_on  # noqa: PLC0415 - only with lines

        return verdicts_on(list(lines), self.checkout, self.reader, self.ctx, seconds)

    def repeated(
        self, occasion: "AgentAction | str", *, session: str = ""
    ) -> tuple[BriefingItem, ...]:
        from perdure.engine.occasions import of_action, of_prompt  # noqa: PLC0415 - as above

        asked = of_prompt(occasion) if isinstance(occasion, str) else of_action(occasion)
        wanted, fits = asked
        hits = self.noted(_LOOKED_AT_FOR_OCCASIONS, wanted) if wanted else []
        noted = gathered(hits, self.names, datetime.now(UTC), "occasions")
        confirming = self.confirming()
        found = [
            item
            for item in noted.current()
            if item.kind in _REPEATED
            and fits(item.bare)
            and not (session and {session} == {name for name, _ in item.evidence})
            and confirming.confirmed(noted.hits[item.uri, item.message]) is not None
        ]
        newest = sorted(found, key=_by_age)
        first = {(each.uri, each.message): each for each in reversed(newest)}
        newest.sort(key=lambda each: first[each.uri, each.message] is not each)
        verdicts = self.checked([(each.uri, each.message, each.bare) for each in newest])
        pairs = zip(newest, verdicts, strict=True)
        return tuple(replace(each, verdict=one) for each, one in pairs if not one.held_back)

    def learned(self) -> Iterator[ContextNode]:
        """Yield the memories of the project."""
        names = tuple(self.names)
        confirming = Confirmation(self.reader, self.ctx, names)
        for hit in self.index.briefing_hits(filters_for(self.index, self.ctx, names), _MOST_NAMED):
            stored = None if "message" in hit.payload else confirming.confirmed(hit)
            if stored is not None:
                yield stored.node


class BriefingNotes(NamedTuple):
    """The records of a project for a briefing, before the nodes confirm them."""

    found: "list[BriefingItem]"
    former: list[_Former]
    ends: "list[BriefingItem]"
    """The last requests of sessions; their `bare` is empty."""
    hits: dict[tuple[str, int | None], SeedHit]

    def current(self) -> "Iterator[BriefingItem]":
        """Yield the items that have not ended, as far as memory knows."""
        quotes = (quote for item in self.found for quote in item.quotes)
        former = [*self.former, *(_Former(_NEVER, _words(quote)) for quote in quotes)]
        return (item for item in self.found if not _has_ended(item, former))


def gathered(
    hits: Iterable[SeedHit], names: Sequence[str], now: datetime, field: str = "sentences"
) -> BriefingNotes:
    """Return the notes of records; of sessions, the sentences in one field of the payload."""
    noted = BriefingNotes([], [], [], {})
    for hit in hits:
        is_general = bool(names) and not hit.payload.get(NOTED)
        message = hit.payload.get("message")
        if not isinstance(message, int):
            noted.found.extend(_memory_items(hit, now, is_general=is_general))
            noted.former.extend(_former(hit, now))
            noted.hits[hit.uri, None] = hit
        elif not is_general:
            noted.found.extend(_session_items(hit, message, now, field))
            noted.ends.extend(_ended(hit, message))
            noted.hits[hit.uri, message] = hit
    return noted


def filters_for(
    index: NodeIndex, ctx: RequestContext, projects: tuple[str, ...] | None = None
) -> Filters:
    spaces = sorted(space for space in index.owner_spaces(ctx.account_id) if ctx.reaches(space))
    owners = tuple(spaces) or f"user:{ctx.user_id}"
    within = {} if projects is None else {PROJECT: projects}
    return {ACCOUNT: ctx.account_id, OWNER_SPACE: owners, **within}


def _session_items(hit: SeedHit, message: int, now: datetime, field: str) -> Iterator[BriefingItem]:
    date = read_time(hit.payload.get("date"))
    evidence = ((Uri.parse(hit.uri).session, message),)
    anchors, least = _anchors([hit.payload.get("origin")]), LEAST if field == "sentences" else 0.0
    for text, kind, score in sentence_rows(hit.payload.get(field), least):
        worth = score * _recency(date, now)
        item = BriefingItem(kind, text, hit.uri, date, message, worth, evidence=evidence)
        yield replace(item, bare=text, confirmed=date, anchors=anchors)


def _recency(date: datetime | None, now: datetime) -> float:
    age = max(0.0, (now - date).total_seconds() / _DAY_SECONDS) if date else 0.0
    return float(0.5 ** (age / _HALF_LIFE))


def sentence_rows(given: JSON, least: float = LEAST) -> Iterator[tuple[str, str, float]]:
    """Yield the rows of sentences with at least this score: text, kind and score."""
    for row in given if isinstance(given, list | tuple) else ():
        match row:
            case [str() as text, str() as kind, float() | int() as score] if score >= least:
                yield text, kind, score


def _ended(hit: SeedHit, message: int) -> Iterator[BriefingItem]:
    date, asked = read_time(hit.payload.get("date")), hit.payload.get("ended")
    if isinstance(asked, str) and date is not None:
        anchors = _anchors([hit.payload.get("origin")])
        yield BriefingItem("task", asked, hit.uri, date, message, anchors=anchors)


def _newest(item: BriefingItem) -> tuple[float, str, str, int]:
    return -item.date.timestamp() if item.date else 0.0, item.text, item.uri, item.message or 0


def _memory_items(hit: SeedHit, now: datetime, *, is_general: bool) -> Iterator[BriefingItem]:
    """Yield the valid statements of a memory; those of a general one if stated or personal."""
    is_personal = hit.payload.get("category") in OF_THE_PERSON
    for row in _lines(hit):
        until, likely = read_time(row.get("until")), row.get("likely")
        is_learned = isinstance(likely, float | int)
        if (until is not None and until <= now) or (is_learned and is_general and not is_personal):
            continue
        date, quotes = read_time(row.get("date")), row.get("quotes")
        score = 1 + likely * _recency(date, now) if isinstance(likely, float | int) else STATED
        yield BriefingItem(
            str(row["kind"]),
            str(row["text"]),
            hit.uri,
            date,
            None,
            LEAST if row.get("doubted") else score,
            bool(row.get("pinned")),
            _places(row.get("evidence")),
            tuple(map(str, quotes)) if isinstance(quotes, list | tuple) else (),
            str(row["bare"]),
            read_time(hit.payload.get("updated_at")),
            _anchors(row.get("anchors")),
        )


def _anchors(given: JSON) -> tuple[Anchors, ...]:
    rows = given if isinstance(given, list | tuple) else ()
    return tuple(filter(None, map(anchors_of, rows)))


def _with_origins(
    items: Iterable[BriefingItem], confirming: Confirmation
) -> Iterator[BriefingItem]:
    """Yield items; a sentence of a later node of a session gets the anchors of its first node."""
    known: dict[str, tuple[Anchors, ...]] = {}
    for item in items:
        place = Uri.parse(item.uri)
        if item.anchors or not place.session or place.name == FIRST_NODE:
            yield item
            continue
        if place.session not in known and len(known) < _MOST_SESSIONS:
            first = confirming.stored(str(Uri(place.account, (*place.path[:2], FIRST_NODE))))
            known[place.session] = session_anchors(first.node.metadata) if first else ()
        yield replace(item, anchors=known.get(place.session, ()))


def _checked(
    items: Sequence[BriefingItem], checkout: "AnchorChecker", seconds: float
) -> Iterator[BriefingItem]:
    """Yield the items that hold in the folder, with verdicts; requests on lost branches stay."""
    stated = [AnchoredStatement(each.bare, each.kind, each.date, each.anchors) for each in items]
    for each, verdict in zip(items, checkout.check(stated, seconds), strict=True):
        if not verdict.held_back or (verdict.is_abandoned and not each.bare):
            yield replace(each, verdict=verdict)


def _lines(hit: SeedHit) -> Iterator[Mapping[str, JSON]]:
    given = hit.payload.get("stated")
    for row in given if isinstance(given, list | tuple) else ():
        if isinstance(row, Mapping):
            yield row


def _places(given: JSON) -> tuple[tuple[str, int], ...]:
    rows = given if isinstance(given, list | tuple) else ()
    return tuple((str(row[0]), int(row[1])) for row in rows)


def _former(hit: SeedHit, now: datetime) -> Iterator[_Former]:
    """Yield the statements of a memory that ended, or may be outdated."""
    for row in _lines(hit):
        ended, doubted = read_time(row.get("until")), read_time(row.get("doubted"))
        doubted = datetime.combine(doubted, time.max, UTC) if doubted else None
        until = ended if ended is not None and ended <= now else doubted
        if until is not None:
            yield _Former(until, _words(str(row["bare"])))


def _has_ended(item: BriefingItem, former: Iterable[_Former]) -> bool:
    """Whether an item is a sentence of a session that ended since, or that a memory has."""
    if item.message is None or item.date is None:
        return False
    words = _words(item.bare)
    return any(item.date < each.until and _is_same(words, each.words) for each in former)


def _words(text: str) -> frozenset[str]:
    return frozenset(comparison_key(text).split())


# ---------------------------------------------------------------- what fits
def _last(end: BriefingItem | None, instructions: Instructions, now: datetime) -> str:
    """Return the line about the last request; empty if the instructions cover it."""
    if end is None or end.date is None or instructions.cover(end.text):
        return ""
    asked = _presentable(shortened(end.text, LONGEST_END))
    return f"Last session {end.id} {_age(end.date, now)} ended at: {asked}\n"


def _fitting(
    ranked: Iterable[BriefingItem],
    instructions: Instructions,
    budget: int,
    now: datetime,
    holds: Callable[[str, int | None], bool],
) -> list[BriefingItem]:
    """Return the best items that fit, without those that another or the instructions cover.

    `holds` tells whether the node confirms a memory or a message.
    """
    chosen: list[BriefingItem] = []
    seen: list[tuple[frozenset[str], bool]] = []
    kinds: set[str] = set()
    size = tokens_in(f"{_HEAD}\n")
    for item in ranked:
        if size + _SHORTEST > budget:
            break
        title = "" if item.kind in kinds else f"{KIND_TITLES[item.kind]}:\n"
        least = _size(item.text) + _size(title) + _AROUND_TEXT + bool(item.date)
        if not item.contradicts and size + least > budget:
            continue
        words = _words(item.bare)
        if (
            not words
            or size + tokens_in(f"{title}{_line(item, now, str)}\n") > budget
            or any(_is_same(words, other, exact and item.message is None) for other, exact in seen)
            or instructions.cover(item.bare)
            or not holds(item.uri, item.message)
        ):
            continue
        more = tokens_in(f"{title}{_line(item, now)}\n")
        if size + more <= budget:
            chosen.append(item)
            seen.append((words, item.message is None))
            kinds.add(item.kind)
            size += more
    return sorted(chosen, key=lambda item: (not item.pinned, _ORDER.index(item.kind)))


def _with_contradictions(
    found: Sequence[BriefingItem], instructions: Instructions
) -> list[BriefingItem]:
    """Return the items; the newest ones have the lines of instruction files that they contradict.

    A preference of the person contradicts no file of a project.
    """
    since = min((changed for changed, _ in instructions.dated), default=_NEVER)
    later = (item for item in found if item.date and item.date > since)
    likely = sorted(later, key=lambda item: -item.score)[:_MOST_COMPARED]
    dated = [(item.date, item) for item in likely if item.date]
    if not any(instructions.may_contradict(item.bare) for _, item in dated):
        return list(found)
    from perdure.engine.contradictions import Contradictions  # noqa: PLC0415 - it loads the judge

    contradictions = Contradictions(instructions)
    dated.sort(key=lambda each: each[0], reverse=True)
    lines: dict[InstructionLine, BriefingItem] = {}
    for at, (date, item) in enumerate(dated):
        if len(lines) == _MOST_CONTRADICTIONS:
            break
        is_personal = item.kind == "preference" and item.message is None
        if is_personal or not instructions.may_contradict(item.bare):
            continue
        line = contradictions.line(item.bare, date, [newer.bare for _, newer in dated[:at]])
        if line is not None and line not in lines:
            lines[line] = replace(item, contradicts=line)
    shown = {(item.uri, item.message, item.text): item for item in lines.values()}
    return [shown.get((item.uri, item.message, item.text), item) for item in found]


_size = lru_cache(maxsize=1024)(tokens_in)  # ranking and fitting need the same sizes
_AROUND_TEXT = 3
"""The fewest tokens of a line besides its text: a dash and an id."""


def _rank(item: BriefingItem) -> tuple[bool, bool, float, str]:
    worth = item.score / float(max(1, _size(item.text)) ** _BREVITY)
    return not item.pinned, not item.contradicts, -worth, item.uri


def _is_same(words: frozenset[str], other: frozenset[str], exact: bool = False) -> bool:  # noqa: FBT001, FBT002 - one of two
    """Whether two lines say the same; two stored statements only with the same words.

    "Never use webpack here" and "Never use grunt here" share nearly all of their words.
    """
    least = 1.0 if exact else ALIKE
    return bool(words and other) and len(words & other) >= least * min(len(words), len(other))


def _written(items: Sequence[BriefingItem], last: str, now: datetime) -> str:
    if not items:
        return last
    lines = [_HEAD]
    kind = ""
    for item in items:
        if item.kind != kind:
            kind = item.kind
            lines.append(f"{KIND_TITLES[kind]}:")
        lines.append(_line(item, now))
    return "\n".join(lines) + f"\n{last}"


@lru_cache(maxsize=64)
def _presentable(text: str) -> str:
    from perdure.safety.validation import presentable_line  # noqa: PLC0415 - if a line is shown

    return presentable_line(text)


def _line(item: BriefingItem, now: datetime, shown: Callable[[str], str] = _presentable) -> str:
    if item.contradicts and item.date:
        file, number, text = item.contradicts
        place = f"{shown(shortened(file, _LONGEST_QUOTE))} line {number}"
        quoted = shown(shortened(text, _LONGEST_QUOTE))
        who = "the user stated later" if item.evidence else "it was stated later"
        stated = shown(item.bare)
        return f'- {place} says "{quoted}"; {who} ({item.date.date()}): "{stated}" {item.id}'
    age = f" {_age(item.date, now)}" if item.date else ""
    return f"- {shown(hedged(item.text, item.verdict))} {item.id}{age}"


def _age(date: datetime, now: datetime) -> str:
    days = int((now - date).total_seconds() // _DAY_SECONDS)
    if days <= 0:
        return "today"
    units = ((365, "y"), (30, "mo"), (7, "w"), (1, "d"))
    size, name = next(each for each in units if days >= each[0])
    return f"{days // size}{name}"


# ---------------------------------------------------------------- short ids
_MOST_NAMED = 20_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_AROUND = 2
"""Messages before and after one that is read by its id."""


def short_id(uri: str, message: int | None) -> str:
    """Return the short id of a memory or a message, for the lines of a briefing."""
    bits = int.from_bytes(sha256(f"{uri}#{message}".encode()).digest()[:3]) >> 4
    return "~" + "".join(_LETTERS[bits >> shift & 31] for shift in (15, 10, 5, 0))


def named(id_: str, index: NodeIndex, ctx: RequestContext) -> set[str]:
    """Return the URIs that a short id names, that of a message with its index."""
    found = set()
    for hit in index.briefing_hits(filters_for(index, ctx), _MOST_NAMED):
        message = hit.payload.get("message")
        message = message if isinstance(message, int) else None
        if short_id(hit.uri, message) == id_:
            found.add(hit.uri if message is None else f"{hit.uri}#{message}")
    return found


def around(node: ContextNode, message: int) -> str:
    """Return a message of a session with those around it."""
    near = range(message - _AROUND, message + _AROUND + 1)
    return "".join(
        f"{each.message.speaker}: {each.message.content}\n\n"
        for each in parse(node.content)
        if each.index in near
    )


def _by_age(item: BriefingItem) -> tuple[float, float, str]:
    """Order by age; sentences of one message by their scores."""
    return -item.date.timestamp() if item.date else 0.0, -item.score, item.bare
