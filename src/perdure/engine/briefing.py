"""The briefing: what an agent gets at the start of a session, in few tokens, rules first."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.instructions import ALIKE, InstructionFile, InstructionLine, Instructions
from perdure.engine.recall.confirmation import Confirmation
from perdure.engine.recall.result import Hint
from perdure.engine.recall.token_budget import tokens_in
from perdure.errors import InvalidValueError
from perdure.index.contract import Filters, KeptIndex
from perdure.model import ContextNode, RequestContext, SeedHit, Uri
from perdure.model.anchors import (
    FIRST_NODE,
    UNCHECKED,
    Anchors,
    Stated,
    Verdict,
    anchors_of,
    hedged,
    session_anchors,
)
from perdure.model.record import ACCOUNT, NOTED, OWNER_SPACE, PROJECT
from perdure.model.transcript import parse
from perdure.model.uri import KIND_TITLES, OF_THE_PERSON
from perdure.model.values import JSON, shortened, words_key
from perdure.times import read_moment

if TYPE_CHECKING:
    from perdure.engine.actions import Action
    from perdure.engine.occasions import Occasion
    from perdure.model.anchors import Checkout

BUDGET = 294
SECONDS = 0.02
"""All lines that are shown at one moment are checked against the checkout within this time."""
_LOOKED_AT = 600
"""Records of a project that are looked at, the newest first."""
_HALF_LIFE = 180.0
"""Days after which a sentence counts half as much as one of today."""
_SHORTEST = 8
"""Tokens of a line that would say anything."""
LEAST = 0.33
"""The score from which a sentence is likely enough to last; of those below, most are not."""
_BREVITY = 0.4
"""A line is worth less the longer it is: its score by its tokens to this power."""
STATED = 2.0
"""The score of what was kept on purpose; what a rule kept has less, what was only noticed least."""
_ORDER = tuple(KIND_TITLES)
_HEAD = "From earlier sessions (`read ~id` for more):"
_MOST_CONTRADICTIONS = 2
_MOST_COMPARED = 150
"""Items that are compared with instruction files: those that are most likely to last."""
_LONGEST_QUOTE = 80
LONGEST_END = 100
"""Characters of what the user asked last."""
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
    """Their words, of a statement."""
    bare: str = ""
    """The text without the days at its end, by which it is compared."""
    confirmed: datetime | None = None
    """When it was said, or when its memory was last written."""
    anchors: tuple[Anchors, ...] = ()
    """What it names of the checkout, as it was each time that it was made."""
    verdict: Verdict = UNCHECKED
    """Whether that is still so in the folder that the briefing is for."""
    contradicts: InstructionLine | None = None
    """The line of an instruction file that is older, and can't hold together with it."""

    @property
    def id(self) -> str:
        """A short name that `read` takes."""
        return short_id(self.uri, self.message)


@dataclass(frozen=True, slots=True)
class Briefing:
    items: tuple[BriefingItem, ...]
    text: str
    """Markdown for a prompt; empty if there is nothing to say."""
    tokens: int
    last: str = ""
    """What the user asked last, if the text says so."""
    end: BriefingItem | None = None
    """The line that says so."""
    memories: int = 0
    """How many memories were considered, of the project and of the person."""
    hints: tuple[Hint, ...] = ()
    """Why it may not know of edits that were made outside Perdure."""


class _Former(NamedTuple):
    """What a sentence of a session must not say again, if it is from before then."""

    until: datetime
    words: frozenset[str]


