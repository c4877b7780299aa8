"""`perdure relate`."""

import click

from perdure import Memory
from perdure.model import RelationEdge
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command, node_names
from perdure.surfaces.cli.options import OBJECT_PER_LINE, with_memory
from perdure.surfaces.out import edge_json, shown


@node_command("relate")
@click.argument("to", required=False, shell_complete=node_names)
@click.option("--type", "kind", metavar="TYPE", help="The type of the relation: depends_on.")
@click.option(
    "--weight", type=float, metavar="W", default=1.0, help="Its weight, from 0 to 1. Default: 1."
)
@click.option("--reason", metavar="TEXT", default="", help="Store this reason with the relation.")
@click.option(
    "--remove", is_flag=True, help="Remove the relation; without --type, all relations to TO."
)
@with_memory(OBJECT_PER_LINE)
def relate_command(  # noqa: PLR0913 - one for each option
    memory: Memory,
    node: str,
    to: str | None,
    *,
    kind: str | None,
    weight: float,
    reason: str,
    remove: bool,
    as_json: bool,
) -> None:
    """Relate a node to another, or list its relations.

    Without TO, lists the relations from the node and to it, including [[links]] in texts.
    """
    if to is None:
        if remove or kind is not None:
            raise click.UsageError("Missing TO. Fix: name the other node too.")
        _list(memory, node, as_json=as_json)
        return
    if remove:
        edges = memory.unrelate(node, to, kind)
    elif kind is None:
        memory.uri(to)
        raise click.UsageError("Missing --type. Fix: add one, such as --type depends_on.")
    else:
        edges = (memory.relate(node, to, kind, weight=weight, reason=reason),)
    if as_json:
        out.json(*({**edge_json(edge), "removed": remove} for edge in edges))
        return
    for edge in edges:
        out.line(("removed: " if remove else "") + _sentence(memory, edge))


def _sentence(memory: Memory, edge: RelationEdge) -> str:
    ends = map(memory.name, (edge.from_uri, edge.to_uri))
    why = f" ({shown(edge.reason)})" if edge.reason else ""
    return f" {shown(edge.relation_type)} ".join(ends) + f", weight {edge.weight:g}{why}"


def _list(memory: Memory, node: str, *, as_json: bool) -> None:
    edges = memory.relations(node)
    every = [("out", edge) for edge in edges.outgoing] + [("in", edge) for edge in edges.incoming]
    if as_json:
        out.json(*({"direction": direction, **edge_json(edge)} for direction, edge in every))
        return
    rows = (
        (
            "to" if direction == "out" else "from",
            memory.name(edge.to_uri if direction == "out" else edge.from_uri),
            shown(edge.relation_type),
            f"{edge.weight:g}",
            shown(edge.reason) if edge.reason else "",
        )
        for direction, edge in every
    )
    if not out.table(("", "node", "type", "weight", "reason"), rows):
        out.mention(f"{memory.name(memory.uri(node))} has no relations")
