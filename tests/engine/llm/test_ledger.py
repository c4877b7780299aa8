"""What was spent is known; more than the budget is not, whoever asks, dies, or asks at midnight."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from perdure.engine.llm.asking import Retried
from perdure.engine.llm.contract import (
    Answer,
    Completer,
    Message,
    Occasion,
    Refusal,
    Request,
    Truncation,
    Usage,
)
from perdure.engine.llm.ledger import (
    Budget,
    Ledger,
    Limit,
    Metered,
    Outcome,
    Prices,
    Terms,
    most_used,
    nanodollars,
)
from perdure.engine.llm.wire import OpenAICompatible
from perdure.errors import (
    AnswerMalformedError,
    DamageError,
    InvalidValueError,
    OverBudgetError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.testing.llm import Script, Scripted
from tests.engine.llm import services
from tests.engine.llm.ledgers import rows
from tests.engine.llm.services import Act, Handler, Server, fails, says, serving

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
OCCASION = Occasion("acme", "user:ana", "monday", "extract")
PRICES = Prices(Decimal(1), Decimal(10))
HELLO = Request((Message("user", "Hello."),))
MOST = most_used(HELLO, Scripted.max_output_tokens)
FREE = Terms(Budget(Limit(), Limit(), Limit()), PRICES)


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


def reserve(ledger: Ledger, terms: Terms, occasion: Occasion = OCCASION) -> int:
    return ledger.reserve(occasion, "small", Usage(60, 40), terms)


def terms(**limits: Limit) -> Terms:
    call, session, day = (limits.get(span, Limit()) for span in ("call", "session", "day"))
    return Terms(Budget(call, session, day), PRICES)


# ---------------------------------------------------------------- limits
@pytest.mark.parametrize("span", ["call", "session", "day"])
@pytest.mark.parametrize(
    ("enough", "too_little"),
    [
        (Limit(tokens=100), Limit(tokens=99)),
        (Limit(money=PRICES.cost(Usage(60, 40))), Limit(money=PRICES.cost(Usage(60, 40)) - 1)),
    ],
)
def test_a_call_that_may_come_to_more_than_is_left_is_not_made(
    ledger: Ledger, span: str, enough: Limit, too_little: Limit
) -> None:
    with pytest.raises(OverBudgetError, match=r"may come to .* are left. Fix: "):
        reserve(ledger, terms(**{span: too_little}))
    assert rows(ledger) == []

    reserve(ledger, terms(**{span: enough}))


@pytest.mark.parametrize("limit", [Limit(tokens=199), Limit(money=2 * 460_000 - 1)])
@pytest.mark.parametrize("span", ["session", "day"])
def test_what_is_reserved_counts_before_it_is_spent(
    ledger: Ledger, span: str, limit: Limit
) -> None:
    reserve(ledger, terms(**{span: limit}))

    with pytest.raises(OverBudgetError):
        reserve(ledger, terms(**{span: limit}))


def test_what_was_not_needed_can_be_spent_on_another_call(ledger: Ledger) -> None:
    few = terms(day=Limit(tokens=199))
    ledger.settle(reserve(ledger, few), Outcome.ANSWERED, Usage(59, 40), 0)

    reserve(ledger, few)


def test_what_came_to_more_than_was_reserved_counts_in_full(ledger: Ledger) -> None:
    few = terms(day=Limit(tokens=1_000))
    ledger.settle(reserve(ledger, few), Outcome.ANSWERED, Usage(900, 1), 0)

    with pytest.raises(OverBudgetError, match=r"99 tokens are left"):
        reserve(ledger, few)


def test_a_session_is_one_of_its_account_only(ledger: Ledger) -> None:
    few = terms(session=Limit(tokens=100))
    reserve(ledger, few)

    reserve(ledger, few, Occasion("acme", "user:ana", "tuesday", "extract"))
    reserve(ledger, few, Occasion("other", "user:ana", "monday", "extract"))
    with pytest.raises(OverBudgetError, match="the session 'monday'"):
        reserve(ledger, few, Occasion("acme", "user:bob", "monday", "merge"))


def test_a_day_is_that_of_all_accounts(ledger: Ledger) -> None:
    few = terms(day=Limit(tokens=100))
    reserve(ledger, few)

    with pytest.raises(OverBudgetError, match="2026-03-02"):
        reserve(ledger, few, Occasion("other", "user:bob", "b", "merge"))


def test_memories_share_a_day_and_nothing_else(path: str, ledger: Ledger, clock: Clock) -> None:
    reserve(ledger, FREE)

    with Ledger(path, "another", clock=clock) as other:
        reserve(other, terms(session=Limit(tokens=100)))
        assert other.delete_account_data("acme") == 1
        with pytest.raises(OverBudgetError, match="2026-03-02"):
            reserve(other, terms(day=Limit(tokens=299)))
    assert [row.account_id for row in rows(ledger)] == ["acme", ""]


def test_a_day_begins_at_midnight_in_utc(ledger: Ledger, clock: Clock) -> None:
    few = terms(day=Limit(tokens=100))
    clock.now = datetime(2026, 3, 2, 23, 59, 59, 999_999, tzinfo=UTC)
    number = reserve(ledger, few)
    with pytest.raises(OverBudgetError):
        reserve(ledger, few)

    clock.now += timedelta(microseconds=1)
    ledger.settle(number, Outcome.ANSWERED, Usage(60, 40), 0)  # it counts for the day it began on
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


@pytest.mark.parametrize(
    "wrong",
    [
        {"account_id": ""},
        {"owner_space": "ana"},
        {"session_id": ""},
        {"purpose": ""},
        {"session_id": "x" * 1_000},
    ],
)
def test_a_call_that_would_count_for_nobody_can_not_be(wrong: dict[str, str]) -> None:
    whole = {"account_id": "a", "owner_space": "user:a", "session_id": "s", "purpose": "p"}

    with pytest.raises(InvalidValueError, match="Fix: "):
        Occasion(**whole | wrong)


# ---------------------------------------------------------------- processes
RACER = """
import sys
from tests.engine.llm.test_ledger import OCCASION, Ledger, Limit, OverBudgetError, reserve, terms
with Ledger(sys.argv[1]) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        reserve(ledger, terms(day=Limit(tokens=150)))
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

    said = sorted(racer.communicate(timeout=60)[0] for racer in racers)

    assert said == ["refused\n"] * 3 + ["reserved\n"]


