"""A language model that plays a script."""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from perdure.errors import LanguageModelError
from perdure.llm.client import LLMClient
from perdure.llm.contract import LLM, Answer, Reply, Request, ToolCall
from perdure.model.values import JSON


class Script:
    """The replies of a model, one for each request, and the requests that it got."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = deque(replies)
        self.requests: list[dict[str, Any]] = []
        """Each request as `Request.as_json` has it."""

    def add(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    def reply_to(self, request: Mapping[str, Any]) -> Reply:
        self.requests.append(dict(request))
        if not self._replies:
            raise LanguageModelError(
                "the script has no reply to a further request. Fix: give it one for each."
            )
        return self._replies.popleft()


class ScriptedCompleter:
    """A `Completer` that answers from a script."""

    model = "scripted"
    max_output_tokens = 1_000

    def __init__(self, script: Script) -> None:
        self._script = script

    def complete(self, request: Request, *, seconds: float) -> Reply:
        del seconds
        return self._script.reply_to(request.as_json())


def scripted_llm(script: Script) -> LLM:
    """Return a language model that plays the script; its answers are checked like any other's."""
    return LLMClient(ScriptedCompleter(script), attempts=1)


def json_answer(value: JSON) -> Answer:
    """Return an answer with this value as JSON."""
    return Answer(json.dumps(value))


def tool_answer(*calls: tuple[str, JSON], text: str = "") -> Answer:
    """Return an answer that calls these tools with these inputs."""
    return Answer(text, tuple(ToolCall(tool, json.dumps(value)) for tool, value in calls))
