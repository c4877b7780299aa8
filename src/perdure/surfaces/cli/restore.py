"""`perdure restore`."""

import click

from perdure import CID, Memory
from perdure.surfaces import out
from perdure.surfaces.cli.options import NAMES, Moment, parse_cid, parse_moment, with_memory
from perdure.surfaces.out import version_line

_CID_BEGINS = "baf"


def _cid_or_moment(text: str) -> CID | Moment:
    return parse_cid(text) if text.startswith(_CID_BEGINS) else parse_moment(text)


@click.command("restore", epilog=NAMES)
@click.argument("node")
@click.argument("then", type=_cid_or_moment)
@with_memory()
def restore_command(memory: Memory, node: str, then: CID | Moment, *, as_json: bool) -> None:
    """Restore a node to an earlier state.

    THEN is a date (2026-03-01, all of that day), a time, a position, or the CID of a content, as
    shown by `perdure why` and `perdure history log`. The earlier state is written as the next
    version, so no version is lost. A deleted node is created again.
    """
    before = memory.version(node)
    now = memory.restore(node, then)
    written = now.version != before
    if as_json:
        out.json({"uri": now.uri, "version": now.version, "written": written})
        return
    out.line(version_line(now.uri, now.version))
    if not written:
        out.mention("already in that state; nothing was written")
