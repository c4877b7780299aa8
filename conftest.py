"""The documentation is tested too; tests/docs/blocks.py says how, tests/tiers.py says when."""

import os
from collections.abc import Iterator
from itertools import compress
from operator import not_
from pathlib import Path

import pytest

from tests import tiers
from tests.docs.blocks import documentation, user_of_our_own
from tests.requirements import collected

HERE = Path(__file__).parent

pytest_collect_file = documentation(HERE).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers", "which tests run, and how hard they try")
    group.addoption("--tier", choices=tiers.TIERS, default="check", help="default: %(default)s")
    group.addoption(
        "--only", choices=tiers.TIERS, help="of what the tier runs, only this tier's own"
    )
    group.addoption("--fresh", type=int, help="what the seeds of this run are made from")


def pytest_configure(config: pytest.Config) -> None:
    tiers.use(config.getoption("--tier"), config.getoption("--fresh"))
    os.environ.pop("CI", None)  # memory keeps nothing of such runs; tests that mean it set it


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't even import what is not in this tier."""
    path = os.path.relpath(collection_path, HERE)
    return (config.getoption("--tier") == "test" and tiers.is_whole(path)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    collected.remember(config, items)
    tier = config.getoption("--tier")
    only = config.getoption("--only")
    found = map(collected.tier_of, items)
    runs = [tiers.runs_in(tier, own) and only in {None, own} for own in found]
    config.hook.pytest_deselected(items=list(compress(items, map(not_, runs))))
    items[:] = compress(items, runs)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give each document a user of its own."""
    with user_of_our_own(tmp_path_factory.mktemp("user")):
        yield
