"""The contract of the outbox as a suite that any implementation can run.

class TestMyOutbox(OutboxSuite):
    promises = frozenset({SURVIVES_REOPENING, CONCURRENT_WORKERS})

    @staticmethod
    def open_outbox(place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
        return MyOutbox(place / "outbox", clock, siblings)
"""

from perdure.testing.context.outbox.base import (
    CONCURRENT_WORKERS,
    SURVIVES_REOPENING,
    OutboxBase,
)
from perdure.testing.context.outbox.dead import DeadLetterTests
from perdure.testing.context.outbox.late import LateWorkerTests
from perdure.testing.context.outbox.leasing import LeaseTests
from perdure.testing.context.outbox.machine import MachineTests
from perdure.testing.context.outbox.processes import ConcurrencyTests
from perdure.testing.context.outbox.registering import RegisterTests
from perdure.testing.context.outbox.tenants import TenantTests
from perdure.testing.context.outbox.working import WorkTests

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
