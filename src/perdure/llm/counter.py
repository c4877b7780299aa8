"""Today's use of the background model, for a status line: one query, and few imports."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from perdure.config import LanguageModelSettings
from perdure.dataclass import dataclass
from perdure.errors import StorageError
from perdure.sqlite import open_read_only

_TODAY = """
    SELECT count(*), coalesce(sum(input_tokens + output_tokens), 0) FROM calls WHERE day = ?"""
_PATIENCE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class BackgroundUsage:
    """What all memories of a home used of today's budget; days are in UTC."""

    is_on: bool
    runs: int
    runs_allowed: int
    tokens: int
    tokens_allowed: int


def ledger_file(home: Path) -> Path:
    return home / "llm" / "ledger.sqlite"


def background_usage(home: Path, settings: LanguageModelSettings) -> BackgroundUsage:
    """Return today's use; zero if the ledger is absent, busy or unreadable."""
    runs, tokens = 0, 0
    file = ledger_file(home)
    with suppress(StorageError), open_read_only(file, _PATIENCE_SECONDS) as db:
        ((runs, tokens),) = db.execute(_TODAY, (datetime.now(UTC).date().isoformat(),))
    allowed = settings.runs_per_day, settings.tokens_per_day
    return BackgroundUsage(settings.background, runs, allowed[0], tokens, allowed[1])
