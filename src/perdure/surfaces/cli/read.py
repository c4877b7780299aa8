"""`perdure read`."""

import json
import sys
from collections.abc import Iterator

import click

from perdure import Edges, Memory, PastMemory
from perdure.model import ContextNode, RelationEdge
from perdure.model.values import plain
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import Moment, at_moment, with_memory
from perdure.surfaces.out import edges_json, full_node_json, local_time, shown, styled

_INDENT = " " * 10


@node_command("read")
@click.option("--all", "whole", is_flag=True, help="Print its metadata and relations, too.")
@at_moment
@with_memory()
def read_command(
    memory: Memory, node: str, at: Moment | None, *, whole: bool, as_json: bool
) -> None:
    """Print the content of a node.

    The content is printed unchanged; on a terminal, control characters are escaped. If an edit
    broke the node, the content is the one before that edit, and stderr names the problem.
    """
    reading = memory if at is None else memory.at(at)
    found = reading.read(node)
    if as_json:
        edges = reading.relations(found.uri)
        related = {"edges": edges_json(edges.outgoing), "incoming": edges_json(edges.incoming)}
        out.json({**full_node_json(found), "key": reading.key(found.uri), **related})
    elif whole:
        edges = reading.relations(found.uri)
        out.write("".join(f"{line}\n" for line in _lines(reading, found, edges)))
        out.text(f"\n{_ended(found.content)}" if found.content else "")
    else:
        out.text(_ended(found.content) if sys.stdout.isatty() else found.content)
    for problem in found.problems:
        out.mention(f"problem: {shown(problem)}")


def _ended(content: str) -> str:
    return content if content.endswith("\n") or not content else f"{content}\n"


def _lines(reading: Memory | PastMemory, node: ContextNode, edges: Edges) -> Iterator[str]:
    yield styled(shown(node.title), bold=True)
    yield _line("uri", node.uri)
    yield _line("key", reading.key(node.uri))
    yield _line("version", str(node.version))
    for name, time in (("created", node.created_at), ("updated", node.updated_at)):
        if time.timestamp():  # a note may have no time
            yield _line(name, local_time(time))
    for name, text in (("abstract", node.abstract), ("overview", node.overview)):
        if text:
            yield _line(name, text)
    for key, value in sorted(node.metadata.items()):
        text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
        yield _line("metadata", f"{key} = {text}")
    for edge in edges.outgoing:
        yield _line("to", _related(reading.name(edge.to_uri), edge))
    for edge in edges.incoming:
        yield _line("from", _related(reading.name(edge.from_uri), edge))


def _line(name: str, text: str) -> str:
    first, *rest = [shown(line) if line else "" for line in text.rstrip("\n").split("\n")]
    return "\n".join([f"{name:9} {first}", *(f"{_INDENT}{line}".rstrip() for line in rest)])


def _related(name: str, edge: RelationEdge) -> str:
    why = f" ({edge.reason})" if edge.reason else ""
    return f"{name}  {edge.relation_type} {edge.weight:g}{why}"
