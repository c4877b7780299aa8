"""`restore`."""

import getpass

import click

from perdure.artifacts import CID, Hash
from perdure.artifacts.names import is_foreign
from perdure.errors import AbsentError, NotTextError, StorageUnavailableError
from perdure.storage import ABSENT, Locator, content_hash
from perdure.storage.content import Expectation
from perdure.storage.history import History, Version
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.history.asking import parse_version
from perdure.surfaces.history.opening import Memory, with_memory
from perdure.surfaces.history.telling import told_event
from perdure.surfaces.telling import shown, tell_json, tell_line


@click.command("restore")
@click.argument("key")
@click.argument("version", type=parse_version)
@click.option("--reason", metavar="TEXT", help="Why; it stands in the log.")
@click.option("--force", is_flag=True, help="Replace the file whatever it is now.")
@as_json(ONE_OBJECT)
@with_memory
def restore_command(  # noqa: PLR0913 - one for each option
    memory: Memory, key: str, version: int | CID, reason: str | None, *, force: bool, as_json: bool
) -> None:
    """Write the text of an earlier VERSION of KEY as a new version.

    Nothing of the history is lost by that. If the file is changed by somebody else meanwhile,
    nothing is written.
    """
    locator, last = Locator(key), memory.versions(key)[-1]
    if is_foreign(key):
        raise AbsentError(
            f"{key!a} is a text of another history and has no file here. "
            f"Fix: perdure history show {key!a} > FILE."
        )
    if locator in memory.unreadable and not force:
        raise NotTextError(
            f"{key!a} is no text any more, so nobody knows what would be lost. Fix: look at the "
            "file; --force replaces it."
        )
    chosen = memory.history.version(locator, version)
    why = f"as in version {chosen.number}" if reason is None else reason
    if memory.recorded is None:
        raise StorageUnavailableError(
            f"{key!a} can't be written while its memory can't be had. Fix: mount it, and try again."
        )
    restoring = memory.recorded.because(actor=_user(), reason=why)
    made = restoring.restore(
        locator, chosen, expect=None if force else _expected(memory.history, last)
    )
    written = made.number != last.number
    if as_json:
        tell_json({**told_event(made), "restored": chosen.number, "written": written})
    elif written:
        tell_line(f"{shown(key)}: wrote version {made.number}, the text of version {chosen.number}")
    else:
        tell_line(f"{shown(key)}: version {last.number} has that text already; nothing to write")


def _expected(history: History, last: Version) -> Expectation:
    """Return what the file should be; known also where the text itself is no longer kept."""
    if last.cid is None:
        return ABSENT
    is_sha256 = last.cid.hash is Hash.SHA2_256
    return last.cid.digest.hex() if is_sha256 else content_hash(history.text(last))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the system has no name for this user
        return ""
