"""`perdure plan`, `perdure queue` and `perdure state-mode`."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Concatenate, ParamSpec

import click

from perdure.app.project_state import (
    ProjectState,
    QueueEntry,
    edit_state,
    open_state,
    plan_queue,
    read_only_storage,
    state_modes,
)
from perdure.errors import HarnessError, PlanNameError
from perdure.harness.state_files import (
    DEFAULT,
    NAMES,
    Plan,
    PlanText,
    list_plans,
    named_plan,
    path_in,
    read_in,
    read_plan,
    resolve_active_plan,
)
from perdure.harness.state_writer import clear_plan, start_plan, switch_plan
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json
from perdure.surfaces.out import counted, picked, shown

Rest = ParamSpec("Rest")
ProjectCommand = Callable[Concatenate[ProjectState, Rest], None]


def reading_project(command: ProjectCommand[Rest]) -> Callable[Rest, None]:
    """Open the project of `--cwd` read-only, and pass it to the command."""
    return _in_project(
        lambda cwd: nullcontext(open_state(os.environ, cwd, read_only_storage)), command
    )


def changing_project(command: ProjectCommand[Rest]) -> Callable[Rest, None]:
    """Open the project of `--cwd` for changes, and pass it to the command."""
    return _in_project(lambda cwd: edit_state(os.environ, cwd), command)


def _in_project(
    opening: Callable[[str], AbstractContextManager[ProjectState]], command: ProjectCommand[Rest]
) -> Callable[Rest, None]:
    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        with opening(str(kwargs.pop("cwd"))) as opened:
            command(opened, *args, **kwargs)

    return in_folder(run)


def in_folder(command: Callable[Rest, None]) -> Callable[Rest, None]:
    return click.option(
        "--cwd", metavar="FOLDER", default=".", help="The folder of the project. Default: this one."
    )(command)


@click.group("plan")
def plan_command() -> None:
    """Start, show and finish the plans of a project.

    A plan is PLAN.md or PLAN-NAME.md, with a progress file beside it; its tasks are check boxes.
    PLAN.md is called default.
    """


@plan_command.command("list")
@as_json(OBJECT_PER_LINE)
@reading_project
def list_(opened: ProjectState, *, as_json: bool) -> None:
    """List the plans of the project."""
    active = resolve_active_plan(opened.place)
    plans = list_plans(opened.place)
    if as_json:
        out.json(*(described_plan(each, opened, active) for each in plans))
        return
    rows = (
        (
            "*" if each.plan == active else "",
            each.plan.called,
            str(each.open),
            str(each.done),
            shown(each.title),
        )
        for each in plans
    )
    if not out.table(("active", "plan", "open", "done", "title"), rows):
        out.mention("there is no plan. Fix: start one with `perdure plan start NAME`.")


@plan_command.command("show")
@click.argument("name", required=False)
@as_json()
@reading_project
def show(opened: ProjectState, name: str | None, *, as_json: bool) -> None:
    """Print the plan NAME, or the active one."""
    active = resolve_active_plan(opened.place)
    found = _found(opened, active if name is None else _plan(name))
    if as_json:
        out.json({**described_plan(found, opened, active), "text": found.text})
    else:
        out.text(found.text)


@plan_command.command("start")
@click.argument("name")
@click.option("--title", metavar="TEXT", help="The title of the plan. Default: its name.")
@click.option("--task", "tasks", metavar="TEXT", multiple=True, help="Add a task. Repeatable.")
@as_json()
@changing_project
def start(
    opened: ProjectState, name: str, title: str | None, tasks: tuple[str, ...], *, as_json: bool
) -> None:
    """Start the plan NAME, and make it the active one."""
    plan = _plan(name)
    heading = " ".join((title or name.replace("-", " ").capitalize()).split())
    boxes = "".join(f"- [ ] {' '.join(task.split())}\n" for task in tasks)
    text = f"# {heading}\n" + (f"\n{boxes}" if boxes else "")
    begun = start_plan(opened.place, opened.device, plan, text)
    _print(opened, begun, f"{plan.called} is started, in {_path(opened, plan)}", as_json=as_json)


@plan_command.command("switch")
@click.argument("name")
@as_json()
@changing_project
def switch(opened: ProjectState, name: str, *, as_json: bool) -> None:
    """Make the plan NAME the active one of this checkout."""
    plan = _plan(name)
    if plan == DEFAULT:
        found = _found(opened, DEFAULT)
        clear_plan(opened.place, opened.device)
    else:
        found = switch_plan(opened.place, opened.device, name)
    _print(opened, found, f"{plan.called} is active", as_json=as_json)


@plan_command.command("finish")
@click.option("--anyway", is_flag=True, help="Finish even if tasks are open.")
@as_json()
@changing_project
def finish(opened: ProjectState, *, anyway: bool, as_json: bool) -> None:
    """Finish the active plan; its files stay."""
    found = _found(opened, resolve_active_plan(opened.place))
    if found.open and not anyway:
        raise HarnessError(
            f"{found.plan.called!a} has {counted(found.open, 'task')} open, first "
            f"{found.next[:80]!a}. Fix: check them in {_path(opened, found.plan)}, or add --anyway."
        )
    clear_plan(opened.place, opened.device)
    _print(opened, found, f"{found.plan.called} is finished", as_json=as_json)


@plan_command.command("clear")
@as_json()
@changing_project
def clear(opened: ProjectState, *, as_json: bool) -> None:
    """Deactivate the active plan, so that default is active."""
    clear_plan(opened.place, opened.device)
    out.answer(
        {"project": opened.project.slug, "active": DEFAULT.called},
        "no named plan is active",
        as_json=as_json,
    )


@plan_command.command("brief")
@as_json()
@reading_project
def brief(opened: ProjectState, *, as_json: bool) -> None:
    """Print four lines about the active plan, for the start of a session.

    Prints nothing if there is no plan, or no progress file.
    """
    plan = resolve_active_plan(opened.place)
    found = read_plan(opened.place, plan)
    if found is None or read_in(opened.place, plan.progress_file) is None:
        return
    if as_json:
        progress = path_in(opened.place, plan.progress_file)
        out.json({**described_plan(found, opened, plan), "progress": progress})
        return
    out.line(f"Project: {opened.project.slug}")
    out.line(f"Plan: {_path(opened, plan)} ({found.open} open, {found.done} done)")
    out.line(f"Progress: {path_in(opened.place, plan.progress_file)}")
    out.line(f"Next: {shown(found.next)}")


def plan_json(project: str, found: PlanText, active: Plan | None) -> dict[str, object]:
    names = {"project": project, "plan": found.plan.called, "active": found.plan == active}
    return {**names, **picked(found, "title? open done next?")}


def described_plan(found: PlanText, opened: ProjectState, active: Plan | None) -> dict[str, object]:
    path = _path(opened, found.plan)
    return {**plan_json(opened.project.slug, found, active), "path": path}


def _print(opened: ProjectState, found: PlanText, line: str, *, as_json: bool) -> None:
    out.answer(
        described_plan(found, opened, resolve_active_plan(opened.place)), line, as_json=as_json
    )


def _plan(name: str) -> Plan:
    return DEFAULT if name == DEFAULT.called else named_plan(name)


def _found(opened: ProjectState, plan: Plan) -> PlanText:
    found = read_plan(opened.place, plan)
    if found is None:
        raise PlanNameError(
            f"there is no plan {plan.called!a} in {opened.place.shown!a}. "
            "Fix: see `perdure plan list`, or start one with `perdure plan start`."
        )
    return found


def _path(opened: ProjectState, plan: Plan) -> str:
    return path_in(opened.place, plan.plan_file)


# ---------------------------------------------------------------- plans of all repositories
@click.command("queue")
@click.option("--all", "everything", is_flag=True, help="List plans without open tasks, too.")
@as_json(OBJECT_PER_LINE)
def queue_command(*, everything: bool, as_json: bool) -> None:
    """List the open plans of all registered repositories."""
    found = plan_queue(os.environ)
    rows = [
        (each, plan)
        for each in found
        for plan in each.plans
        if everything or plan.open or not plan.tasks
    ]
    if as_json:
        for each, plan in rows:
            place = None if each.place is None else each.place.shown
            out.json({**plan_json(each.repo.slug, plan, each.active), "place": place})
    elif not out.table(("project", "plan", "open", "done", "next"), map(_queue_row, rows)):
        out.mention("there are no open plans")
    for each in found:
        if each.problem:
            out.mention(f"{each.repo.slug}: {shown(each.problem)}")


def _queue_row(row: tuple[QueueEntry, PlanText]) -> tuple[str, ...]:
    each, plan = row
    called = f"{plan.plan.called}*" if plan.plan == each.active else plan.plan.called
    return each.repo.slug, called, str(plan.open), str(plan.done), shown(plan.next)


# ---------------------------------------------------------------- where plans are stored
@click.command("state-mode")
@click.argument("mode", required=False, type=click.Choice(sorted(NAMES)))
@click.option("--here", is_flag=True, help="Set it for this checkout only, above the machine's.")
@as_json()
@in_folder
def state_mode_command(mode: str | None, cwd: str, *, here: bool, as_json: bool) -> None:
    """Show or change where the plans of projects are stored.

    With MODE backend, they are stored in a synced backend, for all machines that share it; with
    local, in the .harness folder of each checkout.
    """
    if mode == "vault":
        out.mention("vault is the old name of backend; backend is written")
    now = state_modes(os.environ, cwd, mode, here=here)
    if as_json:
        out.json(now._asdict())
    else:
        source = "checkout" if now.checkout else "machine" if now.machine else "default"
        out.line(f"{now.mode}, set by the {source}")
