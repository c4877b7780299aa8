"""The calls in a ledger, one by one, as its file has them."""

from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.engine.llm.ledger import Ledger, Outcome


@dataclass(frozen=True, slots=True)
class Row:
    at: datetime
    account_id: str
    session_id: str
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    money: int | None
    cached: bool
    outcome: Outcome


def rows(ledger: Ledger) -> list[Row]:
    """Return each call, the oldest first."""
    columns = (
        "account, session, purpose, model, input_tokens, output_tokens, money, cached, outcome"
    )
    with ledger._file.reading() as db:
        found = db.execute(f"SELECT at, {columns} FROM calls ORDER BY seq").fetchall()  # noqa: S608 - a constant
    return [
        Row(datetime.fromtimestamp(at / 1_000_000, UTC), *told, bool(cached), Outcome(outcome))  # type: ignore[call-arg] # as the columns are
        for at, *told, cached, outcome in found
    ]
