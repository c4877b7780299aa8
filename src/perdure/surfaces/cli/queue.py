"""`perdure queue`."""

import os
from collections.abc import Iterator

import click

from perdure.app.projects import Queued, queue_of
from perdure.harness.plans import PlanText
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json
from perdure.surfaces.cli.plan import plan_json
from perdure.surfaces.out import shown


@click.command("queue")
@click.option("--all", "everything", is_flag=True, help="List plans without open tasks, too.")
@as_json(OBJECT_PER_LINE)
def queue_command(*, everything: bool, as_json: bool) -> None:
    """List the open plans of all registered repositories."""
    found = queue_of(os.environ)
    rows = [
        (each, plan)
        for each in found
        for plan in each.plans
        if everything or plan.open or not plan.tasks
    ]
    if as_json:
        out.json(*(_json(each, plan) for each, plan in rows))
    elif not out.table(("project", "plan", "open", "done", "next"), map(_row, rows)):
        out.mention("there are no open plans")
    for problem in _problems(found):
        out.mention(problem)


def _row(row: tuple[Queued, PlanText]) -> tuple[str, ...]:
    each, plan = row
    called = f"{plan.plan.called}*" if plan.plan == each.active else plan.plan.called
    return each.repo.slug, called, str(plan.open), str(plan.done), shown(plan.next)


def _json(each: Queued, plan: PlanText) -> dict[str, object]:
    place = None if each.place is None else each.place.shown
    return {**plan_json(each.repo.slug, plan, each.active), "place": place}


def _problems(found: list[Queued]) -> Iterator[str]:
    for each in found:
        if each.problem:
            yield f"{each.repo.slug}: {shown(each.problem)}"
