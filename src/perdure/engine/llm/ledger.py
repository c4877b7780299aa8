"""What was spent on language models, and whether more may be; one file for all that is paid.

One row for each call; no text of it. Times are microseconds. No call is made without a budget for
it, and none that is not in here.
"""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from pathlib import Path
from string import ascii_letters

from perdure.dataclass import dataclass
from perdure.engine.llm.contract import (
    BACKGROUND,
    Answer,
    Completer,
    Occasion,
    Refusal,
    Reply,
    Request,
    Truncation,
    Usage,
    Wrapper,
)
from perdure.engine.llm.counter import ledger_file
from perdure.errors import (
    InvalidValueError,
    LanguageModelError,
    OverBudgetError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.files import Closing
from perdure.model import check_owner_space
from perdure.model.uri import check_id
from perdure.model.values import counted, moment, shown
from perdure.sqlite import DatabaseFile, Tables

BILLION = 1_000_000_000
"""Money is counted in billionths of a dollar, so that sums are exact."""
_PLAIN = f"{ascii_letters} ".encode()
_PLAIN_PER_TOKEN = 3
_PER_MESSAGE = 16
_PER_REQUEST = 64
_FOR_TOOLS = 1_000
"""Services put their own instructions before tools, and before schemas."""
_MOST_DOLLARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many tokens, read and written together, and so much money; None is no limit."""

    tokens: int | None = None
    money: int | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "money"):
            if getattr(self, name) is not None:
                counted(getattr(self, name), f"limit of {name}")


@dataclass(frozen=True, slots=True)
class Budget:
    """What one call, all calls of one session, and all calls of one day in UTC may come to."""

    call: Limit = Limit(tokens=50_000)
    session: Limit = Limit(tokens=500_000)
    day: Limit = Limit(tokens=2_000_000)
    runs_per_day: int = 20
    """How many calls of the purpose `BACKGROUND` may be made in one day, answered or not."""

    @property
    def limits_money(self) -> bool:
        return any(each.money is not None for each in (self.call, self.session, self.day))


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million tokens that are read, and for a million that are written."""

    input: Decimal
    output: Decimal

    def __post_init__(self) -> None:
        for each in (self.input, self.output):
            if not each.is_finite() or not 0 <= each <= _MOST_DOLLARS:
                raise InvalidValueError(
                    f"a price is {shown(each)}. Fix: give dollars for a million tokens."
                )

    def cost(self, usage: Usage) -> int:
        dollars = self.input * usage.input_tokens + self.output * usage.output_tokens
        return nanodollars(dollars / 1_000_000)


@dataclass(frozen=True, slots=True)
class Terms:
    budget: Budget = Budget()
    prices: Prices | None = None

    def __post_init__(self) -> None:
        if self.prices is None and self.budget.limits_money:
            raise InvalidValueError(
                "money is limited, but nobody knows what the model costs. Fix: set input_price "
                "and output_price in [llm], or limit tokens only."
            )

    def cost(self, usage: Usage) -> int | None:
        return None if self.prices is None else self.prices.cost(usage)


def nanodollars(dollars: Decimal) -> int:
    return int((dollars * BILLION).to_integral_value(ROUND_CEILING))


def most_used(request: Request, max_output_tokens: int) -> Usage:
    """Return what a call may come to: more than it will, but for texts that nobody writes.

    Three letters or spaces are counted as a token, every other byte as one of its own. Models make
    a token of four letters of English, of one or two characters of Chinese (three bytes each), of
    one to three digits. On top comes what services put around messages and tools.
    """
    text = json.dumps(request.as_json(), ensure_ascii=False).encode()
    others = len(text.translate(None, _PLAIN))
    plain = -(-(len(text) - others) // _PLAIN_PER_TOKEN)
    around = _PER_REQUEST + _PER_MESSAGE * len(request.messages)
    if request.tools or request.schema is not None:
        around += _FOR_TOOLS
    return Usage(plain + others + around, max_output_tokens)


# ruff: noqa: S608 - the statements are put together from constants of this module only


_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOTHING = Usage(0, 0)

_VERSION = 1

_STATEMENTS = (
    # While a call is open, the numbers are the most that it may come to. So they stay if whoever
    # made it never came back.
    """CREATE TABLE calls (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        day TEXT NOT NULL,
        memory TEXT NOT NULL,
        account TEXT NOT NULL,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        purpose TEXT NOT NULL,
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        money INTEGER,
        cached INTEGER NOT NULL,
        outcome TEXT NOT NULL)""",
    "CREATE INDEX days ON calls (day)",
    "CREATE INDEX sessions ON calls (memory, account, session)",
    "CREATE INDEX times ON calls (at)",
    f"PRAGMA user_version = {_VERSION}",
)

_TABLES = Tables(
    name="the ledger of language models",
    version=_VERSION,
    statements=_STATEMENTS,
    without="budgets begin anew then, and what was spent is forgotten",
)

_ADD = (
    "INSERT INTO calls (at, day, memory, account, owner, session, purpose, model, input_tokens, "
    "output_tokens, money, cached, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SPENT = "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(money), 0) FROM calls"
_SPENT_IN_SESSION = f"{_SPENT} WHERE memory = ? AND account = ? AND session = ?"
_SPENT_ON_DAY = f"{_SPENT} WHERE day = ?"
_SETTLE = "UPDATE calls SET outcome = ? WHERE seq = ?"
_SETTLE_FOR = (
    "UPDATE calls SET outcome = ?, input_tokens = ?, output_tokens = ?, money = ? WHERE seq = ?"
)
_TOTALS = {
    name: f"""SELECT {name}, count(*) FILTER (WHERE NOT cached), count(*) FILTER (WHERE cached),
        count(*) FILTER (WHERE outcome = 'open'), sum(input_tokens), sum(output_tokens), sum(money)
        FROM calls WHERE at >= ? GROUP BY 1 ORDER BY 1"""
    for name in ("day", "session", "model", "purpose")
}
_RUNS_ON_DAY = "SELECT count(*) FROM calls WHERE day = ? AND purpose = ? AND NOT cached"
_FORGET_ACCOUNT = (
    "UPDATE calls SET account = '', owner = '', session = '' WHERE memory = ? AND account = ?"
)
_FORGET_OWNER = f"{_FORGET_ACCOUNT} AND owner = ?"


class Outcome(StrEnum):
    OPEN = "open"
    """Under way, or its process died in it: counted as the most that it may come to."""
    ANSWERED = "answered"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    FAILED = "failed"
    """Without a good answer, but perhaps not without a bill: counted as when it was open."""
    UNBILLED = "unbilled"
    """Turned down, or nobody was there."""
    REMEMBERED = "remembered"
    """Known from before; it cost nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    name: str
    calls: int
    remembered: int
    open: int
    input_tokens: int
    output_tokens: int
    money: int | None
    """In billionths of a dollar; None if no price was known."""

    @property
    def dollars(self) -> Decimal | None:
        return None if self.money is None else Decimal(self.money) / BILLION


class Ledger(Closing):
    """Every call is reserved before it is made, and settled when it is known what it came to.

    A reservation is on the disk when `reserve` returns. Of any number of threads and processes that
    want the last of a budget, one gets it. What nobody settled counts as spent, for good. Several
    memories share a day; accounts and sessions are those of the `memory` that it was opened for.
    """

    def __init__(
        self, path: str, memory: str = "", *, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._file = DatabaseFile(path, _TABLES)
        self._memory = memory
        self._clock = clock or (lambda: datetime.now(UTC))

    def close(self) -> None:
        self._file.close()

    # ------------------------------------------------------------ calls
    def reserve(self, occasion: Occasion, model: str, most: Usage, terms: Terms) -> int:
        """Set aside what a call may come to, and return its number; else `OverBudgetError`."""
        now, money = moment(self._clock(), "time of a call"), terms.cost(most)
        wanted = (most.tokens, money or 0)
        _check("one call", terms.budget.call, (0, 0), wanted)
        with self._file.changing() as db:
            session = (self._memory, occasion.account_id, occasion.session_id)
            spent = _spent(db, _SPENT_IN_SESSION, *session)
            _check(f"the session {shown(occasion.session_id)}", terms.budget.session, spent, wanted)
            spent = _spent(db, _SPENT_ON_DAY, _day(now))
            _check(f"{_day(now)} (UTC)", terms.budget.day, spent, wanted)
            if occasion.purpose == BACKGROUND:
                _check_runs(db, _day(now), terms.budget.runs_per_day)
            return self._add(db, now, occasion, (model, most, money, Outcome.OPEN))

    def settle(
        self, number: int, outcome: Outcome, usage: Usage | None = None, money: int | None = None
    ) -> None:
        """Say what a call came to; without `usage`, all that was reserved for it."""
        with self._file.changing(outlasts_power=False) as db:  # lost, it counts for more
            if usage is None:
                db.execute(_SETTLE, (outcome, number))
            else:
                told = (outcome, usage.input_tokens, usage.output_tokens, money, number)
                db.execute(_SETTLE_FOR, told)

    def note_remembered(self, occasion: Occasion, model: str) -> None:
        now = moment(self._clock(), "time of a call")
        with self._file.changing(outlasts_power=False) as db:
            self._add(db, now, occasion, (model, _NOTHING, 0, Outcome.REMEMBERED))

    def _add(
        self,
        db: sqlite3.Connection,
        now: datetime,
        occasion: Occasion,
        call: tuple[str, Usage, int | None, Outcome],
    ) -> int:
        model, usage, money, outcome = call
        whose = (occasion.account_id, occasion.owner_space, occasion.session_id, occasion.purpose)
        numbers = (usage.input_tokens, usage.output_tokens, money)
        cached = outcome is Outcome.REMEMBERED
        row = (_micros(now), _day(now), self._memory, *whose, model, *numbers, cached, outcome)
        return int(db.execute(_ADD, row).lastrowid or 0)

    # ------------------------------------------------------------ questions
    def totals(self, by: str, since: datetime | None = None) -> list[Cost]:
        """Return what each `day`, `session`, `model` or `purpose` came to, by its name."""
        if by not in _TOTALS:
            raise InvalidValueError(
                f"nothing is added up by {shown(by)}. Fix: use {', '.join(_TOTALS)}."
            )
        begin = 0 if since is None else _micros(moment(since, "time to begin with"))
        with self._file.reading() as db:
            return [Cost(*row) for row in db.execute(_TOTALS[by], (begin,))]

    # ------------------------------------------------------------ tenants
    def delete_account_data(self, account_id: str) -> int:
        """Forget whose calls they were. What was spent stays spent."""
        return self._forget(_FORGET_ACCOUNT, check_id(account_id, "account"))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        check_owner_space(owner_space)
        return self._forget(_FORGET_OWNER, check_id(account_id, "account"), owner_space)

    def _forget(self, statement: str, *whose: str) -> int:
        with self._file.changing() as db:
            count = db.execute(statement, (self._memory, *whose)).rowcount
        if count:
            self._file.wipe()
        return count


def _spent(db: sqlite3.Connection, statement: str, *values: str) -> tuple[int, int]:
    ((tokens, money),) = db.execute(statement, values)
    return tokens, money


def _check(what: str, limit: Limit, spent: tuple[int, int], wanted: tuple[int, int]) -> None:
    for most, before, more, told in zip(
        (limit.tokens, limit.money), spent, wanted, (_tokens, dollars), strict=True
    ):
        if most is not None and before + more > most:
            raise OverBudgetError(
                f"the call is not made: it may come to {told(more)}, and of the {told(most)} for "
                f"{what}, {told(max(0, most - before))} are left. "
                "Fix: ask for less, wait, or raise the budget in [llm]."
            )


def _check_runs(db: sqlite3.Connection, day: str, most: int) -> None:
    ((runs,),) = db.execute(_RUNS_ON_DAY, (day, BACKGROUND))
    if runs >= most:
        raise OverBudgetError(
            f"the call is not made: the {most} runs for {day} (UTC) are used up. "
            "Fix: wait, or raise runs_per_day in [llm]."
        )


def dollars(money: int) -> str:
    """Return an amount as people read it; no part of it is rounded away to nothing."""
    exact = f"{money // BILLION}.{money % BILLION:09d}".rstrip("0")
    whole, _, parts = exact.partition(".")
    return f"${whole}.{parts:0<2}"


def _tokens(count: int) -> str:
    return f"{count:,} tokens"


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def _day(time: datetime) -> str:
    return time.date().isoformat()


_OUTCOMES: dict[type, Outcome] = {
    Answer: Outcome.ANSWERED,
    Refusal: Outcome.REFUSED,
    Truncation: Outcome.TRUNCATED,
}


def costs(home: Path, by: str, since: datetime | None = None) -> tuple[Cost, ...]:
    """Return what models have cost in a home, by `day`, `session`, `model` or `purpose`."""
    file = ledger_file(home)
    if not file.exists():
        return ()
    with Ledger(str(file)) as ledger:
        return tuple(ledger.totals(by, since))


class Metered(Wrapper):
    """Asks only what the budget allows, whatever comes; every attempt counts as a call.

    What a call comes to is known from the service. If it does not say, or no answer comes that
    could say it, the call counts as the most that it may have come to.
    """

    def __init__(self, inner: Completer, ledger: Ledger, terms: Terms, occasion: Occasion) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._terms = terms
        self._occasion = occasion

    def complete(self, request: Request, *, seconds: float) -> Reply:
        most = most_used(request, self._inner.max_output_tokens)
        number = self._ledger.reserve(self._occasion, self._model, most, self._terms)
        try:
            reply = self._inner.complete(request, seconds=seconds)
        except LanguageModelError as error:
            unbilled = isinstance(error, ServiceUnreachableError) and not error.billed
            if unbilled or isinstance(error, RequestRefusedError):
                self._settle(number, Outcome.UNBILLED, _NOTHING)
            else:
                self._settle(number, Outcome.FAILED, None)
            raise
        self._settle(number, _OUTCOMES[type(reply)], reply.usage)
        return reply

    def _settle(self, number: int, outcome: Outcome, usage: Usage | None) -> None:
        money = None if usage is None else self._terms.cost(usage)
        self._ledger.settle(number, outcome, usage, money)
