"""Reminders: what a project's memory has to say to a tool call, as its state is now."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import AgentAction, Memory
from perdure.errors import InvalidValueError

NPM = AgentAction("Bash", "npm install")
SENTENCE = "Please never use npm here, we use pnpm."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path / "home", project="lighthouse") as opened:
        yield opened


def reminded(memory: Memory, action: AgentAction = NPM) -> list[str]:
    return [each.text for each in memory.reminders(action)]


def say(memory: Memory, text: str, session: str, time: str = "2026-03-02T10:00:00Z") -> None:
    messages = [
        {"role": "user", "content": text, "time": time},
        {"role": "assistant", "content": "Fine.", "time": time},
    ]
    memory.commit_session(messages, session_id=session, extract=False)


def test_a_sentence_of_a_session_speaks_with_its_message_and_date(memory: Memory) -> None:
    say(memory, SENTENCE, "a")

    (found,) = memory.reminders(NPM)
    assert (found.text, found.message, found.breaks, found.matched) == (SENTENCE, 0, True, "npm")
    assert found.line == f"User (2026-03-02): {SENTENCE} {found.id}"
    assert SENTENCE in memory.read(found.id).content
    assert not found.enforced


def test_a_newer_sentence_that_allows_it_silences_an_older_one(memory: Memory) -> None:
    say(memory, SENTENCE, "a")
    say(memory, "From now on always use npm instead of pnpm.", "b", "2026-04-02T10:00:00Z")

    assert reminded(memory) == []
    assert reminded(memory, AgentAction("Bash", "pnpm i")) == [
        "From now on always use npm instead of pnpm."
    ]


def test_a_statement_about_a_file_reminds_only_if_stored_on_purpose(memory: Memory) -> None:
    rule = "Every endpoint must have a test in src/api."
    action = AgentAction("Edit", "", ("src/api/a.py",))
    messages = [{"role": "user", "content": rule, "time": "2026-03-02T10:00:00Z"}]
    assert memory.commit_session(messages, session_id="a").created == 1
    assert reminded(memory, action) == []

    memory.remember(rule, kind="rule")
    assert reminded(memory, action) == [rule]


def test_what_ended_is_silent(memory: Memory) -> None:
    memory.remember("Use pnpm, never npm.", kind="rule")
    assert reminded(memory) == ["Use pnpm, never npm."]

    memory.remember("Use npm, not pnpm.", kind="rule", replaces=["Use pnpm, never npm."])
    assert reminded(memory) == []


def test_words_that_were_forgotten_are_silent_and_gone_from_the_index(
    memory: Memory, tmp_path: Path
) -> None:
    text = "Never edit src/quaxle by hand."
    say(memory, text, "a")
    action = AgentAction("Edit", "", ("src/quaxle/a.py",))
    assert reminded(memory, action) == [text]

    memory.forget(text)
    assert reminded(memory, action) == []
    memory.close()
    files = (tmp_path / "home").glob("histories/*/index/**/*.sqlite*")
    assert not any(b"quaxle" in path.read_bytes() for path in files)


def test_a_rebuilt_index_reminds_of_the_same(memory: Memory) -> None:
    say(memory, SENTENCE, "a")
    memory.remember("Never edit src/generated.", kind="rule")
    actions = (NPM, AgentAction("Edit", "", ("src/generated/a.py",)))
    before = [memory.reminders(each) for each in actions]

    memory.index.rebuild()
    assert [memory.reminders(each) for each in actions] == before
    assert all(before)


def test_what_is_known_is_left_out(memory: Memory) -> None:
    memory.remember("Use pnpm, never npm.", kind="rule")

    assert memory.reminders(NPM, known=["Use pnpm, never npm."]) == ()


def test_a_rejected_approach_speaks_when_it_is_tried_again(memory: Memory) -> None:
    memory.remember("Tried `docker compose` for the tests; too slow.", kind="rejected")

    assert reminded(memory, AgentAction("Bash", "docker compose up -d"))
    assert not reminded(memory, AgentAction("Bash", "make test"))


def test_a_message_can_not_be_enforced(memory: Memory) -> None:
    say(memory, SENTENCE, "a")
    (found,) = memory.reminders(NPM)

    with pytest.raises(InvalidValueError, match="--enforce"):
        memory.enforce(found.id)
    with pytest.raises(InvalidValueError, match="Fix: "):
        memory.enforce(memory.remember("Never use npm.", kind="rule").uri, text="Never use yarn.")


def test_only_the_statement_that_is_named_is_enforced(memory: Memory) -> None:
    uri = memory.remember("Never use npm.", kind="rule").uri
    done = memory.enforce(uri, text="Never use npm.")

    assert (done.statements, done.can_block) == (("Never use npm.",), True)
    assert [each.enforced for each in memory.reminders(NPM)] == [True]


def test_other_users_and_projects_are_silent(memory: Memory) -> None:
    memory.remember("Use pnpm, never npm.", kind="rule")

    with memory.for_caller(user="bob") as other:
        assert other.reminders(NPM) == ()
    with memory.for_caller(project="harbour") as other:
        assert other.reminders(NPM) == ()


def test_a_long_rule_is_shown_in_sixty_tokens(memory: Memory) -> None:
    memory.remember("Never use npm, because " + "it is slow and " * 20 + "old.", kind="rule")

    (found,) = memory.reminders(NPM)
    assert perdure.tokens_in(found.line) <= 60
    assert "Never use npm, because" in found.line
    assert found.line.endswith(found.id)


@pytest.mark.parametrize(
    ("rule", "command", "speaks", "refuses"),
    [
        ("Never use git commit --no-verify.", "git commit -m x", False, False),
        ("Never use git commit --no-verify.", "git commit --no-verify -m x", True, True),
        ("Never run rm -rf.", "rm a.txt", False, False),
        ("Never run rm -rf.", "rm -fr build", True, True),
        ("Never push to main.", "git push origin main", True, True),
        ("Never push to main.", "git push", True, False),
        ("Never use docker compose up without -d.", "docker compose up -d", False, False),
        ("Never use docker compose up without -d.", "docker compose up", True, False),
        ("Never edit CHANGELOG.md.", "git add CHANGELOG.md", False, False),
        ("Never edit CHANGELOG.md.", "sed -i s/a/b/ CHANGELOG.md", True, True),
        ("Never run npm publish unless I ask.", "npm publish", True, False),
    ],
)
def test_an_enforced_rule_refuses_only_what_it_forbids_for_certain(
    memory: Memory, rule: str, command: str, *, speaks: bool, refuses: bool
) -> None:
    kept = memory.remember(rule, kind="rule")
    memory.enforce(kept.uri)

    found = memory.reminders(AgentAction("Bash", command))

    assert bool(found) is speaks
    assert any(each.enforced for each in found) is refuses


def test_a_briefing_has_every_rule_that_was_stored_on_purpose(memory: Memory) -> None:
    for name in ("webpack", "grunt", "bower"):
        memory.remember(f"Never use {name} in the services packages.", kind="rule")

    assert memory.briefing().text.count("in the services packages") == 3
