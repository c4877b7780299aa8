"""The messages of a session: how new ones join stored ones, and how far they were learned from."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import overload

from perdure.errors import NodeExistsError
from perdure.model import Uri
from perdure.model.transcript import HIDDEN, Message, matches_hidden
from perdure.safety.validation import shared_prefix

_LONGEST = 12


class LazyMessages(Sequence[Message]):
    """The messages of a session; only the last ones are in memory, others are read on access."""

    def __init__(
        self,
        load: Callable[[], list[Message]],
        mark: str,
        last: Sequence[Message],
        count: int,
    ) -> None:
        self._load = load
        self._last = last
        self._count = count
        self.mark = mark
        """The mark of the messages before the new ones."""

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        wanted = range(self._count)[at]
        first = self._count - len(self._last)
        indexes = wanted if isinstance(wanted, range) else range(wanted, wanted + 1)
        if indexes and min(indexes) < first:
            self._last, first = self._load()[: self._count], 0
        if isinstance(wanted, range):
            return [self._last[index - first] for index in wanted]
        return self._last[wanted - first]


# ---------------------------------------------------------------- joining messages
def recommitted(
    before: Sequence[Message], given: Sequence[Message], place: Uri
) -> Sequence[Message]:
    """Return the messages of a session, given all of them; the last answer may differ."""
    same = shared_prefix(before, given)
    if same == len(given):
        return before
    if same == len(before) or _is_last_exchange(before, given, same):
        pairs = zip(before[:same], given, strict=False)
        return [*(old if matches_hidden(old, new) else new for old, new in pairs), *given[same:]]
    raise NodeExistsError(
        f"the session {place.name[:80]!a} was committed with other messages. "
        "Fix: commit it with all earlier messages",
        options={"session_id": "ID"},
    )


def _is_last_exchange(before: Sequence[Message], given: Sequence[Message], first: int) -> bool:
    """Whether the first message that differs belongs to the last answer, or is its question.

    Another question is an edit only after an earlier exchange; without one, it begins another
    conversation. If there is no user, the last answer is the last message.
    """
    asked = _last_asked(before)
    if asked < 0:
        return first == len(before) - 1 > 0
    if first > asked:
        return True
    earlier = any(each.role in {"user", "assistant"} for each in before[:first])
    return first == asked and earlier and given[first].role == "user"


def appended(
    before: Sequence[Message], new: Sequence[Message], *, replace_last: bool | None
) -> Sequence[Message]:
    """Return the messages of a session after some are added; none is added twice."""
    overlap = _overlap(before, new)
    if replace_last and new:
        is_there = overlap == len(new) and _is_exchange(before[: -len(new)], new)
        return before if is_there else [*before[: _answer_start(before, new[0])], *new]
    rest = new[overlap:]
    if not rest or _is_within(before, new):
        return before
    regenerated = (
        replace_last is None
        and len(rest) == len(new)
        and bool(before)
        and before[-1].role == new[0].role == "assistant"
    )
    return [*(before[:-1] if regenerated else before), *rest]


def _is_exchange(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether new messages are a question with its answer, or a whole answer."""
    return not before or "user" in {new[0].role, before[-1].role}


def _answer_start(before: Sequence[Message], first: Message) -> int:
    """Return where the last answer begins; if `first` is a question, where its question is."""
    asked = _last_asked(before)
    return asked if first.role == "user" and asked >= 0 else asked + 1


def _last_asked(messages: Sequence[Message]) -> int:
    indexes = range(len(messages) - 1, -1, -1)
    return next((index for index in indexes if messages[index].role == "user"), -1)


def _overlap(before: Sequence[Message], new: Sequence[Message]) -> int:
    """Return how many messages are at the end of the stored and at the start of the new ones."""
    known, given = list(before), list(new)
    sizes = range(min(len(known), len(given)), 0, -1)
    return next((size for size in sizes if _are_same(known[-size:], given[:size])), 0)


def _are_same(known: Sequence[Message], given: Sequence[Message]) -> bool:
    """Whether messages are stored already, perhaps with hidden sentences.

    A message that is all hidden could be any; only its time identifies it.
    """
    return all(
        old == new
        or ((old.time or old.content.replace(HIDDEN, "").strip()) and matches_hidden(old, new))
        for old, new in zip(known, given, strict=True)
    )


def _is_within(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether messages that each have a time are stored in a row: the call is a retry."""
    known, given = list(before), list(new)
    starts = range(len(known) - len(given) + 1)
    return all(each.time for each in given) and any(
        _are_same(known[at : at + 1], given[:1]) and _are_same(known[at : at + len(given)], given)
        for at in starts
    )


# ---------------------------------------------------------------- marks


class LearnedMarks:
    """The marks of a session: each is a count of messages that were learned from, and a hash."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        known = messages.mark if isinstance(messages, LazyMessages) else ""
        self._count, self._hashed = _parsed_mark(known)

    def mark(self, count: int) -> str:
        if count < self._count:
            self._count, self._hashed = 0, ""
        for each in self._messages[self._count : count]:
            text = f"{self._hashed}{each.role}\0{each.name}\0{each.time}\0{each.content}"
            self._hashed = sha256(text.encode()).hexdigest()
        self._count = count
        return f"{count} {self._hashed}\n"


def marked_count(mark: str) -> int:
    """Return how many messages a mark says were learned from, without checking its hash."""
    return _parsed_mark(mark)[0]


def _parsed_mark(mark: str) -> tuple[int, str]:
    count, _, hashed = mark.strip().partition(" ")
    return (int(count), hashed) if count.isdecimal() and len(count) < _LONGEST else (0, "")


def learned_count(mark: str, messages: Sequence[Message]) -> int:
    """Return the count of a mark; 0 if its hash is not that of these messages."""
    count, _ = _parsed_mark(mark)
    is_known = count <= len(messages) and mark == LearnedMarks(messages).mark(count)
    return count if is_known else 0
