"""`perdure cost`."""

import os
from collections.abc import Sequence
from decimal import ROUND_UP, Decimal

import click

from perdure import Cost
from perdure.app.llm import costs_here
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json, parse_time
from perdure.surfaces.telling import counted, picked, shown
from perdure.times import first

_ALL = "all"
_CENT_OF_CENT = Decimal("0.0001")


@click.command("cost")
@click.option(
    "--by",
    type=click.Choice(["day", "session", "model", "purpose"]),
    default="day",
    help="What to add up by; the day (in UTC), if you don't say.",
)
@click.option(
    "--since",
    type=parse_time,
    metavar="TIME",
    help="Only calls from then on: a date or a time, in UTC unless it says otherwise.",
)
@as_json(OBJECT_PER_LINE)
def cost_command(by: str, since: str | None, *, as_json: bool) -> None:
    """Say what language models have cost.

    Each attempt counts, and each call that never ended as the most that it may have cost. Answers
    that were known from before cost nothing. What was said in a call is not kept.
    """
    totals = costs_here(os.environ, by, first(since) if since else None)
    if as_json:
        out.json(*({by: each.name, **_json(each)} for each in totals))
        return
    if not totals:
        out.mention("no language model was asked")
        return
    rows = [_row(each) for each in totals]
    if len(totals) > 1:
        rows.append(_row(_sum(totals)))
    out.table((by, "calls", "remembered", "read", "written", "cost"), rows)
    unfinished = sum(each.open for each in totals)
    if unfinished:
        out.mention(
            f"{counted(unfinished, 'call')} under way, or never ended: counted as the most that "
            "may be due"
        )


def _row(total: Cost) -> tuple[str, ...]:
    numbers = (total.calls, total.remembered, total.input_tokens, total.output_tokens)
    return (shown(total.name), *(f"{number:,}" for number in numbers), _dollars(total.dollars))


def _dollars(amount: Decimal | None) -> str:
    """Return an amount to a hundredth of a cent, rounded up."""
    if amount is None:
        return "unknown"
    return f"${amount.quantize(_CENT_OF_CENT, ROUND_UP):,}"


def _sum(totals: Sequence[Cost]) -> Cost:
    known = [each.money for each in totals if each.money is not None]
    return Cost(
        _ALL,
        sum(each.calls for each in totals),
        sum(each.remembered for each in totals),
        sum(each.open for each in totals),
        sum(each.input_tokens for each in totals),
        sum(each.output_tokens for each in totals),
        sum(known) if known else None,
    )


def _json(total: Cost) -> dict[str, object]:
    counts = picked(total, "calls remembered unfinished=open input_tokens output_tokens")
    return {**counts, "dollars": None if total.dollars is None else f"{total.dollars:f}"}
