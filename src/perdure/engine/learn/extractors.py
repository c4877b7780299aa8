"""The extractors that go by rules, one for each kind of memory of seed 003."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from perdure.engine.learn.contract import CandidateExtractor
from perdure.engine.learn.evidence import Evidence
from perdure.engine.learn.persons import owner_of
from perdure.engine.learn.rules import Written, written
from perdure.engine.learn.slugs import metadata_of, owner_space, slug_of, thing_of
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.uri import PROFILE
from perdure.model.values import MAX_ABSTRACT, shortened

CATEGORIES = {
    "rule": "pattern",
    "decision": "pattern",
    "preference": "preference",
    "liking": "preference",
    "fact": "entity",
    "entity": "entity",
    "command": "skill",
    "rejected": "case",
    "task": "case",
    "case": "case",
    "profile": PROFILE,
    "event": "event",
}
"""The category in which a statement of a kind is stored."""


class _ByRules:
    """Finds in what users say the statements of some categories."""

    categories: ClassVar[frozenset[str]]

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        said = [Message.from_mapping(each) for each in messages]
        is_owner = owner_of(said, ctx)
        found: dict[tuple[int, str], CandidateMemory] = {}
        for each in written(said):
            category = _category(each, is_owner=is_owner(said[each.message]))
            if category in self.categories:
                made = _candidate(each, category, said[each.message], ctx)
                found.setdefault((each.message, made.content), made)
        return list(found.values())


def _category(each: Written, *, is_owner: bool) -> str:
    """Return the category of what was said; what others say of themselves is of an entity."""
    category = CATEGORIES[each.kind]
    return "entity" if category == PROFILE and not is_owner else category


def _candidate(
    each: Written, category: str, message: Message, ctx: RequestContext
) -> CandidateMemory:
    evidence = Evidence.at(each.message, message, each.start, each.end)
    kind = {"liking": "preference", "entity": "fact"}.get(each.kind, each.kind)
    topic = each.rule if category in {PROFILE, "event"} else ""
    return CandidateMemory(
        category=category,
        content=each.text,
        slug="" if category == PROFILE else _slug(each, category, message.name),
        abstract=shortened(each.text, MAX_ABSTRACT),
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
    if each.kind == "liking":
        return slug_of(thing_of(each.about))
    return slug_of(each.text)


class ProfileExtractor(_ByRules):
    """Finds who the user is: name, home, work, family, languages, health."""

    categories = frozenset({PROFILE})


class PreferenceExtractor(_ByRules):
    """Finds what users like, dislike and prefer."""

    categories = frozenset({"preference"})


class EntityEventExtractor(_ByRules):
    """Finds facts on people and things, what is to be remembered, and dated events."""

    categories = frozenset({"entity", "event"})


class ProcedureExtractor(_ByRules):
    """Finds rules and decisions, commands and what they are for, and errors with what helped."""

    categories = frozenset({"pattern", "skill", "case"})


def extractors() -> tuple[CandidateExtractor, ...]:
    """Return one for each kind of memory."""
    return (ProfileExtractor(), PreferenceExtractor(), EntityEventExtractor(), ProcedureExtractor())