ASKER = """
import sys
from tests.engine.llm.test_ledger import *
with Ledger(sys.argv[1], clock=Clock()) as ledger:
    completer = OpenAICompatible(services.Service(sys.argv[2], "small", max_output_tokens=1_000))
    Metered(completer, ledger, FREE, OCCASION).complete(HELLO, seconds=60)
"""


def test_a_call_whose_process_was_killed_counts_as_the_most_that_it_may_come_to(
    server: Server, path: str, ledger: Ledger, script: Script
) -> None:
    asker: Popen[bytes]

    def kills(handler: Handler) -> None:
        asker.kill()

    server.acts.append(kills)
    asker = Popen([sys.executable, "-c", ASKER, path, f"{server.address}/v1"])
    assert asker.wait(60) == -9

    (row,) = rows(ledger)
    assert (row.outcome, row.input_tokens, row.output_tokens) == (
        Outcome.OPEN,
        MOST.input_tokens,
        1_000,
    )
    assert row.money == PRICES.cost(MOST)
    with pytest.raises(OverBudgetError):
        metered(ledger, Scripted(script), terms(day=Limit(tokens=MOST.tokens + 1))).complete(
            HELLO, seconds=1
        )
    assert script.asked == []


def test_a_ledger_that_is_damaged_lets_nothing_be_spent(path: str, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"x" * 4_096)

    with pytest.raises(DamageError, match="Fix: "):
        Ledger(path)


