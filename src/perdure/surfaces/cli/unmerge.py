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

    Takes out again what went into a node last, or the last that STATEMENT names: its words, or its
    CID as `perdure why` tells it. The node is what it was before, what was merged is a memory of
    its own, and what was superseded holds again. The two are not merged another time.
    """
    done = memory.unmerge(node, statement)
    now, apart = memory.read(done.uri), memory.read(done.apart)
    if as_json:
        back = list(done.back)
        out.json({"uri": now.uri, "version": now.version, "apart": apart.uri, "back": back})
        return
    out.line(version_line(now.uri, now.version))
    out.line(f"{memory.name(apart.uri)} is now by itself: {shown_words(apart.content)}")
    if done.back:
        out.line(
            f"{memory.name(now.uri)} says again what was superseded: {shown_words(now.content)}"
        )
