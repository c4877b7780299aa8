"""The three verbs of a language model, on top of whoever speaks to one.

Answers are checked, and what may be otherwise in a moment is tried again.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, NoReturn, cast

from perdure.artifacts import ArtifactStore, Derived, Literal, canonical
from perdure.artifacts.artifact import sid_of
from perdure.engine.llm.contract import (
    CHOICES,
    Answer,
    Call,
    Completer,
    Message,
    Occasion,
    Refusal,
    Reply,
    Request,
    Schema,
    Truncation,
    Wrapper,
    fault_in,
    no_number,
)
from perdure.engine.llm.ledger import Ledger
from perdure.errors import (
    AnswerMalformedError,
    AnswerRefusedError,
    AnswerTruncatedError,
    DamageError,
    InvalidValueError,
    LanguageModelError,
    PackageMissingError,
    ServiceUnreachableError,
    StaleIndexError,
)
from perdure.files import locked
from perdure.index.memo import memo_folder
from perdure.model.values import JSON, plain, shown

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

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


def checked(request: Request, reply: Reply, model: str) -> Answer:
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
    try:
        value = json.loads(text, parse_constant=no_number, object_pairs_hook=_object)
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


def _malformed(model: str, what: str) -> NoReturn:
    raise AnswerMalformedError(
        f"the answer of {model} is not what was asked for: {what}. "
        "Fix: ask again in other words, or ask another model."
    )


ATTEMPTS = 5
FIRST_WAIT, LONGEST_WAIT, JITTER = 1.0, 30.0, 1.0
"""Seconds. The wait doubles each time, and has a random part, so that not all come back at once."""


class Retried(Wrapper):
    """Asks up to five times if the service is busy, failing, slow or gone.

    It waits for ever longer, and for as long as the service wants to be left alone. No attempt
    begins that would have to wait past the end of the time, and none has more time than is left.
    What can't succeed, as a wrong key or a refusal, is not tried again.
    """

    def __init__(
        self,
        inner: Completer,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        self._sleep = sleep
        self._clock = clock

    def complete(self, request: Request, *, seconds: float) -> Reply:
        until = self._clock() + seconds

        def attempt() -> Reply:
            return self._inner.complete(request, seconds=until - self._clock())

        return self._retrying(until)(attempt)

    def _retrying(self, until: float) -> "Retrying":
        try:
            import tenacity  # noqa: PLC0415 - who has a model pays
        except ImportError as error:
            raise PackageMissingError(
                f"asking a model again needs a package that can't be imported: {error}. "
                "Fix: pip install '.[openai]' or '.[anthropic]' from a checkout."
            ) from error
        backoff = tenacity.wait_exponential_jitter(FIRST_WAIT, LONGEST_WAIT, jitter=JITTER)

        def is_over(state: "RetryCallState") -> bool:
            late = self._clock() + state.upcoming_sleep >= until
            return late or state.attempt_number >= ATTEMPTS

        return tenacity.Retrying(
            sleep=self._sleep,
            stop=is_over,
            wait=lambda state: max(_asked_for(state), backoff(state)),
            retry=tenacity.retry_if_exception(_is_passing),
            reraise=True,
        )


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, ServiceUnreachableError) and error.passing


def _asked_for(state: "RetryCallState") -> float:
    error = state.outcome and state.outcome.exception()
    return error.wait if isinstance(error, ServiceUnreachableError) else 0.0


_OPERATION = ("complete", "1")
_LOCKS = "locks"


class Remembered(Wrapper):
    """Answers from memory what was answered before, and else asks.

    While one asks, others with the same question wait for its answer, also in other processes. What
    is kept is derived: if it proves damaged, it is thrown away, and asked again.
    """

    def __init__(self, inner: Completer, folder: Path, ledger: Ledger, occasion: Occasion) -> None:
        super().__init__(inner)
        self._folder = folder
        self._ledger = ledger
        self._occasion = occasion

    def complete(self, request: Request, *, seconds: float) -> Answer:
        artifact, until = self._artifact(request), time.monotonic() + seconds
        lock = f"{sid_of(artifact).digest[0]:02x}"  # if two questions share one, the second waits
        with locked(self._folder / _LOCKS / lock, seconds) as held:
            if held is None:
                raise ServiceUnreachableError(
                    "another process has been asking the same all the time. "
                    "Fix: look for a process that hangs, and try again.",
                    billed=False,
                )
            known = self._known(artifact, request)
            if known is not None:
                self._ledger.note_remembered(self._occasion, self._model)
                return known
            reply = self._inner.complete(request, seconds=until - time.monotonic())
            answer = checked(request, reply, self._model)
            with self._store() as store:
                store.remember([(artifact, _encoded(answer))])
            return answer

    # ------------------------------------------------------------ what is kept
    def _known(self, artifact: Derived, request: Request) -> Answer | None:
        try:
            with self._store() as store:
                (kept,) = store.remembered([sid_of(artifact)])
            return None if kept is None else checked(request, _decoded(kept), self._model)
        except (DamageError, StaleIndexError, LanguageModelError):
            rmtree(self._own_folder, ignore_errors=True)
            return None

    def _store(self) -> "closing[ArtifactStore]":
        return closing(ArtifactStore.open(self._own_folder))

    @property
    def _own_folder(self) -> Path:
        return memo_folder(
            answers_folder(self._folder), self._occasion.account_id, self._occasion.owner_space
        )

    def _artifact(self, request: Request) -> Derived:
        asked = canonical.encode(cast("canonical.Value", request.as_json()))
        depends_on = cast("dict[str, canonical.Value]", plain(dict(self.parameters)))
        return Derived(*_OPERATION, (Literal(asked),), depends_on)


def answers_folder(folder: Path) -> Path:
    return folder / "accounts"


def _encoded(answer: Answer) -> bytes:
    calls: Any = [[each.tool, each.arguments] for each in answer.calls]
    return canonical.encode({"text": answer.text, "calls": calls})


def _decoded(kept: bytes) -> Answer:
    match canonical.decode(kept):
        case {"text": str(text), "calls": list(calls)}:
            return Answer(text, tuple(Call(*map(str, each)) for each in calls))
    raise DamageError(
        "an answer that was kept can't be read. Fix: none is needed; it is asked again."
    )
