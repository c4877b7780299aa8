"""`perdure cost`."""

import os

import click

from perdure.app.providers import llm_costs
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json, parse_time
from perdure.surfaces.out import counted, picked, shown
from perdure.times import start_of


@click.command("cost")
@click.option(
    "--by",
    type=click.Choice(["day", "model"]),
    default="day",
    help="Group by day (in UTC) or by model. Default: day.",
)
@click.option(
    "--since",
    type=parse_time,
    metavar="TIME",
    help="Count only calls since this date or time; without a zone, in UTC.",
)
@as_json(OBJECT_PER_LINE)
def cost_command(by: str, since: str | None, *, as_json: bool) -> None:
    """Show how many tokens language models have used.

    Counts each attempt, and each call that never ended as the most that it may have used. The text
    of a call is not stored.
    """
    totals = llm_costs(os.environ, by, start_of(since) if since else None)
    if as_json:
        fields = "calls unfinished=open input_tokens output_tokens"
        out.json(*({by: each.name, **picked(each, fields)} for each in totals))
        return
    if not totals:
        out.mention("no language model was called")
        return
    rows = [(each.name, each.calls, each.input_tokens, each.output_tokens) for each in totals]
    if len(totals) > 1:
        rows.append(
            ("all", sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows))
        )
    out.table(
        (by, "calls", "read", "written"),
        [(shown(name), *(f"{number:,}" for number in numbers)) for name, *numbers in rows],
    )
    unfinished = sum(each.open for each in totals)
    if unfinished:
        out.mention(
            f"{counted(unfinished, 'call')} running or never ended: counted as the most that "
            "it may have used"
        )
