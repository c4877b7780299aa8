"""The contract of a language model as a suite that any implementation can run.

class TestMyLLM(LLMSuite):
    promises = frozenset()

    @staticmethod
    @contextmanager
    def open_llm(script: Script) -> Iterator[LLM]:
        yield MyLLM(model=script)
"""

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest

from perdure.errors import (
    AnswerMalformedError,
    AnswerRefusedError,
    AnswerTruncatedError,
    InvalidValueError,
)
from perdure.llm.contract import LLM, Answer, Refusal, Reply, ToolCall, Truncation
from perdure.testing.llm.scripted import Script, json_answer, tool_answer
from perdure.testing.requirement import requirement
from perdure.testing.suite import Suite

PROMPT = "Who prefers what?"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "who": {"type": "string"},
        "what": {"type": "array", "items": {"type": "string"}},
        "sure": {"enum": ["yes", "no"]},
    },
    "required": ["who", "what", "sure"],
    "additionalProperties": False,
}
FITS = {"who": "Ana", "what": ["tabs", "日本語"], "sure": "yes"}
MISFITS = {
    "a name lacks": json.dumps({"who": "Ana", "what": []}),
    "a name too many": json.dumps({**FITS, "why": "because"}),
    "another type": json.dumps({**FITS, "who": 7}),
    "an item of another type": json.dumps({**FITS, "what": ["tabs", None]}),
    "no alternative": json.dumps({**FITS, "sure": "perhaps"}),
    "no object": json.dumps([FITS]),
    "nothing": "",
    "prose": "Ana prefers tabs.",
    "prose around it": f"Here you are: {json.dumps(FITS)}",
    "cut off": json.dumps(FITS)[:-1],
    "twice": json.dumps(FITS) * 2,
    "half a character": json.dumps({**FITS, "who": "\ud800"}),
    "no number": '{"who": "Ana", "what": [], "sure": NaN}',
}
SAVE: dict[str, Any] = {
    "name": "save",
    "description": "Save a memory.",
    "input_schema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}
SKIP: dict[str, Any] = {
    "name": "skip",
    "description": "Save nothing.",
    "input_schema": {"type": "object", "properties": {}},
}
TOOLS = [SAVE, SKIP]
TALK = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "What should I keep?"},
    {"role": "user", "content": "That I like tabs."},
]
BAD_CALLS = {
    "no such tool": Answer(calls=(ToolCall("erase", "{}"),)),
    "no JSON": Answer(calls=(ToolCall("save", '{"text": '),)),
    "no object": Answer(calls=(ToolCall("save", '["text"]'),)),
    "no input that fits": Answer(calls=(ToolCall("save", '{"text": 1}'),)),
    "one good, one bad": Answer(calls=(ToolCall("skip", "{}"), ToolCall("save", "{}"))),
}
DISOBEDIENT = {
    "none, though required": ("required", Answer("I won't.")),
    "none of that name": ("save", Answer("I won't.")),
    "another one": ("save", tool_answer(("skip", {}))),
    "another one too": ("save", tool_answer(("save", {"text": "a"}), ("skip", {}))),
    "one, though not allowed": ("none", tool_answer(("skip", {}))),
}
BAD_MESSAGES: dict[str, Any] = {
    "none": [],
    "no list": "Hello.",
    "another role": [{"role": "wizard", "content": "Hello."}],
    "no content": [{"role": "user"}],
    "more than that": [{"role": "user", "content": "Hello.", "name": "Ana"}],
    "content that is no text": [{"role": "user", "content": [{"type": "text"}]}],
    "content that is empty": [{"role": "user", "content": " "}],
    "half a character": [{"role": "user", "content": "\ud800"}],
    "the system late": [TALK[1], TALK[0]],
    "the assistant first": [TALK[2], TALK[3]],
    "the assistant last": [TALK[1], TALK[2]],
    "the system only": [TALK[0]],
}
BAD_TOOLS: dict[str, Any] = {
    "no list": SAVE,
    "no name": [{"description": "", "input_schema": SAVE["input_schema"]}],
    "a name of two words": [{**SAVE, "name": "save it"}],
    "the name of a choice": [{**SAVE, "name": "auto"}],
    "the same twice": [SAVE, SAVE],
    "a schema of no object": [{**SAVE, "input_schema": {"type": "string"}}],
    "no schema": [{**SAVE, "input_schema": None}],
}
BAD_SCHEMAS: dict[str, Any] = {
    "none": None,
    "of a list": {"type": "array"},
    "of anything": {},
    "a word that is not checked": {**SCHEMA, "patternProperties": {}},
    "such a word deep inside": {
        "type": "object",
        "properties": {"a": {"items": {"$ref": "#"}}},
    },
    "no such type": {"type": "object", "properties": {"a": {"type": "text"}}},
}


