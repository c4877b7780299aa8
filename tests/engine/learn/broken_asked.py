"""Extractors that ask, with one fault each. Every one of them is caught by a test."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from perdure.engine.learn import asking
from perdure.engine.learn.asking import question
from perdure.engine.learn.evidence import Evidence
from perdure.errors import LanguageModelError
from perdure.model.transcript import Message

Patch = pytest.MonkeyPatch


# ---------------------------------------------------------------- what is asked
def shows_texts_as_they_are(patch: Patch) -> None:
    def raw(value: Mapping[str, Any]) -> str:
        return json.dumps({**value, "text": ""})[:-2] + str(value["text"]) + '"}'

    patch.setattr(asking, "line_of", raw)


def leaves_other_ends_of_lines(patch: Patch) -> None:
    patch.setattr(asking, "_escaped", lambda found: found[0])


def marks_every_record_alike(patch: Patch) -> None:
    patch.setattr(asking, "_DIGITS", 0)


def asks_otherwise_each_time(patch: Patch) -> None:
    asked = count()
    patch.setattr(asking, "question", lambda some: f"{question(some)}{next(asked)}")


def tells_no_times(patch: Patch) -> None:
    line = asking.Piece.line

    def timeless(piece: asking.Piece, number: int, **more: bool) -> str:
        return line(replace(piece, message=replace(piece.message, time=None)), number, **more)

    patch.setattr(asking.Piece, "line", timeless)


def asks_before_it_looks(patch: Patch) -> None:
    class Late:
        @staticmethod
        def from_mapping(said: Mapping[str, object]) -> Any:  # noqa: ANN401
            role = "user" if said["role"] == "nobody" else said["role"]
            return Message.from_mapping({**said, "role": role})

    patch.setattr(asking, "Message", Late)


def shows_secrets(patch: Patch) -> None:
    patch.setattr(asking, "_without_secrets", lambda content: content)


# ---------------------------------------------------------------- windows
def numbers_messages_from_the_first_of_the_session(patch: Patch) -> None:
    shown = asking._shown

    def numbered(piece: asking.Piece, _number: int, *, is_before: bool) -> asking.Shown:
        return shown(piece, piece.index, is_before=is_before)

    patch.setattr(asking, "_shown", numbered)


def shows_nothing_from_before(patch: Patch) -> None:
    patch.setattr(asking, "BEFORE", 0)


def takes_again_what_was_before(patch: Patch) -> None:
    kept = asking._kept
    patch.setattr(asking, "_kept", lambda some: [e._replace(is_before=False) for e in kept(some)])


def cuts_anywhere(patch: Patch) -> None:
    patch.setattr(asking, "_LOOK_BACK", 0)


def goes_on_by_a_few_characters(patch: Patch) -> None:
    patch.setattr(asking, "PIECE", 100)


def shows_all_that_tools_put_out(patch: Patch) -> None:
    patch.setattr(asking, "OF_A_TOOL", 10**9)


# ---------------------------------------------------------------- answers
def mends_quotes(patch: Patch) -> None:
    patch.setattr(asking, "Evidence", lambda index, cid, _: Evidence(index, cid, "I live in Porto"))


def believes_every_name(patch: Patch) -> None:
    patch.setattr(asking, "is_named", lambda *_: True)


def takes_everybody_for_the_owner(patch: Patch) -> None:
    patch.setattr(asking, "owner_of", lambda *_: lambda _: True)


def fails_with_the_first_bad_item(patch: Patch) -> None:
    patch.setattr(asking, "InvalidValueError", KeyError)


def names_likes_otherwise_than_dislikes(patch: Patch) -> None:
    patch.setattr(asking, "thing_of", lambda about: about)


def finds_nothing_where_the_model_fails(patch: Patch) -> None:
    items_of = asking.items_of

    def without_errors(*given: Any) -> Iterator[asking.Item]:  # noqa: ANN401
        try:
            yield from items_of(*given)
        except LanguageModelError:
            return

    patch.setattr(asking, "items_of", without_errors)
