"""Forget means forget: no sentence that a user forgot is found, shown or learned again."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine import sessions
from perdure.engine.browse import Entry
from perdure.engine.forgotten import ForgottenList, load, of_caller
from perdure.engine.hide import HiddenCounts, HidingPlan
from perdure.engine.memory import Memory
from perdure.engine.recall.result import HintKind
from perdure.errors import BrokenNodeError, ForgottenError, NodeExistsError, StorageFaultError
from perdure.model.transcript import HIDDEN
from tests.engine.erase.homes import check_receipt, leaks, root
from tests.engine.remembering import ANA, BOB, of, opened

STATEMENT = "Ana is allergic to penicillin."
PLEASE = "Please remember that Ana is allergic to penicillin. Always run the tests first."
CALL = "[called mcp__perdure__remember: Ana is allergic to penicillin.]"
TALK = [
    {"role": "user", "content": PLEASE},
    {"role": "assistant", "content": CALL},
    {"role": "assistant", "content": "Noted."},
]
WORDS = ("allergic to", "to penicillin")
"""In no name."""
LATER = {"role": "user", "content": "Now forget that Ana is allergic to penicillin!"}


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        yield context


@pytest.fixture
def memory(context: Context) -> Memory:
    return root(context)


def seen(memory: Memory) -> str:
    """Return all that an agent, or its user, sees of a memory now."""
    results = [memory.recall(each, budget_tokens=2000) for each in (STATEMENT, "penicillin")]
    texts = [hit.snippet for result in results for hit in result.hits]
    texts += [result.context for result in results]
    texts += [each.text for each in memory.candidates()]
    texts.append(memory.briefing().text)
    for session in memory.sessions():
        texts.append(session.title)
        texts += [each.node.content for each in memory.list(session.uri) if each.node]
    texts += [each.node.content for each in nodes_in(memory.tree("")) if each.node]
    return "\n".join(texts)


def nodes_in(entry: Entry) -> Iterator[Entry]:
    yield entry
    for below in entry.below:
        yield from nodes_in(below)


# ---------------------------------------------------------------- everywhere
def test_a_forgotten_statement_is_nowhere(memory: Memory) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.commit_session(TALK, session_id="s1", title="Ana is allergic to penicillin")
    assert "penicillin" in seen(memory)

    done = memory.forget(uri)

    assert "penicillin" not in seen(memory)
    assert done.hidden == replace(
        HiddenCounts(statements=1, sentences=2, messages=2, titles=1, sessions=1),
        memories=done.hidden.memories,
    )
    memory.commit_session([*TALK, LATER], session_id="s1")
    memory.append("s2", TALK)
    assert "penicillin" not in seen(memory)
    assert [each.id for each in memory.sessions()] == ["s2", "s1"]
    assert f"{HIDDEN} Always run the tests first." in memory.read("sessions/s1/messages").content


def test_a_recall_counts_forgotten_statements(memory: Memory) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.forget(uri)

    asked = memory.recall("Which medicine is Ana allergic to?")
    other = memory.recall("Which database do we use?")

    assert (asked.withheld, other.withheld) == (1, 0)
    assert [hint.text for hint in asked.hints if hint.kind is HintKind.FORGOTTEN] == [
        "1 statement is withheld, because the user forgot it"
    ]
    assert memory.commit_session(TALK, session_id="s1").hidden == 2


def test_what_was_learned_from_the_same_words_goes_too(memory: Memory) -> None:
    memory.commit_session(
        [{"role": "user", "content": "I prefer tabs over spaces. I prefer tea over coffee."}],
        session_id="s1",
    )
    learned = [
        each for each in nodes_in(memory.tree("")) if each.node and "tabs" in each.node.content
    ]
    assert learned
    saved = memory.save("Prefers tabs over spaces.", category="note", slug="indentation")

    done = memory.forget(saved)

    assert "tabs" not in seen(memory)
    assert done.also == tuple(sorted(each.uri for each in learned))
    assert "coffee" in seen(memory)


def test_another_user_keeps_what_one_forgot(context: Context) -> None:
    ana, bob = of(context, ANA), of(context, BOB)
    bob.commit_session(TALK, session_id="of-bob")
    uri = ana.save(STATEMENT, category="health", slug="allergy")

    ana.forget(uri)

    assert "penicillin" in bob.read("sessions/of-bob/messages").content
    assert bob.commit_session([*TALK, LATER], session_id="of-bob").hidden == 0


def test_the_past_shows_it_no_more(memory: Memory, context: Context) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    before = context.recorded.history.position()
    memory.forget(uri)

    then = memory.recall("Ana allergic", at=IndexState(0, before), budget_tokens=1000)

    assert then.hits
    assert "penicillin" not in then.context + "".join(hit.snippet for hit in then.hits)


# ---------------------------------------------------------------- saying it again
def test_who_says_it_again_has_it_again(memory: Memory) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.forget(uri)

    with pytest.raises(ForgottenError, match="the user forgot this"):
        memory.remember(STATEMENT, kind="fact", speaker="agent")
    again = memory.remember(STATEMENT, kind="fact")

    assert again.lifted == 1
    assert "penicillin" in seen(memory)
    assert memory.commit_session(TALK, session_id="s1").hidden == 0
    assert memory.save(STATEMENT, category="note").lifted == 0


def test_unarchive_shows_it_again(memory: Memory) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    other = memory.save("Always run the tests first.", category="note", slug="tests")
    memory.commit_session(TALK, session_id="s1")
    before = memory.read("sessions/s1/messages").content
    memory.forget(uri)
    memory.forget(other)
    memory.append("s1", [{"role": "user", "content": "Go on."}])

    memory.unarchive(uri)

    now = memory.read("sessions/s1/messages").content
    assert "that Ana is allergic to penicillin. [forgotten]." in now
    memory.unarchive(other)
    assert memory.read("sessions/s1/messages").content.startswith(before)
    assert (
        memory.commit_session([*TALK, {"role": "user", "content": "Go on."}], session_id="s1").added
        == 0
    )


def test_what_is_rewound_stays_forgotten(memory: Memory, context: Context) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.commit_session(TALK, session_id="s1", extract=False)
    before = IndexState(0, context.recorded.history.position())
    memory.forget(uri)

    memory.rewind(before)

    assert "penicillin" not in seen(memory)
    with pytest.raises(NodeExistsError, match="unarchive"):
        memory.restore(uri, before)
    memory.delete(uri)
    memory.restore(uri, before)
    assert memory.recall("penicillin").withheld == 0
    assert PLEASE in memory.read("sessions/s1/messages").content


def test_a_memory_with_other_text_stays_and_is_listed(memory: Memory) -> None:
    note = memory.save(f"Ana likes tea. {STATEMENT} She has a dog.", category="note", slug="ana")
    uri = memory.save(STATEMENT, category="health", slug="allergy")

    done = memory.forget(uri)

    assert (done.also, done.untouched) == ((), (note,))


# ---------------------------------------------------------------- sessions
def test_a_forgotten_session_is_not_stored_again(memory: Memory) -> None:
    memory.commit_session(TALK, session_id="s1", extract=False)
    memory.forget("sessions/s1")

    with pytest.raises(ForgottenError, match="s1"):
        memory.commit_session([*TALK, LATER], session_id="s1")
    assert memory.sessions() == ()

    memory.unarchive("sessions/s1/messages")
    assert memory.commit_session([*TALK, LATER], session_id="s1").added == 1


def test_an_erased_session_is_not_stored_again(memory: Memory, tmp_path: Path) -> None:
    memory.commit_session(TALK, session_id="s1", extract=False)
    memory.forget("sessions/s1", erase=True)

    with pytest.raises(ForgottenError, match="s1"):
        memory.commit_session(TALK, session_id="s1")
    assert leaks(tmp_path, WORDS) == {}


def test_a_session_is_not_learned_from_again_because_something_in_it_was_hidden(
    memory: Memory,
) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    first = memory.commit_session(TALK, session_id="s1")
    assert first.extracted
    memory.forget(uri)

    again = memory.commit_session([*TALK, {"role": "user", "content": "Go on."}], session_id="s1")

    assert (again.extracted, again.added, again.replaced) == (0, 1, 0)


# ---------------------------------------------------------------- erasing
def test_what_is_erased_is_in_no_file_and_comes_back_with_no_session(
    context: Context, memory: Memory, tmp_path: Path
) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.commit_session(TALK[:2], session_id="s1", title="Ana is allergic to penicillin")
    memory.commit_session(TALK, session_id="s1")
    memory.recall("penicillin")

    done = memory.forget(uri, erase=True)

    assert done.hidden.sessions == 1
    assert done.plan is not None
    assert not [each for each in done.plan.quotations if "/sessions/" in each.uri]
    assert done.erased is not None
    assert check_receipt(context, done.erased.path) == []
    memory.commit_session([*TALK, LATER], session_id="s1")
    memory.append("s2", TALK)
    assert [each.id for each in memory.sessions()] == ["s2", "s1"]
    assert leaks(tmp_path, WORDS) == {}
    assert "Always run the tests first." in memory.read("sessions/s1/messages").content


def test_the_list_has_no_word_of_what_was_erased(context: Context, memory: Memory) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.forget(uri)
    assert load(context.nodes, "local", "ana").entries[0].words

    memory.forget(uri, erase=True)

    (entry,) = load(context.nodes, "local", "ana").entries
    assert (entry.words, len(entry.runs)) == ((), 1)


def test_a_deleted_memory_can_be_erased_from_sessions(memory: Memory, tmp_path: Path) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.commit_session(TALK, session_id="s1", extract=False)
    memory.delete(uri)

    memory.forget(uri, erase=True)

    assert leaks(tmp_path, WORDS) == {}


# ---------------------------------------------------------------- faults
def test_killed_anywhere_all_is_hidden_or_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    memory.commit_session(TALK, session_id="s1", extract=False)
    with monkeypatch.context() as patched:

        def fail(*_: object) -> HiddenCounts:
            raise StorageFaultError("the disk is gone. Fix: none.")

        patched.setattr(HidingPlan, "_sessions", fail)
        with pytest.raises(StorageFaultError):
            memory.forget(uri)

    assert memory.read(uri).content == STATEMENT
    assert memory.recall("Ana allergic").withheld == 0


def test_an_unreadable_list_is_not_an_empty_one(
    context: Context, memory: Memory, tmp_path: Path
) -> None:
    memory.forget(memory.save(STATEMENT, category="health", slug="allergy"))
    (file,) = tmp_path.rglob("Forgotten (ana).md")
    file.write_text('{"key": 3}')

    for act in (
        lambda: memory.commit_session(TALK, session_id="s1"),
        lambda: memory.recall("medicine"),
        lambda: memory.remember("Use tabs.", kind="rule"),
    ):
        with pytest.raises(BrokenNodeError, match="does not have the format"):
            act()
    assert memory.sessions() == ()


def test_a_session_that_comes_while_it_is_forgotten_is_hidden_by_one_of_both(
    memory: Memory, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = memory.save(STATEMENT, category="health", slug="allergy")
    first = iter([ForgottenList("")])
    with monkeypatch.context() as patched:  # it looked before the list was written
        patched.setattr(
            sessions, "of_caller", lambda *given: next(first, None) or of_caller(*given)
        )
        plan = HidingPlan.plan

        def late(self: HidingPlan, *given: Any) -> HiddenCounts:  # noqa: ANN401 - as it was called
            planned = plan(self, *given)
            if not memory.sessions():
                root(context).commit_session(TALK, session_id="s1", extract=False)
            return planned

        patched.setattr(HidingPlan, "plan", late)
        assert memory.forget(uri).hidden.sessions == 1
    assert "penicillin" not in seen(memory)

    first = iter([ForgottenList("")])
    with monkeypatch.context() as patched:
        patched.setattr(
            sessions, "of_caller", lambda *given: next(first, None) or of_caller(*given)
        )
        memory.commit_session(TALK, session_id="s2")
    assert "penicillin" not in seen(memory)
    assert len(memory.sessions()) == 2


# ---------------------------------------------------------------- which sentences
FORGOT = {
    "Ana is allergic to penicillin.": (
        (
            "Please remember that Ana is allergic to penicillin.",
            "ana, who is ALLERGIC to Penicillin, was here",
            "[called remember: Ana is allergic to penicillin.]",
            '[called remember] {"kind": "fact", "text": "So:\\nAna is allergic to penicillin."}',
            "- Ana is allergic to penicillin",
        ),
        (
            "Which medicine is Ana allergic to?",
            "Ana likes tea.",
            "Penicillin was found in 1928.",
            "## Ana allergic penicillin (user) ^m3",
        ),
    ),
    "Use tabs.": (
        ("Please use tabs.", "use tabs", "OK, use tabs!", '[called x] {"text": "Use tabs."}'),
        ("Use tabs, not spaces.", "Don't use tabs.", "Use four tabs in the browser."),
    ),
    "The user is vegetarian.": (
        ("I am vegetarian.", "I'm vegetarian, please remember that."),
        ("Find a vegetarian restaurant.", "I am not vegetarian."),
    ),
}


def list_of(*statements: str) -> ForgottenList:
    empty = ForgottenList("00" * 16)
    return empty.added(*(empty.entry(f"ctx://{n}", [each]) for n, each in enumerate(statements)))


@pytest.mark.parametrize("statement", FORGOT)
def test_the_same_words_are_known_and_others_are_not(statement: str) -> None:
    same, others = FORGOT[statement]
    forgotten = list_of(statement)

    assert [each for each in same if not forgotten.matches(each)] == []
    assert [each for each in others if forgotten.matches(each)] == []
    for each in same:
        masked = forgotten.masked(f"Before. {each}\nAfter.")
        assert forgotten.masked(masked.text).hidden == 0
        assert masked.text.endswith("\nAfter.")


def test_of_a_long_line_only_the_words_between_are_hidden() -> None:
    line = f"{'so it goes ' * 40}Ana is allergic to penicillin {'and so on ' * 40}"

    masked = list_of(STATEMENT).masked(line)

    assert masked == (line.replace("Ana is allergic to penicillin", HIDDEN), 1)


def test_of_a_page_short_sentences_are_not_forgotten() -> None:
    forgotten = list_of("It works. The kumquat hides under the veranda.")

    assert not forgotten.matches("It works.")
    assert forgotten.matches("The kumquat hides under the veranda.")


def test_without_the_key_no_hash_is_the_same() -> None:
    one, other = ForgottenList("00" * 16), ForgottenList("01" * 16)

    hashes = [
        {*entry.sentences, *entry.words[0]}
        for entry in (each.entry("ctx://a", [STATEMENT]) for each in (one, other))
    ]

    assert hashes[0].isdisjoint(hashes[1])
