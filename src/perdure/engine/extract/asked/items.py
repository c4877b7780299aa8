"""What a model found, tied to the messages that it was shown."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perdure.engine.extract.asked.windows import Piece, Shown, Window
from perdure.engine.extract.evidence import Evidence, cid_of
from perdure.model.transcript import Message
from perdure.model.values import read_moment


@dataclass(frozen=True, slots=True)
class Item:
    """One statement, in the model's words but for who said it, when, and the names of contents."""

    category: str
    message: Message
    is_owner: bool
    evidence: tuple[Evidence, ...]
    """The statement itself first. Whether the quotes are there is not looked at."""
    place: int
    """Where in the message it stands; where the piece ends if it does not."""
    content: str
    about: str
    topic: str
    confidence: float
    date: datetime | None
    who: tuple[str, ...]

    @property
    def index(self) -> int:
        return self.evidence[0].message


def items_in(answer: Mapping[str, Any], window: Window) -> Iterator[Item]:
    """Yield the items of an answer that are about messages of the window, each for the first time.

    What was asked about before, and what stands where the next piece of a message begins, is left
    to the other question. An item about what the model was not shown is none.
    """
    names = _Names(window)
    for told in filter(_is_text, answer["items"]):
        shown = _at(told["message"], window)
        more = [(_at(each["message"], window), each["quote"]) for each in told["also"]]
        if shown is None or shown.is_before or any(other is None for other, _ in more):
            continue
        if not _is_of_the_next(told["quote"], shown.piece):
            others = [(other.piece, quote) for other, quote in more if other is not None]
            yield _item(told, [(shown.piece, told["quote"]), *others], names.said(told["who"]))


def _is_text(told: object) -> bool:
    """Whether UTF-8 can say it; not every model's answers are looked at for that."""
    try:
        json.dumps(told, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _at(number: float, window: Window) -> Shown | None:
    return window[int(number)] if 0 <= number < len(window) else None


def _is_of_the_next(quote: str, piece: Piece) -> bool:
    """Whether the words begin where the next piece of the message has begun, and stand in both."""
    found = piece.text.find(quote)
    return found >= 0 and piece.until < piece.end and piece.start + found >= piece.until


def _item(
    told: Mapping[str, Any], places: Sequence[tuple[Piece, str]], who: tuple[str, ...]
) -> Item:
    piece = places[0][0]
    return Item(
        category=told["category"],
        message=piece.message,
        is_owner=piece.is_owner,
        evidence=tuple(
            Evidence(each.index, cid_of(each.message.content), quote) for each, quote in places
        ),
        place=_place(told["quote"], piece),
        content=" ".join(told["content"].split()),
        about=told["about"],
        topic=told["topic"],
        confidence=float(min(1.0, max(0.0, told["confidence"]))),
        date=read_moment(told["date"].strip()),
        who=who,
    )


def _place(quote: str, piece: Piece) -> int:
    found = piece.text.find(quote)
    return piece.start + found if found >= 0 else piece.end


class _Names:
    """The names that stand in a window. A model may name others, and they are left out."""

    def __init__(self, window: Window) -> None:
        shown = ((each.piece.message.name, each.piece.text) for each in window)
        self._said = "\n".join(text for pair in shown for text in pair).casefold()

    def said(self, given: Sequence[str]) -> tuple[str, ...]:
        stripped = (each.strip() for each in given)
        return tuple(dict.fromkeys(each for each in stripped if each and self._has(each)))

    def _has(self, name: str) -> bool:
        return name.casefold() in self._said
