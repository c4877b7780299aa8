"""The ledger of calls to language models, and their budget; one file for all memories of a home.

Each call has a row, without its text or its user. No call is sent that the budget does not allow,
or that is not in the ledger. Times are microseconds.
"""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_letters

from perdure.dataclass import dataclass
from perdure.errors import (
    InvalidValueError,
    LanguageModelError,
    OverBudgetError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.files import Closeable
from perdure.llm.contract import Completer, Reply, Request, Usage
from perdure.llm.counter import ledger_file
from perdure.model.values import count, shown, utc_time
from perdure.sqlite import Schema, SqliteFile

_PLAIN = f"{ascii_letters} ".encode()
_PLAIN_PER_TOKEN = 3
_PER_MESSAGE = 16
_PER_REQUEST = 64
_FOR_TOOLS = 1_000
"""Services add instructions of their own to tools and schemas."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits for all calls of one day in UTC: tokens read and written, and attempts."""

    tokens: int = 2_000_000
    runs: int = 20

    def __post_init__(self) -> None:
        count(self.tokens, "limit of tokens")
        count(self.runs, "limit of runs")


def max_usage(request: Request, max_output_tokens: int) -> Usage:
    """Return an upper bound of the tokens of a call, except for contrived texts.

    Three letters or spaces count as a token, and every other byte as one. Models make a token of
    four letters of English, of one or two characters of Chinese (three bytes each), and of one to
    three digits. What services add to messages and tools is included.
    """
    text = json.dumps(request.as_json(), ensure_ascii=False).encode()
    others = len(text.translate(None, _PLAIN))
    plain = -(-(len(text) - others) // _PLAIN_PER_TOKEN)
    around = _PER_REQUEST + _PER_MESSAGE * len(request.messages)
    if request.tools or request.schema is not None:
        around += _FOR_TOOLS
    return Usage(plain + others + around, max_output_tokens)


_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOTHING = Usage(0, 0)
_VERSION = 1
_TABLES = Schema(
    name="the ledger of language models",
    version=_VERSION,
    statements=(
        # While a call is open, the numbers are its upper bound; so they remain if its process dies.
        """CREATE TABLE calls (
            seq INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            day TEXT NOT NULL,
            model TEXT NOT NULL,
            input_tokens INTEGER NOT NULL,
            output_tokens INTEGER NOT NULL,
            open INTEGER NOT NULL)""",
        "CREATE INDEX days ON calls (day)",
        f"PRAGMA user_version = {_VERSION}",
    ),
    loss="then budgets start again, and the record of costs is lost",
)
_ADD = (
    "INSERT INTO calls (at, day, model, input_tokens, output_tokens, open) "
    "VALUES (?, ?, ?, ?, ?, 1)"
)
_SPENT = "SELECT coalesce(sum(input_tokens + output_tokens), 0), count(*) FROM calls WHERE day = ?"
_SETTLE = "UPDATE calls SET open = 0 WHERE seq = ?"
_SETTLE_FOR = "UPDATE calls SET open = 0, input_tokens = ?, output_tokens = ? WHERE seq = ?"
_TOTALS = {
    name: f"SELECT {name}, count(*), sum(open), sum(input_tokens), sum(output_tokens) "  # noqa: S608 - constants
    "FROM calls WHERE at >= ? GROUP BY 1 ORDER BY 1"
    for name in ("day", "model")
}


@dataclass(frozen=True, slots=True)
class Cost:
    name: str
    calls: int
    open: int
    """Calls in progress, or whose process died; they count with their upper bound."""
    input_tokens: int
    output_tokens: int


class Ledger(Closeable):
    """Reserves each call before it is sent, and settles it when its cost is known.

    A reservation is durable when `reserve` returns. If several threads and processes want the rest
    of a budget, one gets it. A reservation that is never settled counts as spent.
    """

    def __init__(self, path: str, *, clock: Callable[[], datetime] | None = None) -> None:
        self._file = SqliteFile(path, _TABLES)
        self._clock = clock or (lambda: datetime.now(UTC))

    def close(self) -> None:
        self._file.close()

    def reserve(self, model: str, most: Usage, budget: Budget) -> int:
        """Reserve the upper bound of a call, and return its number; else `OverBudgetError`."""
        now = utc_time(self._clock(), "time of a call")
        day = now.date().isoformat()
        with self._file.transaction() as db:
            _check(db, day, most.tokens, budget)
            row = (_micros(now), day, model, most.input_tokens, most.output_tokens)
            return int(db.execute(_ADD, row).lastrowid or 0)

    def settle(self, number: int, usage: Usage | None = None) -> None:
        """Record the cost of a call; without `usage`, it is all that was reserved."""
        with self._file.transaction(durable=False) as db:  # if lost, the bound counts
            if usage is None:
                db.execute(_SETTLE, (number,))
            else:
                db.execute(_SETTLE_FOR, (usage.input_tokens, usage.output_tokens, number))

    def totals(self, by: str, since: datetime | None = None) -> list[Cost]:
        """Return the cost of each `day` or `model`, by name."""
        if by not in _TOTALS:
            raise InvalidValueError(
                f"costs can't be grouped by {shown(by)}. Fix: use {', '.join(_TOTALS)}."
            )
        begin = 0 if since is None else _micros(utc_time(since, "time to begin with"))
        with self._file.connection() as db:
            return [Cost(*row) for row in db.execute(_TOTALS[by], (begin,))]


def _check(db: sqlite3.Connection, day: str, wanted: int, budget: Budget) -> None:
    ((spent, runs),) = db.execute(_SPENT, (day,))
    if runs >= budget.runs:
        raise OverBudgetError(
            f"the call is not sent: the {budget.runs} runs for {day} (UTC) are used up. "
            "Fix: wait, or raise runs_per_day in [llm]."
        )
    if spent + wanted > budget.tokens:
        raise OverBudgetError(
            f"the call is not sent: it may use {wanted:,} tokens, and of the {budget.tokens:,} for "
            f"{day} (UTC), {max(0, budget.tokens - spent):,} tokens are left. "
            "Fix: wait, or raise tokens_per_day in [llm]."
        )


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def costs(home: Path, by: str, since: datetime | None = None) -> tuple[Cost, ...]:
    """Return what models have used in a home, grouped by `day` or `model`."""
    file = ledger_file(home)
    if not file.exists():
        return ()
    with Ledger(str(file)) as ledger:
        return tuple(ledger.totals(by, since))


class MeteredCompleter:
    """A completer that sends only what the budget allows; every attempt counts as a call.

    A call costs what the service reports; without a report, its upper bound.
    """

    def __init__(self, inner: Completer, ledger: Ledger, budget: Budget) -> None:
        self._inner = inner
        self._ledger = ledger
        self._budget = budget
        self.model, self.max_output_tokens = inner.model, inner.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        most = max_usage(request, self.max_output_tokens)
        number = self._ledger.reserve(self.model, most, self._budget)
        try:
            reply = self._inner.complete(request, seconds=seconds)
        except LanguageModelError as error:
            unbilled = isinstance(error, ServiceUnreachableError) and not error.may_be_billed
            is_free = unbilled or isinstance(error, RequestRefusedError)
            self._ledger.settle(number, _NOTHING if is_free else None)
            raise
        self._ledger.settle(number, reply.usage)
        return reply
