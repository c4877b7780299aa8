"""Killed or failing at any moment, a verb loses nothing; `tests.engine.faults` has many more."""

from pathlib import Path

import pytest

from perdure.testing.suite import examples
from tests.engine.faults import fail_many, kill_many

pytestmark = pytest.mark.search


def test_processes_that_are_killed_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    assert sum(kill_many(examples(10), 0, tmp_path)) > 0


def test_no_error_of_a_call_loses_a_memory(tmp_path: Path) -> None:
    """Of each verb some calls fail, warm and from its start, each with each error."""
    *_, (name, done) = fail_many(examples(100), tmp_path, every=29)
    assert name
    assert done > 30
