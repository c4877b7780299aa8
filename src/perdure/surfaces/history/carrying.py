"""`export` and `import`."""

import os

import click

from perdure.app import open_signing_key, open_storage
from perdure.artifacts.exporting import Exported, export
from perdure.artifacts.importing import How, Taken, import_archive
from perdure.artifacts.keys import PublicKey
from perdure.storage.landing import Landed, land, waiting
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.history.files import STANDARD, reading, refuse_terminal, writing
from perdure.surfaces.history.opening import history_alone
from perdure.surfaces.history.telling import progress
from perdure.surfaces.telling import counted, mention, shown, sized, tell_json, tell_line


@click.command("export")
@click.argument("file")
@click.option("--sign", is_flag=True, help="Sign it, so that who has your public key can tell.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@as_json(ONE_OBJECT)
def export_command(file: str, *, sign: bool, force: bool, as_json: bool) -> None:
    """Write the whole history into FILE.

    For a backup, or another machine; - is stdout. The same history gives the same bytes. The file
    holds every text that ever was, and only you may read it.
    """
    if file == STANDARD:
        if as_json:
            raise click.UsageError("--json and - both want stdout. Fix: name a file.")
        refuse_terminal()
    key = open_signing_key(os.environ) if sign else None
    with (
        history_alone() as history,
        writing(file, force=force) as target,
        progress("exporting") as show,
    ):
        done = export(history.store, target, key=key, progress=show)
    if as_json:
        tell_json(_exported(file, done, signed=sign))
    else:
        told = f"{counted(done.state.position, 'entry')}, {sized(done.size)}"
        mention(f"wrote {told}{', signed' if sign else ''} to {shown(file)}")


def _exported(file: str, done: Exported, *, signed: bool) -> dict[str, object]:
    return {
        "file": file,
        "history": done.history.hex(),
        "position": done.state.position,
        "snapshot": done.state.snapshot,
        "root": done.root.hex(),
        "digest": done.digest.hex(),
        "bytes": done.size,
        "signed": signed,
    }


@click.command("import")
@click.argument("file")
@click.option("--key", metavar="PUBLICKEY", help="Refuse what the owner of this key didn't sign.")
@click.option("--texts", is_flag=True, help="Also write the files that it speaks of.")
@as_json(ONE_OBJECT)
def import_command(file: str, key: str | None, *, texts: bool, as_json: bool) -> None:
    """Take in the history in FILE.

    - is stdin. All of it is checked before any of it counts. An older state of this same history
    adds nothing, a newer one goes on where this one ends, and another's is kept apart, below @ and
    its id. With --texts the files follow; those that somebody else changed are left as they are.
    """
    public_key = None if key is None else PublicKey.parse(key.strip())
    with (
        reading(file) as source,
        history_alone() as history,
        progress("importing") as show,
    ):
        with history.fence.held():
            history.fence.take_in()
        taken = import_archive(history.store, source, public_key=public_key, progress=show)
        landed = land(history, open_storage(os.environ)) if texts else None
        still_waiting = 0 if texts else len(waiting(history))
    if as_json:
        tell_json({**_taken(taken), "texts": landed and landed.written})
    else:
        tell_line(_told(taken))
    if landed is not None:
        _mention_files(landed)
    elif still_waiting:
        mention(
            f"{counted(still_waiting, 'text')} may differ from the files here, and the files count "
            "when the memory is next opened; --texts writes them"
        )


def _mention_files(landed: Landed) -> None:
    mention(f"wrote {counted(landed.written, 'file')}")
    for key in landed.left:
        mention(f"left as it is, because it is not what history had: {shown(key)}")


def _told(taken: Taken) -> str:
    entries = counted(taken.entries, "entry")
    match taken.how:
        case How.RESTORED:
            return f"took in {entries}; this history is now the same as that one"
        case How.CONTINUED:
            return f"took in {entries}; this history now goes on as that one does"
        case How.KNOWN:
            return "nothing in it is new"
        case How.REPLAYED:
            return f"took in {entries} of another history, below @{taken.history.hex()}/"


def _taken(taken: Taken) -> dict[str, object]:
    return {
        "how": taken.how.value,
        "history": taken.history.hex(),
        "archive_position": taken.position,
        "entries": taken.entries,
        "position": taken.state.position,
    }
