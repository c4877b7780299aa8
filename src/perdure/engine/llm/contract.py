"""What a language model promises, and what whoever speaks to one does."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from perdure.engine.llm.reply import Reply
from perdure.engine.llm.request import Request
from perdure.model.values import JSON


@runtime_checkable
class LLM(Protocol):
    """Answers in JSON, in calls of tools, or in text. What it returns is what was asked for.

    An answer that is no such thing is `AnswerMalformedError`, one that was cut off
    `AnswerTruncatedError`, none because the model declined `AnswerRefusedError`; nothing is mended,
    and nothing guessed. What can't be asked is `InvalidValueError`, before anybody was asked.
    """

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        """Return a JSON object that fits the schema, which is `{"type": "object", …}`.

        `perdure.engine.llm.schemas` says which words a schema may use.
        """

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        """Return each call of a tool as `{"tool": name, "input": {…}}`, in the model's order.

        A tool is `{"name": …, "description": …, "input_schema": {…}}`. The choice is the model's
        (`auto`), to call at least one (`required`), none (`none`), or the one of this name. Every
        call names a tool that was offered, and its input fits the schema of that tool. If the model
        calls none, the list is empty.
        """

    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        """Return the calls of tools, as above, and the text; empty if there are calls only.

        A message is `{"role": …, "content": …}`. Those of the role `system` come first; the others
        are of `user` and `assistant`, and the first and the last of them are the user's.
        """


class Completer(Protocol):
    """Speaks to a model. The wrappers around one have the same shape."""

    @property
    def parameters(self) -> Mapping[str, JSON]:
        """All that an answer depends on besides the request: JSON that names the model."""

    @property
    def max_output_tokens(self) -> int:
        """As many tokens as an answer may have."""

    def complete(self, request: Request, *, seconds: float) -> Reply:
        """Ask the model once, and return what it said, unchecked.

        `ServiceUnreachableError` if no whole answer comes within so many seconds;
        `RequestRefusedError` if the service turns the request down; `AnswerMalformedError` if what
        comes is no answer of its protocol.
        """
