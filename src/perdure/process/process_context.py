"""The context that a host process passes: a folder, a phase, a plan."""

import os
from collections.abc import Mapping

from perdure.errors import InvalidValueError

HostContext = Mapping[str, object] | None


def parse_context(context: HostContext) -> tuple[str, object, str | None]:
    """Return the folder, the phase and the plan of a context; each may be missing."""
    given = context or {}
    cwd, plan = given.get("cwd"), given.get("plan")
    return _folder(cwd), given.get("phase"), None if plan is None or plan == "" else str(plan)


def _folder(cwd: object) -> str:
    if isinstance(cwd, str | os.PathLike) and os.fspath(cwd):
        return os.fsdecode(cwd)
    if cwd is not None and cwd != "":
        raise InvalidValueError(f"{str(cwd)[:80]!a} is not a path. Fix: give cwd as a path.")
    try:
        return os.getcwd()  # noqa: PTH109 - as a text
    except OSError:  # it was removed
        return os.curdir
