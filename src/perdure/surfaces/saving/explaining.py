"""`why`."""

import click

from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.completing import node_names
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.saving.reasons import Reasons, lines
from perdure.surfaces.saving.reasons_json import told
from perdure.surfaces.telling import mention, shown, tell, tell_json


@click.command("why", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@as_json(ONE_OBJECT)
@with_memory
def why_command(memory: Memory, node: str, *, as_json: bool) -> None:
    """Say why memory says what it says.

    Prints each statement of a node with the words that it rests on, and looks whether they are
    still where they were said; then what it superseded, what went into it, its relations and its
    versions. What you may not see is counted, or not told of at all.
    """
    place = memory.node_place(node)
    for problem in memory.node(place).problems:
        mention(f"problem: {shown(problem)}")
    found = memory.context.memory.for_caller(memory.request).why(str(place))
    if as_json:
        tell_json(told(found))
    else:
        tell("".join(f"{line}\n" for line in lines(Reasons(memory, found).tree())))
    if not found.holds:
        mention("some of it can't be proved any more; see what is marked NOT PROVED")