Check = Callable[[Sequence[Stated]], Sequence[Verdict]]
_MOST_CHECKED = 100
"""Far more than fit."""
_MOST_SESSIONS = 8
_MOST_ENDS = 4
"""Sessions whose branch is looked at for how the last one ended."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories are looked at: those of a project by its names, and of the person."""

    reader: NodeReader
    index: KeptIndex
    ctx: RequestContext
    names: Sequence[str]
    checkout: "Checkout | None" = None
    """The working tree that statements are checked against."""

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.names, "")))

    def noted(self, most: int, names: Collection[str] | None = None) -> list[SeedHit]:
        return self.index.noted(filters_for(self.index, self.ctx, self.projects), most, names)

    def confirming(self) -> Confirmation:
        return Confirmation(self.reader, self.ctx, self.projects)

    # ------------------------------------------------------------ as `Memory` describes them
    def briefing(
        self,
        *,
        known: str | Sequence[InstructionFile] = "",
        budget_tokens: int = BUDGET,
        kinds: Collection[str] = (),
        seconds: float = SECONDS,
        leaves_out: "Callable[[BriefingItem], bool]" = lambda _item: False,
    ) -> "Briefing":
        tree = self.checkout
        return brief(
            self,
            known=known,
            kinds=kinds,
            budget=budget_tokens,
            leaves_out=leaves_out,
            check=None if tree is None else lambda stated: tree.checked(stated, seconds),
        )

    def checked(
        self, lines: Iterable[tuple[str, int | None, str]], *, seconds: float = SECONDS
    ) -> tuple[Verdict, ...]:
        from perdure.engine.freshness import verdicts_on  # noqa: PLC0415 - who has lines pays

        return verdicts_on(list(lines), self.checkout, self.reader, self.ctx, seconds)

    def repeated(
        self, occasion: "Action | str", *, session: str = ""
    ) -> "tuple[BriefingItem, ...]":
        from perdure.engine.occasions import of_action, of_prompt  # noqa: PLC0415 - as above

        asked = of_prompt(occasion) if isinstance(occasion, str) else of_action(occasion)
        return repeated(self, asked, session=session)


def brief(  # noqa: PLR0913 - for whom, and how much
    scope: Scope,
    *,
    known: str | Sequence[InstructionFile] = "",
    kinds: Collection[str] = (),
    budget: int = BUDGET,
    now: datetime | None = None,
    leaves_out: Callable[[BriefingItem], bool] = lambda _item: False,
    check: Check | None = None,
) -> Briefing:
    """Return the briefing that `Memory.briefing` describes, without what `leaves_out` names."""
    if unknown := {*kinds} - {*_ORDER}:
        raise InvalidValueError(
            f"there is no kind {min(unknown)[:80]!a}. Fix: use some of {', '.join(_ORDER)}."
        )
    now = now or datetime.now(UTC)
    noted = gathered(scope.noted(_LOOKED_AT), scope.names, now)
    confirming = scope.confirming()

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
    ranked = sorted(
        current, key=lambda item: (not item.pinned, not item.contradicts, -_worth(item), item.uri)
    )
    if check:
        first = _with_origins([*ends, *ranked[:_MOST_CHECKED]], confirming)
        shown = list(_checked(first, check))
        ends = [each for each in shown if not each.bare]
        ranked = [*(each for each in shown if each.bare), *ranked[_MOST_CHECKED:]]
    end = next((each for each in ends if holds(each.uri, each.message)), None)
    last = _last(end, instructions, now)
    if tokens_in(last) > budget // 4:  # what lasts comes first
        last = ""
    chosen = _fitting(ranked, instructions, budget - tokens_in(last), now, holds)
    text = _written(chosen, last, now)
    memories = sum(message is None for _, message in noted.hits)
    made = Briefing(tuple(chosen), text, tokens_in(text), memories=memories)
    if end is None or not last:
        return made
    return replace(made, last=end.text, end=replace(end, text=shortened(end.text, LONGEST_END)))


class Gathered(NamedTuple):
    """What is noted for a project, before canonical state confirms it."""

    found: "list[BriefingItem]"
    former: list[_Former]
    ends: "list[BriefingItem]"
    """How sessions ended: what the user asked last, without a statement to compare."""
    hits: dict[tuple[str, int | None], SeedHit]

    def current(self) -> "Iterator[BriefingItem]":
        """Yield what did not end, as far as memory knows."""
        quotes = (quote for item in self.found for quote in item.quotes)
        former = [*self.former, *(_Former(_NEVER, _words(quote)) for quote in quotes)]
        return (item for item in self.found if not _has_ended(item, former))