# ---------------------------------------------------------------- metering
def metered(ledger: Ledger, inner: Completer, on: Terms = FREE) -> Metered:
    return Metered(inner, ledger, on, OCCASION)


def test_a_call_is_written_down_with_what_the_service_says_that_it_took(
    ledger: Ledger, script: Script
) -> None:
    script.say(Answer("Hi.", usage=Usage(9, 2)))

    metered(ledger, Scripted(script)).complete(HELLO, seconds=1)

    (row,) = rows(ledger)
    assert (row.at, row.account_id, row.session_id, row.purpose) == (
        NOON,
        "acme",
        "monday",
        "extract",
    )
    assert (row.model, row.input_tokens, row.output_tokens) == ("scripted", 9, 2)
    assert (row.money, row.cached, row.outcome) == (29_000, False, Outcome.ANSWERED)


def test_without_prices_tokens_are_counted_and_money_is_unknown(
    ledger: Ledger, script: Script
) -> None:
    script.say(Answer("Hi.", usage=Usage(9, 2)))

    metered(ledger, Scripted(script), Terms()).complete(HELLO, seconds=1)

    (row,) = rows(ledger)
    assert (row.input_tokens, row.money) == (9, None)


def test_a_service_that_does_not_say_what_it_took_took_all_that_it_could(
    ledger: Ledger, script: Script
) -> None:
    script.say(Answer("Hi."))

    metered(ledger, Scripted(script)).complete(HELLO, seconds=1)

    (row,) = rows(ledger)
    assert Usage(row.input_tokens, row.output_tokens) == MOST
    assert row.outcome is Outcome.ANSWERED


def test_refusals_and_truncations_are_paid_for(ledger: Ledger, script: Script) -> None:
    script.say(Refusal(Usage(9, 0)), Truncation(Usage(9, 5)))
    on = metered(ledger, Scripted(script))

    on.complete(HELLO, seconds=1)
    on.complete(HELLO, seconds=1)

    assert [(row.outcome, row.output_tokens) for row in rows(ledger)] == [
        (Outcome.REFUSED, 0),
        (Outcome.TRUNCATED, 5),
    ]


@pytest.mark.parametrize("act", [fails(401), fails(429), fails(503)], ids=["401", "429", "503"])
def test_what_the_service_did_not_begin_costs_nothing(
    server: Server, ledger: Ledger, act: Act
) -> None:
    server.acts.append(act)
    completer = OpenAICompatible(server.openai())

    with pytest.raises((RequestRefusedError, ServiceUnreachableError)):
        metered(ledger, completer).complete(HELLO, seconds=30)
    completer.close()

    (row,) = rows(ledger)
    assert (row.outcome, row.input_tokens, row.output_tokens, row.money) == (
        Outcome.UNBILLED,
        0,
        0,
        0,
    )


@pytest.mark.parametrize(
    "act",
    [fails(500), fails(504), services.breaks_off, says(b"oops")],
    ids=["500", "504", "breaks off", "no answer"],
)
def test_what_may_have_been_billed_is_counted(server: Server, ledger: Ledger, act: Act) -> None:
    server.acts.append(act)
    completer = OpenAICompatible(server.openai(max_output_tokens=1_000))

    with pytest.raises((ServiceUnreachableError, AnswerMalformedError)):
        metered(ledger, completer).complete(HELLO, seconds=30)
    completer.close()

    (row,) = rows(ledger)
    assert row.outcome is Outcome.FAILED
    assert Usage(row.input_tokens, row.output_tokens) == MOST


