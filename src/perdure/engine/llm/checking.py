"""Whether a model answered what it was asked. Nothing is mended."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from perdure.engine.llm.contract import Completer
from perdure.engine.llm.reply import Answer, Refusal, Reply, Truncation
from perdure.engine.llm.request import CHOICES, Request
from perdure.engine.llm.schemas import Schema, fault_in
from perdure.errors import AnswerMalformedError, AnswerRefusedError, AnswerTruncatedError
from perdure.model.values import JSON, shown


class Checked:
    """Lets only such answers pass as fit the request; all else is an error."""

    def __init__(self, inner: Completer) -> None:
        self._inner = inner

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._inner.parameters

    @property
    def max_output_tokens(self) -> int:
        return self._inner.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Answer:
        reply = self._inner.complete(request, seconds=seconds)
        return checked(request, reply, str(self.parameters.get("model")))


def checked(request: Request, reply: Reply, model: str) -> Answer:
    """Return the answer if it is one to this request."""
    if isinstance(reply, Refusal):
        raise AnswerRefusedError(
            f"{model} declined to answer. Fix: look at what it was asked, or ask another model."
        )
    if isinstance(reply, Truncation):
        raise AnswerTruncatedError(
            f"{model} was cut off before its answer was whole. "
            "Fix: raise max_output_tokens in [llm], or ask for less."
        )
    if request.schema is not None:
        object_in(reply.text, request.schema, model)
    else:
        _check_calls(request, reply, model)
    return reply


def _check_calls(request: Request, answer: Answer, model: str) -> None:
    tools = {tool.name: tool.input_schema for tool in request.tools}
    called = [call.tool for call in answer.calls]
    for call in answer.calls:
        if call.tool not in tools:
            _malformed(model, f"it calls {shown(call.tool)}, which is no tool that it has")
        object_in(call.arguments, tools[call.tool], model)
    choice = request.tool_choice
    if choice == "none" and called:
        _malformed(model, "it calls a tool, though it was told not to")
    if choice not in {"auto", "none"} and not called:
        _malformed(model, "it calls no tool, though it was told to")
    if choice not in CHOICES and set(called) != {choice}:
        _malformed(model, f"it calls another tool than {choice!a}")


def object_in(text: str, schema: Schema, model: str) -> dict[str, Any]:
    """Return the JSON object that a text is, if it fits."""
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_object)
        text.encode()
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # as \ud800, or 1e999
    except (ValueError, RecursionError):
        _malformed(model, "it is no JSON")
    fault = fault_in(value, schema)
    if fault is not None:
        place, what = fault
        _malformed(model, f"at {shown(place)} {what}")
    return dict(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands in it twice")
    return made


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _malformed(model: str, what: str) -> NoReturn:
    raise AnswerMalformedError(
        f"the answer of {model} is not what was asked for: {what}. "
        "Fix: ask again in other words, or ask another model."
    )
