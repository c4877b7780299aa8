"""`perdure doctor`."""

import os
from collections.abc import Iterator

import click

from perdure import Check, Checkup, Severity
from perdure.agents.checkup import check_agents
from perdure.app.health import CAPABILITIES, doctor
from perdure.dataclass import asdict
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json
from perdure.surfaces.out import shown, styled

_SHOWN = {Severity.WARN, Severity.FAIL}
_WIDEST_EVENT = 18
_COLOURS = dict(zip(Severity, ("green", "cyan", "yellow", "red"), strict=True))


@click.command("doctor")
@click.option(
    "--requires",
    metavar="NAMES",
    default="",
    help=f"Fail unless the storage has these capabilities, comma-separated: "
    f"{', '.join(CAPABILITIES)}.",
)
@click.option("--all", "every", is_flag=True, help="Print checks that pass, too.")
@click.option(
    "--agents", is_flag=True, help="Check each coding agent instead: entries, trust, hooks."
)
@as_json()
@click.pass_context
def doctor_command(
    context: click.Context, requires: str, *, every: bool, agents: bool, as_json: bool
) -> None:
    """Check where memory is stored, and whether everything works.

    Changes nothing. Prints each problem with its fix, and exits with 1 if a check fails. With
    --all, prints checks that pass, and what could be improved. With --agents, checks each coding
    agent that uses memory: its entries, whether they are trusted, when each hook last ran, how
    long it took, what it returned, and which session was stored last.
    """
    if agents:
        context.exit(0 if _check_agents(as_json=as_json) else 1)
    wanted = {name.strip() for name in requires.split(",") if name.strip()}
    if unknown := wanted.difference(CAPABILITIES):
        raise click.BadParameter(
            f"unknown: {', '.join(sorted(unknown))}. Fix: use {', '.join(CAPABILITIES)}.",
            param_hint="--requires",
        )
    found = doctor(os.environ, wanted)
    if as_json:
        out.json(_json(found))
    else:
        for line in _lines(found, every=every):
            out.line(line)
    context.exit(0 if found.ok else 1)


def _check_agents(*, as_json: bool) -> bool:
    found = check_agents(os.environ)
    is_ok = all(each.ok for each in found)
    if as_json:
        agents = {each.agent: list(map(_check_json, each.checks)) for each in found}
        out.json({"ok": is_ok, "agents": agents})
        return is_ok
    for each in found:
        out.line(styled(each.agent, bold=True))
        for check in each.checks:
            out.line(_line(check, _WIDEST_EVENT))
    if not found:
        out.mention("no agent uses memory yet. Fix: connect one with `perdure install`")
    return is_ok


def _lines(found: Checkup, *, every: bool) -> Iterator[str]:
    storage = found.storage
    yield _line(Check("storage", Severity.OK if storage.ok else Severity.FAIL, storage.message))
    yield f"     chosen by {storage.reason}"
    if storage.capabilities:
        provided = [name for name in CAPABILITIES if getattr(storage.capabilities, name)]
        yield f"     promises  {', '.join(provided) or 'no optional capability'}"
    printed = {storage.message}
    for check in found.checks:
        if every or (check.level in _SHOWN and check.message not in printed):
            printed.add(check.message)
            yield _line(check)


def _line(check: Check, width: int = 9) -> str:
    level = styled(f"{check.level.value:4}", fg=_COLOURS[check.level])
    return f"{level} {check.name:{width}} {shown(check.message)}"


def _json(found: Checkup) -> dict[str, object]:
    refused = [c for c in found.checks if c.name == "recall" and c.level is Severity.FAIL]
    checks = list(map(_check_json, found.checks))
    more = {"embedding": refused[0].message} if refused else {}
    return {**asdict(found.storage), "ok": found.ok, "checks": checks, **more}


def _check_json(check: Check) -> dict[str, object]:
    return {"name": check.name, "level": check.level.value.lower(), "message": check.message}
