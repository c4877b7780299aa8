"""Every requirement is tested before work lands, and every invariant while it is done."""

import re
from pathlib import Path

import pytest

from tests import tiers
from tests.requirements.collected import REPOSITORY, Held, every_test


@pytest.fixture(scope="module")
def found(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Held]:
    return every_test(pytestconfig, tmp_path_factory.mktemp("tiers"))


def below(place: str, nodes: dict[str, Held]) -> list[Held]:
    return [held for node, held in nodes.items() if tiers.is_below(node, (place,))]


@pytest.mark.parametrize("number", range(1, 11))
def test_every_invariant_has_a_test_while_working(number: int, found: dict[str, Held]) -> None:
    assert tiers.INVARIANTS[number]
    for path, names in tiers.INVARIANTS[number].items():
        for name in names:
            assert "test" in {held.tier for held in below(f"{path}::{name}", found)}, name


def test_every_place_that_has_a_tier_has_a_test(found: dict[str, Held]) -> None:
    classes = [f"{path}::{kind}" for path, kinds in tiers.STACKS.items() for kind in kinds]

    assert [place for place in (*tiers.CHECK, *classes) if not below(place, found)] == []


def test_every_suite_runs_on_some_stack_while_working(found: dict[str, Held]) -> None:
    assert [
        path for path in tiers.STACKS if "test" not in {held.tier for held in below(path, found)}
    ] == []


@pytest.mark.parametrize(
    ("node", "marks", "parameters", "tier"),
    [
        ("tests/model/test_uri.py::test_a", (), (), "test"),
        ("tests/model/test_uri.py::test_a[vault]", (), ("vault",), "check"),
        ("tests/model/test_uri.py::test_a[vaults]", (), ("vaults", {}, ["vault"]), "test"),
        ("tests/model/test_uri.py::test_a", ("search",), (), "check"),
        ("tests/model/test_uri.py::test_a", ("search", "net_recall"), (), "nightly"),
        ("tests/model/test_uri_bites.py::test_a", (), (), "check"),
        ("tests/engine/learn/test_statements_bite.py::test_a", (), (), "check"),
        ("tests/transfer/test_export_bites.py::test_a", (), (), "check"),
        ("docs/tutorial.md::line:1,column:1", (), (), "check"),
        ("tests/benchmarks/test_save.py::test_a", (), (), "check"),
        ("tests/storage/test_conformance.py::TestMemory::test_a[x::y]", (), (), "test"),
        ("tests/storage/test_conformance.py::TestVault::test_a", (), (), "check"),
        (tiers.SENTINELS[0], ("search",), (), "test"),
    ],
)
def test_the_tier_of_a_test_follows_the_rules(
    node: str, marks: tuple[str, ...], parameters: tuple[object, ...], tier: str
) -> None:
    assert tiers.tier_of(node, marks, parameters) == tier


def test_no_test_says_how_many_examples_hypothesis_tries_in_every_tier() -> None:
    literal = re.compile(r"max_examples=\d")
    folders = ("tests", "src/perdure/testing")
    files = {file for folder in folders for file in (REPOSITORY / folder).rglob("*.py")}
    files.remove(Path(tiers.__file__))

    assert [str(file) for file in files if literal.search(file.read_text(encoding="utf-8"))] == []
