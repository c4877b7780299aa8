"""An embedder over HTTP, with the protocol of OpenAI."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.dataclass import dataclass, field
from perdure.errors import EndpointError, InvalidValueError
from perdure.http import ExchangeError, RequestLimits, check_service, post
from perdure.index.contract import check_texts
from perdure.model.values import JSON

MAX_ANSWER = 64_000_000
_WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt, unless the endpoint asks for another wait."""
_LONGEST_WAIT = 60.0
_SOON = 10.0
"""The time limit in seconds while a user waits."""
_FIXES = {
    400: "check the name of the model, or send fewer and shorter texts",
    401: "check the API key",
    403: "check the API key",
    404: "check the base URL and the name of the model",
    413: "send fewer texts at once",
    429: "wait, or ask for a higher limit",
}
_MAX_BATCH = 512
_MAX_DIMENSION = 65_536


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a service, its key and the time limit. The key is sent there only."""

    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = 60.0
    """The limit of one answer in seconds."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        check_service(self.base_url, self.api_key, "endpoint")

    def post(self, verb: str, body: Mapping[str, object], *, patient: bool = True) -> Any:  # noqa: ANN401 - JSON from outside
        """Return the endpoint's JSON answer; `EndpointError` if there is none.

        If it is busy, failing or unreachable, the request is sent up to five times, after
        increasing waits, or the wait that it asks for. If no server listens, it is sent once; if
        the caller is not patient, once and with a short limit.
        """
        url = f"{self.base_url.rstrip('/')}/{verb}"
        key = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        seconds = self.timeout if patient else min(self.timeout, _SOON)
        for wait in (*_WAITS, None) if patient else (None,):
            try:
                return post(url, body, key, RequestLimits(seconds, MAX_ANSWER, self.clock))
            except ExchangeError as error:
                if wait is None or not error.is_transient:
                    raise self.error(str(error), _fix(error)) from None
                self.sleep(min(error.wait or wait, _LONGEST_WAIT))
        raise AssertionError(verb)

    def error(
        self, what: str, fix: str = "check that the base URL and the model are right"
    ) -> EndpointError:
        return EndpointError(f"{self.base_url}: {what}. Fix: {fix}.")


def _fix(error: ExchangeError) -> str:
    if error.is_answer:
        return "check that the base URL and the model are right, or send fewer texts at once"
    if error.is_absent:
        return "start it"
    default = "check the base URL, or look into its log" if error.status else "try again later"
    return _FIXES.get(error.status, default)


class OpenAIEmbedder:
    """Gets vectors from `{base_url}/embeddings`, `batch` texts at a time.

    Give a `dimension` only if the endpoint can shorten its vectors, because it is sent. Without
    one, the first answer decides it. Endpoints refuse empty texts, so these are sent as a space.
    """

    def __init__(
        self, endpoint: Endpoint, model: str, dimension: int | None = None, batch: int = 64
    ) -> None:
        if not 1 <= batch <= _MAX_BATCH:
            raise InvalidValueError(f"the batch is {batch}. Fix: choose 1 to {_MAX_BATCH} texts.")
        if dimension is not None and not 1 <= dimension <= _MAX_DIMENSION:
            raise InvalidValueError(
                f"the dimension is {dimension}. Fix: choose 1 to {_MAX_DIMENSION:,}, or none."
            )
        self._endpoint = endpoint
        self._model = model
        self._wanted = dimension
        self._known = dimension
        self._batch = batch

    @property
    def parameters(self) -> Mapping[str, JSON]:
        """All that a vector depends on; no request is sent for this."""
        return {
            "model": self._model,
            "endpoint": self._endpoint.base_url,
            "dimension": self._wanted,
        }

    @property
    def dimension(self) -> int:
        """The dimension of vectors; without an answer so far, a request is sent."""
        return self._known or len(self.embed_texts(["dimension"])[0])

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts; `EndpointError` if the endpoint does not return a finite vector for each."""
        given = check_texts(texts)
        distinct = list(dict.fromkeys(given))
        vectors: dict[str, list[float]] = {}
        for start in range(0, len(distinct), self._batch):
            some = distinct[start : start + self._batch]
            vectors |= zip(some, self._embed(some), strict=True)
        return [list(vectors[text]) for text in given]

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        body: dict[str, object] = {
            "model": self._model,
            "input": [text or " " for text in texts],
            "encoding_format": "float",
        }
        if self._wanted is not None:
            body["dimensions"] = self._wanted
        # A single text is a query or a test of the service: a user waits for the answer.
        answer = self._endpoint.post("embeddings", body, patient=len(texts) > 1)
        vectors = [self._unit(numbers) for numbers in self._in_order(answer, len(texts))]
        self._check_dimension({len(vector) for vector in vectors})
        return vectors

    def _in_order(self, answer: object, count: int) -> list[object]:
        """Return the answer for each text, in the order of the texts."""
        rows = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._endpoint.error("the answer is not a list of embeddings")
        by_index = {row.get("index"): row.get("embedding") for row in rows if _counts(row)}
        if len(rows) != count or set(by_index) != set(range(count)):
            raise self._endpoint.error(f"the answer is not one embedding for each of {count} texts")
        return [by_index[place] for place in range(count)]

    def _unit(self, numbers: object) -> list[float]:
        vector = _floats(numbers)
        length = math.hypot(*vector)
        if not vector or not 0 < length < math.inf:  # also for NaN
            raise self._endpoint.error("an embedding is not a vector of finite numbers")
        return [number / length for number in vector]

    def _check_dimension(self, found: set[int]) -> None:
        """Refuse vectors of another dimension than the first."""
        if len(found | {self._known or max(found)}) > 1:
            raise self._endpoint.error(
                f"embeddings have {sorted(found)} numbers where {self._known or 'as many'} "
                "are expected"
            )
        self._known = found.pop()


def _counts(row: Mapping[str, object]) -> bool:
    return type(row.get("index")) is int


def _floats(numbers: object) -> list[float]:
    """Return a list of numbers as floats; an empty list for anything else."""
    if not isinstance(numbers, list) or len(numbers) > _MAX_DIMENSION:
        return []
    if not all(type(number) in {int, float} for number in numbers):
        return []
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        return []
