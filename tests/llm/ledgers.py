"""The calls in a ledger, one by one, as its file has them."""

from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.llm.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Row:
    at: datetime
    model: str
    input_tokens: int
    output_tokens: int
    open: bool


def rows(ledger: Ledger) -> list[Row]:
    """Return each call, the oldest first."""
    columns = "at, model, input_tokens, output_tokens, open"
    with ledger._file.connection() as db:
        found = db.execute(f"SELECT {columns} FROM calls ORDER BY seq").fetchall()  # noqa: S608 - a constant
    return [
        Row(datetime.fromtimestamp(at / 1_000_000, UTC), model, read, written, bool(is_open))
        for at, model, read, written, is_open in found
    ]
