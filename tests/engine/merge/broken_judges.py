"""The judge with one fault each. Every one of them is caught by a test beside this file."""

import re
from collections.abc import Callable

import pytest

from perdure.engine.learn import comparing, quantities, statements
from perdure.engine.learn.aligning import Alignment
from perdure.engine.learn.judge import Comparison, Verdict
from perdure.engine.learn.tokens import Kind
from perdure.index.words import stems

Patch = pytest.MonkeyPatch


def _reads(patch: Patch, change: Callable[[str], str]) -> None:
    read = statements.read
    patch.setattr(comparing, "read", lambda text: read(change(text)))


def _finds_no(patch: Patch, name: str) -> None:
    patch.setattr(comparing, name, lambda _: None)


def ignores_digits(patch: Patch) -> None:
    _reads(patch, lambda text: re.sub(r"\d", "1", text))


def ignores_units(patch: Patch) -> None:
    patch.setattr(quantities, "_unit", lambda spelled: "g" if spelled in {"l", "ml"} else "")


def ignores_negation(patch: Patch) -> None:
    _finds_no(patch, "_negated")


def ignores_names(patch: Patch) -> None:
    alone = comparing._alone

    def without_names(alignment: Alignment) -> str | None:
        kept = (*alignment.old_alone, *alignment.new_alone)
        if all(term.is_name or term.kind is Kind.CODE for term in kept):
            return None
        return alone(alignment)

    patch.setattr(comparing, "_alone", without_names)
    patch.setattr(comparing, "is_same_order", lambda _: True)


def ignores_persons(patch: Patch) -> None:
    _finds_no(patch, "_about_others")


def ignores_tense(patch: Patch) -> None:
    _finds_no(patch, "_in_time")


def ignores_order(patch: Patch) -> None:
    patch.setattr(comparing, "is_same_order", lambda _: True)


def goes_by_similarity(patch: Patch) -> None:
    compare = comparing.compare

    def similar(old: str, new: str) -> Comparison:
        found = compare(old, new)
        verdict = Verdict.SAME if found.similarity >= 0.8 else Verdict.DIFFERENT
        return Comparison(verdict, found.reason, found.similarity)

    patch.setattr(comparing, "compare", similar)


def leaves_out_what_is_more(patch: Patch) -> None:
    alone = comparing._alone

    def only_both(alignment: Alignment) -> str | None:
        return alone(alignment) if alignment.old_alone and alignment.new_alone else None

    patch.setattr(comparing, "_alone", only_both)
    patch.setattr(comparing, "is_same_order", lambda _: True)


def stems_as_porter_did(patch: Patch) -> None:
    patch.setattr(statements, "lemmas", lambda word: frozenset(stems(word)))


def stems_names(patch: Patch) -> None:
    patch.setattr(statements, "_is_like_lucas", lambda _: False)


def knows_no_synonyms(patch: Patch) -> None:
    patch.setattr(statements, "SYNONYMS", {})
    patch.setattr(statements, "rephrased", list)


def knows_no_inflection(patch: Patch) -> None:
    patch.setattr(statements, "lemmas", lambda word: frozenset({word}))
    patch.setattr(statements, "is_participle", lambda _: False)


def believes_the_longer_one(patch: Patch) -> None:
    compare = comparing.compare

    def longer(old: str, new: str) -> Comparison:
        if len(new) > len(old):
            return Comparison(Verdict.CONTRADICTS, "It is longer.", 0.0)
        return compare(old, new)

    patch.setattr(comparing, "compare", longer)


def contradicts_everything(patch: Patch) -> None:
    patch.setattr(comparing, "contradiction", lambda _: "They differ.")


def contradicts_nothing(patch: Patch) -> None:
    patch.setattr(comparing, "contradiction", lambda _: None)


def reads_whole_books(patch: Patch) -> None:
    patch.setattr(comparing, "MAX_STATEMENT", 10**9)


def merges_nothing(patch: Patch) -> None:
    patch.setattr(comparing, "_difference", lambda _: "They differ.")


def gives_no_reason(patch: Patch) -> None:
    patch.setattr(comparing, "_told", lambda *_: "They differ.")
    patch.setattr(comparing, "contradiction", lambda _: None)
