"""What superseded what: a chain that ends, and does not part."""

from collections.abc import Iterator, Mapping, Sequence

Edges = Mapping[str, Sequence[str]]
"""By URI, the URIs that superseded it."""


def forks(edges: Edges) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what several others superseded, with those."""
    for start in sorted(edges):
        targets = tuple(sorted({*edges[start]} - {start}))
        if len(targets) > 1:
            yield start, targets


def cycles(edges: Edges) -> list[tuple[str, ...]]:
    """Return each ring of URIs that superseded each other, once, from its least one on."""
    found: set[tuple[str, ...]] = set()
    done: set[str] = set()
    for start in sorted(edges):
        if start not in done:
            found |= _rings(edges, start, done)
    return sorted(found)


def _rings(edges: Edges, start: str, done: set[str]) -> set[tuple[str, ...]]:
    """Follow all edges from one; what was followed before is not followed again."""
    found: set[tuple[str, ...]] = set()
    path: list[str] = [start]
    places = {start: 0}
    waiting = [iter(edges.get(start, ()))]
    while waiting:
        target = next(waiting[-1], None)
        if target is None:
            done.add(path[-1])
            del places[path.pop()]
            waiting.pop()
        elif target in places:
            found.add(_from_the_least(path[places[target] :]))
        elif target not in done:
            places[target] = len(path)
            path.append(target)
            waiting.append(iter(edges.get(target, ())))
    return found


def _from_the_least(ring: Sequence[str]) -> tuple[str, ...]:
    at = ring.index(min(ring))
    return (*ring[at:], *ring[:at])
