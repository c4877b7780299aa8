"""`perdure history verify`."""

import os

import click

from perdure import Verified
from perdure.app import open_log
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.telling import (
    counted,
    mention,
    progress,
    shown,
    sized,
    tell_json,
    tell_line,
)


@click.command("verify")
@as_json(ONE_OBJECT)
@click.pass_context
def verify_command(context: click.Context, *, as_json: bool) -> None:
    """Look at every byte, and say what is damaged. Exit code 1 if anything is.

    It works also where the history is damaged so much that nothing else does.
    """
    with open_log(os.environ, texts=False) as log, progress("verifying") as show:
        verified = log.verify(show)
    for cut in verified.cuts:
        mention(f"cut off: a commit that was never finished, {sized(cut.length)} in {cut.segment}")
    if as_json:
        tell_json(_json(verified))
    else:
        _tell(verified)
    context.exit(0 if verified.ok else 1)


def _tell(verified: Verified) -> None:
    report = verified.report
    for fault in report.faults:
        tell_line(f"damaged: {fault.cid or f'after entry {fault.position}'}")
        tell_line(f"    {shown(fault.what)}, in {fault.where}")
        for each in verified.versions_of(fault):
            tell_line(f"    it is version {each.version} of {shown(each.key)}")
    looked = (
        f"{counted(report.commits, 'commit')}, {counted(report.entries, 'entry')}, "
        f"{counted(report.contents, 'content')}, {sized(report.size)}"
    )
    if verified.ok:
        whole = f"{looked}; every byte is as it was written"
        tell_line(f"ok: {whole if report.commits else 'nothing is recorded yet'}")
        return
    tell_line(f"FAIL: {counted(len(report.faults), 'fault')}; whole are {looked}")
    if verified.refusal:
        tell_line(f"it can't be opened: {verified.refusal}")
    else:
        tell_line(f"Fix: put {str(verified.folder)!a} back from a backup.")


def _json(verified: Verified) -> dict[str, object]:
    report = verified.report
    faults = [
        {
            "what": fault.what,
            "where": fault.where,
            "position": fault.position,
            "cid": None if fault.cid is None else str(fault.cid),
            "versions": [each._asdict() for each in verified.versions_of(fault)],
        }
        for fault in report.faults
    ]
    return {
        "ok": verified.ok,
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
