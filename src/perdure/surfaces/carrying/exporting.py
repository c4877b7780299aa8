"""`export`."""

from pathlib import Path

import click

from perdure.engine.carrying.exporting import Exported
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.opening import Caller, opened, with_caller
from perdure.surfaces.telling import counted, progress, shown, sized, tell_json, tell_line


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@as_json(ONE_OBJECT)
@with_caller
def export_command(folder: Path, *, as_json: bool, caller: Caller) -> None:
    """Write the whole memory into FOLDER: Markdown, and its history.

    `perdure import FOLDER` on another machine gives the same memory. With --account it is only
    that one, with --user what that user reaches. FOLDER is empty, or an earlier export, of which
    only what changed is written.
    """
    with opened(caller) as memory, progress("exporting") as show:
        if caller["account"] is caller["user"] is caller["as_role"] is None:
            done = memory.context.exporting_all().run(folder, show)
        else:
            done = memory.context.memory.for_caller(memory.request).export(folder, progress=show)
    if as_json:
        tell_json(_json(folder, done))
    else:
        _tell(folder, done)


def _tell(folder: Path, done: Exported) -> None:
    total = counted(len(done.manifest.files), "file")
    changed = f"{counted(done.written, 'file')} written, {done.removed} removed"
    tell_line(
        f"exported to {shown(str(folder))}: {total} ({changed}), history of {sized(done.size)}"
    )


def _json(folder: Path, done: Exported) -> dict[str, object]:
    return {
        "folder": str(folder),
        "history": done.manifest.history,
        "position": done.manifest.position,
        "accounts": done.manifest.accounts,
        "files": len(done.manifest.files),
        "written": done.written,
        "removed": done.removed,
        "bytes": done.size,
    }
