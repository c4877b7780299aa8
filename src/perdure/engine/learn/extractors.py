"""The extractors of seed 003: rules that find statements in messages, one class per kind of memory.

The rules of `rules.txt` have a measured precision: what they find is written without asking. What
users state about themselves becomes a statement in the third person: "I live in Porto" is stored
as "Ana lives in Porto".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from perdure.dataclass import dataclass, replace
from perdure.engine.learn.evidence import Evidence, Messages, cid_of, metadata_of
from perdure.engine.learn.prose import Sentence, user_sentences
from perdure.engine.learn.slugs import owner_space, slug_of, thing_of
from perdure.engine.recall.periods import Cycle, anchors_in
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.uri import KINDS, PROFILE
from perdure.patterns import entries, later, table

_USER = "the user"
_ADVERBS = "now|currently|still|also|really|always|never|usually|often|mostly|just|only|actually"
_FIRST = later(
    rf"i (?P<adverb>(?:(?:{_ADVERBS}) )*)(?:(?P<not>don't|do not|dont) )?"
    r"(?P<verb>[a-z]+)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_AM = later(r"(?:i'm|im|i am)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_MY = later(r"my (?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_OTHERS = later(r"\b(?:we|us|our|you|your|he|she|his|they|it|this|that)\b", re.IGNORECASE)
_UNSUITABLE = later(r"\b(?:i'd|i'll|i've|mine|myself)\b|\bI\b(?=[^'\s])", re.IGNORECASE)
_PAST = later(
    r"(?:\w+ed|was|had|did|went|met|bought|got|flew|came|saw|left|began|ran|made|took|gave|won|lost)"
)
_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "am": "is", "can": "can", "must": "must"}


def owner_of(messages: Sequence[Message], ctx: RequestContext) -> Callable[[Message], bool]:
    """Return a function that tells whether a message is by the owner of the memory.

    The owner has the role of the user. If several names do, it is the one that equals the user's
    id, and messages without a name; the others are other people.
    """
    names = {each.name.casefold() for each in messages if each.role == "user" and each.name}
    user = ctx.user_id.casefold()
    if user in names or len(names) > 1:
        return lambda message: message.role == "user" and message.name.casefold() in {"", user}
    return lambda message: message.role == "user"


def third_person(clause: str, who: str) -> str:
    """Return a clause in the first person as a statement about `who`; empty if it is not simple.

    A clause that mentions others too is not: it does not say who "it" or "they" are.
    """
    text = " ".join(clause.replace("\u2019", "'").split()).rstrip(" .!;,")
    if _UNSUITABLE.search(text) or _OTHERS.search(text):
        return ""
    if found := _AM.fullmatch(text):
        stated = f"{who} is{found['rest']}"
    elif found := _MY.fullmatch(text):
        stated = f"{who}'s {found['rest']}"
    elif found := _FIRST.fullmatch(text):
        verb, adverb = found["verb"], found["adverb"]
        verb = f"does not {verb}" if found["not"] else _third(verb.lower())
        stated = f"{who} {adverb}{verb}{found['rest']}"
    else:
        return ""
    stated = re.sub(r"\bmy\b", "their", stated, flags=re.IGNORECASE)
    stated = re.sub(r"\bme\b", "them", re.sub(r"\bI am\b|\bI'm\b", "they are", stated))
    stated = re.sub(r"\bI\b", "they", stated)
    return f"{stated[0].upper()}{stated[1:]}."


def _third(verb: str) -> str:
    if verb in _IRREGULAR or _PAST.fullmatch(verb):
        return _IRREGULAR.get(verb, verb)
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


_DAY = timedelta(days=1)
_UNKNOWN = datetime(2000, 2, 2, tzinfo=UTC)


def dated(text: str, now: datetime | None) -> tuple[str, datetime | None] | None:
    """Return a statement with its day as an ISO date, and that day; None if it has none.

    Removes a relative day, such as "yesterday", if the message has no time.
    """
    for anchor in anchors_in(text):
        if isinstance(anchor.meaning, Cycle):
            continue
        try:
            day, other = (anchor.meaning(each) for each in (now or _UNKNOWN, _UNKNOWN + 9 * _DAY))
        except (ValueError, OverflowError):  # 31 February
            continue
        if day.end - day.start != _DAY:
            continue
        before, after = text[: anchor.start].removesuffix("on "), text[anchor.end :]
        if now is None and day != other:
            return f"{before.rstrip()}{after}", None
        return f"{before}on {day.start:%Y-%m-%d}{after}", day.start
    return None


_FEWEST, _MOST = 4, 45
"""Words of a sentence that a rule writes."""
_NAMED = later(
    r"(?:never|always|do not|don't) (?:use|run|commit|edit|touch) "
    r"(?!(?:it|this|that|these|those|them|any|one|me)\b)\S{2,}",
    re.IGNORECASE,
)
"""Shorter ones that are complete: "Never use moment.js."."""
_MOST_OF_A_CLAUSE = 16
"""Words of a clause about the user; a longer one is about more than that."""
SURE, PERSONAL, ASKED = 0.8, 0.9, 0.95
"""Confidence: a rule matches; users state it about themselves; they ask to remember it."""
_DOUBTED = 0.6
"""The factor for a sentence that expresses doubt."""
WORK = ("decision", "rule", "fact", "preference", "command", "case")
PERSON = ("profile", "liking", "entity", "event")

_FORMS = {
    name: later(text, re.IGNORECASE) for name, text in table(__file__, "rules.txt", "forms").items()
}


@dataclass(frozen=True, slots=True)
class RuleStatement:
    """A statement that a rule found in a message, and the span of its words."""

    message: int
    start: int
    end: int
    kind: str = ""
    rule: str = ""
    text: str = ""
    confidence: float = SURE
    when: datetime | None = None
    about: str = ""
    """The words of the user, of a statement in the third person."""
    key: str = ""


def rule_statements(messages: Sequence[Message | Mapping[str, object]]) -> list[RuleStatement]:
    session = [m if isinstance(m, Message) else Message.from_mapping(m) for m in messages]
    found: list[RuleStatement] = []
    before: Sentence | None = None
    for sentence in user_sentences(session):
        lead, before = before, sentence
        if lead and (lead.message != sentence.message or lead.text.endswith(("?", ":"))):
            lead = None
        message = session[sentence.message]
        is_taken_back = _FORMS["taken_back"].match(message.content, sentence.end)
        if not is_taken_back and not _FORMS["played"].search(message.content):
            of_person = list(_of_person(sentence, message))
            found += of_person or filter(None, [_of_work(sentence, lead, message)])
    return found


def _of_work(sentence: Sentence, lead: Sentence | None, message: Message) -> RuleStatement | None:
    rule = rule_for(sentence.plain)
    if rule is None:
        return None
    noted = _FORMS["noted"].match(sentence.text)
    start = sentence.start + (noted.end() if noted else 0)
    text = message.content[start : sentence.end]
    if _FORMS["dangling"].match(text) or rule[0] == "case":
        if lead is None:
            return None  # its subject is missing
        start, text = lead.start, f"{lead.text} {text}"
    text = " ".join(text.split())
    sure = SURE * (_DOUBTED if _FORMS["doubt"].search(sentence.plain) else 1)
    return RuleStatement(
        sentence.message, start, sentence.end, *rule, text, sure, message.time, key=sentence.key
    )


def rule_for(plain: str) -> tuple[str, str] | None:
    """Return the kind and the name of the rule that matches a sentence; None if none does."""
    is_short = len(plain.split()) < _FEWEST and not _NAMED.fullmatch(plain)
    if is_short or len(plain.split()) > _MOST or {"`", "\u201c", "\u201d"} & {*plain}:
        return None
    is_request = _FORMS["request"].search(plain)
    if _FORMS["passing"].search(plain) or (_is_question(plain) and not is_request):
        return None
    fits = _fits(WORK, plain)
    return fits[:2] if fits else None


def _is_question(plain: str) -> bool:
    return _FORMS["question"].search(plain) is not None


def _of_person(sentence: Sentence, message: Message) -> Iterator[RuleStatement]:
    """Yield the statements of a sentence about its author, clause by clause."""
    if _is_question(sentence.plain) or _FORMS["passing"].search(sentence.plain):
        return
    breaks = [found.span() for found in _FORMS["clause"].finditer(sentence.text)]
    starts = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(sentence.text)]
    for start, end in zip(starts, ends, strict=True):
        at, text = sentence.start + start, sentence.text[start:end]
        clause = replace(sentence, start=at, end=sentence.start + end, text=text)
        found = _of_clause(clause, message)
        if found is not None:
            yield replace(found, key=sentence.key)


def _of_clause(clause: Sentence, message: Message) -> RuleStatement | None:
    plain, who = clause.plain, message.name or _USER
    led = _FORMS["lead"].match(plain)
    skipped = led.end() if led and plain[: led.end()] == clause.text[: led.end()] else 0
    text = _FORMS["tail"].sub("", clause.text[skipped:].rstrip(" .!;,"))
    start = clause.start + skipped
    found = RuleStatement(clause.message, start, start + len(text), when=message.time, about=text)
    if asked := _fits(("asked",), text):
        bare = asked[2].sub("", text, count=1)
        is_rule = rule_for(bare) and re.match(r"we|use|run|always|never", bare)
        stated = third_person(bare, who) or f"{bare[:1].upper()}{bare[1:]}."
        found = replace(found, start=found.end - len(bare), rule=asked[1], confidence=ASKED)
        return replace(found, kind="rule" if is_rule else "entity", text=stated)
    fits = _fits(PERSON, text)
    if fits is None or len(text.split()) > _MOST_OF_A_CLAUSE or "QUOTED" in plain:
        return None
    doubt = _DOUBTED if _FORMS["unsure"].search(plain) else 1
    if fits[1] in {"home", "work"}:
        text = text.partition(",")[0]
        found = replace(found, end=found.start + len(text), about=text)
    found = replace(found, kind=fits[0], rule=fits[1], confidence=PERSONAL * doubt)
    stated = f"{text[0].upper()}{text[1:]}." if found.rule == "named" else third_person(text, who)
    if found.kind == "event":
        if on := dated(stated, message.time):
            return replace(found, text=on[0], when=on[1])
        fits = _fits(("profile",), text)  # "I moved to Bergen": a profile statement, without a date
        if fits is None:
            return None
        found = replace(found, kind=fits[0], rule=fits[1])
    moved = re.sub(r" (?:just |has |recently )?(?:moved|relocated) to ", " now lives in ", stated)
    return replace(found, text=moved) if stated else None


Rule = tuple[str, str, re.Pattern[str]]


def _fits(kinds: tuple[str, ...], text: str) -> Rule | None:
    return next((each for each in _rules(kinds) if each[2].search(text)), None)


@cache
def _rules(kinds: tuple[str, ...]) -> list[Rule]:
    path = Path(__file__).with_name("rules.txt")
    return [
        (kind, name, re.compile(text, re.IGNORECASE))
        for kind, name, text in entries(path)
        if kind in kinds
    ]


@runtime_checkable
class CandidateExtractor(Protocol):
    """Finds candidates in a conversation. It writes nothing."""

    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        """Return candidates in the order of the messages.

        A message has a role and content, and may have a name and a time; raises `InvalidValueError`
        for others. Accepts any text, in any language and of any length. Each candidate has a
        confidence, and evidence that `evidence.verified` confirms. The same messages give the same
        candidates; a message does not change what is found in unrelated ones.
        """
        ...


_PERSONAL = {"liking": "preference", "entity": "fact"}
"""The kinds of what users state about themselves."""
_CATEGORIES = {name: name for name in ("case", "event", "entity", PROFILE)} | KINDS


@lru_cache(maxsize=8)  # all four extractors ask for the same messages
def _by_rules(session: tuple[Message, ...], ctx: RequestContext) -> tuple[CandidateMemory, ...]:
    is_owner = owner_of(session, ctx)
    found: dict[tuple[int, str], CandidateMemory] = {}
    for each in rule_statements(session):
        message = session[each.message]
        candidate = _candidate(each, message, ctx, is_owner=is_owner(message))
        found.setdefault((each.message, candidate.content), candidate)
    return tuple(found.values())


def _candidate(
    each: RuleStatement, message: Message, ctx: RequestContext, *, is_owner: bool
) -> CandidateMemory:
    kind = _PERSONAL.get(each.kind, each.kind)
    category = _CATEGORIES[kind]
    if category == PROFILE and not is_owner:
        category = "entity"  # what others state about themselves
    quote = message.content[each.start : each.end]
    evidence = Evidence(each.message, cid_of(message.content), quote)
    topic = each.rule if category in {PROFILE, "event"} else ""
    return CandidateMemory(
        category=category,
        content=each.text,
        slug="" if category == PROFILE else _slug(each, category, message.name),
        confidence=each.confidence,
        owner_space=owner_space(category, ctx),
        when=each.when,
        who=(message.name,) if message.name else (),
        quote=evidence.quote,
        speaker=message.speaker,
        metadata={**metadata_of([evidence], topic, ctx), "kind": kind},
    )


def _slug(each: RuleStatement, category: str, who: str) -> str:
    if each.kind == PROFILE:
        return slug_of(who)
    if category == "event":
        return slug_of(each.text, f"{each.when:%Y-%m-%d}" if each.when else "")
    if each.kind == "command":
        return slug_of(each.text.partition("`")[2].partition("`")[0] or each.text)
    return slug_of(thing_of(each.about) if each.kind == "liking" else each.text)


class _Extractor:
    categories: ClassVar[frozenset[str]]

    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        session = tuple([Message.from_mapping(each) for each in messages])
        return [each for each in _by_rules(session, ctx) if each.category in self.categories]


class ProfileExtractor(_Extractor):
    """Finds who the user is: name, home, work, family, languages, health."""

    categories = frozenset({PROFILE})


class PreferenceExtractor(_Extractor):
    """Finds what users like, dislike and prefer."""

    categories = frozenset({"preference"})


class EntityEventExtractor(_Extractor):
    """Finds facts about people and things, requests to remember something, and dated events."""

    categories = frozenset({"entity", "event"})


class ProcedureExtractor(_Extractor):
    """Finds rules and decisions, commands with their purpose, and errors with their solution."""

    categories = frozenset({"pattern", "skill", "case"})


EXTRACTORS: tuple[CandidateExtractor, ...] = (
    ProfileExtractor(),
    PreferenceExtractor(),
    EntityEventExtractor(),
    ProcedureExtractor(),
)
