"""Costs are recorded and stay within the budget, also with other processes, kills, midnight."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from perdure.errors import (
    AnswerMalformedError,
    DamageError,
    InvalidValueError,
    OverBudgetError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.llm.client import LLMClient
from perdure.llm.contract import (
    Answer,
    ChatMessage,
    Completer,
    Refusal,
    Request,
    Truncation,
    Usage,
)
from perdure.llm.http_services import OpenAICompleter
from perdure.llm.ledger import Budget, Ledger, MeteredCompleter, max_usage
from perdure.testing.llm import Script, ScriptedCompleter
from tests.llm import fake_services
from tests.llm.fake_services import Act, Handler, Server, fails, says, serving
from tests.llm.ledgers import rows

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HELLO = Request((ChatMessage("user", "Hello."),))
MOST = max_usage(HELLO, ScriptedCompleter.max_output_tokens)
FREE = Budget(1_000_000_000, 1_000)


class Clock:
    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(path: str, clock: Clock) -> Iterator[Ledger]:
    with Ledger(path, clock=clock) as ledger:
        yield ledger


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def reserve(ledger: Ledger, budget: Budget = FREE) -> int:
    return ledger.reserve("small", Usage(60, 40), budget)


# ---------------------------------------------------------------- limits
def test_a_call_that_may_exceed_the_budget_is_not_sent(ledger: Ledger) -> None:
    with pytest.raises(OverBudgetError, match=r"may use .* are left. Fix: "):
        reserve(ledger, Budget(tokens=99))
    assert rows(ledger) == []

    reserve(ledger, Budget(tokens=100))


def test_the_calls_of_a_day_are_limited(ledger: Ledger, clock: Clock) -> None:
    reserve(ledger, Budget(runs=1))

    with pytest.raises(OverBudgetError, match="the 1 runs for 2026-03-02"):
        reserve(ledger, Budget(runs=1))
    clock.now += timedelta(days=1)
    reserve(ledger, Budget(runs=1))


def test_what_is_reserved_counts_before_it_is_spent(ledger: Ledger) -> None:
    reserve(ledger, Budget(tokens=199))

    with pytest.raises(OverBudgetError):
        reserve(ledger, Budget(tokens=199))


def test_what_was_not_needed_can_be_spent_on_another_call(ledger: Ledger) -> None:
    few = Budget(tokens=199)
    ledger.settle(reserve(ledger, few), Usage(59, 40))

    reserve(ledger, few)


def test_what_came_to_more_than_was_reserved_counts_in_full(ledger: Ledger) -> None:
    few = Budget(tokens=1_000)
    ledger.settle(reserve(ledger, few), Usage(900, 1))

    with pytest.raises(OverBudgetError, match=r"99 tokens are left"):
        reserve(ledger, few)


def test_a_day_begins_at_midnight_in_utc(ledger: Ledger, clock: Clock) -> None:
    few = Budget(tokens=100)
    clock.now = datetime(2026, 3, 2, 23, 59, 59, 999_999, tzinfo=UTC)
    number = reserve(ledger, few)
    with pytest.raises(OverBudgetError):
        reserve(ledger, few)

    clock.now += timedelta(microseconds=1)
    ledger.settle(number, Usage(60, 40))  # it counts for the day it began on
    reserve(ledger, few)

    with pytest.raises(OverBudgetError, match="2026-03-03"):
        reserve(ledger, few)
    assert [(each.name, each.calls) for each in ledger.totals("day")] == [
        ("2026-03-02", 1),
        ("2026-03-03", 1),
    ]


def test_a_clock_elsewhere_is_read_in_utc(ledger: Ledger, clock: Clock) -> None:
    clock.now = datetime.fromisoformat("2026-03-03T01:30:00+02:00")
    reserve(ledger, FREE)

    assert ledger.totals("day")[0].name == "2026-03-02"


# ---------------------------------------------------------------- processes
RACER = """
import sys
from tests.llm.test_ledger import Budget, Ledger, OverBudgetError, reserve
with Ledger(sys.argv[1]) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        reserve(ledger, Budget(tokens=150))
    except OverBudgetError:
        print("refused")
    else:
        print("reserved")
"""


def test_of_all_processes_that_want_the_last_of_a_budget_one_gets_it(path: str) -> None:
    racers = [
        Popen([sys.executable, "-c", RACER, path], stdin=PIPE, stdout=PIPE, text=True)
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()

    lines = sorted(racer.communicate(timeout=60)[0] for racer in racers)

    assert lines == ["refused\n"] * 3 + ["reserved\n"]


ASKER = """
import sys
from perdure.llm.http_services import Service
from tests.llm.test_ledger import *
with Ledger(sys.argv[1], clock=Clock()) as ledger:
    completer = OpenAICompleter(Service(sys.argv[2], "small", max_output_tokens=1_000))
    MeteredCompleter(completer, ledger, FREE).complete(HELLO, seconds=60)
