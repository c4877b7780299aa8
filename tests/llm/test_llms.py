"""Every language model that we have keeps the contract."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from perdure.llm.client import LLMClient
from perdure.llm.contract import LLM, Reply
from perdure.llm.http_services import AnthropicCompleter, OpenAICompleter
from perdure.testing.llm import LLMSuite, Script, scripted_llm
from tests.llm.fake_services import as_the_tool_answer, serving


class ByTool(Script):
    """A script as played by a service that answers with a tool call."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def reply_to(self, asked: Mapping[str, Any]) -> Reply:
        reply = self._script.reply_to(asked)
        return reply if asked["schema"] is None else as_the_tool_answer(reply)


class TestScripted(LLMSuite):
    promises = frozenset()

    @staticmethod
    @contextmanager
    def open_llm(script: Script) -> Iterator[LLM]:
        yield scripted_llm(script)


class TestOpenAICompatible(LLMSuite):
    promises = frozenset()

    @staticmethod
    @contextmanager
    def open_llm(script: Script) -> Iterator[LLM]:
        with serving(script) as server:
            yield LLMClient(OpenAICompleter(server.openai()))


class TestAnthropic(LLMSuite):
    promises = frozenset()

    @staticmethod
    @contextmanager
    def open_llm(script: Script) -> Iterator[LLM]:
        with serving(ByTool(script)) as server:
            yield LLMClient(AnthropicCompleter(server.anthropic()))
