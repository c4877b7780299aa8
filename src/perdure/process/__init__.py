"""What a process may ask of memory: to read it, where it works, and nothing else.

All that can't be had is answered with nothing, so that no process is held up by an absent memory.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from perdure.errors import InvalidValueError
from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.process.locating import state_path
    from perdure.process.offering import offer_save_here
    from perdure.process.recalling import recall_here
else:
    __getattr__ = exports(
        __name__,
        {
            "locating": "state_path",
            "offering": "offer_save_here",
            "recalling": "recall_here",
        },
    )

__all__ = ["offer_save_here", "recall_here", "state_path"]

Context = Mapping[str, object] | None


def asked(context: Context) -> tuple[str, object, str | None]:
    """Return the folder, the phase and the plan that a context names; each may be missing."""
    said = context or {}
    cwd, plan = said.get("cwd"), said.get("plan")
    return _folder(cwd), said.get("phase"), None if plan is None or plan == "" else str(plan)


def _folder(cwd: object) -> str:
    if isinstance(cwd, str | os.PathLike) and os.fspath(cwd):
        return os.fsdecode(cwd)
    if cwd is not None and cwd != "":
        raise InvalidValueError(f"{str(cwd)[:80]!a} is no folder. Fix: give cwd as a path.")
    try:
        return os.getcwd()  # noqa: PTH109 - as a text
    except OSError:  # it was removed
        return os.curdir
