"""`worker`."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from perdure.engine.made import Caught
from perdure.engine.upkeep import accounts_of
from perdure.engine.worker import Background, Round, Worker
from perdure.errors import EmbeddingError, PerdureError
from perdure.model import Uri
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.opening import Memory, demand_governing, with_memory
from perdure.surfaces.telling import counted, mention, shown, tell_json, tell_line

if TYPE_CHECKING:
    from perdure.engine.parts import Present

_MOST_NAMED = 3
_PAUSE_SECONDS = 1.0
_SOME_SECONDS = 5.0
"""How far a build is, is told about so often."""
_OUTAGE_SECONDS = 60.0
"""So long a model that is out of order is left alone."""


@click.command("worker")
@click.option("--once", is_flag=True, help="Work until nothing waits any more, and end.")
@as_json(ONE_OBJECT)
@with_memory
def worker_command(memory: Memory, *, once: bool, as_json: bool) -> None:
    """Keep the index up to date, for all accounts.

    After a change of model it makes the new index, while the old one answers. It works until it is
    told to end (SIGTERM or Ctrl-C), and finishes the step that it has begun; the next one goes on
    from there. Several may work side by side. With --once, it ends with 1 if something failed.
    """
    demand_governing(memory, "work for all accounts")
    with until_told() as ending:
        working = _Working(memory, ending)
        total = working.work()
        while not once and not ending.wait(_PAUSE_SECONDS):
            total += working.work()
    _tell(total, as_json=as_json)
    if once and (total.failed or total.dead or working.stopped):
        click.get_current_context().exit(1)


def _tell(total: Round, *, as_json: bool) -> None:
    if as_json:
        told = {"done": total.done, "failed": total.failed, "dead": total.dead}
        tell_json({**told, "indexed": total.indexed})
        return
    tell_line(
        f"{counted(total.done, 'event')} done, {total.failed} to be tried again, "
        f"{total.dead} dead; {counted(total.indexed, 'place')} indexed"
    )


class _Working:
    """Works for all accounts, until it is told to end."""

    def __init__(self, memory: Memory, ending: threading.Event) -> None:
        self._context = memory.context
        self._name = memory.name
        self._ending = ending
        self._resting: dict[str, float] = {}
        """Until when an account's new index is let be."""
        self.stopped = False
        """Whether an account could not be worked for."""

    def work(self) -> Round:
        """Work on all that waits, account by account."""
        total = Round()
        for account in accounts_of(self._context.reader):
            try:
                while not self._ending.is_set() and (done := self._step(account)) != Round():
                    total += done
            except PerdureError as error:  # the other accounts go on
                self.stopped = True
                mention(f"{shown(account)}: {shown(str(error))}")
        return total

    def _step(self, account: str) -> Round:
        """Work on what was written; if nothing is left, on the index that is to answer one day."""
        present = self._context.indexes.present(account)
        if present.otherwise is not None and self._rests(account):
            present = present.otherwise
        if self._is_long(present, account):
            return self._indexed(present.following.build_on(account, self._goes_on, lambda _: None))
        with self._resting_after(account):
            done = Worker(self._context.outbox, present.following).work(account)
        if done.failed or done.dead:
            mention(f"{shown(account)}: {done.failed} failed, {done.dead} dead")
            self._mention_failed(account)
        if done == Round() and present.meanwhile:
            return self._build(account)
        return done

    def _mention_failed(self, account: str) -> None:
        """Name the first few nodes whose changes failed, with the reason."""
        unfinished = self._context.outbox.list_unfinished(account)
        failed = {event.uri: event.last_error for _, event in unfinished if event.last_error}
        for uri, error in list(failed.items())[:_MOST_NAMED]:
            mention(f"  {self._name(Uri.parse(uri))}: {shown(error)}")
        if len(failed) > _MOST_NAMED:
            mention(f"  and {len(failed) - _MOST_NAMED} more: `perdure outbox list`")

    def _is_long(self, present: "Present", account: str) -> bool:
        """Whether words have to be indexed first, and it takes so long that we may be stopped."""
        following = present.following
        words = present.meanwhile or self._context.indexes.embedder is None
        return words and not following.index.cursor(account) and not following.is_little(account)

    def _indexed(self, caught: Caught | None) -> Round:
        """Count what was indexed; of an index that we stopped making, too."""
        if caught is None:
            return Round()
        return Round(indexed=len(caught.places)) if self._ending.is_set() else Round.of(caught)

    def _goes_on(self) -> bool:
        return not self._ending.is_set()

    def _build(self, account: str) -> Round:
        if self._rests(account):
            return Round()
        telling = _Telling(self._context.indexes.progress, account)
        wanted = self._context.indexes.upkeep.following
        background = Background(wanted, lambda: self._answering(account))
        with self._resting_after(account):
            caught = background.go_on(account, self._goes_on, telling.tell)
        if caught is not None:
            telling.tell_end(caught)
        return self._indexed(caught)

    def _rests(self, account: str) -> bool:
        return time.monotonic() < self._resting.get(account, 0.0)

    @contextmanager
    def _resting_after(self, account: str) -> Iterator[None]:
        """Leave a model alone for a while that is out of order."""
        try:
            yield
        except EmbeddingError:
            self._resting[account] = time.monotonic() + _OUTAGE_SECONDS
            raise

    def _answering(self, account: str) -> Worker | None:
        """Return who works for the index that answers until the new one is made."""
        present = self._context.indexes.present(account)
        return Worker(self._context.outbox, present.following) if present.meanwhile else None


class _Telling:
    """Says on stderr now and then how far a build is."""

    def __init__(self, progress: Callable[[str], tuple[int, int]], account: str) -> None:
        self._progress = progress
        self._account = account
        self._next = time.monotonic() + _SOME_SECONDS

    def tell(self, _: int) -> None:
        if time.monotonic() >= self._next:
            self._mention("")
            self._next = time.monotonic() + _SOME_SECONDS

    def tell_end(self, caught: Caught) -> None:
        for uri, error in caught.failed.items():
            mention(f"found by words only: {uri}: {shown(str(error))}")
        if caught.failed:
            mention("`perdure index verify --heal` tries these again")
        if caught.position:
            mention(f"{shown(self._account)}: the new vectors are made, and answer from now on")
        else:
            self._mention("; the next worker goes on from there")

    def _mention(self, more: str) -> None:
        made, places = self._progress(self._account)
        mention(f"{shown(self._account)}: {made:,} of {places:,} places are embedded{more}")


@contextmanager
def until_told() -> Iterator[threading.Event]:
    """Give an event that is set when the process is asked to end."""
    ending = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ending.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
