"""A memory that was exported, taken in."""

import os
from pathlib import Path

from perdure.app import open_arriving
from perdure.artifacts.importing import How
from perdure.engine.carrying.folder import demand_whole
from perdure.surfaces.telling import counted, progress, tell_json, tell_line

_TOLD = {
    How.RESTORED: "this memory is now the same as that one",
    How.CONTINUED: "this memory now goes on as that one does",
    How.KNOWN: "nothing in it is new",
}


def take_in(folder: Path, *, dry_run: bool, as_json: bool) -> None:
    """Check an export whole, and let the memory here become it."""
    if dry_run:
        manifest = demand_whole(folder)
        files, position = len(manifest.files), manifest.position
        if as_json:
            tell_json({"dry_run": True, "position": position, "files": files})
        else:
            tell_line(f"whole: {counted(files, 'file')}, history up to entry {position}")
        return
    with open_arriving(os.environ) as arriving, progress("importing") as show:
        done = arriving.from_folder(folder, show)
    if as_json:
        told = {"how": done.how.value, "history": done.history, "position": done.position}
        tell_json({**told, "files": done.files})
    else:
        tell_line(f"{_TOLD[done.how]}: wrote {counted(done.files, 'file')}")
