"""Any endpoint that speaks as OpenAI's chat completions do: OpenAI, Ollama, vLLM, LM Studio."""

import time
from typing import Any

from perdure.engine.llm.contract import (
    CHOICES,
    Answer,
    Call,
    Refusal,
    Reply,
    Request,
    Tool,
    Truncation,
)
from perdure.engine.llm.schemas import is_closed
from perdure.engine.llm.wire import ANSWER, Adapter, Clock, Service, load, text_of, usage_of
from perdure.model.values import plain


class OpenAICompatible(Adapter):
    """A `Completer` through the official `openai` client, which tries nothing twice itself."""

    protocol = "openai"

    def __init__(self, service: Service, *, clock: Clock = time.monotonic) -> None:
        openai = load("openai")
        super().__init__(openai, service, clock)
        client = openai.OpenAI(
            base_url=service.base_url,
            api_key=service.api_key or "none",  # which the wire keeps to itself
            max_retries=0,
            http_client=self._wire.client,
        )
        self._create = client.chat.completions.with_raw_response.create

    def _said(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._service.model,
            "messages": [{"role": each.role, "content": each.content} for each in request.messages],
            self._service.limit_name: self._service.max_output_tokens,
        }

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        described = {"name": ANSWER, "schema": schema, "strict": is_closed(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": described}}

    def _tool(self, tool: Tool) -> dict[str, Any]:
        described = {
            "name": tool.name,
            "description": tool.description,
            "parameters": plain(tool.input_schema),
        }
        return {"type": "function", "function": described}

    def _choice(self, choice: str) -> str | dict[str, Any]:
        return choice if choice in CHOICES else {"type": "function", "function": {"name": choice}}

    def _reply(self, told: dict[str, Any]) -> Reply:
        match told.get("choices"):
            case [{"message": dict(message), "finish_reason": str(finish)}, *_]:
                pass
            case _:
                raise self._wire.wrong("it holds no message")
        usage = usage_of(told.get("usage"), ["prompt_tokens"], "completion_tokens")
        if message.get("refusal") or finish == "content_filter":
            return Refusal(usage)
        if finish == "length":
            return Truncation(usage)
        text, calls = text_of(message.get("content")), message.get("tool_calls") or []
        if text is None or not isinstance(calls, list):
            raise self._wire.wrong("its message is no text, and no calls of tools")
        return Answer(text, tuple(self._call(each) for each in calls), usage)

    def _call(self, told: object) -> Call:
        match told:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                return Call(name, arguments)
        raise self._wire.wrong("a call of a tool in it names no tool, or has no arguments")
