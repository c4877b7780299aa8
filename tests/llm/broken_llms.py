"""Language models with one fault each. The name says the fault."""

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from perdure.errors import AnswerMalformedError, InvalidValueError
from perdure.llm.client import LLMClient
from perdure.llm.contract import Answer, ChatMessage, Refusal, Reply, Request, Truncation
from perdure.model.values import JSON
from perdure.testing.llm.scripted import Script, ScriptedCompleter


class Honest(LLMClient):
    def __init__(self, script: Script) -> None:
        super().__init__(ScriptedCompleter(script), attempts=1)
        self.script = script


class HasNoTools:
    """Answers in JSON only."""

    def __init__(self, script: Script) -> None:
        self._llm = Honest(script)

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        return self._llm.complete_json(prompt, schema)


# ---------------------------------------------------------------- JSON
class ReturnsTheText(Honest):
    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> Any:  # noqa: ANN401 - the fault
        return json.dumps(super().complete_json(prompt, schema))


class KeepsTheSchemaToItself(Honest):
    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        created: dict[str, Any] = super().complete_json(prompt, schema)
        self.script.requests[-1]["schema"] = None
        return created


class AddsToThePrompt(Honest):
    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        return super().complete_json(f"{prompt} Please.", schema)


class TrustsTheModel(Honest):
    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        Request((ChatMessage("user", prompt),), schema=schema)
        reply = ScriptedCompleter(self.script).complete(
            Request((ChatMessage("user", prompt),)), seconds=1
        )
        self.script.requests[-1]["schema"] = schema
        assert isinstance(reply, Answer)
        created: dict[str, Any] = json.loads(reply.text)
        return created


class MendsTheAnswer(Honest):
    """Takes what looks like JSON out of the prose around it."""

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        try:
            return super().complete_json(prompt, schema)
        except AnswerMalformedError:
            return {"who": "Ana", "what": [], "sure": "no"}


class TakesAnySchema(Honest):
    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        try:
            return super().complete_json(prompt, schema)
        except InvalidValueError:
            return {}


class AsksBeforeItLooks(Honest):
    """Pays for what it then refuses."""

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        try:
            return super().complete_json(prompt, schema)
        except InvalidValueError:
            self.script.requests.append({})
            raise

    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        try:
            return super().complete_with_tools_messages(messages, tools, tool_choice)
        except InvalidValueError:
            self.script.requests.append({})
            raise


# ---------------------------------------------------------------- tools
class ReturnsTheFirstCall(Honest):
    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        return super().complete_with_tools(prompt, tools, tool_choice)[:1]


class ReturnsNoneForNoCall(Honest):
    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> Any:  # noqa: ANN401 - the fault
        return super().complete_with_tools(prompt, tools, tool_choice) or None


class InsistsOnATool(Honest):
    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "required"
    ) -> list[dict[str, Any]]:
        return super().complete_with_tools(prompt, tools, tool_choice)


class ForgetsTheChoice(Honest):
    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        Request.parse(messages, tools, tool_choice)
        return super().complete_with_tools_messages(messages, tools)


class _Lenient(Honest):
    """Leaves out the calls that it does not like."""

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        try:
            return super().complete_with_tools(prompt, tools, tool_choice)
        except AnswerMalformedError:
            return []


class LeavesBadCallsOut(_Lenient): ...


class OverlooksDisobedience(_Lenient): ...


class OffersWhatItCan(Honest):
    """Leaves out tools that it can't offer."""

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        try:
            return super().complete_with_tools(prompt, tools, tool_choice)
        except InvalidValueError:
            return super().complete_with_tools(prompt, [], "auto")


# ---------------------------------------------------------------- conversations
class ForgetsTheTalk(Honest):
    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        Request.parse(messages, tools, tool_choice)
        return super().complete_with_tools_messages(messages[-1:], tools, tool_choice)


class DropsTheTextBesideCalls(Honest):
    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        calls, text = super().complete_with_tools_messages(messages, tools, tool_choice)
        return calls, "" if calls else text


class HasNoTextForCalls(Honest):
    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> Any:  # noqa: ANN401 - the fault
        calls, text = super().complete_with_tools_messages(messages, tools, tool_choice)
        return calls, text or None


class AlwaysOffersATool(Honest):
    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        stop: dict[str, JSON] = {
            "name": "stop",
            "description": "",
            "input_schema": {"type": "object"},
        }
        return super().complete_with_tools_messages(messages, tools or [stop], tool_choice)


class SortsTheTalk(Honest):
    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        try:
            return super().complete_with_tools_messages(messages, tools, tool_choice)
        except InvalidValueError:
            return [], ""


# ---------------------------------------------------------------- no answer
class _Swallowing(Honest):
    """Takes one kind of reply for an empty answer."""

    kind: type = Refusal

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        inner, kind = ScriptedCompleter(script), self.kind

        class Swallows(ScriptedCompleter):
            def complete(self, request: Request, *, seconds: float) -> Reply:
                reply = inner.complete(request, seconds=seconds)
                return Answer() if isinstance(reply, kind) else reply

        self._completer = Swallows(script)


class SwallowsRefusals(_Swallowing): ...


class SwallowsTruncations(_Swallowing):
    kind = Truncation


# ---------------------------------------------------------------- callers
class ClosesTheSchemaOfTheCaller(Honest):
    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        created = super().complete_json(prompt, schema)
        if isinstance(schema, dict):
            schema["title"] = "answer"
        return created


class ReturnsWhatItKeeps(Honest):
    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._last: dict[str, dict[str, Any]] = {}

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        if prompt not in self._last:
            self._last[prompt] = super().complete_json(prompt, schema)
        return self._last[prompt]


class SharesItsDesk(Honest):
    """Puts each answer where the next one may lie by the time that it is picked up."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._meeting = threading.Barrier(4)
        self._desk: dict[str, Any] = {}

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        self._desk = super().complete_json(prompt, schema)
        self._meeting.wait(10)
        return dict(self._desk)
