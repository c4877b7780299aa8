"""Validators with one fault each. The name says the fault."""

import re
import unicodedata
from dataclasses import replace
from typing import Any

from perdure.errors import SecretRefusedError
from perdure.model import CandidateMemory
from perdure.safety import injection, secrets, validation
from perdure.safety.injection import LABEL, Instruction
from perdure.safety.markup import inert, visible
from perdure.safety.secrets import Secret, SecretPolicy
from perdure.safety.validation import CleanText, ValidatedCandidate
from tests.safety.test_validation import TestValidation as Rules
from tests.safety.test_validation import neutralised

_TAG = re.compile(r"<[^>]*>")


class DeletesTags(Rules):
    __test__ = False

    @staticmethod
    def neutralised(text: str) -> str:
        return _TAG.sub("", neutralised(text))


class EscapesEverything(Rules):
    __test__ = False

    @staticmethod
    def neutralised(text: str) -> str:
        return visible(text).replace("<", "&lt;")


class ForgetsImages(Rules):
    __test__ = False

    @staticmethod
    def neutralised(text: str) -> str:
        return neutralised(text).replace("\\!", "!")


class TrustsAllTicks(Rules):
    """Takes for code what stands between any two ticks."""

    __test__ = False

    @staticmethod
    def neutralised(text: str) -> str:
        pieces = re.split(r"(`+[^`]*`+)", visible(text))
        return "".join(part if at % 2 else inert(part) for at, part in enumerate(pieces))


class KeepsHiddenCharacters(Rules):
    __test__ = False
    neutralised = staticmethod(inert)


class DropsJoiners(Rules):
    __test__ = False

    @staticmethod
    def neutralised(text: str) -> str:
        shown = neutralised(text)
        return "".join(each for each in shown if unicodedata.category(each) != "Cf")


class EscapesAgain(Rules):
    __test__ = False

    @staticmethod
    def neutralised(text: str) -> str:
        return neutralised(text.replace("&lt;", "&amp;lt;"))


class ShowsTheLength(Rules):
    __test__ = False

    @staticmethod
    def masked(text: str) -> tuple[str, list[Secret]]:
        found = secrets.secrets_in(text)
        for each in reversed(found):
            text = text[: each.start] + "*" * (each.end - each.start) + text[each.end :]
        return text, found


class MasksTheWholeLine(Rules):
    __test__ = False

    @staticmethod
    def masked(text: str) -> tuple[str, list[Secret]]:
        found = secrets.secrets_in(text)
        return (f"[secret: {found[0].kind}]" if found else text), found


class MasksTheFirstOnly(Rules):
    __test__ = False

    @staticmethod
    def masked(text: str) -> tuple[str, list[Secret]]:
        found = secrets.secrets_in(text)[:1]
        for each in found:
            text = f"{text[: each.start]}[secret: {each.kind}]{text[each.end :]}"
        return text, found


class LooksAtTheSurface(Rules):
    """Takes what is written for what is read."""

    __test__ = False

    @staticmethod
    def masked(text: str) -> tuple[str, list[Secret]]:
        shown = visible(text)
        return secrets.mask(text) if shown == text else (text, [])


class KnowsServicesOnly(Rules):
    __test__ = False

    @staticmethod
    def masked(text: str) -> tuple[str, list[Secret]]:
        found = [each for each in secrets.secrets_in(text) if "token" in each.kind]
        return secrets.mask(text) if found else (text, [])


class FearsEveryHash(Rules):
    __test__ = False

    @staticmethod
    def secrets_in(text: str) -> list[Secret]:
        return [Secret("hash", *each.span()) for each in re.finditer(r"[0-9a-f-]{20,}", text)]


class FearsPlaceholders(Rules):
    __test__ = False

    @staticmethod
    def secrets_in(text: str) -> list[Secret]:
        return [
            Secret("value", *each.span()) for each in re.finditer(r"(?<=[=:] )\S+|AKIA\w+", text)
        ]


class MarksTheWholeText(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        return LABEL + text if injection.instructions_in(text) else text


class LeavesTokensWhole(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        return injection.mark_quoted(text).replace("<\\|", "<|")


class FearsTheWord(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        feared = re.search("instructions|injection|from now on", text, re.IGNORECASE)
        return injection.mark_quoted(f"Ignore previous instructions: {text}" if feared else text)


class TrustsPoliteOrders(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        return text if text.startswith(("I prefer", "Please")) else injection.mark_quoted(text)


class MarksInLists(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        return text if text.startswith(LABEL) else LABEL + text


class TrustsMarks(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        return text if text.startswith(LABEL) else injection.mark_quoted(text)


class MarksAgain(Rules):
    __test__ = False

    @staticmethod
    def quoted(text: str) -> str:
        return LABEL + text if "gnore" in text else text


class ForgetsTheEnd(Rules):
    """Can't be undone where a line follows."""

    __test__ = False

    @staticmethod
    def unquoted(text: str) -> str:
        return text.replace(LABEL, "")


class SeesMarkedOrders(Rules):
    __test__ = False

    @staticmethod
    def instructions_in(text: str) -> list[Instruction]:
        return injection.instructions_in(text.replace(LABEL, ""))


class MarksAndMasksOnly(Rules):
    """Lets a viewer run what is in a text."""

    __test__ = False

    @staticmethod
    def cleaned(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
        return CleanText(injection.mark_quoted(secrets.mask(visible(text))[0]))


class Repeats(Rules):
    __test__ = False

    @staticmethod
    def cleaned(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
        return CleanText(text * 17)


class TellsTheValue(Rules):
    __test__ = False

    @staticmethod
    def validated(
        candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE
    ) -> ValidatedCandidate:
        try:
            return validation.validate(candidate, policy)
        except SecretRefusedError as error:
            raise SecretRefusedError(f"{error} It is {candidate.content}") from None


def _keeping(*names: str) -> Any:  # noqa: ANN401 - a broken validator
    def validated(
        candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE
    ) -> ValidatedCandidate:
        clear: dict[str, Any] = {
            each: {} if each == "metadata" else () if each == "who" else "" for each in names
        }
        found = validation.validate(replace(candidate, **clear), policy)
        rest: dict[str, Any] = {each: getattr(candidate, each) for each in names}
        return replace(found, candidate=replace(found.candidate, **rest))

    return staticmethod(validated)


class ForgetsNames(Rules):
    __test__ = False
    validated = _keeping("who")


class ForgetsMetadata(Rules):
    __test__ = False
    validated = _keeping("metadata")


class ForgetsTheAbstract(Rules):
    __test__ = False
    validated = _keeping("abstract")


class ForgetsTheQuote(Rules):
    __test__ = False
    validated = _keeping("quote", "metadata")


class MasksEvidence(Rules):
    __test__ = False

    @staticmethod
    def validated(
        candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE
    ) -> ValidatedCandidate:
        quote = validation.presentable(candidate.quote)
        return validation.validate(replace(candidate, quote=quote), policy)


class CutsContent(Rules):
    __test__ = False

    @staticmethod
    def validated(
        candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE
    ) -> ValidatedCandidate:
        return validation.validate(replace(candidate, content=candidate.content[:9_000]), policy)


class NotesEachTime(Rules):
    __test__ = False

    @staticmethod
    def validated(
        candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE
    ) -> ValidatedCandidate:
        found = validation.validate(candidate, policy)
        return replace(found, notes=(*found.notes, validation.Note("content", "looked at")))
