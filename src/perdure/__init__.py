"""Memory for AI agents that its owner can read, edit, search, rewind and prove."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.engine.memory import Memory

__all__ = ["open"]


def open(*, home: Path | str | None = None, backend: str | None = None) -> "Memory":
    """Open the memory that the config file and the environment name, on this user's behalf.

    `home` and `backend` take the place of what they say. Close it, or use it in a `with`.
    """
    from perdure.app import open_context  # noqa: PLC0415 - who only imports the package pays nothing

    named = {} if home is None else {"PERDURE_HOME": str(Path(home).expanduser().absolute())}
    return open_context({**os.environ, **named}, backend=backend).memory
