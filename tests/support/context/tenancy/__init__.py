"""Tenancy is a property, not a check: a state machine and a matrix for any implementation.

def open_world() -> World:
    return World(nodes=..., relations=..., outbox=..., snapshot=...)

def test_nothing_out_of_reach_is_shown_or_touched() -> None:
    run_tenancy(open_world)

@pytest.mark.parametrize("row", rows())
def test_each_role_does_what_it_may_and_no_more(row: Row) -> None:
    assert check_row(open_world, row) == []
"""

from tests.support.context.tenancy.calls import Leak
from tests.support.context.tenancy.machine import VERBS, TenancyMachine, run_tenancy
from tests.support.context.tenancy.matrix import TABLE, Row, check_row, rows
from tests.support.context.tenancy.world import OpenWorld, World

__all__ = [
    "TABLE",
    "VERBS",
    "Leak",
    "OpenWorld",
    "Row",
    "TenancyMachine",
    "World",
    "check_row",
    "rows",
    "run_tenancy",
]
