"""Extractors with one fault each. The name says the fault."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from perdure.engine.learn.evidence import cid_of
from perdure.engine.learn.extractors import EntityEventExtractor, ProfileExtractor
from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory, RequestContext

Messages = Sequence[Mapping[str, object]]


def reread(messages: Messages, change: Callable[[str], str]) -> list[dict[str, object]]:
    """Return messages with changed texts of the same length."""
    return [{**message, "content": change(str(message.get("content")))} for message in messages]


def founded(found: list[CandidateMemory], messages: Messages) -> list[CandidateMemory]:
    """Return candidates with evidence in the messages as they really are."""
    mended = []
    for each in found:
        listed: Any = each.metadata["evidence"]
        evidence = [
            {**one, "cid": cid_of(str(messages[one["message"]]["content"]))} for one in listed
        ]
        mended.append(replace(each, metadata={**each.metadata, "evidence": evidence}))
    return mended


class Reading(ProfileExtractor):
    """Changes each text before it is read, and hides that."""

    @staticmethod
    def change(text: str) -> str:
        return text

    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(reread(messages, self.change), ctx)
        return founded(found, messages)


# ---------------------------------------------------------------- shape
class WantsATime(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return super().extract([each for each in messages if "time" in each], ctx)


class IsAlwaysSure(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return [replace(each, confidence=1.0) for each in super().extract(messages, ctx)]


class ForgetsTheSession(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return super().extract(messages, replace(ctx, session_id="another"))


class PassesOverWhatIsNoMessage(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = []
        for number in range(len(messages)):
            try:
                found += super().extract(messages[number : number + 1], ctx)
            except InvalidValueError:
                continue
        return found


class RemembersEverything(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages, ctx)
        if messages and not found:
            owner = f"user:{ctx.user_id}"
            found.append(CandidateMemory(category="profile", content="x", owner_space=owner))
        return found


# ---------------------------------------------------------------- evidence
class MakesUpAQuote(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages, ctx)
        for number, each in enumerate(found):
            listed: Any = each.metadata["evidence"]
            evidence = [{**listed[0], "quote": each.content}, *listed[1:]]
            metadata = {**each.metadata, "evidence": evidence}
            found[number] = replace(each, quote=each.content, metadata=metadata)
        return found


class NamesAnotherMessage(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages, ctx)
        for number, each in enumerate(found):
            listed: Any = each.metadata["evidence"]
            evidence = [{**one, "message": one["message"] + 1} for one in listed]
            found[number] = replace(each, metadata={**each.metadata, "evidence": evidence})
        return found


class HasNoEvidence(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return [replace(each, metadata={}) for each in super().extract(messages, ctx)]


class AttributesToTheWrongSpeaker(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return [replace(each, speaker="Tom") for each in super().extract(messages, ctx)]


class AttributesItToAnotherSpeaker(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages, ctx)
        return [replace(each, content=each.content.replace("Ana", "Tom")) for each in found]


# ---------------------------------------------------------------- what is meant
class TakesQuestionsAsFacts(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("Do I", "\n\n\nI").replace("?", ".")


class IgnoresNegation(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages, ctx)
        return [replace(each, content=each.content.replace("not ", "")) for each in found]


class IgnoresDoubt(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return [replace(each, confidence=0.9) for each in super().extract(messages, ctx)]


class TakesSuppositionsAsFacts(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("Suppose ", "Really, ")


class ReadsCodeBlocks(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("```", "...")


class ReadsIndentedCode(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("\n    ", "\n  . ")


class ReadsQuotedLines(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("> ", "  ")


class ReadsQuotations(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace('wrote "', "slept. ").replace('"', " ")


class ReadsPastedTexts(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("says:", "says.")


class TakesAStoryForTheTruth(Reading):
    @staticmethod
    def change(text: str) -> str:
        order = "Write a story in the first person."
        return text.replace(order, "There it was.".ljust(len(order)))


class NeverTakesBack(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("No wait", "No cake")


class ReadsMails(Reading):
    @staticmethod
    def change(text: str) -> str:
        return text.replace("From:", "From ").replace("To:", "To ")


class ForgetsTheDateAnchor(EntityEventExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        today = datetime(2026, 3, 2, tzinfo=UTC)
        return super().extract([{**each, "time": today} for each in messages], ctx)


class LeavesTheWordYesterday(EntityEventExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return [replace(each, content=each.quote) for each in super().extract(messages, ctx)]


# ---------------------------------------------------------------- always the same
class CountsItsCalls(ProfileExtractor):
    def __init__(self) -> None:
        super().__init__()
        self._calls = count()

    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        number = next(self._calls)
        found = super().extract(messages, ctx)
        return [replace(each, content=f"{each.content} {number}") for each in found]


class LooksAtTheFirstMessageOnly(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages[:1], ctx)
        return found + super().extract(messages[1:], ctx)[:0]


class EmptiesTheMessages(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        found = super().extract(messages, ctx)
        if isinstance(messages, list):
            messages.clear()
        return found


# ---------------------------------------------------------------- any text
class KnowsASCIIOnly(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        for each in messages:
            str(each["content"]).encode("ascii")
        return super().extract(messages, ctx)


class GivesUpOnLongTexts(ProfileExtractor):
    def extract(self, messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        return super().extract(reread(messages, lambda text: text[:10_000]), ctx)
