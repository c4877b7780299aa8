"""Only the user's own prose is read, and what may last is found in it."""

import json
from pathlib import Path

import pytest

from perdure.engine.learn import prose
from perdure.engine.learn.prose import prompt_hint, sentences, user_sentences


def texts(content: str) -> list[str]:
    return [each.text for each in sentences(content)]


def user(*contents: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": content} for content in contents]


@pytest.mark.parametrize(
    "content",
    [
        "```\nnever use tabs here\n```",
        "> never use tabs here",
        "    never use tabs in here",
        "<system-reminder>never use tabs here</system-reminder>",
        "/review never use tabs here",
        "This session is being continued from a previous conversation.\nNever use tabs here.",
        "UserPromptSubmit hook additional context: never use tabs here",
        "<command-name>/exit</command-name>",
        "5. single",
        "2) tabs please",
        "2026-01-02T10:00:00Z never use tabs here",
        "    at run (main.js:10:2)",
        "From: bob@example.org\nSubject: tabs\n\nNever use tabs here.",
        '{"rule": "never use tabs", "name": 1}',
    ],
)
def test_what_is_not_the_user_s_own_prose_is_not_read(content: str) -> None:
    assert texts(content) == []


def test_what_a_program_put_before_the_user_s_words_does_not_move_them() -> None:
    reminder = "<system-reminder>Never use tabs.</system-reminder>"
    content = f"{reminder}\nNever use tabs. Keep {reminder} it short, please."

    (found,) = sentences(content)

    assert found.text == "Never use tabs."
    assert content[found.start : found.end] == found.text


def test_prose_around_a_paste_is_read() -> None:
    content = "The build breaks.\n\n```\nError: x\n```\n\nNever ignore that. Thanks a lot!"

    assert texts(content) == ["The build breaks.", "Never ignore that.", "Thanks a lot!"]


def test_a_line_that_the_agent_wrote_before_is_a_quotation() -> None:
    line = "Consider renaming the handler to make it clearer."
    reply: dict[str, object] = {"role": "assistant", "content": line}
    messages = [reply, *user(f"Let's do this:\n{line}")]

    assert [each.text for each in user_sentences(messages)] == ["Let's do this:"]


def test_spans_are_those_of_the_message() -> None:
    content = "Hello there. We always squash before merging!\n- and keep the title short"

    for each in sentences(content, message=3):
        assert content[each.start : each.end] == each.text
        assert each.message == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("From now on, never push to main without asking me.", "rule"),
        ("Let's go with the smaller image for the workers.", "decision"),
        ("Use ruff instead of flake8 in all of the packages.", "decision"),
        ("I'd prefer shorter names for those modules.", "preference"),
    ],
)
def test_what_may_last_is_a_candidate(text: str, kind: str) -> None:
    (found,) = prose.candidates(user(text))

    assert found.kind == kind


@pytest.mark.parametrize("text", ["go ahead", "continue", "Thanks, that works!", "run the tests"])
def test_what_only_lets_the_agent_go_on_is_none(text: str) -> None:
    assert prose.candidates(user(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Please forget what I said about the medicine.",
        "Forget my note about the port.",
        "Can you forget that I told you about the new job, always?",
        "Forget everything about what we decided, never use it.",
    ],
)
def test_what_asks_to_forget_is_none(text: str) -> None:
    assert prose.candidates(user(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Never forget to run the linter.",
        "Don't forget: every module must have a test.",
        "Forget about tabs, always use spaces.",
    ],
)
def test_what_only_has_the_word_stays(text: str) -> None:
    assert len(prose.candidates(user(text))) == 1


def test_the_same_words_are_proposed_once() -> None:
    text = "Never commit the generated files."

    assert len(prose.candidates(user(text, text.upper(), f"- {text}"))) == 1


def test_a_session_has_a_bounded_number_of_candidates() -> None:
    many = [f"Never use the helper number {number} again." for number in range(200)]

    assert len(prose.candidates(user(*many))) == prose.fitted().most


def test_every_weight_belongs_to_a_feature_and_says_where_it_is_from() -> None:
    weights = json.loads(Path(prose.__file__).with_name("weights.json").read_text())

    assert "leave" in weights["provenance"] or "fitted" in weights["provenance"]
    (sentence,) = sentences("Never do that again here.")
    known = {*prose.features(sentence), *prose._compiled("patterns")}
    assert weights["features"].keys() <= known


# ---------------------------------------------------------------- the line of the prompt hook
@pytest.mark.parametrize(
    "prompt",
    [
        "Please remember that I live in Oslo.",
        "The staging server is at staging.example.org, port 8443.",
        "Our API is at https://api.example.org",
    ],
)
def test_what_is_stated_for_later_gets_a_line_however_unlikely(prompt: str) -> None:
    assert prompt_hint(prompt).startswith(f"possibly lasting: {prompt.rstrip('.')};")


def test_a_lasting_prompt_gets_one_short_line() -> None:
    hint = prompt_hint("ok. From now on, never push to main without asking me. Go ahead.")

    assert hint.startswith("possibly lasting: From now on, never push to main")
    assert "`mcp__perdure__remember`" in hint
    assert "\n" not in hint
    assert len(hint.split()) < 40


@pytest.mark.parametrize("prompt", ["", "continue", "yes, fix it", "```\nnever push\n```"])
def test_other_prompts_get_none(prompt: str) -> None:
    assert prompt_hint(prompt) == ""


def test_a_question_gets_no_line() -> None:
    assert not prompt_hint("What do we always run before the tests, the curl thing?")
