"""One exchange of JSON with a service over HTTP, in bounds of time and size.

The service may be slow, busy, wrong or hostile. It is followed nowhere else: the key is for it.
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

_PIECE = 1 << 16
_AGAIN = frozenset({408, 409, 429})
_SERVER_ERRORS = 500
_NOT_BEGUN = frozenset({429, 503, 529})
"""The service did not begin, so that there is nothing to pay for."""
_MOST_SHOWN = 80


class ExchangeError(Exception):
    """No JSON came back. Callers turn it into an error of theirs, with a fix."""

    def __init__(  # noqa: PLR0913 - each is a fact of its own
        self,
        what: str,
        *,
        status: int = 0,
        passing: bool = False,
        billed: bool = True,
        wait: float = 0.0,
        is_answer: bool = False,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.is_transient = passing
        """Whether another attempt may succeed, after `wait` seconds."""
        self.may_be_billed = billed
        self.wait = wait
        self.is_answer = is_answer
        """Whether something came that is not an answer."""

    @property
    def is_absent(self) -> bool:
        """Whether nothing listens there."""
        return not (self.is_transient or self.may_be_billed or self.status)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    seconds: float
    """From the first byte sent to the last received."""
    max_bytes: int
    """Bytes; of a longer answer no more is read."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


def post(
    url: str, asked: Mapping[str, object], headers: Mapping[str, str], bounds: RequestLimits
) -> Any:  # noqa: ANN401 - JSON from outside
    """Return what a service answers; `ExchangeError` without an answer in JSON."""
    sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    request = Request(url, json.dumps(asked).encode(), sent)  # noqa: S310 - `check_service` saw it
    if bounds.seconds <= 0:
        raise ExchangeError("there is no time left for it", passing=True, billed=False)
    until = bounds.clock() + bounds.seconds
    try:
        with build_opener(_NoRedirects).open(request, timeout=bounds.seconds) as answer:
            content = _read(answer, until, bounds)
    except HTTPError as error:
        with error:
            raise _refused(error.code, error.headers.get("Retry-After")) from None
    except (OSError, HTTPException) as error:
        raise _broken(error) from None
    try:
        return json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ExchangeError("the answer is no JSON", is_answer=True) from None


def _read(answer: HTTPResponse, until: float, bounds: RequestLimits) -> bytes:
    pieces, size = [], 0
    while piece := answer.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > bounds.max_bytes:
            what = f"the answer is longer than {bounds.max_bytes // 1_000_000} MB"
            raise ExchangeError(what, is_answer=True)
        if bounds.clock() > until:
            raise TimeoutError
    if answer.length:
        raise OSError("the answer was cut off")
    return b"".join(pieces)


def _refused(status: int, wait: str | None) -> ExchangeError:
    return ExchangeError(
        f"it answered with status {status}",
        status=status,
        passing=status in _AGAIN or status >= _SERVER_ERRORS,
        billed=status not in _NOT_BEGUN,
        wait=_seconds(wait),
    )


def _broken(error: Exception) -> ExchangeError:
    """Return why nothing came; what could not even be sent is not billed."""
    sent = not isinstance(error, URLError)
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ConnectionRefusedError):
        return ExchangeError("it can't be reached: nobody listens there", billed=False)
    if isinstance(reason, TimeoutError):
        return ExchangeError("it did not answer in time", passing=True, billed=sent)
    what = "it broke off its answer"
    if isinstance(reason, OSError) and reason.strerror:
        what = f"it can't be reached: {reason.strerror}"
    return ExchangeError(what, passing=True, billed=sent)


def _seconds(header: str | None) -> float:
    """Return for how long a service wants to be left alone: so many seconds, or until a date."""
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
    """Refuse NaN and infinities, which Python reads as JSON and no service means."""
    raise ValueError(name)


class _NoRedirects(HTTPRedirectHandler):
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
        raise InvalidValueError(
            f"{url[:_MOST_SHOWN]!a} is no endpoint. Fix: give a URL as https://host/v1."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidValueError(
            "the API key holds what no key can. Fix: copy it again, without line breaks."
        )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read here, where a wrong one can be reported
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts
