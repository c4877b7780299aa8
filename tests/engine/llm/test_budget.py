"""What a call may come to, and what tokens cost."""

from decimal import Decimal

import pytest

from perdure.engine.llm.contract import Message, Request, Tool, Usage
from perdure.engine.llm.ledger import (
    Budget,
    Limit,
    Prices,
    Terms,
    dollars,
    most_used,
    nanodollars,
)
from perdure.errors import InvalidValueError


def estimate(text: str) -> int:
    """Return how many tokens a text is counted as, without what is around it."""
    bare = most_used(Request((Message("user", "."),)), 0).input_tokens
    return most_used(Request((Message("user", f".{text}"),)), 0).input_tokens - bare


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 20, 10 * 20),
        ("日本語のメモ", 12),
        ("1234567890", 10),
        ("🏳️‍🌈" * 10, 60),
        ("{}[]();" * 10, 70),
    ],
)
def test_a_text_is_counted_as_more_tokens_than_models_make_of_it(text: str, least: int) -> None:
    assert estimate(text) >= least


def test_an_estimate_is_no_more_than_twice_what_english_comes_to() -> None:
    words = "Ana moved to Berlin last spring and she prefers tabs over spaces in code " * 50

    assert estimate(words) <= len(words) / 4 * 2


def test_tools_and_what_may_be_written_are_counted() -> None:
    bare = Request((Message("user", "Hello."),))
    tool = Tool("save", "Save." * 100, {"type": "object"})

    assert most_used(Request(bare.messages, (tool,)), 7).input_tokens > (
        most_used(bare, 7).input_tokens + 1_100
    )
    assert most_used(bare, 7).output_tokens == 7


def test_money_is_exact_and_rounded_up() -> None:
    prices = Prices(Decimal("0.15"), Decimal("0.6"))

    assert prices.cost(Usage(1_000_000, 1_000_000)) == nanodollars(Decimal("0.75"))
    assert prices.cost(Usage(1, 0)) == 150
    assert Prices(Decimal("0.0000001"), Decimal(0)).cost(Usage(1, 0)) == 1
    assert Prices(Decimal(0), Decimal(0)).cost(Usage(9, 9)) == 0


@pytest.mark.parametrize(
    ("money", "told"),
    [(0, "$0.00"), (1, "$0.000000001"), (150_000_000, "$0.15"), (12_340_000_000, "$12.34")],
)
def test_amounts_are_told_whole(money: int, told: str) -> None:
    assert dollars(money) == told


def test_money_can_not_be_limited_without_prices() -> None:
    with pytest.raises(InvalidValueError, match="Fix: set input_price"):
        Terms(Budget(day=Limit(money=1)))
    assert Terms(Budget(day=Limit(tokens=1))).cost(Usage(1, 1)) is None


@pytest.mark.parametrize("price", ["-1", "NaN", "Infinity", "1e9"])
def test_a_price_that_is_none_is_refused(price: str) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        Prices(Decimal(price), Decimal(1))


@pytest.mark.parametrize("wrong", [-1, 1.5, True])
def test_a_limit_that_is_none_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        Limit(tokens=wrong)


def test_without_a_word_of_the_owner_there_are_limits_nevertheless() -> None:
    budget = Budget()

    assert None not in (budget.call.tokens, budget.session.tokens, budget.day.tokens)
