"""What a briefing shows can be forgotten by its id, and what was said by its words."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.engine import briefing
from perdure.engine.briefing import short_id
from perdure.engine.hide import HiddenCounts
from perdure.engine.memory import Memory
from perdure.errors import AccessDeniedError, InvalidUriError, InvalidValueError, NodeNotFoundError
from perdure.model.transcript import HIDDEN, parse
from perdure.storage.recorded import Recorded
from tests.engine.erase.homes import check_receipt, leaks, receipts, root
from tests.engine.remembering import BOB, of, opened

pytestmark = pytest.mark.usefixtures("agfs")

SALARY = "My salary is 900000 kroner."
RULE = "Never write to the folder of the importer."
SAID = f"Can you look at the build? {RULE} Thanks, that was all."
TALK = [
    {"role": "user", "content": f"Hello there. {SALARY}"},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": SAID},
    {"role": "assistant", "content": "Understood."},
    {"role": "user", "content": "Now rename the parser module to reader."},
]
MESSAGES = "ctx://local/sessions/s/messages"


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
    memory = root(context).for_caller(project="harbour")
    memory.save("Deploys run on Fridays.", category="decision", slug="deploys")
    memory.commit_session(TALK, session_id="s", extract=False)
    return memory


def id_of(memory: Memory, text: str) -> str:
    return next(item.id for item in memory.briefing().items if item.text == text)


def content(memory: Memory) -> str:
    return memory.read("sessions/s/messages").content


# ---------------------------------------------------------------- by id
def test_the_id_of_a_memory_stands_for_its_uri(memory: Memory) -> None:
    id_ = id_of(memory, "Deploys run on Fridays.")

    done = memory.forget(id_)

    assert done.archived == (memory.uri("decision/deploys"),)
    assert "Fridays" not in memory.briefing().text
    assert memory.forget("decision/deploys").archived_before == done.archived


def test_the_id_of_a_message_hides_what_a_briefing_shows_of_it(memory: Memory) -> None:
    id_ = id_of(memory, RULE)

    done = memory.forget(id_)

    assert RULE not in content(memory)
    assert f"Can you look at the build? {HIDDEN} Thanks, that was all." in content(memory)
    assert SALARY in content(memory)
    assert RULE not in memory.briefing().text
    assert (done.archived, done.archived_before) == ((), ())
    assert done.hidden == HiddenCounts(statements=1, sentences=1, messages=1, sessions=1)


def test_the_id_of_the_last_request_hides_it(memory: Memory) -> None:
    last = memory.briefing().text.splitlines()[-1]
    assert last.endswith("Now rename the parser module to reader.")

    memory.forget(last.split()[2])

    assert "rename the parser" not in memory.briefing().text + content(memory)


def test_it_is_hidden_in_other_sessions_and_later_ones_until_it_is_stated_again(
    memory: Memory,
) -> None:
    memory.commit_session([{"role": "user", "content": RULE}], session_id="before", extract=False)
    memory.forget(short_id(MESSAGES, 2))
    memory.commit_session([{"role": "user", "content": RULE}], session_id="after", extract=False)

    for session in ("before", "after"):
        assert RULE not in memory.read(f"sessions/{session}/messages").content

    assert memory.remember(RULE, kind="rule").lifted == 1
    memory.commit_session([{"role": "user", "content": RULE}], session_id="again", extract=False)
    assert RULE in memory.read("sessions/again/messages").content


def test_one_commit_hides_and_lists(memory: Memory, context: Context) -> None:
    before = context.recorded.history.position()
    memory.forget(short_id(MESSAGES, 2))

    commits = {e.commit for e in context.recorded.history.changes(after=before)}
    assert len(commits) == 1


def test_a_dry_run_by_id_or_words_changes_nothing(memory: Memory, context: Context) -> None:
    before = context.recorded.history.position()

    by_id = memory.forget(short_id(MESSAGES, 2), dry_run=True)
    by_words = memory.forget(SALARY, dry_run=True)

    assert by_id.hidden.sentences == by_words.hidden.sentences == 1
    assert context.recorded.history.position() == before


def test_forgetting_by_id_twice_is_once(memory: Memory, context: Context) -> None:
    name = memory.uri(id_of(memory, RULE))
    memory.forget(name)
    before = context.recorded.history.position()

    assert memory.forget(name).hidden == HiddenCounts()
    assert context.recorded.history.position() == before


def test_an_id_that_two_things_have_forgets_neither(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(briefing, "short_id", lambda *_: "~same")

    with pytest.raises(NodeNotFoundError, match=r"several things. Fix: name one: .*#2"):
        memory.forget("~same")

    assert RULE in content(memory)
    memory.forget(f"{MESSAGES}#2")
    assert RULE not in content(memory)


def test_an_id_that_names_nothing_is_an_error(memory: Memory) -> None:
    with pytest.raises(NodeNotFoundError, match="perdure briefing"):
        memory.forget("~zzzz")


def test_a_caller_can_not_forget_a_message_of_another(memory: Memory, context: Context) -> None:
    bob = of(context, BOB)

    with pytest.raises(NodeNotFoundError):
        bob.forget(id_of(memory, RULE))
    with pytest.raises(AccessDeniedError):
        bob.forget(f"{MESSAGES}#2")
    with pytest.raises(AccessDeniedError):
        bob.forget(f"{MESSAGES}#2", dry_run=True)
    with pytest.raises(NodeNotFoundError):
        bob.forget(SALARY)

    assert RULE in content(memory)
    assert SALARY in content(memory)


def test_of_a_last_request_of_several_sentences_the_shown_one_is_hidden(memory: Memory) -> None:
    text = "Which colour has the door? It is by the quay."
    memory.commit_session([{"role": "user", "content": text}], session_id="t", extract=False)

    memory.forget("ctx://local/sessions/t/messages#0")

    assert f"{HIDDEN} It is by the quay." in memory.read("sessions/t/messages").content


def test_the_sentence_that_is_left_of_a_message_stays(memory: Memory) -> None:
    messages = [{"role": "user", "content": f"{RULE} It is by the quay."}, TALK[0]]
    memory.commit_session(messages, session_id="t", extract=False)
    name = "ctx://local/sessions/t/messages#0"
    memory.forget(name)

    memory.forget(name)

    assert f"{HIDDEN} It is by the quay." in memory.read("sessions/t/messages").content


# ---------------------------------------------------------------- by words
def test_words_are_forgotten_everywhere(memory: Memory) -> None:
    noted = memory.save(SALARY, category="note", slug="pay")
    among = memory.save(f"# Pay\n\nPaid monthly.\n\n{SALARY}", category="note", slug="about")

    done = memory.forget(SALARY)

    assert f"Hello there. {HIDDEN}" in content(memory)
    assert done.also == (noted,)
    assert done.untouched == (among,)
    assert done.hidden == HiddenCounts(
        statements=1, memories=1, sentences=1, messages=1, sessions=1
    )
    assert [each.name for each in memory.list("note")] == ["note/about"]
    assert memory.forget(SALARY).hidden == HiddenCounts()


def test_words_are_known_again_in_what_comes_later(memory: Memory) -> None:
    memory.forget(SALARY)
    memory.append("s", [{"role": "user", "content": f"Remember: {SALARY}"}], extract=False)

    assert "900000" not in content(memory)
    assert memory.recall("What is my salary in kroner?").withheld == 1
    assert memory.remember(SALARY, kind="fact").lifted == 1


def test_words_that_nothing_says_are_an_error(memory: Memory, context: Context) -> None:
    before = context.recorded.history.position()

    with pytest.raises(NodeNotFoundError, match="Fix: use the exact words"):
        memory.forget("The harbour master drinks rum.")

    assert context.recorded.history.position() == before


def test_one_word_is_a_name(memory: Memory) -> None:
    with pytest.raises(InvalidUriError):
        memory.forget("Salary.")


def test_a_session_whose_name_has_a_space_is_a_name(memory: Memory) -> None:
    memory.commit_session(TALK, session_id="on monday", extract=False)

    assert memory.forget("sessions/on monday").archived


# ---------------------------------------------------------------- erasing
def test_erasing_a_message_removes_what_it_states(
    memory: Memory, context: Context, tmp_path: Path
) -> None:
    id_ = id_of(memory, RULE)
    would = memory.forget(id_, erase=True, dry_run=True)
    assert would.plan is not None
    assert would.plan.uris == (f"{MESSAGES}#2",)
    assert (would.plan.files, would.hidden.sentences) == ((), 1)
    assert would.plan.contents
    assert would.plan.versions == len(would.plan.contents)

    done = memory.forget(id_, erase=True)

    assert done.erased is not None
    assert set(would.plan.contents) == set(done.erased.contents)
    assert not leaks(tmp_path, ["folder of the importer"])
    assert leaks(tmp_path, ["900000"])
    assert check_receipt(context, done.erased.path) == []
    again = memory.forget(f"{MESSAGES}#2", erase=True)
    assert again.plan is not None
    assert again.plan.is_empty
    memory.append("t", [{"role": "user", "content": RULE}], extract=False)
    assert RULE not in memory.read("sessions/t/messages").content


def test_what_was_forgotten_by_id_can_be_erased(
    memory: Memory, context: Context, tmp_path: Path
) -> None:
    memory.forget(id_of(memory, RULE))
    assert leaks(tmp_path, ["folder of the importer"])

    done = memory.forget(f"{MESSAGES}#2", erase=True)

    assert done.erased is not None
    assert not leaks(tmp_path, ["folder of the importer"])
    assert check_receipt(context, done.erased.path) == []


def test_what_a_session_ended_at_once_is_not_erased_with_a_message(memory: Memory) -> None:
    memory.commit_session(TALK[:3], session_id="t", extract=False)
    memory.commit_session(TALK, session_id="t", extract=False)

    memory.forget("ctx://local/sessions/t/messages#2", erase=True)

    content = memory.read("sessions/t/messages").content
    assert f"Can you look at the build? {HIDDEN} Thanks, that was all." in content


def test_the_owner_of_the_machine_erases_what_a_message_of_another_states(
    memory: Memory, context: Context, tmp_path: Path
) -> None:
    messages = [{"role": "user", "content": "Hello. Never feed the walrus of the quay."}]
    of(context, BOB).commit_session(messages, session_id="bobs", extract=False)

    done = memory.forget("ctx://local/sessions/bobs/messages#0", erase=True)

    assert done.erased is not None
    assert not leaks(tmp_path, ["walrus"])


@pytest.mark.parametrize("step", ["erase", "commit"])
def test_an_interrupted_erasure_of_a_message_is_ended_by_the_next_to_open(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Recorded, step, fail)
        with pytest.raises(KeyboardInterrupt):
            memory.forget(f"{MESSAGES}#2", erase=True)
    assert leaks(tmp_path, ["folder of the importer"])
    memory.close()

    with opened(tmp_path, semantic=False) as context:
        again = root(context)
        assert again.recall("build").hits
        assert not leaks(tmp_path, ["folder of the importer"])
        assert check_receipt(context, receipts(tmp_path)[0]) == []
        assert f"Can you look at the build? {HIDDEN} Thanks" in content(again)


def test_words_alone_are_not_erased(memory: Memory) -> None:
    with pytest.raises(InvalidValueError, match="Fix: erase a memory"):
        memory.forget(SALARY, erase=True)

    assert SALARY in content(memory)


# ---------------------------------------------------------------- why
def test_why_of_a_message_says_which_it_is(memory: Memory) -> None:
    found = memory.why(id_of(memory, RULE))

    (claim,) = found.statements
    assert (found.uri, found.kind.value, claim.text) == (MESSAGES, "session", SAID)
    assert [(s.session, s.speaker, s.quotes[0].message) for s in claim.evidence] == [
        ("s", "user", 2)
    ]
    assert claim.when is not None
    assert found.holds


def test_a_message_that_is_hidden_as_a_whole_swallows_no_other(memory: Memory) -> None:
    memory.append("t", [{"role": "user", "content": SALARY}])
    memory.forget(SALARY)

    for text in ("Now fix the login page.", "Now fix the login page.", SALARY):
        memory.append("t", [{"role": "user", "content": text}])

    messages = [each.message.content for each in parse(memory.read("sessions/t/messages").content)]
    assert messages == [HIDDEN, "Now fix the login page.", HIDDEN]
