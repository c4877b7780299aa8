"""The path of a project's plan, and of its progress."""

import os
from pathlib import Path

from perdure.app.project_state import open_state, read_only_storage
from perdure.errors import (
    InvalidValueError,
    ProjectError,
    StateUnavailableError,
    StorageSelectionError,
)
from perdure.harness.project import project_root
from perdure.harness.state_files import StateDir, path_in, resolve_active_plan
from perdure.process.here import HostContext, parse_context

PLAN, PROGRESS = "plan", "progress"


def state_path(context: HostContext, which: str) -> Path:
    """Return the path of the plan, or of its progress; the file may be absent.

    It is in the state folder of the project; if the backend is not available, in `.harness` of the
    project. Any other `which`, an invalid name of a plan, and a marker without a plan are errors:
    continuing with another plan could undo work.
    """
    return find_plan_path(context, which)[0]


def find_plan_path(context: HostContext, which: str) -> tuple[Path, str]:
    """As `state_path`, with the reason if the backend is not available."""
    if which not in {PLAN, PROGRESS}:
        raise InvalidValueError(
            f"{str(which)[:80]!a} is not a file of a plan. Fix: use plan or progress."
        )
    cwd, _, named = parse_context(context)
    place, reason = _place(cwd)
    plan = resolve_active_plan(place, named)
    name = plan.plan_file if which == PLAN else plan.progress_file
    return Path(path_in(place, name)), reason


def _place(cwd: str) -> tuple[StateDir, str]:
    try:
        root = project_root(cwd)
    except ProjectError as error:
        return StateDir(str(Path(cwd).absolute()), None, None), str(error)
    try:
        return open_state(os.environ, cwd, read_only_storage).place, ""
    except (StateUnavailableError, StorageSelectionError) as error:
        return StateDir(root, None, None), str(error)
