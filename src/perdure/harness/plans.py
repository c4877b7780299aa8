"""The plans of a project: the default one, any number of named ones, and which is active.

A plan and its progress are two state files of the project; its tasks are the check boxes of its
Markdown. The marker of the active plan is in the checkout, so that two worktrees can work on two
plans of one project.
"""

from pathlib import Path
from typing import NamedTuple

from perdure.errors import ActivePlanError, InvalidValueError, PlanNameError, StorageError
from perdure.harness.project import HARNESS, read_mark
from perdure.harness.state_files import StateDir, names_in, read_in
from perdure.markdown import Task, headings, tasks
from perdure.model.uri import check_slug


def tasks_in(text: str) -> list[Task]:
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
    def tasks(self) -> list[Task]:
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
