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
    """Write the whole memory into FOLDER: Markdown, and its history.

    `perdure import FOLDER` on another machine gives the same memory. With --account it is only
    that one, with --user what that user reaches. FOLDER is empty, or an earlier export, of which
    only what changed is written.
    """
    everything = named["account"] is named["user"] is named["as_role"] is None
    with opened(caller_in(dict(named))) as memory, out.progress("exporting") as show:
        done = memory.export(folder, everything=everything, progress=show)
    if as_json:
        said = picked(done.manifest, "history position accounts")
        counts = {"files": len(done.manifest.files), **picked(done, "written removed bytes=size")}
        out.json({"folder": str(folder), **said, **counts})
        return
    total = counted(len(done.manifest.files), "file")
    changed = f"{counted(done.written, 'file')} written, {done.removed} removed"
    out.line(
        f"exported to {shown(str(folder))}: {total} ({changed}), history of {sized(done.size)}"
    )
