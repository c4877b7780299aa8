"""What is printed of nodes and edges."""

from collections.abc import Iterable
from datetime import datetime

from perdure import CID
from perdure.model import ContextNode, RelationEdge
from perdure.model.values import plain
from perdure.surfaces.telling import local_date, local_time, milliseconds_of, shown, utc_time


def day(moment: datetime) -> str:
    return local_date(milliseconds_of(moment))


def time(moment: datetime) -> str:
    return local_time(milliseconds_of(moment))


def stamp(moment: datetime) -> str:
    """Return a time as JSON says it."""
    return utc_time(milliseconds_of(moment))


def gist(node: ContextNode) -> str:
    """Return what a node is about, in one line: its title, its abstract, else how it begins."""
    title, abstract = node.title, _first_line(node.abstract)
    begins = abstract or _first_line(node.content)
    if begins.startswith(title.removesuffix("…")):
        return begins
    return f"{title}: {abstract}" if abstract else title


def _first_line(text: str) -> str:
    return next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")


def told_node(node: ContextNode) -> dict[str, object]:
    """Return what JSON says of a node, but for its texts and edges."""
    return {
        "uri": node.uri,
        "title": node.title,
        "abstract": node.abstract,
        "status": node.status.value,
        "version": node.version,
        "created_at": stamp(node.created_at),
        "updated_at": stamp(node.updated_at),
        "problems": list(node.problems),
    }


def told_whole(node: ContextNode) -> dict[str, object]:
    """Return all that JSON says of a node itself."""
    return {
        **told_node(node),
        "type": node.context_type.value,
        "category": node.category or None,
        "owner_space": node.owner_space,
        "overview": node.overview,
        "content": node.content,
        "cid": str(CID.of(node.content.encode())),
        "frontmatter": node.frontmatter,
        "metadata": plain(node.metadata),
    }


def told_edge(edge: RelationEdge) -> dict[str, object]:
    return {
        "from_uri": edge.from_uri,
        "to_uri": edge.to_uri,
        "type": edge.relation_type,
        "weight": edge.weight,
        "reason": edge.reason,
        "created_at": stamp(edge.created_at),
    }


def told_edges(edges: Iterable[RelationEdge]) -> list[dict[str, object]]:
    return [told_edge(edge) for edge in edges]


def version_line(uri: str, version: int) -> str:
    return f"{shown(uri)} version {version}"
