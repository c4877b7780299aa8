"""One request with JSON to a service over HTTP, within limits of time and size.

The service may be slow, busy, wrong or hostile. Redirects are refused: the key is for this service.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError

_CHUNK_BYTES = 1 << 16
_AGAIN = frozenset({408, 409, 429})
_SERVER_ERRORS = 500
_NOT_BEGUN = frozenset({429, 503, 529})
"""The service did not start on the request, so it is not billed."""
_MAX_SHOWN = 80


class ExchangeError(Exception):
    """The service returned no JSON. Callers turn this into their own error, with a fix."""

    def __init__(  # noqa: PLR0913 - each is a fact of its own
        self,
        what: str,
        *,
        status: int = 0,
        is_transient: bool = False,
        may_be_billed: bool = True,
        wait: float = 0.0,
        is_answer: bool = False,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.is_transient = is_transient
        """Whether another attempt may succeed, after `wait` seconds."""
        self.may_be_billed = may_be_billed
        self.wait = wait
        self.is_answer = is_answer
        """Whether the service answered, but not with valid JSON."""

    @property
    def is_absent(self) -> bool:
        """Whether nothing listens there."""
        return not (self.is_transient or self.may_be_billed or self.status)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    seconds: float
    """From the first byte sent to the last received."""
    max_bytes: int
    """A longer answer is refused."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


def post(
    url: str, body: Mapping[str, object], headers: Mapping[str, str], limits: RequestLimits
) -> Any:  # noqa: ANN401 - JSON from outside
    """Return the JSON that a service answers; `ExchangeError` if it does not."""
    sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    request = Request(url, json.dumps(body).encode(), sent)  # noqa: S310 - `check_service` saw it
    if limits.seconds <= 0:
        raise ExchangeError("there is no time left for it", is_transient=True, may_be_billed=False)
    until = limits.clock() + limits.seconds
    try:
        with build_opener(_NoRedirects).open(request, timeout=limits.seconds) as answer:
            content = _read(answer, until, limits)
    except HTTPError as error:
        with error:
            raise _refused(error.code, error.headers.get("Retry-After")) from None
    except (OSError, HTTPException) as error:
        raise _broken(error) from None
    try:
        return json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ExchangeError("the answer is not valid JSON", is_answer=True) from None


def _read(answer: HTTPResponse, until: float, limits: RequestLimits) -> bytes:
    pieces, size = [], 0
    while piece := answer.read1(_CHUNK_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > limits.max_bytes:
            what = f"the answer is longer than {limits.max_bytes // 1_000_000} MB"
            raise ExchangeError(what, is_answer=True)
        if limits.clock() > until:
            raise TimeoutError
    if answer.length:
        raise OSError("the answer was cut off")
    return b"".join(pieces)


def _refused(status: int, wait: str | None) -> ExchangeError:
    return ExchangeError(
        f"it answered with status {status}",
        status=status,
        is_transient=status in _AGAIN or status >= _SERVER_ERRORS,
        may_be_billed=status not in _NOT_BEGUN,
        wait=_seconds(wait),
    )


def _broken(error: Exception) -> ExchangeError:
    """Return the error for a failed request; one that could not be sent is not billed."""
    sent = not isinstance(error, URLError)
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ConnectionRefusedError):
        return ExchangeError("it can't be reached: nothing listens there", may_be_billed=False)
    if isinstance(reason, TimeoutError):
        return ExchangeError("it did not answer in time", is_transient=True, may_be_billed=sent)
    what = "it broke off its answer"
    if isinstance(reason, OSError) and reason.strerror:
        what = f"it can't be reached: {reason.strerror}"
    return ExchangeError(what, is_transient=True, may_be_billed=sent)


def _seconds(header: str | None) -> float:
    """Return the seconds in a `Retry-After` header, which has a number or a date."""
    try:
        seconds = float(header or 0)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header or "")
        except ValueError:
            return 0.0
        return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _no_number(name: str) -> NoReturn:
    """Refuse NaN and infinities, which Python accepts and JSON does not have."""
    raise ValueError(name)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def check_service(url: str, key: str, what: str) -> None:
    """Refuse an invalid URL, one that contains a secret, and an invalid key."""
    try:
        found = urlsplit(url)
        _ = found.port  # an invalid one raises here
    except ValueError:
        found = SplitResult("", "", "", "", "")
    if "@" in found.netloc or found.query or found.fragment:
        raise InvalidValueError(
            f"the URL of the {what} has more than a host and a path. "
            "Fix: give a URL such as https://host/v1, and a secret as the API key."
        )
    if found.scheme not in {"http", "https"} or not found.hostname:
        raise InvalidValueError(
            f"{url[:_MAX_SHOWN]!a} is not a URL. Fix: give one such as https://host/v1."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidValueError(
            "the API key has invalid characters. Fix: copy it again, without line breaks."
        )
