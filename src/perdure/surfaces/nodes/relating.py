"""`relate`."""

import click

from perdure.errors import NodeNotFoundError
from perdure.model import MENTIONS, RelationEdge, Uri
from perdure.surfaces.asking import OBJECT_PER_LINE, as_json
from perdure.surfaces.nodes.completing import node_names
from perdure.surfaces.nodes.describing import told_edge
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import mention, shown, tell_json, tell_line, tell_table


@click.command("relate", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@click.argument("to", required=False, shell_complete=node_names)
@click.option("--type", "kind", metavar="TYPE", help="How they are related: depends_on.")
@click.option("--weight", type=float, metavar="W", default=1.0, help="How much, from 0 to 1.")
@click.option("--reason", metavar="TEXT", default="", help="Why; it stands with the relation.")
@click.option("--remove", is_flag=True, help="Take the relation away; without --type, all to TO.")
@as_json(OBJECT_PER_LINE)
@with_memory
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

    Without TO it lists what leads from the node and to it; [[links]] in a content are among them.
    """
    start = memory.node_place(node)
    memory.node(start)
    if to is None:
        if remove or kind is not None:
            raise click.UsageError("a relation leads to something. Fix: name the other node too.")
        _tell_all(memory, start, as_json=as_json)
        return
    target = memory.node_place(to)
    if remove:
        edges = _edges_to_remove(memory, start, target, kind)
        memory.context.relations.remove_edges(edges, memory.request)
    else:
        memory.node(target)
        if kind is None:
            raise click.UsageError("it has no type. Fix: say --type, as in --type depends_on.")
        edge = RelationEdge(str(start), str(target), kind, weight, reason)
        memory.context.relations.upsert_edges([edge], memory.request)
        edges = [each for each in _edges(memory, start) if each.identity == edge.identity]
    if as_json:
        tell_json(*({**told_edge(edge), "removed": remove} for edge in edges))
        return
    for edge in edges:
        tell_line(("removed: " if remove else "") + _sentence(memory, edge))


def _edges(memory: Memory, start: Uri) -> list[RelationEdge]:
    return memory.relations.get_edges(str(start), memory.request)


def _edges_to_remove(
    memory: Memory, start: Uri, target: Uri, kind: str | None
) -> list[RelationEdge]:
    found = [
        edge
        for edge in _edges(memory, start)
        if edge.to_uri == str(target)
        and (edge.relation_type == kind if kind else edge.relation_type != MENTIONS)
    ]
    if kind == MENTIONS or not found:
        said = "that can be removed" if kind in {None, MENTIONS} else f"of type {shown(kind)!a}"
        raise NodeNotFoundError(
            f"no relation {said} leads from {str(start)!a} to {str(target)!a}. "
            f"Fix: `perdure relate {memory.name(start)}` lists them; a link goes with its text."
        )
    return found


def _sentence(memory: Memory, edge: RelationEdge) -> str:
    ends = (memory.name(Uri.parse(uri)) for uri in (edge.from_uri, edge.to_uri))
    why = f" ({shown(edge.reason)})" if edge.reason else ""
    return f" {shown(edge.relation_type)} ".join(ends) + f", weight {edge.weight:g}{why}"


def _tell_all(memory: Memory, place: Uri, *, as_json: bool) -> None:
    out = _edges(memory, place)
    into = memory.relations.get_incoming(str(place), memory.request)
    every = [*(("out", edge) for edge in out), *(("in", edge) for edge in into)]
    if as_json:
        tell_json(*({"direction": way, **told_edge(edge)} for way, edge in every))
        return
    rows = (
        (
            "to" if way == "out" else "from",
            memory.name(Uri.parse(edge.to_uri if way == "out" else edge.from_uri)),
            shown(edge.relation_type),
            f"{edge.weight:g}",
            shown(edge.reason) if edge.reason else "",
        )
        for way, edge in every
    )
    if not tell_table(("", "node", "type", "weight", "reason"), rows):
        mention(f"{memory.name(place)} has no relations")
