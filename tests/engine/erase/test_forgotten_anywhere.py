"""Whatever is remembered, learned, imported and resumed: what was forgotten stays forgotten."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agents.capture import capture_session
from perdure.agents.pending_sessions import PendingSession
from perdure.app import Context
from perdure.engine import sessions
from perdure.engine.browse import Entry
from perdure.engine.emissions import EmissionRecord, EmittedLine, append_emission, key_of
from perdure.engine.erasure_plan import ErasurePlanner
from perdure.engine.forgotten import ForgottenList
from perdure.engine.hide import HiddenCounts, HidingPlan
from perdure.engine.memory import Memory
from perdure.engine.prompts import relevant_lines
from perdure.engine.shown_lines import EmissionReader
from perdure.engine.uses import count_uses, emitted
from perdure.errors import ForgottenError, NodeExistsError, NodeNotFoundError
from perdure.safety import validation
from perdure.transfer import items
from tests.bites import FAILED
from tests.engine.erase.homes import leaks, root
from tests.engine.remembering import opened
from tests.tiers import searched
from tests.transfer.samples import code_line, mem0, used

pytestmark = pytest.mark.search

SENTENCES = {
    "kumquat": "I keep my kumquat jam under the old veranda.",
    "xylophone": "We always tune the xylophone on Friday evening.",
    "marzipan": "Never put marzipan into the birthday cake.",
}
WORDS = tuple(SENTENCES)
PHRASES = {"kumquat": "my kumquat", "xylophone": "the xylophone", "marzipan": "put marzipan"}
"""Words of each that are in no name."""
CARRIERS = (
    "{}",
    "Please remember: {}",
    "Before we begin. {} Then run the tests.",
    "- one thing\n- {}\n- another",
)
ANSWERS = ("Noted: {}", "Done.", "I will keep in mind that {}")

Step = tuple[str, str, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["remember", "save", "learn", "forget", "erase", "keep", "statement", "resume", "again"]
        ),
        st.sampled_from(WORDS),
        st.integers(0, 3),
    ),
    min_size=3,
    max_size=12,
)


@dataclass
class Play:
    """A user who does anything, and knows what must not be seen."""

    memory: Memory
    context: Context
    home: Path
    work: Path
    gone: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    sessions: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    transcripts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    count: int = 0
    then: int = 0
    """The position before the last step."""

    def do(self, verb: str, word: str, carrier: int) -> None:
        self.show(word)
        self.then = self.memory.position
        getattr(self, verb)(word, carrier)
        self.check()

    def show(self, word: str) -> None:
        """Show an agent what there is, and log it, as hooks do."""
        found = self.memory.briefing()
        result = self.memory.recall(SENTENCES[word], top_k=24)
        lines = relevant_lines(result.hits, result.words, lambda _: False)
        items = [emitted(each) for each in found.items]
        items += [
            EmittedLine(each.uri, each.message, key_of(each.key)) for each in lines if each.uri
        ]
        record = EmissionRecord("claude-code", "s", "session-start", f"names {word}", 1, 1)
        record = record._replace(account="local", position=self.memory.position)
        append_emission(self.memory.home, record._replace(items=tuple(items)))
        count_uses(self.memory.home, "s", items, items[::2])

    # ------------------------------------------------------------ verbs
    def remember(self, word: str, carrier: int) -> None:
        self.memory.remember(
            SENTENCES[word], kind=("fact", "rule", "preference", "person")[carrier]
        )
        self._holds_again(word)

    def save(self, word: str, carrier: int) -> None:
        try:
            self.memory.save(
                SENTENCES[word], category="note", slug=f"n{carrier}", replace_learned=True
            )
        except NodeExistsError:  # what is archived is not replaced
            return
        self._holds_again(word)

    def _holds_again(self, word: str) -> None:
        self.gone.discard(word)
        self.erased.discard(word)

    def learn(self, word: str, carrier: int) -> None:
        """Commit a session that says it, and on which others go on."""
        self.count += 1
        messages = [
            {"role": "user", "content": CARRIERS[carrier].format(SENTENCES[word])},
            {"role": "assistant", "content": ANSWERS[carrier % 3].format(SENTENCES[word])},
        ]
        self.sessions[f"s{self.count}"] = messages
        self.memory.commit_session(messages, session_id=f"s{self.count}")

    def again(self, word: str, carrier: int) -> None:
        """Commit an earlier session with more messages."""
        for name in list(self.sessions)[carrier::4]:
            messages = self.sessions[name]
            messages.append({"role": "user", "content": CARRIERS[carrier].format(SENTENCES[word])})
            done = self.memory.commit_session(messages, session_id=name)
            assert (done.added, done.messages, done.replaced) == (1, len(messages), 0)

    def keep(self, word: str, carrier: int) -> None:
        """Let a hook keep a transcript of an agent."""
        self.count += 1
        name = f"t{self.count}"
        self.transcripts[name] = [
            code_line(
                "m0", None, "user", CARRIERS[carrier].format(SENTENCES[word]), sessionId=name
            ),
            code_line(
                "m1", "m0", "assistant", used("remember", {"text": SENTENCES[word]}), sessionId=name
            ),
        ]
        self._hook(name)

    def resume(self, word: str, carrier: int) -> None:
        """Go on with a transcript."""
        for name in list(self.transcripts)[carrier::4]:
            lines = self.transcripts[name]
            text = CARRIERS[carrier].format(SENTENCES[word])
            new = code_line(f"m{len(lines)}", f"m{len(lines) - 1}", "user", text, sessionId=name)
            lines.append(new)
            self._hook(name)

    def _hook(self, name: str) -> None:
        path = self.work / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in self.transcripts[name]))
        capture_session(self.context, PendingSession("claude-code", name, str(path)))

    def statement(self, word: str, carrier: int) -> None:
        """Import what another program remembers."""
        path = self.work / "mem0.json"
        path.write_text(json.dumps([mem0(f"id{carrier}", SENTENCES[word])]))
        self.memory.import_from(path, format="mem0")

    def forget(self, word: str, _: int) -> None:
        """Forget the first memory that says it; the others go with it."""
        for uri in self._saying(self._nodes(), word)[:1]:
            self.memory.forget(uri)
            self.gone.add(word)

    def erase(self, word: str, _: int) -> None:
        """Erase all that says it, what is archived too."""
        every = (*self._nodes(), *self.memory.list("", archived=True))
        for uri in self._saying(every, word):
            with suppress(NodeNotFoundError):  # it went with another
                self.memory.forget(uri, erase=True)
            self.gone.add(word)
            self.erased.add(word)

    def _saying(self, entries: Iterable[Entry], word: str) -> list[str]:
        return [each.uri for each in entries if each.node and word in each.node.content]

    # ------------------------------------------------------------ looking
    def _nodes(self) -> Iterator[Entry]:
        pending = [self.memory.tree("")]
        while pending:
            entry = pending.pop()
            pending += entry.below
            yield entry

    def check(self) -> None:
        for word in self.gone:
            assert word not in self.seen(word), word
        if self.erased:
            held = leaks(self.home, [PHRASES[word] for word in self.erased])
            assert held == {}
        names = sorted(each.id.removeprefix("claude-code-") for each in self.memory.sessions())
        assert names == sorted([*self.sessions, *self.transcripts])

    def seen(self, word: str) -> str:
        """Return all that an agent gets to see: unasked, asked for the words, and in lists."""
        validation = [self.memory.briefing().text, self.memory.briefing(at=self.then or 1).text]
        validation += [line.text for each in self.memory.shown() for line in each.lines]
        for question in (SENTENCES[word], word):
            result = self.memory.recall(question, budget_tokens=2000, top_k=24)
            validation += [result.context, *(hit.snippet for hit in result.hits)]
            lines = relevant_lines(result.hits, result.words, lambda _: False)
            validation += [line.text for line in lines]
        validation += [each.text for each in self.memory.candidates()]
        validation += [each.title for each in self.memory.sessions()]
        validation += [each.node.content for each in self._nodes() if each.node]
        for session in self.memory.sessions():
            validation += [each.node.content for each in self.memory.list(session.uri) if each.node]
        return "\n".join(validation)


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


def play(folder: Path, todo: list[Step]) -> Play:
    home, work = folder / "home", folder / "work"
    work.mkdir()
    with opened(home, semantic=False) as context:
        played = Play(root(context), context, home, work)
        for step in todo:
            played.do(*step)
    return played


@settings(max_examples=searched(200))
@given(todo=steps)
def test_whatever_is_done_what_was_forgotten_stays_so(
    todo: list[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    play(tmp_path_factory.mktemp("play"), todo)


def test_each_verb_is_played(tmp_path: Path) -> None:
    """Prove that the search finds words that are there, and that forgetting hides them."""
    todo = [(verb, "kumquat", 0) for verb in ("remember", "learn", "keep", "statement")]
    played = play(tmp_path, [*todo, ("learn", "marzipan", 2), ("resume", "kumquat", 0)])
    assert played.gone == set()

    with opened(played.home, semantic=False) as context:
        played.memory, played.context = root(context), context
        assert "kumquat" in played.seen("kumquat")
        for verb in ("forget", "resume", "again", "erase", "resume", "again", "statement"):
            played.do(verb, "kumquat", 0)
        assert (played.gone, played.erased) == ({"kumquat"}, {"kumquat"})
        assert "marzipan" in played.seen("marzipan")
        with pytest.raises(ForgottenError):
            played.memory.remember(SENTENCES["kumquat"], kind="fact", speaker="agent")
        played.do("remember", "kumquat", 0)
        assert "kumquat" in played.seen("kumquat")


# ---------------------------------------------------------------- each check bites
EMPTY = ForgottenList("")
BROKEN: dict[str, tuple[list[tuple[object, str]], object, Sequence[str]]] = {
    "what arrives is kept as it is": (
        [(sessions, "of_caller")],
        lambda *_: EMPTY,
        ("remember", "forget", "learn"),
    ),
    "sessions keep it": (
        [(HidingPlan, "_sessions")],
        lambda *_: HiddenCounts(),
        ("learn", "remember", "forget"),
    ),
    "other memories keep it": (
        [(HidingPlan, "_memories")],
        lambda *_: 0,
        ("save", "remember", "forget"),
    ),
    "imports bring it back": (
        [(items, "of_caller")],
        lambda *_: EMPTY,
        ("remember", "forget", "statement"),
    ),
    "the history of sessions keeps what is erased": (
        [(ErasurePlanner, "quoting")],
        lambda *_: frozenset(),
        ("learn", "remember", "erase"),
    ),
    "what agents were shown is shown again": (
        [(EmissionReader, "_is_forgotten")],
        lambda *_: False,
        ("learn", "remember", "forget"),
    ),
    "a session with something hidden is taken for another": (
        [(sessions, "matches_hidden"), (validation, "matches_hidden")],
        lambda *_: False,
        ("keep", "remember", "forget", "remember", "resume"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_memory_that_breaks_it_is_caught(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets, broken, verbs = BROKEN[what]
    todo = [(verb, "kumquat", 0) for verb in verbs]
    play(tmp_path, todo)
    again = tmp_path / "broken"
    again.mkdir()
    for target, name in targets:
        monkeypatch.setattr(target, name, broken)
    with pytest.raises(FAILED):
        play(again, todo)
