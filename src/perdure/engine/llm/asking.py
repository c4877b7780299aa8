"""The three verbs of a language model, on top of whoever speaks to one."""

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.engine.llm.checking import object_in
from perdure.engine.llm.contract import Completer
from perdure.engine.llm.reply import Answer
from perdure.engine.llm.request import Message, Request
from perdure.errors import InvalidValueError
from perdure.model.values import JSON

PATIENCE_SECONDS = 300.0
"""For all attempts of one call together."""


class Asking:
    """An `LLM`. Whoever it asks has checked the answers."""

    def __init__(self, completer: Completer, seconds: float = PATIENCE_SECONDS) -> None:
        self._completer = completer
        self._seconds = seconds

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        if schema is None:
            raise InvalidValueError("there is no schema. Fix: give one of an object.")
        request = Request((Message("user", prompt),), schema=schema)
        return object_in(self._ask(request).text, schema, self._model)

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        messages: list[dict[str, JSON]] = [{"role": "user", "content": prompt}]
        return self.complete_with_tools_messages(messages, tools, tool_choice)[0]

    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        request = Request.read(messages, tools, tool_choice)
        answer = self._ask(request)
        schemas = {tool.name: tool.input_schema for tool in request.tools}
        calls = [
            {"tool": each.tool, "input": object_in(each.arguments, schemas[each.tool], self._model)}
            for each in answer.calls
        ]
        return calls, answer.text

    def _ask(self, request: Request) -> Answer:
        reply = self._completer.complete(request, seconds=self._seconds)
        if not isinstance(reply, Answer):
            raise TypeError("whoever was asked checks nothing. Fix: wrap it in `Checked`.")
        return reply

    @property
    def _model(self) -> str:
        return str(self._completer.parameters.get("model"))
