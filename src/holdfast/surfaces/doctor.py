"""`doctor`."""

import json
import os
from dataclasses import asdict, fields

import click

from holdfast.app import preview_storage
from holdfast.storage import Capabilities, StoragePreview

CAPABILITY_NAMES = tuple(field.name for field in fields(Capabilities))


@click.command("doctor")
@click.option(
    "--requires",
    metavar="NAMES",
    default="",
    help=f"Fail unless the storage promises these, comma-separated: {', '.join(CAPABILITY_NAMES)}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor_command(context: click.Context, requires: str, *, as_json: bool) -> None:
    """Say where memory is kept and whether it can be opened. Changes nothing."""
    preview = preview_storage(os.environ, required=_capabilities(requires))
    click.echo(json.dumps(asdict(preview)) if as_json else _told(preview))
    context.exit(0 if preview.ok else 1)


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
