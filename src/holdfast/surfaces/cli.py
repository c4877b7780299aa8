"""The command line."""

import json
import os
import sys
from dataclasses import asdict, fields

import click

from holdfast.errors import HoldfastError
from holdfast.storage import Capabilities, StoragePreview
from holdfast.surfaces.history import history

CAPABILITY_NAMES = tuple(field.name for field in fields(Capabilities))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="holdfast")
def cli() -> None:
    """Memory for AI agents that its owner can read, edit, search, rewind and prove."""


@cli.command()
@click.option(
    "--requires",
    metavar="NAMES",
    default="",
    help=f"Fail unless the storage promises these, comma-separated: {', '.join(CAPABILITY_NAMES)}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(requires: str, *, as_json: bool) -> None:
    """Say where memory is kept and whether it can be opened. Changes nothing."""
    from holdfast.app import preview_storage  # noqa: PLC0415 - no other command pays for it

    preview = preview_storage(os.environ, required=_capabilities(requires))
    click.echo(json.dumps(asdict(preview)) if as_json else _told(preview))
    sys.exit(0 if preview.ok else 1)


@cli.command()
def demo() -> None:
    """Show Holdfast at work, in a folder of its own that is removed again."""
    from holdfast.surfaces.demo import run  # noqa: PLC0415 - no other command pays for its imports

    run(click.echo)


cli.add_command(history)


def _capabilities(names: str) -> Capabilities | None:
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    unknown = wanted - set(CAPABILITY_NAMES)
    if unknown:
        raise click.BadParameter(
            f"{', '.join(sorted(unknown))} is not known. Fix: use {', '.join(CAPABILITY_NAMES)}.",
            param_hint="--requires",
        )
    return Capabilities(**dict.fromkeys(wanted, True)) if wanted else None


def _told(preview: StoragePreview) -> str:
    lines = [
        f"{'ok  ' if preview.ok else 'FAIL'} storage   {preview.message}",
        f"     chosen by {preview.reason}",
    ]
    if preview.capabilities:
        promised = [name for name in CAPABILITY_NAMES if getattr(preview.capabilities, name)]
        lines.append(f"     promises  {', '.join(promised) or 'nothing beyond the verbs'}")
    return "\n".join(lines)


def main() -> None:
    """Run the command line; an error of ours is a message, not a traceback."""
    try:
        cli()
    except HoldfastError as error:
        click.echo(f"holdfast: {error}", err=True)
        sys.exit(1)
