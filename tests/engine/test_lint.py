"""Chains of what superseded what, against looking at every way there is."""

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.lint import LintCode, LintFinding, cycles, forks

NAMES = "abcd"
GRAPHS = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
)
LONG = 50_000


def every_ring(edges: dict[str, list[str]]) -> set[frozenset[str]]:
    """Return the names of each ring that there is."""
    return {
        frozenset(ring)
        for size in range(1, len(NAMES) + 1)
        for ring in permutations(NAMES, size)
        if all(b in edges.get(a, ()) for a, b in pairwise((*ring, ring[0])))
    }


@given(GRAPHS)
def test_a_reported_cycle_is_one(edges: dict[str, list[str]]) -> None:
    for ring in cycles(edges):
        assert ring[0] == min(ring)
        assert all(b in edges[a] for a, b in pairwise((*ring, ring[0])))


@given(GRAPHS)
def test_every_uri_of_a_cycle_is_in_a_reported_one(
    edges: dict[str, list[str]],
) -> None:
    reported = [set(ring) for ring in cycles(edges)]
    for ring in every_ring(edges):
        assert any(ring & each for each in reported)
    assert bool(reported) == bool(every_ring(edges))


@given(GRAPHS)
def test_a_fork_is_what_leads_to_several_others(edges: dict[str, list[str]]) -> None:
    assert dict(forks(edges)) == {
        start: tuple(sorted({*ends} - {start}))
        for start, ends in edges.items()
        if len({*ends} - {start}) > 1
    }


def test_a_chain_may_be_as_long_as_it_likes() -> None:
    chain = {str(n): [str(n + 1)] for n in range(LONG)}
    assert cycles(chain) == []

    chain[str(LONG)] = ["0"]
    assert len(cycles(chain)[0]) == LONG + 1


def test_no_way_is_followed_twice() -> None:
    """Of a ladder of so many rungs there are more ways down than anybody could follow."""
    ladder = {f"{side}{n}": [f"a{n + 1}", f"b{n + 1}"] for n in range(60) for side in "ab"}

    assert cycles(ladder) == []


def test_every_code_is_an_error_or_a_warning() -> None:
    kinds = {LintFinding("f", 1, code.value, "what", "fix").is_error for code in LintCode}

    assert kinds == {True, False}