def gathered(
    hits: Iterable[SeedHit], names: Sequence[str], now: datetime, field: str = "sentences"
) -> Gathered:
    """Return what records note; of sessions, the sentences in one field of their payload."""
    noted = Gathered([], [], [], {})
    for hit in hits:
        is_general = bool(names) and not hit.payload.get(NOTED)
        message = hit.payload.get("message")
        if not isinstance(message, int):
            noted.found.extend(_kept(hit, now, is_general=is_general))
            noted.former.extend(_former(hit, now))
            noted.hits[hit.uri, None] = hit
        elif not is_general:
            noted.found.extend(_said(hit, message, now, field))
            noted.ends.extend(_ended(hit, message))
            noted.hits[hit.uri, message] = hit
    return noted


def learned(scope: Scope) -> Iterator[ContextNode]:
    names = tuple(scope.names)
    confirming = Confirmation(scope.reader, scope.ctx, names)
    for hit in scope.index.noted(filters_for(scope.index, scope.ctx, names), _MOST_NAMED):
        stored = None if "message" in hit.payload else confirming.confirmed(hit)
        if stored is not None:
            yield stored.node


def filters_for(
    index: KeptIndex, ctx: RequestContext, projects: tuple[str, ...] | None = None
) -> Filters:
    spaces = sorted(space for space in index.owner_spaces(ctx.account_id) if ctx.reaches(space))
    owners = tuple(spaces) or f"user:{ctx.user_id}"
    within = {} if projects is None else {PROJECT: projects}
    return {ACCOUNT: ctx.account_id, OWNER_SPACE: owners, **within}


def _said(hit: SeedHit, message: int, now: datetime, field: str) -> Iterator[BriefingItem]:
    date = read_moment(hit.payload.get("date"))
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
    """Yield the sentences that a briefing could show, of all that were noted."""
    for row in given if isinstance(given, list | tuple) else ():
        match row:
            case [str() as text, str() as kind, float() | int() as score] if score >= least:
                yield text, kind, score


def _ended(hit: SeedHit, message: int) -> Iterator[BriefingItem]:
    date, asked = read_moment(hit.payload.get("date")), hit.payload.get("ended")
    if isinstance(asked, str) and date is not None:
        anchors = _anchors([hit.payload.get("origin")])
        yield BriefingItem("task", asked, hit.uri, date, message, anchors=anchors)


def _newest(item: BriefingItem) -> tuple[float, str, str, int]:
    return -item.date.timestamp() if item.date else 0.0, item.text, item.uri, item.message or 0


def _kept(hit: SeedHit, now: datetime, *, is_general: bool) -> Iterator[BriefingItem]:
    """Yield what holds of a memory; of a general one, what is stated or about the person."""
    is_personal = hit.payload.get("category") in OF_THE_PERSON
    for row in _lines(hit):
        until, likely = read_moment(row.get("until")), row.get("likely")
        is_learned = isinstance(likely, float | int)
        if (until is not None and until <= now) or (is_learned and is_general and not is_personal):
            continue
        date, quotes = read_moment(row.get("date")), row.get("quotes")
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
            read_moment(hit.payload.get("updated_at")),
            _anchors(row.get("anchors")),
        )


def _anchors(given: JSON) -> tuple[Anchors, ...]:
    rows = given if isinstance(given, list | tuple) else ()
    return tuple(filter(None, map(anchors_of, rows)))


def _with_origins(
    items: Iterable[BriefingItem], confirming: Confirmation
) -> Iterator[BriefingItem]:
    """Yield items; sentences of long sessions get the branch that the first node of those has."""
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


def _checked(items: Iterable[BriefingItem], check: Check) -> Iterator[BriefingItem]:
    """Yield what holds in the folder, with its verdict; a session on a lost branch still counts."""
    listed = list(items)
    stated = [Stated(each.bare, each.kind, each.date, each.anchors) for each in listed]
    for each, verdict in zip(listed, check(stated), strict=True):
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
        ended, doubted = read_moment(row.get("until")), read_moment(row.get("doubted"))
        doubted = datetime.combine(doubted, time.max, UTC) if doubted else None
        until = ended if ended is not None and ended <= now else doubted
        if until is not None:
            yield _Former(until, _words(str(row["bare"])))


