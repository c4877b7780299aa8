"""Anthropic's messages, and what speaks like them."""

import json
import time
from collections.abc import Mapping
from typing import Any

from perdure.engine.llm.reply import Answer, Call, Refusal, Reply, Truncation, Usage
from perdure.engine.llm.request import Request, Tool
from perdure.engine.llm.service import Service
from perdure.engine.llm.wire import Clock, Wire, count_of, in_words, load, unfenced
from perdure.errors import InvalidValueError
from perdure.model.values import JSON, plain

_ANSWER = "answer"
"""The tool whose input is the answer."""
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
_DONE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CHOICES = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}


class Anthropic:
    """A `Completer` through the official `anthropic` client, which tries nothing twice itself."""

    def __init__(self, service: Service, *, clock: Clock = time.monotonic) -> None:
        if not service.api_key:
            raise InvalidValueError(
                "Anthropic is asked with an API key, and there is none. "
                "Fix: set api_key_variable in [llm] to the variable that holds it."
            )
        anthropic = load("anthropic")
        self._service = service
        self._wire = Wire(anthropic, service, clock)
        client = anthropic.Anthropic(
            base_url=service.base_url,
            api_key=service.api_key,
            max_retries=0,
            open_telemetry=False,
            http_client=self._wire.client,
        )
        self._create = client.messages.with_raw_response.create

    def close(self) -> None:
        """Let go of the connections that are open."""
        self._wire.close()

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._service.parameters("anthropic")

    @property
    def max_output_tokens(self) -> int:
        return self._service.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        return self._reply(self._wire.ask(self._create, seconds, **self._asked(request)), request)

    # ------------------------------------------------------------ asking
    def _asked(self, request: Request) -> dict[str, Any]:
        spoken = [
            {"role": each.role, "content": each.content}
            for each in request.messages
            if each.role != "system"
        ]
        system = [each.content for each in request.messages if each.role == "system"]
        asked: dict[str, Any] = {
            "model": self._service.model,
            "messages": spoken,
            "max_tokens": self._service.max_output_tokens,
        }
        if system:
            asked["system"] = [{"type": "text", "text": text} for text in system]
        if request.schema is not None:
            return asked | self._structured(spoken, plain(request.schema))
        if request.tools:
            asked["tools"] = [_tool(each) for each in request.tools]
            asked["tool_choice"] = _choice(request.tool_choice)
        return asked

    def _structured(self, messages: list[dict[str, str]], schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        if self._service.structured == "json_schema":
            return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        if self._service.structured == "tool":
            tool = Tool(_ANSWER, "Give the answer.", schema)
            return {"tools": [_tool(tool)], "tool_choice": _choice(_ANSWER)}
        last = {"role": "user", "content": f"{messages[-1]['content']}\n\n{in_words(schema)}"}
        return {"messages": [*messages[:-1], last]}

    # ------------------------------------------------------------ answers
    def _reply(self, told: dict[str, Any], request: Request) -> Reply:
        usage, stop, blocks = (
            _usage(told.get("usage")),
            told.get("stop_reason"),
            told.get("content"),
        )
        if stop == "refusal":
            return Refusal(usage)
        if stop in _CUT_OFF:
            return Truncation(usage)
        if stop not in _DONE or not isinstance(blocks, list):
            raise self._wire.wrong("it holds no finished message")
        text = "".join(self._text(each) for each in blocks if _is(each, "text"))
        calls = tuple(self._call(each) for each in blocks if _is(each, "tool_use"))
        return self._answer(Answer(text, calls, usage), request)

    def _answer(self, answer: Answer, request: Request) -> Answer:
        if request.schema is None:
            return answer
        text = answer.text
        if self._service.structured == "tool":
            only = [each.tool for each in answer.calls] == [_ANSWER]
            text = answer.calls[0].arguments if only else ""
        elif self._service.structured == "text":
            text = unfenced(text)
        return Answer(text, usage=answer.usage)

    def _text(self, block: dict[str, Any]) -> str:
        if not isinstance(block.get("text"), str):
            raise self._wire.wrong("a text in it is none")
        return str(block["text"])

    def _call(self, block: dict[str, Any]) -> Call:
        match block:
            case {"name": str(name), "input": given}:
                return Call(name, json.dumps(given))
        raise self._wire.wrong("a call of a tool in it names no tool, or has no input")


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": plain(tool.input_schema),
    }


def _choice(choice: str) -> dict[str, str]:
    return _CHOICES.get(choice, {"type": "tool", "name": choice})


def _usage(told: object) -> Usage | None:
    read = count_of(told, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    written = count_of(told, "output_tokens")
    return None if read is None or written is None else Usage(read, written)
