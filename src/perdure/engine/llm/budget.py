"""What may be spent, what a call may come to, and what tokens cost."""

import json
from decimal import ROUND_CEILING, Decimal
from string import ascii_letters

from perdure.dataclass import dataclass
from perdure.engine.llm.contract import Request, Usage
from perdure.errors import InvalidValueError
from perdure.model.values import counted, shown

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
