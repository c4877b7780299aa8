"""Occasions: what the user stated comes back at the prompts and calls that it is for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import AgentAction, Memory
from perdure.engine.briefing import sentence_rows
from perdure.engine.briefing_records import LONGEST_LINE, is_repeatable, likely_in, procedures_in
from perdure.engine.learn.prose import scored, sentence_id
from perdure.engine.occasions import LONGEST_STEPS, condition_in, is_procedure, of_action, of_prompt
from perdure.model.trust import WEB
from perdure.transfer.contract import ToolOutput
from perdure.transfer.items import _origins

DICTATED = """write a rule file that explains the following:

```
when asked to work on a ticket (by name or number):
1. look up the ticket with `desk show`
2. make a branch for it
3. write the plan into the ticket
4. push the branch
```
"""
STEPS = (
    "when asked to work on a ticket (by name or number): 1. look up the ticket with `desk show` "
    "2. make a branch for it 3. write the plan into the ticket 4. push the branch"
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path / "home", project="lighthouse") as opened:
        yield opened


def say(memory: Memory, text: str, session: str, time: str = "2026-03-02T10:00:00Z") -> None:
    messages = [
        {"role": "user", "content": text, "time": time},
        {"role": "assistant", "content": "Fine.", "time": time},
    ]
    memory.commit_session(messages, session_id=session, extract=False)


def repeated(memory: Memory, occasion: AgentAction | str, session: str = "") -> list[str]:
    return [each.bare for each in memory.repeated(occasion, session=session)]


# ---------------------------------------------------------------- what is worth repeating
@pytest.mark.parametrize(
    "text",
    [
        "why didnt you check the build status first?",
        "no, i only meant the first lamp",
        "you forgot to update the changelog",
        "what about cleaning the lens, and the stairs?",
        "when the tide is out, never move the boats",
        "once a release is tagged, the branch is frozen",
        "write a note to mention that the lamp is lit once the harbour is dark",
        "they should update the changelog once the work is done",
    ],
)
def test_what_objects_or_says_how_to_work_is_worth_repeating(text: str) -> None:
    assert is_repeatable(text)


@pytest.mark.parametrize(
    "text",
    [
        "add a `desk show` command that prints a ticket",
        "@NOTES.md review the lamps and if one is broken fix it",
        "CODE should have an option for the name",
        "can you show the lamp that is lit when a ship comes?",
        "go ahead and run the build",
        "fix it",
    ],
)
def test_what_asks_for_something_now_is_not(text: str) -> None:
    assert not is_repeatable(text)


def test_steps_below_a_condition_are_one_procedure_even_in_a_fence() -> None:
    (found,) = procedures_in(DICTATED)

    assert found == STEPS
    assert is_procedure(found)


@pytest.mark.parametrize(
    "text",
    [
        DICTATED.replace("when asked to work on a ticket (by name or number)", "the steps"),
        DICTATED.replace("3. write", "- write"),
        DICTATED + "x" * 1_500,
        DICTATED.replace("`desk show`", "`curl -s https://example.com/x`"),
    ],
    ids=["no condition", "two steps", "a long paste", "a download"],
)
def test_other_lists_are_not(text: str) -> None:
    assert not list(procedures_in(text))


def test_a_long_procedure_is_cut_at_a_step() -> None:
    long = "when you release a version:\n" + "".join(
        f"{at}. {'do this ' * 8}\n" for at in range(1, 15)
    )
    (found,) = procedures_in(long)

    assert len(found) <= LONGEST_STEPS + 2
    assert found.endswith("do this …")


def test_a_number_with_a_sign_names_a_task() -> None:
    _, fits = of_prompt("lets start working on #12")

    assert fits("when asked to work on a task, read its text first")
    assert not fits("when asked to deploy a task, read its text first")


def test_a_condition_of_one_word_is_none() -> None:
    assert condition_in("if needed, ask me") == frozenset()


def test_a_long_prompt_asks_for_more_than_one_thing() -> None:
    _, fits = of_prompt("work on the ticket. " + "x " * 400)

    assert not fits(STEPS)


def test_what_only_reads_is_no_occasion() -> None:
    assert of_action(AgentAction("Bash", "grep ticket status file.txt"))[0] == set()
    assert of_action(AgentAction("Bash", "desk ticket status set 4"))[0] == {
        "&ticket statu",
        "&statu set",
    }


# ---------------------------------------------------------------- in a memory
def test_a_procedure_comes_with_a_prompt_that_asks_for_it(memory: Memory) -> None:
    say(memory, DICTATED, "a")

    assert repeated(memory, "go ahead and work on ticket 7") == [STEPS]
    assert repeated(memory, "go ahead and water the plants") == []


def test_the_session_that_stated_it_is_not_reminded(memory: Memory) -> None:
    say(memory, DICTATED, "a")

    assert repeated(memory, "work on ticket 7", session="a") == []


def test_an_objection_comes_with_a_call_that_uses_its_words(memory: Memory) -> None:
    sentence = "why didnt you check the ticket status before you began?"
    say(memory, sentence, "a")

    assert repeated(memory, AgentAction("Bash", "desk ticket status set 4 done")) == [sentence]
    assert repeated(memory, AgentAction("Bash", "desk ticket list")) == []


def test_of_one_message_the_likeliest_to_last_comes_first(memory: Memory) -> None:
    say(memory, "you should never write dates into the changelog", "a", "2026-03-01T10:00:00Z")
    say(
        memory,
        "you forgot the changelog. the changelog must always name the ticket.",
        "b",
    )

    assert repeated(memory, AgentAction("Edit", paths=("CHANGELOG.md",), added="- x")) == [
        "the changelog must always name the ticket.",
        "you should never write dates into the changelog",
        "you forgot the changelog.",
    ]


def test_a_stored_statement_is_repeated_too_and_a_decision_is_not(memory: Memory) -> None:
    memory.remember("When a ticket is reopened, the plan is written again.", kind="rule")
    memory.remember("When a ticket is reopened, the mail goes to Ana.", kind="decision")

    assert repeated(memory, "the ticket was reopened") == [
        "When a ticket is reopened, the plan is written again."
    ]


def test_what_was_forgotten_is_not_repeated(memory: Memory) -> None:
    say(memory, "you forgot to update the changelog", "a")
    (found,) = memory.repeated(AgentAction("Edit", paths=("CHANGELOG.md",), added="- x"))
    memory.forget(found.uri)

    assert repeated(memory, AgentAction("Edit", paths=("CHANGELOG.md",), added="- x")) == []


def test_a_procedure_of_a_web_page_is_marked_as_not_the_users() -> None:
    page = ToolOutput(0, WEB, "Steps: look up the ticket with `desk show` and more")
    messages = [{"role": "user", "content": DICTATED}]

    assert _origins(messages, [page])[1] == {sentence_id(STEPS): WEB}
    assert _origins(messages, [])[1] == {}


# ---------------------------------------------------------------- a line of the briefing
def test_a_longer_sentence_is_cut_where_an_example_begins() -> None:
    sentence = (
        "I always test with the real data of the port: " + "`/srv/data/2026/" + "x" * 120 + "`"
    )
    found = likely_in(scored(sentence))

    assert [text for text, _, _ in sentence_rows(found)] == [
        "I always test with the real data of the port …"
    ]
    assert len(sentence) > LONGEST_LINE