class LLMSuite(Suite):
    """All tests of a language model, whatever the model behind it answers."""

    hooks = frozenset({"promises", "open_llm"})
    known_promises = frozenset()

    @staticmethod
    def open_llm(script: Script) -> AbstractContextManager[LLM]:
        """Open the language model under test, with `script` in the place of the model behind it."""
        raise NotImplementedError("define how to open the language model under test")

    @pytest.fixture
    def script(self) -> Script:
        return Script()

    @pytest.fixture
    def llm(self, script: Script) -> Iterator[LLM]:
        with self.open_llm(script) as llm:
            yield llm

    @requirement("003-llm-runtime-checkable")
    def test_it_implements_the_protocol_of_a_language_model(self, llm: LLM) -> None:
        assert isinstance(llm, LLM)

    # ---------------------------------------------------------------- JSON
    @requirement("003-llm-complete-json", "003-llm-schema-format")
    def test_an_answer_in_json_is_returned_as_a_dict(self, llm: LLM, script: Script) -> None:
        script.add(json_answer(FITS))

        assert llm.complete_json(PROMPT, SCHEMA) == FITS

    @requirement("003-llm-schema-format")
    def test_the_model_gets_the_prompt_and_the_schema(self, llm: LLM, script: Script) -> None:
        script.add(json_answer(FITS))

        llm.complete_json(PROMPT, SCHEMA)

        (asked,) = script.requests
        assert asked["messages"] == [{"role": "user", "content": PROMPT}]
        assert asked["schema"] == SCHEMA
        assert asked["tools"] == []

    @pytest.mark.parametrize("text", MISFITS.values(), ids=MISFITS)
    @requirement("003-llm-complete-json")
    def test_an_answer_that_does_not_fit_is_refused(
        self, llm: LLM, script: Script, text: str
    ) -> None:
        script.add(Answer(text))

        with pytest.raises(AnswerMalformedError, match="Fix: "):
            llm.complete_json(PROMPT, SCHEMA)

    @pytest.mark.parametrize("schema", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
    @requirement("003-llm-schema-format")
    def test_an_unsupported_schema_is_refused_before_a_request(
        self, llm: LLM, script: Script, schema: dict[str, Any]
    ) -> None:
        script.add(json_answer(FITS))

        with pytest.raises(InvalidValueError, match="Fix: "):
            llm.complete_json(PROMPT, schema)
        assert script.requests == []

    # ---------------------------------------------------------------- tools
    @requirement("003-llm-tools-invocations")
    def test_every_call_of_a_tool_is_returned_in_order(self, llm: LLM, script: Script) -> None:
        script.add(tool_answer(("skip", {}), ("save", {"text": "é"}), ("save", {"text": "b"})))

        assert llm.complete_with_tools(PROMPT, TOOLS) == [
            {"tool": "skip", "input": {}},
            {"tool": "save", "input": {"text": "é"}},
            {"tool": "save", "input": {"text": "b"}},
        ]

    @requirement("003-llm-tools-none-called")
    def test_no_call_is_an_empty_list(self, llm: LLM, script: Script) -> None:
        script.add(Answer("Nothing to keep."))

        assert llm.complete_with_tools(PROMPT, TOOLS) == []

    @requirement("003-llm-tool-definition", "003-llm-tools-choice")
    def test_the_model_is_offered_the_tools_and_left_the_choice(
        self, llm: LLM, script: Script
    ) -> None:
        script.add(Answer("No."))

        llm.complete_with_tools(PROMPT, TOOLS)

        (asked,) = script.requests
        assert asked["messages"] == [{"role": "user", "content": PROMPT}]
        assert asked["tools"] == TOOLS
        assert asked["tool_choice"] == "auto"

    @pytest.mark.parametrize("choice", ["auto", "required", "none", "save"])
    @requirement("003-llm-tools-choice", "003-llm-messages-choice")
    def test_the_model_gets_the_choice(self, llm: LLM, script: Script, choice: str) -> None:
        reply = Answer("No.") if choice == "none" else tool_answer(("save", {"text": "a"}))
        script.add(reply, reply)

        llm.complete_with_tools(PROMPT, TOOLS, choice)
        llm.complete_with_tools_messages(TALK, TOOLS, choice)

        assert [asked["tool_choice"] for asked in script.requests] == [choice, choice]

    @pytest.mark.parametrize("reply", BAD_CALLS.values(), ids=BAD_CALLS)
    def test_a_tool_call_that_is_not_valid_is_refused(
        self, llm: LLM, script: Script, reply: Reply
    ) -> None:
        script.add(reply)

        with pytest.raises(AnswerMalformedError, match="Fix: "):
            llm.complete_with_tools(PROMPT, TOOLS)

    @pytest.mark.parametrize(("choice", "reply"), DISOBEDIENT.values(), ids=DISOBEDIENT)
    @requirement("003-llm-tools-choice")
    def test_an_answer_against_the_choice_is_refused(
        self, llm: LLM, script: Script, choice: str, reply: Reply
    ) -> None:
        script.add(reply)

        with pytest.raises(AnswerMalformedError, match="Fix: "):
            llm.complete_with_tools(PROMPT, TOOLS, choice)

    @pytest.mark.parametrize("tools", BAD_TOOLS.values(), ids=BAD_TOOLS)
    @requirement("003-llm-tool-definition")
    def test_invalid_tools_are_refused_before_a_request(
        self,
        llm: LLM,
        script: Script,
        tools: Any,  # noqa: ANN401 - anything
    ) -> None:
        script.add(Answer("No."))

        with pytest.raises(InvalidValueError, match="Fix: "):
            llm.complete_with_tools(PROMPT, tools)
        assert script.requests == []

    @pytest.mark.parametrize(
        ("tools", "choice"), [(TOOLS, "erase"), ([], "required"), ([], "save")]
    )
    def test_an_unknown_choice_is_refused_before_a_request(
        self, llm: LLM, script: Script, tools: list[dict[str, Any]], choice: str
    ) -> None:
        script.add(Answer("No."))

        with pytest.raises(InvalidValueError, match="Fix: "):
            llm.complete_with_tools(PROMPT, tools, choice)
        assert script.requests == []

    # ---------------------------------------------------------------- conversations
    @requirement("003-llm-messages-history")
    def test_the_model_gets_the_whole_conversation(self, llm: LLM, script: Script) -> None:
        script.add(Answer("Kept."))

        llm.complete_with_tools_messages(TALK)

        assert script.requests[0]["messages"] == TALK

    @requirement("003-llm-messages-returns")
    def test_calls_and_text_are_returned_as_a_pair(self, llm: LLM, script: Script) -> None:
        script.add(tool_answer(("save", {"text": "tabs"}), text="Keeping it."))

        assert llm.complete_with_tools_messages(TALK, TOOLS) == (
            [{"tool": "save", "input": {"text": "tabs"}}],
            "Keeping it.",
        )

    @requirement("003-llm-messages-empty-text")
    def test_the_text_is_empty_if_there_are_calls_only(self, llm: LLM, script: Script) -> None:
        script.add(tool_answer(("skip", {})))

        assert llm.complete_with_tools_messages(TALK, TOOLS)[1] == ""

    @requirement("003-llm-messages-no-tools")
    def test_without_tools_the_model_is_offered_none(self, llm: LLM, script: Script) -> None:
        script.add(Answer("Kept."))

        assert llm.complete_with_tools_messages(TALK) == ([], "Kept.")
        assert script.requests[0]["tools"] == []

    @pytest.mark.parametrize("messages", BAD_MESSAGES.values(), ids=BAD_MESSAGES)
    @requirement("003-llm-messages-history")
    def test_an_invalid_conversation_is_refused_before_a_request(
        self,
        llm: LLM,
        script: Script,
        messages: Any,  # noqa: ANN401 - anything
    ) -> None:
        script.add(Answer("Kept."))

        with pytest.raises(InvalidValueError, match="Fix: "):
            llm.complete_with_tools_messages(messages)
        assert script.requests == []

    # ---------------------------------------------------------------- no answer
    def test_a_refusal_is_an_error_of_its_own(self, llm: LLM, script: Script) -> None:
        script.add(Refusal(), Refusal(), Refusal())

        for ask in _ways_to_ask(llm):
            with pytest.raises(AnswerRefusedError, match="Fix: "):
                ask()

    def test_an_answer_that_was_cut_off_is_an_error_of_its_own(
        self, llm: LLM, script: Script
    ) -> None:
        script.add(Truncation(), Truncation(), Truncation())

        for ask in _ways_to_ask(llm):
            with pytest.raises(AnswerTruncatedError, match="Fix: "):
                ask()

    # ---------------------------------------------------------------- callers
    def test_arguments_are_not_changed(self, llm: LLM, script: Script) -> None:
        given = copy.deepcopy((SCHEMA, TOOLS, TALK))
        script.add(json_answer(FITS), Answer("No."))

        llm.complete_json(PROMPT, given[0])
        llm.complete_with_tools_messages(given[2], given[1])

        assert given == (SCHEMA, TOOLS, TALK)

    def test_a_returned_value_can_be_changed(self, llm: LLM, script: Script) -> None:
        script.add(json_answer(FITS), json_answer(FITS))

        llm.complete_json(PROMPT, SCHEMA)["what"].append("spaces")

        assert llm.complete_json(PROMPT, SCHEMA) == FITS

    def test_threads_get_the_answers_to_their_own_questions(self, llm: LLM, script: Script) -> None:
        script.add(*[json_answer({**FITS, "who": str(number)}) for number in range(12)])

        def ask(_: int) -> str:
            return str(llm.complete_json(PROMPT, SCHEMA)["who"])

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, range(12)))

        assert sorted(found, key=int) == [str(number) for number in range(12)]


def _ways_to_ask(llm: LLM) -> tuple[Any, ...]:
    return (
        lambda: llm.complete_json(PROMPT, SCHEMA),
        lambda: llm.complete_with_tools(PROMPT, TOOLS),
        lambda: llm.complete_with_tools_messages(TALK),
    )
