"""`verify`."""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from perdure.app import find_history, open_history
from perdure.artifacts import CID
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.store import CATALOGUE
from perdure.artifacts.verify import Fault, Report, verify
from perdure.errors import DamageError
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.history.telling import progress
from perdure.surfaces.telling import counted, mention, shown, sized, tell_json, tell_line

_NAMED = """SELECT name, position, (SELECT count(*) FROM binds AS earlier
        WHERE earlier.name = binds.name AND earlier.position <= binds.position)
    FROM binds WHERE cid = ? ORDER BY name, position"""


class Named(NamedTuple):
    """A version, as the catalogue knows it."""

    key: str
    position: int
    version: int


@dataclass(frozen=True, slots=True)
class Verified:
    folder: Path
    report: Report
    refusal: str
    """Why the history can't be opened; empty if it can."""


@click.command("verify")
@as_json(ONE_OBJECT)
@click.pass_context
def verify_command(context: click.Context, *, as_json: bool) -> None:
    """Look at every byte, and say what is damaged. Exit code 1 if anything is.

    It works also where the history is damaged so much that nothing else does.
    """
    verified = _verified()
    report = verified.report
    hurt = _hurt(verified.folder / CATALOGUE, report.faults)
    if as_json:
        tell_json(_json(verified, hurt))
    else:
        _tell(verified, hurt)
    context.exit(0 if report.ok and not verified.refusal else 1)


def _verified() -> Verified:
    folder = find_history(os.environ)
    with progress("verifying") as show:
        try:
            with open_history(os.environ) as history:
                report, refusal = history.store.verify(show), ""
                history.position()  # so that the catalogue knows all names
                cuts = history.store.cuts
        except DamageError as damage:
            report, refusal, cuts = verify(FolderDisk(folder), progress=show), str(damage), ()
    for cut in cuts:
        mention(f"cut off: a commit that was never finished, {sized(cut.length)} in {cut.segment}")
    return Verified(folder, report, refusal)


def _hurt(catalogue: Path, faults: Iterable[Fault]) -> dict[CID, list[Named]]:
    """Return the versions whose content is lost, as far as the catalogue can be read."""
    cids = {fault.cid for fault in faults if fault.cid is not None}
    if not cids:
        return {}
    try:
        with closing(sqlite3.connect(f"{catalogue.as_uri()}?mode=ro", uri=True)) as database:
            return {
                cid: [Named(*row) for row in database.execute(_NAMED, (bytes(cid),))]
                for cid in cids
            }
    except sqlite3.Error:  # it is derived, and may be gone or damaged too
        return {}


def _tell(verified: Verified, hurt: dict[CID, list[Named]]) -> None:
    report = verified.report
    for fault in report.faults:
        _tell_fault(fault, hurt.get(fault.cid, ()) if fault.cid else ())
    looked = (
        f"{counted(report.commits, 'commit')}, {counted(report.entries, 'entry')}, "
        f"{counted(report.contents, 'content')}, {sized(report.size)}"
    )
    if report.ok and not verified.refusal:
        whole = f"{looked}; every byte is as it was written"
        tell_line(f"ok: {whole if report.commits else 'nothing is recorded yet'}")
        return
    tell_line(f"FAIL: {counted(len(report.faults), 'fault')}; whole are {looked}")
    if verified.refusal:
        tell_line(f"it can't be opened: {verified.refusal}")
    else:
        tell_line(f"Fix: put {str(verified.folder)!a} back from a backup.")


def _tell_fault(fault: Fault, hurt: Sequence[Named]) -> None:
    tell_line(f"damaged: {fault.cid or f'after entry {fault.position}'}")
    tell_line(f"    {shown(fault.what)}, in {fault.where}")
    for named in hurt:
        tell_line(f"    it is version {named.version} of {shown(named.key)}")


def _json(verified: Verified, hurt: dict[CID, list[Named]]) -> dict[str, object]:
    report = verified.report
    faults = [
        {
            "what": fault.what,
            "where": fault.where,
            "position": fault.position,
            "cid": None if fault.cid is None else str(fault.cid),
            "versions": [named._asdict() for named in hurt.get(fault.cid, ())] if fault.cid else [],
        }
        for fault in report.faults
    ]
    return {
        "ok": report.ok and not verified.refusal,
        "opens": not verified.refusal,
        "refusal": verified.refusal or None,
        "folder": str(verified.folder),
        "commits": report.commits,
        "entries": report.entries,
        "contents": report.contents,
        "bytes": report.size,
        "position": report.position,
        "faults": faults,
    }
