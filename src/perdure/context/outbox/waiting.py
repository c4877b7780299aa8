"""Which nodes an index was not told of yet, as the outbox has it. Nothing is done to its file."""

from pathlib import Path

from perdure.context.outbox import schema
from perdure.database import ReadOnlyFile
from perdure.errors import DamageError, StorageError

_ATTEMPTS = 5
_PATIENCE_SECONDS = 2.0


def waiting_uris(path: Path, account_id: str, most: int) -> list[str] | None:
    """Return so many URIs of an account that wait, or failed; None if nobody can tell."""
    if not path.exists():
        return []
    for _ in range(_ATTEMPTS):
        try:
            file = ReadOnlyFile(str(path), schema.TABLES, _PATIENCE_SECONDS)
        except (DamageError, StorageError):  # it is just being made or changed
            continue
        try:
            with file.reading() as db:
                found = [uri for (uri,) in db.execute(schema.WAITING_URIS, (account_id, most))]
            if file.is_undisturbed:
                return found
        except (DamageError, StorageError):
            continue
        finally:
            file.close()
    return None
