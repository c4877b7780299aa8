"""The state files of a project: where plans, progress and notes of agents are, and reading them.

A synced backend stores them, so that every machine has them. Without one, or if the mode is
`local`, they are in the `.harness` folder of the checkout.
"""

import re
from pathlib import Path
from typing import NamedTuple

from perdure.errors import (
    AbsentError,
    ActivePlanError,
    InvalidValueError,
    PerdureError,
    PlanNameError,
    StateModeError,
    StateUnavailableError,
    StorageError,
)
from perdure.harness.project import HARNESS, Project, list_local, read_local, read_mark
from perdure.markdown import TaskItem, headings, tasks
from perdure.model.uri import check_slug
from perdure.storage import Locator, StorageBackend

BACKEND, LOCAL = "backend", "local"
MODES = (BACKEND, LOCAL)
MODE_MARKER = ".project-mode"
_OLD_NAMES = {"vault": BACKEND}
NAMES = (*MODES, *_OLD_NAMES)
"""Every accepted name of a mode."""


class Device(NamedTuple):
    home: str
    state_mode: str | None = None


def parse_mode(name: str, where: str) -> str:
    """Return the mode with this name; `vault` is the old name of `backend`."""
    mode = _OLD_NAMES.get(name, name)
    if mode not in MODES:
        raise StateModeError(
            f"{where} is {name[:80]!a}, which is not a mode. Fix: write {' or '.join(MODES)}."
        )
    return mode


def marked_mode(project_root: str) -> str | None:
    """Return the mode in the marker of a checkout; None if it has no marker."""
    mode = read_mark(project_root, MODE_MARKER)
    if mode is None:
        return None
    return parse_mode(mode, repr(str(Path(project_root, ".harness", MODE_MARKER))))


def state_mode(project_root: str, device: Device) -> str:
    """Return the mode of a checkout: its marker, else the machine's mode, else `backend`.

    A backend that is not available does not mean `local`: when it is back, there would be two
    states.
    """
    return marked_mode(project_root) or device.state_mode or BACKEND


STATE = "_harness"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,149}")


class StateDir(NamedTuple):
    """A folder for state, in a backend or in the checkout."""

    project_root: str
    backend: StorageBackend | None
    locator: Locator | None
    """Its place in the backend; None for the `.harness` folder of the checkout."""

    @property
    def shown(self) -> str:
        """Its path, for messages and for programs that only know files."""
        if self.backend is None or self.locator is None:
            return str(Path(self.project_root, HARNESS))
        return str(Path(self.backend.whereabouts, self.locator.key))

    @property
    def is_local(self) -> bool:
        return self.locator is None


def harness_state_dir(project: Project, device: Device) -> StateDir:
    if state_mode(project.project_root, device) == LOCAL or not _is_synced(project):
        return StateDir(project.project_root, None, None)
    assert project.project_locator is not None  # noqa: S101 - implied by _is_synced
    return StateDir(project.project_root, project.backend, project.project_locator.child(STATE))


def read_state_file(project: Project, device: Device, name: str) -> str | None:
    return read_in(harness_state_dir(project, device), name)


def read_in(place: StateDir, name: str) -> str | None:
    check_name(name)
    if place.backend is None or place.locator is None:
        return read_local(place.project_root, name)
    try:
        return place.backend.read(place.locator.child(name))
    except AbsentError:
        return None


def names_in(place: StateDir) -> list[str]:
    if place.backend is None or place.locator is None:
        names = list_local(place.project_root)
    else:
        names = [child.name for child in place.backend.list(place.locator)]
    return [name for name in names if _NAME.fullmatch(name)]


def path_in(place: StateDir, name: str) -> str:
    """Return the path of a state file, which may be absent, for programs that only know files."""
    check_name(name)
    if not Path(place.shown).is_absolute():
        raise StateUnavailableError(
            f"the state is in {place.shown!a}, whose files have no path. "
            "Fix: read and write it with `perdure plan`."
        )
    return str(Path(place.shown, name))


def check_name(name: str) -> str:
    """Return the name of a state file; raises `InvalidValueError` if it may lead elsewhere."""
    if not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"{name[:80]!a} is not valid for a state file. Fix: use letters, digits, dots, _ and -."
        )
    return name


