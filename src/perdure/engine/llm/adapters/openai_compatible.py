"""Any endpoint that speaks as OpenAI's chat completions do: OpenAI, Ollama, vLLM, LM Studio."""

import time
from collections.abc import Mapping
from typing import Any

from perdure.engine.llm.reply import Answer, Call, Refusal, Reply, Truncation, Usage
from perdure.engine.llm.request import CHOICES, Request, Tool
from perdure.engine.llm.schemas import is_closed
from perdure.engine.llm.service import Service
from perdure.engine.llm.wire import (
    Clock,
    Wire,
    count_of,
    in_words,
    load,
    text_of,
    unfenced,
)
from perdure.model.values import JSON, plain

_ANSWER = "answer"
"""The tool whose input is the answer, and the name that a schema is given."""


class OpenAICompatible:
    """A `Completer` through the official `openai` client, which tries nothing twice itself."""

    def __init__(self, service: Service, *, clock: Clock = time.monotonic) -> None:
        openai = load("openai")
        self._service = service
        self._wire = Wire(openai, service, clock)
        client = openai.OpenAI(
            base_url=service.base_url,
            api_key=service.api_key or "none",  # which the wire keeps to itself
            max_retries=0,
            http_client=self._wire.client,
        )
        self._create = client.chat.completions.with_raw_response.create

    def close(self) -> None:
        """Let go of the connections that are open."""
        self._wire.close()

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._service.parameters("openai")

    @property
    def max_output_tokens(self) -> int:
        return self._service.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        return self._reply(self._wire.ask(self._create, seconds, **self._asked(request)), request)

    # ------------------------------------------------------------ asking
    def _asked(self, request: Request) -> dict[str, Any]:
        asked: dict[str, Any] = {
            "model": self._service.model,
            "messages": [{"role": each.role, "content": each.content} for each in request.messages],
            self._service.limit_name: self._service.max_output_tokens,
        }
        if request.schema is not None:
            return asked | self._structured(asked["messages"], plain(request.schema))
        if request.tools:
            asked["tools"] = [_tool(each) for each in request.tools]
            asked["tool_choice"] = _choice(request.tool_choice)
        return asked

    def _structured(self, messages: list[dict[str, str]], schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        if self._service.structured == "json_schema":
            described = {"name": _ANSWER, "schema": schema, "strict": is_closed(schema)}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        if self._service.structured == "tool":
            tool = Tool(_ANSWER, "Give the answer.", schema)
            return {"tools": [_tool(tool)], "tool_choice": _choice(_ANSWER)}
        last = {"role": "user", "content": f"{messages[-1]['content']}\n\n{in_words(schema)}"}
        return {"messages": [*messages[:-1], last]}

    # ------------------------------------------------------------ answers
    def _reply(self, told: dict[str, Any], request: Request) -> Reply:
        match told.get("choices"):
            case [{"message": dict(message), "finish_reason": str(finish)}, *_]:
                pass
            case _:
                raise self._wire.wrong("it holds no message")
        usage = _usage(told.get("usage"))
        if message.get("refusal") or finish == "content_filter":
            return Refusal(usage)
        if finish == "length":
            return Truncation(usage)
        return self._answer(message, request, usage)

    def _answer(self, message: dict[str, Any], request: Request, usage: Usage | None) -> Answer:
        text = text_of(message.get("content"))
        calls = message.get("tool_calls") or []
        if text is None or not isinstance(calls, list):
            raise self._wire.wrong("its message is no text, and no calls of tools")
        made = tuple(self._call(each) for each in calls)
        if request.schema is None:
            return Answer(text, made, usage)
        if self._service.structured == "tool":
            text = made[0].arguments if [each.tool for each in made] == [_ANSWER] else ""
        elif self._service.structured == "text":
            text = unfenced(text)
        return Answer(text, usage=usage)

    def _call(self, told: object) -> Call:
        match told:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                return Call(name, arguments)
        raise self._wire.wrong("a call of a tool in it names no tool, or has no arguments")


def _tool(tool: Tool) -> dict[str, Any]:
    described = {
        "name": tool.name,
        "description": tool.description,
        "parameters": plain(tool.input_schema),
    }
    return {"type": "function", "function": described}


def _choice(choice: str) -> str | dict[str, Any]:
    return choice if choice in CHOICES else {"type": "function", "function": {"name": choice}}


def _usage(told: object) -> Usage | None:
    read, written = count_of(told, "prompt_tokens"), count_of(told, "completion_tokens")
    return None if read is None or written is None else Usage(read, written)
