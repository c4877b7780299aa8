"""`doctor`."""

import os
from collections.abc import Iterator
from dataclasses import asdict, fields, replace

import click

from perdure.app.checking import Check, Checkup, Level, check_up
from perdure.config import load_config
from perdure.errors import ConfigError
from perdure.storage import Capabilities
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.telling import counted, shown, styled, tell_json, tell_line

CAPABILITY_NAMES = tuple(field.name for field in fields(Capabilities))
_SHOWN = {Level.WARN, Level.FAIL}
_COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.WARN: "yellow", Level.FAIL: "red"}


@click.command("doctor")
@click.option(
    "--requires",
    metavar="NAMES",
    default="",
    help=f"Fail unless the storage promises these, comma-separated: {', '.join(CAPABILITY_NAMES)}.",
)
@click.option("--all", "every", is_flag=True, help="Say also what is well.")
@as_json(ONE_OBJECT)
@click.pass_context
def doctor_command(context: click.Context, requires: str, *, every: bool, as_json: bool) -> None:
    """Say where memory is kept and whether all is well. Changes nothing.

    What is not well is said with its fix; the exit code is 1 only if something fails. With --all,
    also what is well, and what could be better.
    """
    found = check_up(os.environ, _capabilities(requires))
    found = replace(found, checks=(*found.checks, *_hooks()))
    if as_json:
        tell_json(_json(found))
    else:
        for line in _lines(found, every=every):
            tell_line(line)
    context.exit(0 if found.ok else 1)


def _hooks() -> Iterator[Check]:
    """Yield what went wrong when agents called; nothing if nothing did."""
    try:
        home = load_config(os.environ).home
    except ConfigError:
        return  # storage says so
    if not (home / "hooks").is_dir():
        return
    from perdure.agents.pending import noted

    number, last = noted(home)
    if number:
        log = str(home / "hooks" / "log")
        told = f"{counted(number, 'trouble')}, the last: {last}. Fix: see {log!a}, then remove it."
        yield Check("hooks", Level.WARN, told)


def _capabilities(names: str) -> Capabilities | None:
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    unknown = wanted - set(CAPABILITY_NAMES)
    if unknown:
        raise click.BadParameter(
            f"{', '.join(sorted(unknown))} is not known. Fix: use {', '.join(CAPABILITY_NAMES)}.",
            param_hint="--requires",
        )
    return Capabilities(**dict.fromkeys(wanted, True)) if wanted else None


def _lines(found: Checkup, *, every: bool) -> Iterator[str]:
    storage = found.storage
    yield _line(Check("storage", Level.OK if storage.ok else Level.FAIL, storage.message))
    yield f"     chosen by {storage.reason}"
    if storage.capabilities:
        promised = [name for name in CAPABILITY_NAMES if getattr(storage.capabilities, name)]
        yield f"     promises  {', '.join(promised) or 'nothing beyond the verbs'}"
    told = {storage.message}
    for check in found.checks:
        if every or (check.level in _SHOWN and check.message not in told):
            told.add(check.message)
            yield _line(check)


def _line(check: Check) -> str:
    level = styled(f"{check.level.value:4}", fg=_COLOURS[check.level])
    return f"{level} {check.name:9} {shown(check.message)}"


def _json(found: Checkup) -> dict[str, object]:
    refused = [c for c in found.checks if c.name == "recall" and c.level is Level.FAIL]
    checks = [
        {"name": c.name, "level": c.level.value.lower(), "message": c.message} for c in found.checks
    ]
    more = {"embedding": refused[0].message} if refused else {}
    return {**asdict(found.storage), "ok": found.ok, "checks": checks, **more}
