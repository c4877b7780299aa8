"""The documentation is tested too; tests/docs/blocks.py says how."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import documentation, user_of_our_own

pytest_collect_file = documentation(Path(__file__).parent).pytest()


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give each document a user of its own."""
    with user_of_our_own(tmp_path_factory.mktemp("user")):
        yield
