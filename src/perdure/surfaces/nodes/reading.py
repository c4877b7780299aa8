"""`read`."""

import json
import sys
from collections.abc import Iterator

import click

from perdure.model import ContextNode, RelationEdge, Uri
from perdure.model.values import plain
from perdure.surfaces.asking import ONE_OBJECT, Moment, as_json, at_moment
from perdure.surfaces.nodes.completing import node_names
from perdure.surfaces.nodes.describing import time, told_edges, told_whole
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import mention, shown, styled, tell, tell_json, tell_text

_INDENT = " " * 10


@click.command("read", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@click.option("--all", "whole", is_flag=True, help="Print all that is known of it.")
@at_moment
@as_json(ONE_OBJECT)
@with_memory
def read_command(
    memory: Memory, node: str, at: Moment | None, *, whole: bool, as_json: bool
) -> None:
    """Print the content of a node.

    It is printed as it is, and nothing else; on a terminal, controls are written out. What an edit
    by hand broke is told on stderr; then the content is the one before that edit.
    """
    memory = memory.at(at)
    found = memory.node(memory.node_place(node))
    if as_json:
        tell_json(_json(memory, found))
    elif whole:
        tell("".join(f"{line}\n" for line in _lines(memory, found)))
        tell_text(f"\n{_ended(found.content)}" if found.content else "")
    else:
        tell_text(_ended(found.content) if sys.stdout.isatty() else found.content)
    for problem in found.problems:
        mention(f"problem: {shown(problem)}")


def _ended(content: str) -> str:
    return content if content.endswith("\n") or not content else f"{content}\n"


def _json(memory: Memory, node: ContextNode) -> dict[str, object]:
    out, into = _edges(memory, node)
    edges = {"edges": told_edges(out), "incoming": told_edges(into)}
    return {**told_whole(node), "key": memory.key(node.place), **edges}


def _edges(memory: Memory, node: ContextNode) -> tuple[list[RelationEdge], list[RelationEdge]]:
    relations, ctx = memory.relations, memory.request
    return relations.get_edges(node.uri, ctx), relations.get_incoming(node.uri, ctx)


def _lines(memory: Memory, node: ContextNode) -> Iterator[str]:
    yield styled(shown(node.title), bold=True)
    yield _line("uri", node.uri)
    yield _line("key", memory.key(node.place))
    yield _line("version", str(node.version))
    yield _line("created", time(node.created_at))
    yield _line("updated", time(node.updated_at))
    for name, text in (("abstract", node.abstract), ("overview", node.overview)):
        if text:
            yield _line(name, text)
    for key, value in sorted(node.metadata.items()):
        said = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
        yield _line("metadata", f"{key} = {said}")
    out, into = _edges(memory, node)
    for edge in out:
        yield _line("leads to", _told(memory, edge, edge.to_uri))
    for edge in into:
        yield _line("led to by", _told(memory, edge, edge.from_uri))


def _line(name: str, text: str) -> str:
    first, *rest = [shown(line) if line else "" for line in text.rstrip("\n").split("\n")]
    return "\n".join([f"{name:9} {first}", *(f"{_INDENT}{line}".rstrip() for line in rest)])


def _told(memory: Memory, edge: RelationEdge, uri: str) -> str:
    why = f" ({edge.reason})" if edge.reason else ""
    return f"{memory.name(Uri.parse(uri))}  {edge.relation_type} {edge.weight:g}{why}"
