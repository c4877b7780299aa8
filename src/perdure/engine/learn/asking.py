"""What a model is asked: which statements a conversation makes, and whether two say the same."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from perdure.engine.learn.evidence import Evidence, Messages, cid_of, metadata_of
from perdure.engine.learn.judge import Comparison, Judge, Verdict, compare
from perdure.engine.learn.naming import owner_space, slug_of, thing_of
from perdure.engine.learn.persons import NOBODY, owner_of
from perdure.engine.learn.windows import SCHEMA, Piece, Window, closed, pieces_of, question, windows
from perdure.engine.llm.contract import LLM
from perdure.engine.llm.quoting import DATA, line_of, quoted
from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.uri import PROFILE
from perdure.model.values import shortened, visible
from perdure.times import read_moment

_BY_AGENTS = frozenset({"skill", "case"})
"""What an agent may state too. What a tool returns is nobody's statement."""


def by_model(llm: LLM) -> Callable[[Messages, RequestContext], list[CandidateMemory]]:
    """Return what finds candidates by asking a model; all messages are checked before."""

    def find(messages: Messages, ctx: RequestContext) -> list[CandidateMemory]:
        session = [Message.from_mapping(message) for message in messages]
        found: dict[tuple[object, ...], tuple[tuple[int, int], CandidateMemory]] = {}
        for item in items_of(llm, session, ctx):
            candidate = _candidate(item, ctx)
            if candidate is not None:
                key = (item.order[0], candidate.category, candidate.slug, candidate.content)
                if key not in found or item.order < found[key][0]:
                    found[key] = (item.order, candidate)
        return [each for _, each in sorted(found.values(), key=lambda pair: pair[0])]

    return find


class Item(NamedTuple):
    """One statement in the model's words, and the evidence for it."""

    given: Mapping[str, Any]
    piece: Piece
    order: tuple[int, int]
    """Its message, and where in the message it is: at the end of the piece if it is not there."""
    evidence: tuple[Evidence, ...]
    """The statement itself first. Whether the quotes are there is checked later."""
    who: tuple[str, ...]

    def text(self, name: str) -> str:
        return " ".join(self.given[name].split())


def items_of(llm: LLM, session: Sequence[Message], ctx: RequestContext) -> Iterator[Item]:
    is_owner = owner_of(session, ctx)
    pieces = [
        piece
        for index, message in enumerate(session)
        for piece in pieces_of(index, message, is_owner=is_owner(message))
        if message.role != "system"
    ]
    for window in windows(pieces):
        answer = llm.complete_json(question(each.line for each in window), SCHEMA)
        yield from items_in(answer, window)


def items_in(answer: Mapping[str, Any], window: Window) -> Iterator[Item]:
    """Yield the items of an answer that are about messages of the window.

    An item about what was asked before, or about what the model was not shown, is left out.
    """
    for given in filter(_is_text, answer["items"]):
        quotes = [(given["message"], given["quote"])]
        quotes += [(each["message"], each["quote"]) for each in given["also"]]
        if any(not 0 <= number < len(window) for number, _ in quotes):
            continue
        shown = [(window[int(number)], quote) for number, quote in quotes]
        if shown[0][0].is_before:
            continue
        piece = shown[0][0].piece
        found = piece.text.find(given["quote"])
        place = piece.start + (found if found >= 0 else len(piece.text))
        evidence = (
            Evidence(each.piece.index, cid_of(each.piece.message.content), quote)
            for each, quote in shown
        )
        who = filter(None, dict.fromkeys(each.strip() for each in given["who"]))
        named = tuple(each for each in who if is_named(each, window))
        yield Item(given, piece, (piece.index, place), tuple(evidence), named)


def _is_text(given: object) -> bool:
    """Whether it can be encoded as UTF-8; not every model's answers are checked for that."""
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_named(name: str, window: Window) -> bool:
    """Whether a window has a name. A model may invent others, and they are left out."""
    shown = (f"{each.piece.message.name}\n{each.piece.text}".casefold() for each in window)
    return any(name.casefold() in each for each in shown)


def _candidate(item: Item, ctx: RequestContext) -> CandidateMemory | None:
    message = item.piece.message
    category, people, topic = item.given["category"], item.who, ""
    by_agent = message.role == "assistant" and category in _BY_AGENTS
    if message.role != "user" and not by_agent:
        return None
    content, about = item.text("content"), item.text("about")
    slug, when = about or content, message.time
    if category == PROFILE:
        topic = slug_of(item.given["topic"]) if item.text("topic") else ""
        people = (message.name,) if message.name else ()
        if not item.piece.is_owner:  # what others say of themselves
            category, slug, people = "entity", message.name or NOBODY, people or (NOBODY,)
        else:
            topic, slug = topic or "other", ""
    elif category in {"preference", "event"}:
        people = tuple(dict.fromkeys(filter(None, (message.name, *item.who))))
        slug = thing_of(about) or content if category == "preference" else slug
    elif category != "entity":
        people = ()
    day = read_moment(item.given["date"].strip())
    if category == "event":
        when = day
        topic = "decision" if item.text("topic").casefold() == "decision" else "event"
    prefix = f"{day:%Y-%m-%d}" if category == "event" and day else ""
    try:
        return CandidateMemory(
            category=category,
            content=content,
            slug=slug and slug_of(slug, prefix),
            confidence=float(min(1.0, max(0.0, item.given["confidence"]))),
            owner_space=owner_space(category, ctx),
            when=when,
            who=people,
            quote=item.evidence[0].quote,
            speaker=message.speaker,
            metadata=metadata_of(item.evidence, topic, ctx),
        )
    except InvalidValueError:  # it is empty, or more than a memory may hold
        return None


WORTH_ASKING = 0.5
"""The least similarity. Below it, statements that say the same were rare among the labelled."""
_LONGEST_REASON = 200

_JUDGING = f"""\
Say what two statements of one memory are to each other.

You are shown a record with both, each as JSON on a line of its own.

{DATA}

verdict:
- same: they say the same of the same thing, so that one of them is enough. Not if one says more.
- contradicts: they say of one thing what can't both hold.
- different: everything else, and whenever you are not sure.
reason: one short sentence.
"""
_VERDICT = closed(
    {
        "verdict": {"type": "string", "enum": [each.value for each in Verdict]},
        "reason": {"type": "string"},
    }
)


def asking_judge(llm: LLM) -> Judge:
    """Return a judge that goes by rules, and asks a model about other words.

    It says the same in either order, and asks the same, so that one answer is paid for. Errors of
    the model are not caught.
    """

    def judge(old: str, new: str) -> Comparison:
        found = compare(old, new)
        if not found.only_words or found.similarity < WORTH_ASKING:
            return found
        given = llm.complete_json(_about(old, new), _VERDICT)
        reason = shortened(visible(" ".join(given["reason"].split())), _LONGEST_REASON)
        return Comparison(Verdict(given["verdict"]), f"By a model: {reason}", found.similarity)

    return judge


def _about(old: str, new: str) -> str:
    record = quoted([line_of({"statement": each}) for each in sorted((old, new))])
    return f"{_JUDGING}\n{record}\n\nThe record is over. Answer about the two statements.\n"