"""


def test_a_call_whose_process_was_killed_counts_with_its_upper_bound(
    server: Server, path: str, ledger: Ledger, script: Script
) -> None:
    asker: Popen[bytes]

    def kills(handler: Handler) -> None:
        asker.kill()

    server.acts.append(kills)
    asker = Popen([sys.executable, "-c", ASKER, path, f"{server.address}/v1"])
    assert asker.wait(60) == -9

    (row,) = rows(ledger)
    assert (row.open, row.input_tokens, row.output_tokens) == (True, MOST.input_tokens, 1_000)
    with pytest.raises(OverBudgetError):
        metered(ledger, ScriptedCompleter(script), Budget(MOST.tokens + 1)).complete(
            HELLO, seconds=1
        )
    assert script.requests == []


def test_a_ledger_that_is_damaged_lets_nothing_be_spent(path: str, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"x" * 4_096)

    with pytest.raises(DamageError, match="Fix: "):
        Ledger(path)


# ---------------------------------------------------------------- metering
def metered(ledger: Ledger, inner: Completer, budget: Budget = FREE) -> MeteredCompleter:
    return MeteredCompleter(inner, ledger, budget)


def test_a_call_is_written_down_with_what_the_service_says_that_it_took(
    ledger: Ledger, script: Script
) -> None:
    script.add(Answer("Hi.", usage=Usage(9, 2)))

    metered(ledger, ScriptedCompleter(script)).complete(HELLO, seconds=1)

    (row,) = rows(ledger)
    assert (row.at, row.model, row.input_tokens, row.output_tokens) == (NOON, "scripted", 9, 2)
    assert not row.open


def test_a_service_that_does_not_say_what_it_took_took_all_that_it_could(
    ledger: Ledger, script: Script
) -> None:
    script.add(Answer("Hi."))

    metered(ledger, ScriptedCompleter(script)).complete(HELLO, seconds=1)

    (row,) = rows(ledger)
    assert Usage(row.input_tokens, row.output_tokens) == MOST
    assert not row.open


def test_refusals_and_truncations_are_paid_for(ledger: Ledger, script: Script) -> None:
    script.add(Refusal(Usage(9, 0)), Truncation(Usage(9, 5)))
    on = metered(ledger, ScriptedCompleter(script))

    on.complete(HELLO, seconds=1)
    on.complete(HELLO, seconds=1)

    assert [row.output_tokens for row in rows(ledger)] == [0, 5]


@pytest.mark.parametrize("act", [fails(401), fails(429), fails(503)], ids=["401", "429", "503"])
def test_what_the_service_did_not_begin_costs_nothing(
    server: Server, ledger: Ledger, act: Act
) -> None:
    server.acts.append(act)
    completer = OpenAICompleter(server.openai())

    with pytest.raises((RequestRefusedError, ServiceUnreachableError)):
        metered(ledger, completer).complete(HELLO, seconds=30)

    (row,) = rows(ledger)
    assert (row.open, row.input_tokens, row.output_tokens) == (False, 0, 0)


@pytest.mark.parametrize(
    "act",
    [fails(500), fails(504), fake_services.breaks_off, says(b"oops")],
    ids=["500", "504", "breaks off", "no answer"],
)
def test_what_may_have_been_billed_is_counted(server: Server, ledger: Ledger, act: Act) -> None:
    server.acts.append(act)
    completer = OpenAICompleter(server.openai(max_output_tokens=1_000))

    with pytest.raises((ServiceUnreachableError, AnswerMalformedError)):
        metered(ledger, completer).complete(HELLO, seconds=30)

    (row,) = rows(ledger)
    assert not row.open
    assert Usage(row.input_tokens, row.output_tokens) == MOST


def test_every_attempt_is_written_down(server: Server, ledger: Ledger) -> None:
    server.acts.extend([fails(503), fails(500)])
    server.script.add(Answer("Hi."))
    completer = OpenAICompleter(server.openai())

    LLMClient(metered(ledger, completer), sleep=lambda _: None).ask(HELLO)

    assert [row.output_tokens for row in rows(ledger)] == [0, 4_096, 20]


def test_an_attempt_beyond_the_budget_is_not_sent(server: Server, ledger: Ledger) -> None:
    server.acts.extend([fails(500)] * 5)
    completer = OpenAICompleter(server.openai(max_output_tokens=1_000))
    few = Budget(2 * MOST.tokens)

    with pytest.raises(OverBudgetError):
        LLMClient(metered(ledger, completer, few), sleep=lambda _: None).ask(HELLO)

    assert len(server.asked) == 2


def test_what_the_budget_does_not_allow_is_not_asked(ledger: Ledger, script: Script) -> None:
    script.add(Answer("Hi."))

    with pytest.raises(OverBudgetError):
        metered(ledger, ScriptedCompleter(script), Budget(tokens=9)).complete(HELLO, seconds=1)
    assert script.requests == []


def test_no_text_of_a_call_is_in_the_ledger(ledger: Ledger, script: Script, tmp_path: Path) -> None:
    script.add(Answer("a very rare answer"))
    metered(ledger, ScriptedCompleter(script)).complete(
        Request((ChatMessage("user", "a very rare question"),)), seconds=1
    )

    assert b"very rare" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


# ---------------------------------------------------------------- questions
def test_what_was_spent_is_added_up_by_day_and_model(ledger: Ledger, clock: Clock) -> None:
    for number in range(3):
        clock.now = NOON + timedelta(days=number)
        ledger.settle(reserve(ledger), Usage(10, number))
    reserve(ledger)

    days = ledger.totals("day")
    assert [(each.calls, each.open, each.output_tokens) for each in days] == [
        (1, 0, 0),
        (1, 0, 1),
        (2, 1, 42),
    ]
    (small,) = ledger.totals("model", since=NOON + timedelta(days=1))
    assert (small.name, small.calls, small.input_tokens) == ("small", 3, 80)


def test_nothing_is_added_up_by_anything_else(ledger: Ledger) -> None:
    with pytest.raises(InvalidValueError, match="Fix: use day"):
        ledger.totals("at; DROP TABLE calls")
