"""The contract of the outbox as a suite that any implementation can run.

class TestMyOutbox(OutboxSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_WORKERS})

    @staticmethod
    def open_outbox(place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
        return MyOutbox(place / "outbox", clock, siblings)
"""

from tests.support.context.outbox.base import (
    CONCURRENT_WORKERS,
    SURVIVES_REOPENING,
    OutboxBase,
)
from tests.support.context.outbox.leases import DeadLetterTests, LateWorkerTests, LeaseTests
from tests.support.context.outbox.machine import MachineTests
from tests.support.context.outbox.processes import ConcurrencyTests
from tests.support.context.outbox.registration import RegisterTests
from tests.support.context.outbox.tenants import TenantTests
from tests.support.context.outbox.work import WorkTests

__all__ = ["CONCURRENT_WORKERS", "SURVIVES_REOPENING", "OutboxBase", "OutboxSuite"]


class OutboxSuite(
    RegisterTests,
    WorkTests,
    LeaseTests,
    LateWorkerTests,
    DeadLetterTests,
    TenantTests,
    MachineTests,
    ConcurrencyTests,
):
    """Everything that an outbox must do."""