def _is_synced(project: Project) -> bool:
    """Whether the backend declares that it is synced; False if it declares nothing."""
    if project.backend is None or project.project_locator is None:
        return False
    try:
        return project.backend.capabilities.sync is True
    except (AttributeError, NotImplementedError, PerdureError):
        return False


def tasks_in(text: str) -> list[TaskItem]:
    """Return the tasks of a plan in order, open and done."""
    return [task for task in tasks(text) if task.mark in " xX"]


def title_of(text: str) -> str:
    return next((each.info for each in headings(text)), "")


MARKER = "active-plan"
_PLAN, _PROGRESS, _SUFFIX = "PLAN", "progress", ".md"


class Plan(NamedTuple):
    """The names of a plan's two files, which may be absent."""

    name: str
    """Empty for the default plan."""

    @property
    def plan_file(self) -> str:
        return _file(_PLAN, self.name)

    @property
    def progress_file(self) -> str:
        return _file(_PROGRESS, self.name)

    @property
    def called(self) -> str:
        return self.name or "default"


DEFAULT = Plan("")


class PlanText(NamedTuple):
    plan: Plan
    text: str

    @property
    def title(self) -> str:
        return title_of(self.text)

    @property
    def tasks(self) -> list[TaskItem]:
        return tasks_in(self.text)

    @property
    def open(self) -> int:
        return sum(not task.done for task in self.tasks)

    @property
    def done(self) -> int:
        return sum(task.done for task in self.tasks)

    @property
    def next(self) -> str:
        return next((task.text for task in self.tasks if not task.done), "")


def _file(stem: str, name: str) -> str:
    return f"{stem}-{name}{_SUFFIX}" if name else f"{stem}{_SUFFIX}"


def named_plan(name: str) -> Plan:
    """Return the plan with this name; raises `PlanNameError` if the name is not valid."""
    try:
        return Plan(check_slug(name, "the name of a plan"))
    except InvalidValueError as error:
        raise PlanNameError(str(error)) from error


def resolve_active_plan(place: StateDir, name: str | None = None) -> Plan:
    """Return the plan with this name, else the one in the marker, else the default plan.

    Raises `ActivePlanError` if the marker can't be read, or names no existing plan: continuing with
    another plan could undo work.
    """
    if name is not None:
        return named_plan(name)
    marker = Path(place.project_root, HARNESS, MARKER)
    try:
        marked = read_mark(place.project_root, MARKER)
    except StorageError as error:
        raise ActivePlanError(f"the marker of the active plan can't be read: {error}") from error
    if marked is None:
        return DEFAULT
    try:
        plan = named_plan(marked)
    except PlanNameError as error:
        raise _wrong(marker, f"{marked[:80]!a}, which is not a valid name of a plan") from error
    if read_plan(place, plan) is None:
        raise _wrong(marker, f"{marked!a}, but there is no {plan.plan_file} in {place.shown!a}")
    return plan


def _wrong(marker: Path, what: str) -> ActivePlanError:
    return ActivePlanError(
        f"{str(marker)!a} names the plan {what}. Fix: `perdure plan switch NAME` makes another "
        "one active, `perdure plan clear` none."
    )


def read_plan(place: StateDir, plan: Plan) -> PlanText | None:
    text = read_in(place, plan.plan_file)
    return None if text is None else PlanText(plan, text)


def list_plans(place: StateDir) -> list[PlanText]:
    """Return all plans of a project, the default one first."""
    plans = [DEFAULT, *(Plan(name) for name in _names(place))]
    found = (read_plan(place, plan) for plan in plans)
    return [plan for plan in found if plan is not None]


def _names(place: StateDir) -> list[str]:
    start = f"{_PLAN}-"
    files = [file for file in names_in(place) if file.startswith(start) and file.endswith(_SUFFIX)]
    names = []
    for file in files:
        name = file.removeprefix(start).removesuffix(_SUFFIX)
        try:
            names.append(check_slug(name, "the name of a plan"))
        except InvalidValueError:  # a note, not a plan
            continue
    return names
