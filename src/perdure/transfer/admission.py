"""Which sessions of agents may be stored, without private messages, and whose words they hold."""

from collections.abc import Iterator, Mapping, Sequence

from perdure.dataclass import dataclass, replace
from perdure.engine.briefing_records import first_step, is_repeatable, procedures_in
from perdure.engine.learn import prose
from perdure.engine.learn.extractors import rule_statements
from perdure.engine.learn.prose import is_paste, pasted_in, sentence_id, user_sentences
from perdure.engine.session_notes import SessionNotes
from perdure.model.messages import time_in
from perdure.model.privacy import PrivacyFilter
from perdure.model.transcript import Message
from perdure.model.trust import PASTED, AgentSettings, OptOut, resolved_folder
from perdure.model.values import comparison_key
from perdure.transfer.contract import MessageFields, SessionItem, ToolOutput

_MIN_WORDS = 4
"""A shorter sentence may be the same by chance."""


@dataclass(frozen=True, slots=True)
class AdmittedSession:
    item: SessionItem
    is_private: bool = False
    """Whether parts of it are private, and were removed."""
    origins: tuple[str, ...] = ()
    """Where words in it may come from: web, mcp, pasted."""
    foreign_sentences: Mapping[str, str] | None = None
    """Sentences of the user that are not their own words: the origin of each, by id."""

    @property
    def states_anything(self) -> bool:
        return bool(rule_statements(self.item.messages))


@dataclass(frozen=True, slots=True)
class Admission:
    settings: AgentSettings
    notes: SessionNotes
    is_named: bool = False
    """Whether the user named this one session, or allowed the run."""

    def admit(self, item: SessionItem, session_id: str = "") -> AdmittedSession | OptOut:
        """Return the session without its private messages, or why it is refused."""
        for folder in dict.fromkeys((item.cwd, resolved_folder(item.cwd))):
            if folder or item.headless:
                refusal = self.settings.refusal(
                    folder, is_headless=item.headless, is_named=self.is_named
                )
                if refusal is not None:
                    return refusal
        screen = PrivacyFilter(self.notes.switches(item.source_id, session_id))
        messages, outputs = _public(item, screen)
        if screen.is_used and not messages:
            return OptOut.PRIVATE
        public = replace(
            item, messages=messages, tool_outputs=(), title="" if screen.is_used else item.title
        )
        return AdmittedSession(public, screen.is_used, *_origins(messages, outputs))


def _public(
    item: SessionItem, screen: PrivacyFilter
) -> tuple[tuple[MessageFields, ...], list[ToolOutput]]:
    messages: list[MessageFields] = []
    outputs: list[ToolOutput] = []
    waiting = list(item.tool_outputs)
    for at, message in enumerate((*item.messages, None)):
        while waiting and waiting[0].messages_before <= at:
            output = waiting.pop(0)
            if not screen.is_on:
                outputs.append(replace(output, messages_before=len(messages)))
        if message is not None:
            time = time_in(message.get("time"))
            content = screen.public(message["role"], message["content"], time)
            if content:
                messages.append({**message, "content": content})
    return tuple(messages), outputs


# ---------------------------------------------------------------- words of others
def _origins(
    messages: Sequence[MessageFields], outputs: Sequence[ToolOutput]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return where words of a session may come from, and which sentences of the user do."""
    pasted = [
        ToolOutput(at, PASTED, text)
        for at, each in enumerate(messages)
        if each["role"] == "user" and (text := pasted_in(each["content"]))
    ]
    others = sorted([*outputs, *pasted], key=lambda each: each.messages_before)
    marks = {each.origin for each in others if each.origin != PASTED or is_paste(each.text)}
    foreign: dict[str, str] = {}
    for at, key in _statements(messages) if others else ():
        if origin := _origin_of(key, others, at):
            foreign[sentence_id(key)] = origin
    for at, message in enumerate(messages):
        for text in procedures_in(message["content"]) if message["role"] == "user" else ():
            if origin := _origin_of(first_step(text), outputs, at):
                foreign[sentence_id(text)] = origin
    return tuple(sorted(marks - {""})), foreign


def _origin_of(key: str, outputs: Sequence[ToolOutput], at: int) -> str:
    """Return where the words of a key in message `at` come from; "" if they are the user's."""
    found = (e for e in outputs if e.messages_before <= at and _contains(e.text, key))
    return next((each.origin or "tool" for each in found), "")


def _statements(messages: Sequence[MessageFields]) -> Iterator[tuple[int, str]]:
    session = [Message.from_mapping(each) for each in messages]
    found = {(each.message, each.key) for each in rule_statements(session)}
    found |= {(each.sentence.message, each.sentence.key) for each in prose.candidates(session)}
    found |= {
        (each.message, each.key) for each in user_sentences(session) if is_repeatable(each.plain)
    }
    yield from sorted(each for each in found if len(each[1].split()) >= _MIN_WORDS)


def _contains(text: str, key: str) -> bool:
    """Return whether a text contains the words of a key in a row."""
    longest = max((word for word in key.split() if "'" not in word), key=len, default="")
    return longest in text.casefold() and f" {key} " in f" {comparison_key(text)} "
