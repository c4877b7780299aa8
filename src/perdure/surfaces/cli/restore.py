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
    """Let a node be what it was.

    THEN is a date (2026-03-01, all of that day), a time, a position, or the CID of a content, as
    `perdure why` and `perdure history log` show them. It is written as the next version, and
    nothing is lost; a node that was deleted comes back.
    """
    before = memory.version(node)
    now = memory.restore(node, then)
    written = now.version != before
    if as_json:
        out.json({"uri": now.uri, "version": now.version, "written": written})
        return
    out.line(version_line(now.uri, now.version))
    if not written:
        out.mention("it was so already; nothing was written")