def test_every_attempt_is_written_down(server: Server, ledger: Ledger) -> None:
    server.acts.extend([fails(503), fails(500)])
    server.script.say(Answer("Hi."))
    completer = OpenAICompatible(server.openai())

    Retried(metered(ledger, completer), sleep=lambda _: None).complete(HELLO, seconds=300)
    completer.close()

    outcomes = [row.outcome for row in rows(ledger)]
    assert outcomes == [Outcome.UNBILLED, Outcome.FAILED, Outcome.ANSWERED]


def test_an_attempt_that_the_budget_does_not_cover_is_not_made(
    server: Server, ledger: Ledger
) -> None:
    server.acts.extend([fails(500)] * 5)
    completer = OpenAICompatible(server.openai(max_output_tokens=1_000))
    few = terms(session=Limit(tokens=2 * MOST.tokens))

    with pytest.raises(OverBudgetError):
        Retried(metered(ledger, completer, few), sleep=lambda _: None).complete(HELLO, seconds=300)
    completer.close()

    assert len(server.asked) == 2


def test_what_the_budget_does_not_allow_is_not_asked(ledger: Ledger, script: Script) -> None:
    script.say(Answer("Hi."))

    with pytest.raises(OverBudgetError):
        metered(ledger, Scripted(script), terms(call=Limit(tokens=9))).complete(HELLO, seconds=1)
    assert script.asked == []


def test_no_text_of_a_call_is_in_the_ledger(ledger: Ledger, script: Script, tmp_path: Path) -> None:
    script.say(Answer("a very rare answer"))
    metered(ledger, Scripted(script)).complete(
        Request((Message("user", "a very rare question"),)), seconds=1
    )

    assert b"very rare" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


# ---------------------------------------------------------------- questions
def test_what_was_spent_is_added_up_by_day_session_model_and_purpose(
    ledger: Ledger, clock: Clock
) -> None:
    for number, (session, purpose) in enumerate([("a", "extract"), ("a", "merge"), ("b", "merge")]):
        clock.now = NOON + timedelta(days=number)
        occasion = Occasion("acme", "user:ana", session, purpose)
        ledger.settle(reserve(ledger, FREE, occasion), Outcome.ANSWERED, Usage(10, number), 7)
    ledger.note_remembered(Occasion("acme", "user:ana", "b", "merge"), "small")

    (b,) = [each for each in ledger.totals("session") if each.name == "b"]
    assert (b.calls, b.remembered, b.open, b.input_tokens, b.output_tokens, b.money) == (
        1,
        1,
        0,
        10,
        2,
        7,
    )
    assert [(each.name, each.calls) for each in ledger.totals("purpose")] == [
        ("extract", 1),
        ("merge", 2),
    ]
    assert [each.money for each in ledger.totals("model")] == [21]
    assert len(ledger.totals("day")) == 3
    assert [each.calls for each in ledger.totals("model", since=NOON + timedelta(days=1))] == [2]


def test_nothing_is_added_up_by_anything_else(ledger: Ledger) -> None:
    with pytest.raises(InvalidValueError, match="Fix: use day"):
        ledger.totals("at; DROP TABLE calls")


# ---------------------------------------------------------------- tenants
def test_whose_calls_they_were_is_forgotten_and_what_was_spent_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    ana = Occasion("secretco", "user:ana", "secret-session", "extract")
    bob = Occasion("secretco", "user:bob", "secret-bob", "extract")
    reserve(ledger, FREE, ana)
    reserve(ledger, FREE, bob)
    reserve(ledger, FREE)

    assert ledger.delete_by_owner_space("secretco", "user:ana") == 1
    assert ledger.delete_by_owner_space("secretco", "user:ana") == 0
    assert {row.session_id for row in rows(ledger)} == {"", "secret-bob", "monday"}
    assert ledger.delete_account_data("secretco") == 1

    assert b"secret" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())
    with pytest.raises(OverBudgetError):
        reserve(ledger, terms(day=Limit(tokens=399)))


def test_a_dollar_is_a_billion_of_what_is_counted() -> None:
    assert nanodollars(Decimal("1.5")) == 1_500_000_000
