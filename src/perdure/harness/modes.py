"""Whether the state of a project is kept by the backend or stays in its own folder."""

from pathlib import Path
from typing import NamedTuple

from perdure.errors import StateModeError
from perdure.harness.marks import read_mark

BACKEND, LOCAL = "backend", "local"
MODES = (BACKEND, LOCAL)
MARKER = ".project-mode"
_OLD_NAMES = {"vault": BACKEND}
NAMES = (*MODES, *_OLD_NAMES)
"""Every name that a mode can be given by."""


class Device(NamedTuple):
    """What this machine has set."""

    home: str
    state_mode: str | None = None


def canonical_mode(said: str, where: str) -> str:
    """Return the mode that a text names; `vault` is the old name of `backend`."""
    mode = _OLD_NAMES.get(said, said)
    if mode not in MODES:
        raise StateModeError(
            f"{where} says {said[:80]!a}, which is no way to keep state. "
            f"Fix: write {' or '.join(MODES)}."
        )
    return mode


def marked_mode(project_root: str) -> str | None:
    """Return what the marker of a checkout says; None if it has none. Nothing is rewritten."""
    said = read_mark(project_root, MARKER)
    if said is None:
        return None
    return canonical_mode(said, repr(str(Path(project_root, ".harness", MARKER))))


def state_mode(project_root: str, device: Device) -> str:
    """Return the mode of a checkout: by its marker, else that of the machine, else `backend`.

    That no backend can be had never means `local`: it may be there again in a moment, and then
    there would be two states.
    """
    return marked_mode(project_root) or device.state_mode or BACKEND
