"""The plans of a project: one without a name, any number with one, and which of them is active.

A plan and its progress are two texts of the project's state, its tasks the check boxes of its
Markdown. The marker that says which plan is active stays in the checkout, so that two worktrees
can work on two plans of one project.
"""

from pathlib import Path
from typing import NamedTuple

from perdure.errors import ActivePlanError, InvalidValueError, PlanNameError, StorageError
from perdure.harness.project import HARNESS, read_mark
from perdure.harness.state_files import StateDir, names_in, read_in
from perdure.markdown import Task, headings, tasks
from perdure.model.uri import check_slug


def tasks_in(text: str) -> list[Task]:
    """Return the tasks of a plan in their order, those that are open and those that are done."""
    return [task for task in tasks(text) if task.mark in " xX"]


def title_of(text: str) -> str:
    return next((each.info for each in headings(text)), "")


MARKER = "active-plan"
_PLAN, _PROGRESS, _SUFFIX = "PLAN", "progress", ".md"


class Plan(NamedTuple):
    """The names of a pair of files; that they are there, it does not say."""

    name: str
    """Empty for the plan that has none."""

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
    """Return the plan of this name; `PlanNameError` for what could be the name of none."""
    try:
        return Plan(check_slug(name, "the name of a plan"))
    except InvalidValueError as error:
        raise PlanNameError(str(error)) from error


def resolve_active_plan(place: StateDir, name: str | None = None) -> Plan:
    """Return the plan of this name, else the one that the marker names, else the one without.

    A marker that can't be read, names what can be no plan, or one that is not there, is an
    `ActivePlanError`: to go on with another plan could undo work.
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
    """Return all plans of a project, the one without a name first."""
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
        except InvalidValueError:  # a note, not one of our plans
            continue
    return names