def _has_ended(item: BriefingItem, former: Iterable[_Former]) -> bool:
    """Whether an item is a sentence of a session that says what ended since, or is stated."""
    if item.message is None or item.date is None:
        return False
    words = _words(item.bare)
    return any(item.date < each.until and _is_same(words, each.words) for each in former)


def _words(text: str) -> frozenset[str]:
    return frozenset(words_key(text).split())


# ---------------------------------------------------------------- what fits
def _last(end: BriefingItem | None, instructions: Instructions, now: datetime) -> str:
    """Return the line on how the last session ended; empty if that is known."""
    if end is None or end.date is None or instructions.say(end.text):
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
    """Return as many as fit, the best first; none says what another or the instructions do.

    `holds` tells whether canonical state confirms a memory or a message.
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
            or instructions.say(item.bare)
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
    """Return the items, with the lines of instruction files that the newest few contradict.

    What is about the person in general contradicts no file of a project.
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


_size = lru_cache(maxsize=1024)(tokens_in)  # of what is ranked, and then fitted in
_AROUND_TEXT = 3
"""Tokens of a line besides its text, at least: a dash and an id."""


def _worth(item: BriefingItem) -> float:
    return item.score / float(max(1, _size(item.text)) ** _BREVITY)


def _is_same(words: frozenset[str], other: frozenset[str], exact: bool = False) -> bool:  # noqa: FBT001, FBT002 - one of two
    """Whether two lines say the same; of two statements that were kept, to the word.

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
    from perdure.safety.texts import presentable_line  # noqa: PLC0415 - if a line is shown

    return presentable_line(text)


def _line(item: BriefingItem, now: datetime, shown: Callable[[str], str] = _presentable) -> str:
    if item.contradicts and item.date:
        file, number, text = item.contradicts
        place = f"{shown(shortened(file, _LONGEST_QUOTE))} line {number}"
        quoted = shown(shortened(text, _LONGEST_QUOTE))
        who = "the user said later" if item.evidence else "it was stated later"
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
    """Return a name for a memory or a message, short enough for every line of a briefing."""
    bits = int.from_bytes(sha256(f"{uri}#{message}".encode()).digest()[:3]) >> 4
    return "~" + "".join(_LETTERS[bits >> shift & 31] for shift in (15, 10, 5, 0))


def named(id_: str, index: KeptIndex, ctx: RequestContext) -> set[str]:
    """Return what a short id of a briefing names: URIs, of a message with its index."""
    found = set()
    for hit in index.noted(filters_for(index, ctx), _MOST_NAMED):
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


_LOOKED_AT_FOR_OCCASIONS = 60
"""Notes that are looked at, the newest first, of those that have a word of the occasion."""
_REPEATED = frozenset({"rule", "rejected", "preference"})


def repeated(
    scope: Scope,
    occasion: "Occasion",
    *,
    session: str = "",
) -> tuple[BriefingItem, ...]:
    """Return the sentences that an occasion calls for, as `Memory.repeated` describes it."""
    wanted, fits = occasion
    hits = scope.noted(_LOOKED_AT_FOR_OCCASIONS, wanted) if wanted else []
    noted = gathered(hits, scope.names, datetime.now(UTC), "occasions")
    confirming = scope.confirming()
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
    verdicts = scope.checked([(each.uri, each.message, each.bare) for each in newest])
    pairs = zip(newest, verdicts, strict=True)
    return tuple(replace(each, verdict=one) for each, one in pairs if not one.held_back)


def _by_age(item: BriefingItem) -> tuple[float, float, str]:
    """Order by age; what one message states, by how likely it is to last."""
    return -item.date.timestamp() if item.date else 0.0, -item.score, item.bare
