"""Anthropic's messages, and what speaks like them."""

import json
import time
from typing import Any

from perdure.engine.llm.contract import Answer, Call, Refusal, Reply, Request, Tool, Truncation
from perdure.engine.llm.wire import Adapter, Clock, Service, load, usage_of
from perdure.errors import InvalidValueError
from perdure.model.values import plain

_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
_DONE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CHOICES = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}


class Anthropic(Adapter):
    """A `Completer` through the official `anthropic` client, which tries nothing twice itself."""

    protocol = "anthropic"

    def __init__(self, service: Service, *, clock: Clock = time.monotonic) -> None:
        if not service.api_key:
            raise InvalidValueError(
                "Anthropic is asked with an API key, and there is none. "
                "Fix: set api_key_variable in [llm] to the variable that holds it."
            )
        anthropic = load("anthropic")
        super().__init__(anthropic, service, clock)
        client = anthropic.Anthropic(
            base_url=service.base_url,
            api_key=service.api_key,
            max_retries=0,
            open_telemetry=False,
            http_client=self._wire.client,
        )
        self._create = client.messages.with_raw_response.create

    def _said(self, request: Request) -> dict[str, Any]:
        spoken = [
            {"role": each.role, "content": each.content}
            for each in request.messages
            if each.role != "system"
        ]
        system = [
            {"type": "text", "text": each.content}
            for each in request.messages
            if each.role == "system"
        ]
        said = {
            "model": self._service.model,
            "messages": spoken,
            "max_tokens": self._service.max_output_tokens,
        }
        return said | ({"system": system} if system else {})

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def _tool(self, tool: Tool) -> dict[str, Any]:
        return {
            "name": tool.name,
            "description": tool.description,
            "input_schema": plain(tool.input_schema),
        }

    def _choice(self, choice: str) -> dict[str, Any]:
        return _CHOICES.get(choice, {"type": "tool", "name": choice})

    def _reply(self, told: dict[str, Any]) -> Reply:
        usage, stop = usage_of(told.get("usage"), _READ, "output_tokens"), told.get("stop_reason")
        blocks = told.get("content")
        if stop == "refusal":
            return Refusal(usage)
        if stop in _CUT_OFF:
            return Truncation(usage)
        if stop not in _DONE or not isinstance(blocks, list):
            raise self._wire.wrong("it holds no finished message")
        text = "".join(self._text(each) for each in blocks if _is(each, "text"))
        return Answer(
            text, tuple(self._call(each) for each in blocks if _is(each, "tool_use")), usage
        )

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
