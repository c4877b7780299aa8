"""An embedder behind a JSON endpoint over HTTP that speaks as OpenAI's does.

The endpoint may be slow, busy, wrong or hostile, and is asked in bounds.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from perdure.dataclass import dataclass, field
from perdure.errors import EndpointError, InvalidValueError
from perdure.index.words import check_texts
from perdure.model.values import JSON, shown

MAX_ANSWER = 64_000_000
"""Bytes; of a longer answer no more is read."""
_PIECE = 1 << 16
_WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt, unless the endpoint asks for others."""
_LONGEST_WAIT = 60.0
_SOON = 10.0
"""Seconds that an answer may take while somebody waits for it."""
_BUSY = 429
_SERVER_ERRORS = 500
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
    """Where to ask, and how patiently. The key is told to nobody else."""

    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = 60.0
    """Seconds that one answer may take, from the first byte sent to the last received."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        check_service(self.base_url, self.api_key, "endpoint")

    def post(self, verb: str, asked: Mapping[str, object], *, patient: bool = True) -> Any:  # noqa: ANN401 - JSON from outside
        """Return what the endpoint answers to a verb; `EndpointError` without an answer in JSON.

        If it is busy, failing or out of reach it is asked up to five times, after ever longer
        waits, or after the one that it asks for. Where nobody listens, nobody is waited for. Who is
        not patient asks once, and not for long.
        """
        request = self._request(verb, json.dumps(asked).encode())
        timeout = self.timeout if patient else min(self.timeout, _SOON)
        for wait in _WAITS if patient else ():
            try:
                return self._ask(request, timeout)
            except _PassingError as passing:
                self.sleep(min(passing.wait or wait, _LONGEST_WAIT))
        try:
            return self._ask(request, timeout)
        except _PassingError as passing:
            raise EndpointError(str(passing)) from None

    def _request(self, verb: str, body: bytes) -> Request:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        address = f"{self.base_url.rstrip('/')}/{verb}"
        return Request(address, body, headers)  # noqa: S310 - the scheme was looked at

    def _ask(self, request: Request, timeout: float) -> Any:  # noqa: ANN401 - as before
        until = self.clock() + timeout
        try:
            with build_opener(_StayHere).open(request, timeout=timeout) as answer:
                content = self._read(answer, until)
        except HTTPError as error:
            with error:
                raise self._refused(error) from None
        except EndpointError:  # which is an OSError too
            raise
        except (OSError, HTTPException) as error:
            if _nobody_is_there(error):
                raise EndpointError(self._told(_reason(error), "start it")) from None
            raise _PassingError(self._told(_reason(error), "try again later")) from None
        return self._parsed(content)

    def _read(self, answer: HTTPResponse, until: float) -> bytes:
        """Read an answer that may be neither too long nor too slow."""
        pieces, size = [], 0
        while piece := answer.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            self._check(size, until)
        if answer.length:
            raise OSError("the answer was cut off")
        return b"".join(pieces)

    def _check(self, size: int, until: float) -> None:
        if size > MAX_ANSWER:
            what = f"the answer is longer than {MAX_ANSWER // 1_000_000} MB"
            raise EndpointError(self._told(what, "send fewer texts at once"))
        if self.clock() > until:
            raise TimeoutError

    def _parsed(self, content: bytes) -> Any:  # noqa: ANN401 - as before
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise self.wrong("the answer is no JSON") from None

    def _refused(self, error: HTTPError) -> Exception:
        fix = _FIXES.get(error.code, "check the base URL, or look into its log")
        told = self._told(f"it answered with status {error.code}", fix)
        if error.code == _BUSY or error.code >= _SERVER_ERRORS:
            return _PassingError(told, _seconds(error.headers.get("Retry-After")))
        return EndpointError(told)

    def wrong(self, what: str) -> EndpointError:
        return EndpointError(self._told(what, "check that the base URL and the model are right"))

    def _told(self, what: str, fix: str) -> str:
        return f"{self.base_url}: {what}. Fix: {fix}."


class _PassingError(Exception):
    """Worth another attempt; nobody outside sees it."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _StayHere(HTTPRedirectHandler):
    """Follow nobody elsewhere: the key is for this endpoint only."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def check_service(url: str, key: str, what: str) -> None:
    """Refuse a URL that is none or holds a secret, and a key that can be none."""
    parts = _split(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValueError(
            f"the URL of the {what} holds more than a host and a path. "
            "Fix: give a URL as https://host/v1, and what is secret as the API key."
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidValueError(f"{shown(url)} is no endpoint. Fix: give a URL as https://host/v1.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidValueError(
            "the API key holds what no key can. Fix: copy it again, without line breaks."
        )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # looked at here, where a wrong one can be told
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return "it did not answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return f"it can't be reached: {reason.strerror}"
    return "it broke off its answer"


def _nobody_is_there(error: Exception) -> bool:
    reason = error.reason if isinstance(error, URLError) else error
    return isinstance(reason, ConnectionRefusedError)


def _seconds(told: str | None) -> float:
    return float(told) if told and told.isascii() and told.isdecimal() else 0.0


class OpenAICompatible:
    """Asks `{base_url}/embeddings` for vectors, `batch` texts at a time.

    Give a `dimension` only where the endpoint can shorten its vectors: it is asked to. Otherwise it
    is learned from the first answer. An empty text, which such endpoints refuse, is sent as space.
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
        """All that a vector depends on. The endpoint is not asked for this."""
        return {
            "model": self._model,
            "endpoint": self._endpoint.base_url,
            "dimension": self._wanted,
        }

    @property
    def dimension(self) -> int:
        """Return how long vectors are; the endpoint is asked if it has told nothing yet."""
        return self._known or len(self.embed_texts(["dimension"])[0])

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """As promised; `EndpointError` if the endpoint does not give one finite vector for each."""
        given = check_texts(texts)
        distinct = list(dict.fromkeys(given))
        vectors: dict[str, list[float]] = {}
        for start in range(0, len(distinct), self._batch):
            some = distinct[start : start + self._batch]
            vectors |= zip(some, self._embed(some), strict=True)
        return [list(vectors[text]) for text in given]

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        asked: dict[str, object] = {
            "model": self._model,
            "input": [text or " " for text in texts],
            "encoding_format": "float",
        }
        if self._wanted is not None:
            asked["dimensions"] = self._wanted
        # One text is a question, or asks whether anybody is there: somebody waits for the answer.
        answer = self._endpoint.post("embeddings", asked, patient=len(texts) > 1)
        vectors = [self._unit(numbers) for numbers in self._in_order(answer, len(texts))]
        self._check_dimension({len(vector) for vector in vectors})
        return vectors

    def _in_order(self, answer: object, count: int) -> list[object]:
        """Return what was answered for each text, wherever in the answer it stands."""
        rows = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._endpoint.wrong("the answer is no list of embeddings")
        by_index = {row.get("index"): row.get("embedding") for row in rows if _counts(row)}
        if len(rows) != count or set(by_index) != set(range(count)):
            raise self._endpoint.wrong(f"the answer is not one embedding for each of {count} texts")
        return [by_index[place] for place in range(count)]

    def _unit(self, numbers: object) -> list[float]:
        vector = _floats(numbers)
        length = math.hypot(*vector)
        if not vector or not 0 < length < math.inf:  # also if it is no number
            raise self._endpoint.wrong("an embedding is no vector of finite numbers")
        return [number / length for number in vector]

    def _check_dimension(self, told: set[int]) -> None:
        """Refuse vectors of another length than those before; the first say what it is."""
        if len(told | {self._known or max(told)}) > 1:
            raise self._endpoint.wrong(
                f"embeddings have {sorted(told)} numbers where {self._known or 'as many'} "
                "are expected"
            )
        self._known = told.pop()


def _counts(row: Mapping[str, object]) -> bool:
    return type(row.get("index")) is int


def _floats(numbers: object) -> list[float]:
    """Return a list of numbers as floats; an empty one if it is anything else."""
    if not isinstance(numbers, list) or len(numbers) > _MAX_DIMENSION:
        return []
    if not all(type(number) in {int, float} for number in numbers):
        return []
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        return []
