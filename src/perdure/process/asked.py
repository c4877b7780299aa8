"""What a caller says of where it is."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from perdure.errors import InvalidValueError

Context = Mapping[str, object] | None


class Asked(NamedTuple):
    cwd: str
    phase: object
    """As it was given; None if it was not."""
    plan: str | None


def asked(context: Context) -> Asked:
    """Read a context; every key of it may be missing."""
    said = context or {}
    cwd, plan = said.get("cwd"), said.get("plan")
    return Asked(
        _folder(cwd),
        said.get("phase"),
        None if plan is None or plan == "" else str(plan),
    )


def _folder(cwd: object) -> str:
    if isinstance(cwd, str | os.PathLike) and os.fspath(cwd):
        return os.fsdecode(cwd)
    if cwd is not None and cwd != "":
        raise InvalidValueError(f"{str(cwd)[:80]!a} is no folder. Fix: give cwd as a path.")
    try:
        return os.getcwd()  # noqa: PTH109 - as a text
    except OSError:  # it was removed
        return os.curdir
