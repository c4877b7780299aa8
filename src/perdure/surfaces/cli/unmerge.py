"""`perdure unmerge`."""

import click

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.options import NAMES, with_memory
from perdure.surfaces.out import shown_words, version_line


@click.command("unmerge", epilog=NAMES)
@click.argument("node")
@click.argument("statement", default="")
@with_memory()
def unmerge_command(memory: Memory, node: str, statement: str, *, as_json: bool) -> None:
    """Undo a merge.

    Undoes the last merge into a node, or the last one of STATEMENT, given by its words or by its
    CID in `perdure why`. The node returns to its earlier text, the merged statement becomes a
    memory of its own, and a superseded one holds again. The two are not merged again.
    """
    done = memory.unmerge(node, statement)
    now, apart = memory.read(done.uri), memory.read(done.apart)
    if as_json:
        back = list(done.back)
        out.json({"uri": now.uri, "version": now.version, "apart": apart.uri, "back": back})
        return
    out.line(version_line(now.uri, now.version))
    out.line(f"{memory.name(apart.uri)} is now separate: {shown_words(apart.content)}")
    if done.back:
        out.line(f"{memory.name(now.uri)} holds again: {shown_words(now.content)}")
