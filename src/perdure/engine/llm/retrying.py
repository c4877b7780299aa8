"""Trying again what may be otherwise in a moment, and nothing else."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from perdure.engine.llm.contract import Completer
from perdure.engine.llm.reply import Reply
from perdure.engine.llm.request import Request
from perdure.errors import PackageMissingError, ServiceUnreachableError
from perdure.model.values import JSON

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

ATTEMPTS = 5
FIRST_WAIT, LONGEST_WAIT, JITTER = 1.0, 30.0, 1.0
"""Seconds. The wait doubles each time, and has a random part, so that not all come back at once."""


class Retried:
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
        self._inner = inner
        self._sleep = sleep
        self._clock = clock

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._inner.parameters

    @property
    def max_output_tokens(self) -> int:
        return self._inner.max_output_tokens

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
