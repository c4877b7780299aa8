"""No call without a budget for it; no call that is not in the ledger."""

from collections.abc import Mapping

from perdure.engine.llm.budget import Terms, most_used
from perdure.engine.llm.contract import Completer
from perdure.engine.llm.ledger import Ledger, Outcome
from perdure.engine.llm.occasion import Occasion
from perdure.engine.llm.reply import Answer, Refusal, Reply, Truncation, Usage
from perdure.engine.llm.request import Request
from perdure.errors import LanguageModelError, RequestRefusedError, ServiceUnreachableError
from perdure.model.values import JSON

_OUTCOMES: dict[type, Outcome] = {
    Answer: Outcome.ANSWERED,
    Refusal: Outcome.REFUSED,
    Truncation: Outcome.TRUNCATED,
}
_NOTHING = Usage(0, 0)


class Metered:
    """Asks only what the budget allows, whatever comes; every attempt counts as a call.

    What a call comes to is known from the service. If it does not say, or no answer comes that
    could say it, the call counts as the most that it may have come to.
    """

    def __init__(self, inner: Completer, ledger: Ledger, terms: Terms, occasion: Occasion) -> None:
        self._inner = inner
        self._ledger = ledger
        self._terms = terms
        self._occasion = occasion

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._inner.parameters

    @property
    def max_output_tokens(self) -> int:
        return self._inner.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        most = most_used(request, self._inner.max_output_tokens)
        model = str(self.parameters.get("model"))
        number = self._ledger.reserve(self._occasion, model, most, self._terms)
        try:
            reply = self._inner.complete(request, seconds=seconds)
        except LanguageModelError as error:
            self._settle_failure(number, error)
            raise
        self._settle(number, _OUTCOMES[type(reply)], reply.usage)
        return reply

    def _settle_failure(self, number: int, error: LanguageModelError) -> None:
        if _costs_nothing(error):
            self._settle(number, Outcome.UNBILLED, _NOTHING)
        else:
            self._settle(number, Outcome.FAILED, None)

    def _settle(self, number: int, outcome: Outcome, usage: Usage | None) -> None:
        money = None if usage is None else self._terms.cost(usage)
        self._ledger.settle(number, outcome, usage, money)


def _costs_nothing(error: LanguageModelError) -> bool:
    if isinstance(error, ServiceUnreachableError):
        return not error.billed
    return isinstance(error, RequestRefusedError)
