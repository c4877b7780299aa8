"""A JSON endpoint over HTTP that may be slow, busy, wrong or hostile, and is asked in bounds."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from perdure.errors import EndpointError, InvalidValueError
from perdure.model.values import shown

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
        parts = _split(self.base_url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InvalidValueError(
                "the URL of the endpoint holds more than a host and a path. "
                "Fix: give a URL as https://host/v1, and what is secret as the API key."
            )
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidValueError(
                f"{shown(self.base_url)} is no endpoint. Fix: give a URL as https://host/v1."
            )
        if not self.api_key.isascii() or not self.api_key.isprintable() or " " in self.api_key:
            raise InvalidValueError(
                "the API key holds what no key can. Fix: copy it again, without line breaks."
            )

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
