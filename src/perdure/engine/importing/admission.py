"""The one reader: every transcript passes here before anything of it is written.

It leaves out what is private, refuses sessions that may not contribute, and marks what stems from
others: words of the user that a page, a tool or a paste of the session had before.
"""

from collections.abc import Iterator, Mapping, Sequence

from perdure.dataclass import dataclass, replace
from perdure.engine.importing.contract import Conversation, Heard, Said
from perdure.engine.learn import prose
from perdure.engine.learn.prose import is_paste, pasted_in, user_sentences
from perdure.engine.learn.review import id_of
from perdure.engine.learn.rules import written
from perdure.engine.repeatable import first_step, is_repeatable, procedures_in
from perdure.engine.session_notes import SessionNotes
from perdure.model.messages import time_in
from perdure.model.private import Screen
from perdure.model.transcript import Message
from perdure.model.trust import PASTED, AgentSettings, Reason, real_path
from perdure.model.values import words_key

_FEWEST = 4
"""Words. A shorter sentence may be the same by chance."""


@dataclass(frozen=True, slots=True)
class Admitted:
    item: Conversation
    is_private: bool = False
    """Whether parts of it are private; they are left out."""
    origins: tuple[str, ...] = ()
    """Where words in it may stem from: web, mcp, pasted."""
    foreign: Mapping[str, str] | None = None
    """For sentences of the user that are not their own, by id, where these words stem from."""

    @property
    def states_anything(self) -> bool:
        return bool(written(self.item.messages))


@dataclass(frozen=True, slots=True)
class Admission:
    settings: AgentSettings
    notes: SessionNotes
    is_named: bool = False
    """Whether the user named the one session, or allowed the run."""

    def admit(self, item: Conversation, session_id: str = "") -> Admitted | Reason:
        for folder in dict.fromkeys((item.cwd, real_path(item.cwd))):
            if folder or item.headless:
                refusal = self.settings.refusal(
                    folder, is_headless=item.headless, is_named=self.is_named
                )
                if refusal is not None:
                    return refusal
        screen = Screen(self.notes.switches(item.source_id, session_id))
        messages, heard = _public(item, screen)
        if screen.is_used and not messages:
            return Reason.PRIVATE
        public = replace(
            item, messages=messages, heard=(), title="" if screen.is_used else item.title
        )
        origins, foreign = _origins(messages, heard)
        return Admitted(public, screen.is_used, origins, foreign)


def _public(item: Conversation, screen: Screen) -> tuple[tuple[Said, ...], list[Heard]]:
    kept: list[Said] = []
    heard: list[Heard] = []
    waiting = list(item.heard)
    for at, message in enumerate((*item.messages, None)):
        while waiting and waiting[0].at <= at:
            one = waiting.pop(0)
            heard += [] if screen.is_on else [replace(one, at=len(kept))]
        if message is not None:
            time = time_in(message.get("time"))
            content = screen.public(message["role"], message["content"], time)
            kept += [{**message, "content": content}] if content else []
    return tuple(kept), heard


# ---------------------------------------------------------------- words of others
def _origins(
    messages: Sequence[Said], heard: Sequence[Heard]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return where words of a session may stem from, and which sentences of the user do."""
    pasted = [
        Heard(at, PASTED, text)
        for at, each in enumerate(messages)
        if each["role"] == "user" and (text := pasted_in(each["content"]))
    ]
    others = sorted([*heard, *pasted], key=lambda each: each.at)
    marks = {
        each.origin for each in (*heard, *pasted) if each.origin != PASTED or is_paste(each.text)
    }
    foreign: dict[str, str] = {}
    if others:
        for at, key in _stated(messages):
            origin = next((_origin(e) for e in others if e.at <= at and _has(e.text, key)), "")
            if origin:
                foreign[id_of(key)] = origin
    for at, message in enumerate(messages):
        for text in procedures_in(message["content"]) if message["role"] == "user" else ():
            told = [each for each in heard if each.at <= at and _has(each.text, first_step(text))]
            foreign |= {id_of(text): _origin(each) for each in told[:1]}
    return tuple(sorted(marks - {""})), foreign


def _origin(heard: Heard) -> str:
    return heard.origin or "tool"


def _stated(messages: Sequence[Said]) -> Iterator[tuple[int, str]]:
    session = [Message.from_mapping(each) for each in messages]
    found = {(each.message, each.key) for each in written(session)}
    found |= {(each.sentence.message, each.sentence.key) for each in prose.candidates(session)}
    found |= {
        (each.message, each.key) for each in user_sentences(session) if is_repeatable(each.plain)
    }
    yield from sorted(each for each in found if len(each[1].split()) >= _FEWEST)


def _has(text: str, key: str) -> bool:
    """Whether a text has the words of a key in a row."""
    longest = max((word for word in key.split() if "'" not in word), key=len, default="")
    return longest in text.casefold() and f" {key} " in f" {words_key(text)} "
