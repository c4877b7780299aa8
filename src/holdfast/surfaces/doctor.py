"""`doctor`."""

import json
import os
from dataclasses import asdict, fields

import click

from holdfast.app import preview_storage
from holdfast.config import load_config
from holdfast.errors import ConfigError, HoldfastError
from holdfast.storage import Capabilities, StoragePreview
from holdfast.surfaces.telling import counted

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
    """Say where memory is kept and whether it can be opened. Changes nothing.

    If the model that is configured can't be had, it says why.
    """
    preview = preview_storage(os.environ, required=_capabilities(requires))
    refused = _refusal_to_embed()
    troubles = _troubles_of_hooks()
    if as_json:
        more = {"ok": False, "embedding": refused} if refused else {}
        told = {"hooks": troubles} if troubles else {}
        click.echo(json.dumps({**asdict(preview), **more, **told}))
    else:
        click.echo(_told(preview))
        if refused:
            click.echo(f"FAIL recall    {refused}")
        if troubles:
            click.echo(f"note hooks     {troubles}")
    context.exit(0 if preview.ok and not refused else 1)


def _refusal_to_embed() -> str:
    """Say why recall would refuse the embedder that is configured; nothing if it would not."""
    try:
        config = load_config(os.environ)
        if config.embedding.provider in {"auto", "none"}:  # then there is nothing to refuse
            return ""
        from holdfast.app.embedding import embedder_for  # noqa: PLC0415 - who has one pays

        embedder_for(config)
    except ConfigError:
        return ""  # storage says so
    except HoldfastError as error:
        return str(error)
    return ""


def _troubles_of_hooks() -> str:
    """Say what went wrong when agents called; nothing if nothing did."""
    try:
        home = load_config(os.environ).home
    except ConfigError:
        return ""  # storage says so
    if not (home / "hooks").is_dir():
        return ""
    from holdfast.surfaces.hooks.trouble import noted  # noqa: PLC0415 - who has hooks pays

    number, last = noted(home)
    if not number:
        return ""
    path = home / "hooks" / "log"
    return (
        f"{counted(number, 'trouble')}, the last: {last}. Fix: see {str(path)!a}, then remove it."
    )


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
