"""The extractors of seed 003, one for each kind of memory, by rules."""

from functools import lru_cache
from typing import ClassVar, Protocol, runtime_checkable

from perdure.engine.learn.evidence import Evidence, Messages, cid_of, metadata_of
from perdure.engine.learn.naming import owner_space, slug_of, thing_of
from perdure.engine.learn.persons import owner_of
from perdure.engine.learn.rules import Written, written
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.uri import KINDS, PROFILE


@runtime_checkable
class CandidateExtractor(Protocol):
    """Finds in a conversation what may be worth remembering. It writes nothing."""

    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        """Return candidates in the order of the messages.

        A message has a role and content, perhaps a name and a time; others are refused with
        `InvalidValueError`. Any text is accepted, in any language and of any length. Each candidate
        has a confidence, and evidence that `evidence.verified` confirms. The same messages give
        the same candidates; a message does not change what is found in unrelated ones.
        """
        ...


_PERSONAL = {"liking": "preference", "entity": "fact"}
"""The kinds of what users say of themselves."""
_CATEGORIES = {name: name for name in ("case", "event", "entity", PROFILE)} | KINDS


def by_rules(messages: Messages, ctx: RequestContext) -> tuple[CandidateMemory, ...]:
    return _by_rules(tuple([Message.from_mapping(each) for each in messages]), ctx)


@lru_cache(maxsize=8)  # each of the extractors asks for the same
def _by_rules(session: tuple[Message, ...], ctx: RequestContext) -> tuple[CandidateMemory, ...]:
    is_owner = owner_of(session, ctx)
    found: dict[tuple[int, str], CandidateMemory] = {}
    for each in written(session):
        message = session[each.message]
        made = _candidate(each, message, ctx, is_owner=is_owner(message))
        found.setdefault((each.message, made.content), made)
    return tuple(found.values())


def _candidate(
    each: Written, message: Message, ctx: RequestContext, *, is_owner: bool
) -> CandidateMemory:
    kind = _PERSONAL.get(each.kind, each.kind)
    category = _CATEGORIES[kind]
    if category == PROFILE and not is_owner:
        category = "entity"  # what others say of themselves
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


def _slug(each: Written, category: str, who: str) -> str:
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
        return [each for each in by_rules(messages, ctx) if each.category in self.categories]


class ProfileExtractor(_Extractor):
    """Finds who the user is: name, home, work, family, languages, health."""

    categories = frozenset({PROFILE})


class PreferenceExtractor(_Extractor):
    """Finds what users like, dislike and prefer."""

    categories = frozenset({"preference"})


class EntityEventExtractor(_Extractor):
    """Finds facts on people and things, what is to be remembered, and dated events."""

    categories = frozenset({"entity", "event"})


class ProcedureExtractor(_Extractor):
    """Finds rules and decisions, commands and what they are for, and errors with what helped."""

    categories = frozenset({"pattern", "skill", "case"})


EXTRACTORS: tuple[CandidateExtractor, ...] = (
    ProfileExtractor(),
    PreferenceExtractor(),
    EntityEventExtractor(),
    ProcedureExtractor(),
)
