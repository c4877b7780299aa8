"""`unmerge`."""

import click

from perdure.model import Uri
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.describing import version_line
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.saving.words import said
from perdure.surfaces.telling import tell_json, tell_line


@click.command("unmerge", epilog=NAMES)
@click.argument("node")
@click.argument("statement", default="")
@as_json(ONE_OBJECT)
@with_memory
def unmerge_command(memory: Memory, node: str, statement: str, *, as_json: bool) -> None:
    """Undo a merge.

    Takes out again what went into a node last, or the last that STATEMENT names: its words, or its
    CID as `perdure why` tells it. The node is what it was before, what was merged is a memory of
    its own, and what was superseded holds again. The two are not merged another time.
    """
    place = memory.node_place(node)
    memory.node(place)
    done = memory.context.memory.for_caller(memory.request).unmerge(str(place), statement)
    now, apart = memory.node(place), memory.node(Uri.parse(done.apart))
    if as_json:
        back = list(done.back)
        tell_json({"uri": now.uri, "version": now.version, "apart": apart.uri, "back": back})
        return
    tell_line(version_line(now.uri, now.version))
    tell_line(f"{memory.name(apart.place)} is now by itself: {said(apart.content)}")
    if done.back:
        tell_line(f"{memory.name(place)} says again what was superseded: {said(now.content)}")
