"""`perdure history verify`."""

import os

import click

from perdure import VerificationReport
from perdure.app import open_log
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json
from perdure.surfaces.telling import counted, picked, shown, sized


@click.command("verify")
@as_json()
@click.pass_context
def verify_command(context: click.Context, *, as_json: bool) -> None:
    """Look at every byte, and say what is damaged. Exit code 1 if anything is.

    It works also where the history is damaged so much that nothing else does.
    """
    with open_log(os.environ, texts=False) as log, out.progress("verifying") as show:
        verified = log.verify(show)
    for cut in verified.cuts:
        out.mention(
            f"cut off: a commit that was never finished, {sized(cut.length)} in {cut.segment}"
        )
    if as_json:
        out.json(_json(verified))
    else:
        _tell(verified)
    context.exit(0 if verified.ok else 1)


def _tell(verified: VerificationReport) -> None:
    report = verified.report
    for fault in report.faults:
        out.line(f"damaged: {fault.cid or f'after entry {fault.position}'}")
        out.line(f"    {shown(fault.what)}, in {fault.where}")
        for each in verified.versions_of(fault):
            out.line(f"    it is version {each.version} of {shown(each.key)}")
    looked = (
        f"{counted(report.commits, 'commit')}, {counted(report.entries, 'entry')}, "
        f"{counted(report.contents, 'content')}, {sized(report.size)}"
    )
    if verified.ok:
        whole = f"{looked}; every byte is as it was written"
        out.line(f"ok: {whole if report.commits else 'nothing is recorded yet'}")
        return
    out.line(f"FAIL: {counted(len(report.faults), 'fault')}; whole are {looked}")
    if verified.refusal:
        out.line(f"it can't be opened: {verified.refusal}")
    else:
        out.line(f"Fix: put {str(verified.folder)!a} back from a backup.")


def _json(verified: VerificationReport) -> dict[str, object]:
    faults = [
        {
            **picked(fault, "what where position cid"),
            "versions": [each._asdict() for each in verified.versions_of(fault)],
        }
        for fault in verified.report.faults
    ]
    return {
        "ok": verified.ok,
        "opens": not verified.refusal,
        **picked(verified, "refusal? folder"),
        **picked(verified.report, "commits entries contents bytes=size position"),
        "faults": faults,
    }
