"""`perdure export`."""

from pathlib import Path
from typing import Unpack

import click

from perdure.surfaces import out
from perdure.surfaces.cli.options import Caller, as_json, caller_in, caller_options, opened
from perdure.surfaces.out import counted, picked, shown, sized


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@as_json()
@caller_options
def export_command(folder: Path, *, as_json: bool, **named: Unpack[Caller]) -> None:
    """Export the whole memory to FOLDER, with its history.

    Writes Markdown; `perdure import FOLDER` on another machine restores the same memory. With
    --account, exports only that account; with --user, only what that user can read. FOLDER must be
    empty or an earlier export, in which only changed files are written.
    """
    everything = named["account"] is named["user"] is named["as_role"] is None
    with opened(caller_in(dict(named))) as memory, out.progress("exporting") as show:
        done = memory.export(folder, everything=everything, progress=show)
    if as_json:
        manifest = picked(done.manifest, "history position accounts")
        counts = {"files": len(done.manifest.files), **picked(done, "written removed bytes=size")}
        out.json({"folder": str(folder), **manifest, **counts})
        return
    total = counted(len(done.manifest.files), "file")
    changed = f"{counted(done.written, 'file')} written, {done.removed} removed"
    out.line(
        f"exported to {shown(str(folder))}: {total} ({changed}), history of {sized(done.size)}"
    )
