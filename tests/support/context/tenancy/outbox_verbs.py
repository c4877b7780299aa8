"""The verbs of the outbox as any caller may call them, and workers of other accounts."""

from collections.abc import Callable
from dataclasses import replace

from perdure.errors import AccessDeniedError
from perdure.model import ContextNode, EventStatus, OutboxEvent, RequestContext, Uri
from tests.support.context.tenancy.calls import Answer, Ask, Asking, Make, demand, verb

_WORKER = "w"


class OutboxVerbs(Asking):
    # ------------------------------------------------------------ registering
    @verb("outbox.register_write")
    def register_write(self, ask: Ask) -> None:
        self._register("outbox.register_write", ask, lambda node: (node, ask.ctx))

    @verb("outbox.register_writes")
    def register_writes(self, ask: Ask) -> None:
        self._register("outbox.register_writes", ask, lambda node: ([node], ask.ctx))

    @verb("outbox.register_relations")
    def register_relations(self, ask: Ask) -> None:
        self._register("outbox.register_relations", ask, lambda node: (node, ask.ctx))

    @verb("outbox.register_directory", 2)
    def register_directory(self, ask: Ask) -> None:
        self._register("outbox.register_directory", ask, lambda node: (node, ask.ctx))

    @verb("outbox.register_delete")
    def register_delete(self, ask: Ask) -> None:
        self._register_removal("outbox.register_delete", ask)

    @verb("outbox.register_archive")
    def register_archive(self, ask: Ask) -> None:
        self._register_removal("outbox.register_archive", ask)

    @verb("outbox.register_move")
    def register_move(self, ask: Ask) -> None:
        name, ctx, old, new = "outbox.register_move", ask.ctx, ask.here, ask.there
        if old == new or Uri.parse(old).account != Uri.parse(new).account:
            return

        def make(old: str, new: str) -> tuple[str, ContextNode, RequestContext]:
            return old, self._node_for(ask, new), ctx

        answer = self.ask_of(name, ctx, make, old, new)
        from_session = Uri.parse(old).session and Uri.parse(old).account == ctx.account_id
        if (from_session or self._may_tell(ask, old)) and self._may_tell(ask, new):
            self._registered(answer, ask)
        else:
            answer.refused(AccessDeniedError)

    def _register(
        self, name: str, ask: Ask, created: Callable[[ContextNode], tuple[object, ...]]
    ) -> None:
        make: Make = lambda uri: created(self._node_for(ask, uri))  # noqa: E731 - used once
        answer = self.ask_of(name, ask.ctx, make, ask.here)
        self._check_registered(name, ask, make, answer)

    def _register_removal(self, name: str, ask: Ask) -> None:
        owner = "" if Uri.parse(ask.here).owner_space else self._owner_of(ask)
        answer = self.ask(name, ask.ctx, ask.here, ask.ctx, owner_space=owner)
        if self._may_tell(ask, ask.here):
            self._registered(answer, ask)
        else:
            answer.refused(AccessDeniedError)

    def _check_registered(self, name: str, ask: Ask, make: Make, answer: Answer) -> None:
        if not self._may_tell(ask, ask.here):
            self.denied(answer, (name, ask.ctx, make), ask.here)
        elif answer.error is None:
            self._registered(answer, ask)
        else:  # a caller who lists a folder must see it
            demand(not self.model.may_see(ask.here, ask.ctx), f"refused: {answer.error!r}")

    def _registered(self, answer: Answer, ask: Ask) -> None:
        reported = answer.given()
        events = reported if isinstance(reported, list) else [reported]
        for event in events:
            assert isinstance(event, OutboxEvent)
            demand(event.account_id == ask.ctx.account_id, f"{event} is of another account")
            demand(
                self.model.reaches(ask.ctx, event.account_id, event.owner_space),
                f"{event} is of another user",
            )

    def _may_tell(self, ask: Ask, uri: str) -> bool:
        """Whether an event may be listed; an outbox knows only the registered part of a session."""
        if Uri.parse(uri).session:
            inside = Uri.parse(uri).account == ask.ctx.account_id
            return inside and self.model.reaches(ask.ctx, ask.ctx.account_id, self._owner_of(ask))
        return self.model.may_change(uri, ask.ctx)

    def _node_for(self, ask: Ask, uri: str) -> ContextNode:
        owner = "" if Uri.parse(uri).owner_space else self._owner_of(ask)
        return ContextNode(uri=uri, owner_space=owner, abstract="told")

    def _owner_of(self, ask: Ask) -> str:
        return f"user:{self.cast.users[ask.odd % 3]}"

    # ------------------------------------------------------------ listing
    @verb("outbox.list_pending")
    def list_pending(self, ask: Ask) -> None:
        self._list_events("outbox.list_pending", ask)

    @verb("outbox.list_unfinished")
    def list_unfinished(self, ask: Ask) -> None:
        self._list_events("outbox.list_unfinished", ask)

    @verb("outbox.list_dead")
    def list_dead(self, ask: Ask) -> None:
        self._list_events("outbox.list_dead", ask)

    def _list_events(self, name: str, ask: Ask) -> None:
        account = Uri.parse(ask.here).account
        listed = self.ask(name, self.root(account), account).given()
        assert isinstance(listed, list)
        for uri, event in listed:
            inside = {account, event.account_id, Uri.parse(uri).account} == {account}
            demand(inside, f"{name}({account!r}) tells of {uri}")
        known = {event.event_id for _, event in self.events[account]}
        demand({event.event_id for _, event in listed} <= known, f"{name} tells of others")

    # ------------------------------------------------------------ working
    @verb("outbox.try_acquire")
    def try_acquire(self, ask: Ask) -> None:
        self._work("outbox.try_acquire", ask, worker=_WORKER)

    @verb("outbox.extend")
    def extend(self, ask: Ask) -> None:
        self._work("outbox.extend", ask, worker=_WORKER)

    @verb("outbox.release")
    def release(self, ask: Ask) -> None:
        self._work("outbox.release", ask)

    @verb("outbox.mark_processing")
    def mark_processing(self, ask: Ask) -> None:
        self._work("outbox.mark_processing", ask)

    @verb("outbox.mark_done")
    def mark_done(self, ask: Ask) -> None:
        self._work("outbox.mark_done", ask)

    @verb("outbox.move_to_dlq", 3)
    def move_to_dlq(self, ask: Ask) -> None:
        self._work("outbox.move_to_dlq", ask)

    @verb("outbox.increment_retry")
    def increment_retry(self, ask: Ask) -> None:
        self._work("outbox.increment_retry", ask)

    def _work(self, name: str, ask: Ask, *, worker: str = "") -> None:
        """Work on an event, or pretend that an event of another account is one's own."""
        accounts = self.cast.accounts
        account, other = accounts if ask.flag(0) else accounts[::-1]
        if not self.events[account]:
            return
        uri, event = self.events[account][ask.odd % len(self.events[account])]
        forged = ask.flag(1)
        if forged:
            uri = str(Uri(other, ("resources", "x")))
            event = replace(event, uri=uri, account_id=other, owner_space="")
        before = self.events
        answer = self.ask(name, self.root(event.account_id), event, uri, *filter(None, [worker]))
        answer.given()
        demand(not forged or not answer.value, f"{name} believed a worker of {other!r}")
        spared = {} if forged else {event.event_id: event}
        for each in accounts:
            stored, now = (
                [e for _, e in listed[each] if e.event_id not in spared]
                for listed in (before, self.events)
            )
            demand(stored == now, f"{name} changed events of {each!r} that it was not asked about")

    # ------------------------------------------------------------ the dead, and forgetting
    @verb("outbox.requeue")
    def requeue(self, ask: Ask) -> None:
        self._of_dead("outbox.requeue", ask)

    @verb("outbox.purge")
    def purge(self, ask: Ask) -> None:
        self._of_dead("outbox.purge", ask)

    def _of_dead(self, name: str, ask: Ask) -> None:
        account, other = self._pair(ask)
        dead = {
            each: [e.event_id for _, e in self.events[each] if e.status is EventStatus.DEAD]
            for each in (account, other)
        }
        stolen = ask.flag(1)
        chosen = (dead[other],) if stolen else ()
        self._counted(name, account, chosen, 0 if stolen else len(dead[account]))

    @verb("outbox.delete_account_data")
    def delete_account_data(self, ask: Ask) -> None:
        account, _ = self._pair(ask)
        if ask.odd % 5 == 0:
            self._counted("outbox.delete_account_data", account, (), len(self.events[account]))

    @verb("outbox.delete_by_owner_space")
    def delete_by_owner_space(self, ask: Ask) -> None:
        account, _ = self._pair(ask)
        space = self._owner_of(ask)
        expected = [e for _, e in self.events[account] if e.owner_space != space]
        count = len(self.events[account]) - len(expected)
        self._counted("outbox.delete_by_owner_space", account, (space,), count)
        stored = [e for _, e in self.events[account]]
        demand(stored == expected, f"not the events of {space!r} alone were forgotten")

    def _counted(self, name: str, account: str, args: tuple[object, ...], count: int) -> None:
        """Ask for something to be done to some events of one account, and count."""
        before = self.events
        reported = self.ask(name, self.root(account), account, *args).given()
        demand(reported == count, f"{name}({account!r}, {args}) counted {reported}, not {count}")
        for each in self.cast.accounts:
            same = each == account or before[each] == self.events[each]
            demand(same, f"{name}({account!r}) changed events of {each!r}")

    def _pair(self, ask: Ask) -> tuple[str, str]:
        first, second = self.cast.accounts
        return (first, second) if Uri.parse(ask.here).account == first else (second, first)
