"""An outbox against a dictionary: any sequence of verbs must give the same answers."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from perdure.context.events import Clock, Siblings
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.errors import LeaseError
from perdure.model import EventStatus, OutboxEvent, RequestContext
from perdure.testing.suite import examples
from tests.support.context.outbox.base import (
    HandClock,
    Neighbours,
    OutboxBase,
    closing,
    written,
)

ACCOUNTS = ("acme", "Acme")
USERS = ("ana", "bob")
_WORKERS = st.sampled_from(["w1", "w1", "w2", None])
_SECONDS = st.sampled_from([1, 10, 300])
_VERBS = st.sampled_from(  # few that take away, so that there is something to work on
    [
        *("register", "acquire", "tick") * 4,
        *("bury", "retry", "requeue", "extend") * 3,
        *("release", "mark", "done") * 2,
        *("purge", "forget_owner", "forget_account"),
    ]
)

Listed = tuple[str, EventStatus, int, datetime | None, str]


@dataclass(slots=True)
class Entry:
    """The promise about one event, in the plainest form."""

    event: OutboxEvent
    dead: bool = False
    worker: str | None = None
    until: datetime | None = None
    retries: int = 0
    later: datetime | None = None
    error: str = ""

    def leased(self, now: datetime) -> bool:
        return self.until is not None and now < self.until

    def ready(self, now: datetime) -> bool:
        due = self.later is None or self.later <= now
        return due and not self.dead and not self.leased(now)

    def listed(self, now: datetime) -> Listed:
        living = EventStatus.PROCESSING if self.leased(now) else EventStatus.PENDING
        status = EventStatus.DEAD if self.dead else living
        return self.event.event_id, status, self.retries, self.later, self.error


class Model:
    def __init__(self, clock: HandClock) -> None:
        self.entries: dict[str, Entry] = {}
        self._clock = clock

    def acquire(self, id_: str, worker: str, seconds: int) -> bool:
        entry, now = self.entries.get(id_), self._clock()
        if entry is None or not (entry.ready(now) or self._has(entry, worker)):
            return False
        entry.worker, entry.until = worker, now + timedelta(seconds=seconds)
        return True

    def extend(self, id_: str, worker: str, seconds: int) -> bool:
        entry = self.entries.get(id_)
        return entry is not None and self._has(entry, worker) and self.acquire(id_, worker, seconds)

    def mark(self, id_: str) -> None:
        entry, now = self.entries.get(id_), self._clock()
        if entry is not None and entry.ready(now):
            entry.worker, entry.until = None, now + timedelta(seconds=300)

    def release(self, id_: str, worker: str | None) -> None:
        entry = self._own(id_, worker)
        if entry is not None:
            entry.until = None

    def retry(self, id_: str, worker: str | None, later: datetime | None, error: str) -> None:
        entry = self._own(id_, worker)
        if entry is not None and not entry.dead:
            entry.retries, entry.later, entry.error = entry.retries + 1, later, error
            entry.until = None

    def bury(self, id_: str, worker: str | None) -> None:
        entry = self._own(id_, worker)
        if entry is not None:
            entry.dead, entry.until = True, None

    def done(self, id_: str, worker: str | None) -> None:
        if self._own(id_, worker) is not None:
            del self.entries[id_]

    def requeue(self, account: str, chosen: list[str] | None) -> int:
        found = self._dead(account, chosen)
        for entry in found:
            entry.dead, entry.retries, entry.later, entry.error = False, 0, None, ""
        return len(found)

    def purge(self, account: str, chosen: list[str] | None) -> int:
        return self._drop(self._dead(account, chosen))

    def forget(self, account: str, owner: str | None) -> int:
        return self._drop(
            [
                entry
                for entry in self.of(account)
                if owner is None or entry.event.owner_space == owner
            ]
        )

    def of(self, account: str) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.event.account_id == account]

    def _drop(self, entries: list[Entry]) -> int:
        for entry in entries:
            del self.entries[entry.event.event_id]
        return len(entries)

    def _dead(self, account: str, chosen: list[str] | None) -> list[Entry]:
        found = [entry for entry in self.of(account) if entry.dead]
        return [each for each in found if chosen is None or each.event.event_id in chosen]

    def _has(self, entry: Entry, worker: str | None) -> bool:
        return entry.leased(self._clock()) and entry.worker == worker

    def _own(self, id_: str, worker: str | None) -> Entry | None:
        entry = self.entries.get(id_)
        held = entry is not None and entry.leased(self._clock()) and entry.worker != worker
        if worker is not None and held:
            raise LeaseError
        return entry


def _outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except LeaseError:
        return LeaseError


class OutboxMachine(RuleBasedStateMachine):
    """Does the same to an outbox and to a model, and compares."""

    open_outbox: ClassVar[Callable[[Path, Clock, Siblings], OutboxStore]]

    def __init__(self) -> None:
        super().__init__()
        self._ends = ExitStack()
        folder = self._ends.enter_context(tempfile.TemporaryDirectory())
        self.clock = HandClock()
        opened = type(self).open_outbox(Path(folder), self.clock, Neighbours())
        self.outbox = self._ends.enter_context(closing(opened))
        self.model = Model(self.clock)
        self.events: list[OutboxEvent] = []
        """All that ever were."""

    # One rule for all verbs: Hypothesis leaves some rules out of each sequence.
    @rule(
        verb=_VERBS,
        which=st.sampled_from([1, 2, 1, 2, 1, 2, 0]),
        worker=_WORKERS,
        seconds=_SECONDS,
        account=st.sampled_from([*ACCOUNTS, ACCOUNTS[0], ACCOUNTS[0]]),
        user=st.sampled_from(USERS),
    )
    def do(  # noqa: PLR0913, PLR0917 - one rule for all verbs
        self, verb: str, which: int, worker: str | None, seconds: int, account: str, user: str
    ) -> None:
        if verb == "register" or not self.events:
            self.register(RequestContext(account, user))
        elif verb == "tick":
            self.clock.go_on(seconds + 0.5)
        elif verb in {"forget_owner", "forget_account"}:
            self.forget(account, f"user:{user}" if verb == "forget_owner" else None)
        elif verb in {"requeue", "purge"}:
            self.judge(verb, account, which)
        else:
            self.work(verb, self.picked(which), worker, seconds)

    def picked(self, which: int) -> OutboxEvent:
        """Return mostly one of the first that are not gone, so that the verbs meet each other."""
        living = [entry.event for entry in self.model.entries.values()][:2]
        return living[which % len(living)] if living and which else self.events[-1]

    def register(self, ctx: RequestContext) -> None:
        event = written(self.outbox, ctx=ctx)
        self.events.append(event)
        self.model.entries[event.event_id] = Entry(event)

    def forget(self, account: str, owner: str | None) -> None:
        if owner is None:
            mine = self.outbox.delete_account_data(account)
        else:
            mine = self.outbox.delete_by_owner_space(account, owner)
        assert mine == self.model.forget(account, owner)

    def judge(self, verb: str, account: str, which: int) -> None:
        chosen = None if which == 0 else [event.event_id for event in self.events[-which:]]
        if verb == "requeue":
            assert self.outbox.requeue(account, chosen) == self.model.requeue(account, chosen)
        else:
            assert self.outbox.purge(account, chosen) == self.model.purge(account, chosen)

    def work(self, verb: str, event: OutboxEvent, worker: str | None, seconds: int) -> None:
        outbox, model, id_, uri = self.outbox, self.model, event.event_id, event.uri
        named = worker or "w3"
        later = self.clock() + timedelta(seconds=seconds) if seconds > 1 else None
        both: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "acquire": (
                lambda: outbox.try_acquire(event, uri, named, seconds),
                lambda: model.acquire(id_, named, seconds),
            ),
            "extend": (
                lambda: outbox.extend(event, uri, named, seconds),
                lambda: model.extend(id_, named, seconds),
            ),
            "release": (
                lambda: outbox.release(event, uri, worker_id=worker),
                lambda: model.release(id_, worker),
            ),
            "mark": (lambda: outbox.mark_processing(event, uri), lambda: model.mark(id_)),
            "retry": (
                lambda: outbox.increment_retry(event, uri, later, worker_id=worker, error=named),
                lambda: model.retry(id_, worker, later, named),
            ),
            "bury": (
                lambda: outbox.move_to_dlq(event, uri, worker_id=worker),
                lambda: model.bury(id_, worker),
            ),
            "done": (
                lambda: outbox.mark_done(event, uri, worker_id=worker),
                lambda: model.done(id_, worker),
            ),
        }
        mine, theirs = both[verb]
        assert _outcome(mine) == _outcome(theirs)

    @invariant()
    def both_hold_the_same(self) -> None:
        now = self.clock()
        for account in ACCOUNTS:
            entries = self.model.of(account)
            waiting = [entry.listed(now) for entry in entries if entry.ready(now)]
            buried = [entry.listed(now) for entry in entries if entry.dead]
            unfinished = [entry.listed(now) for entry in entries]
            assert _listed(self.outbox.list_pending(account)) == waiting
            assert _listed(self.outbox.list_dead(account)) == buried
            assert _listed(self.outbox.list_unfinished(account)) == unfinished

    def teardown(self) -> None:
        self._ends.close()


def _listed(listed: list[tuple[str, OutboxEvent]]) -> list[Listed]:
    return [
        (each.event_id, each.status, each.retry_count, each.next_retry_at, each.last_error)
        for _, each in listed
    ]


class MachineTests(OutboxBase):
    def test_any_sequence_of_verbs_behaves_like_a_dictionary(self) -> None:
        machine = type("Machine", (OutboxMachine,), {"open_outbox": self.open_outbox})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples(60),
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
