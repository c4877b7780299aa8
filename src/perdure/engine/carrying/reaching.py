"""What of a history somebody may take along: what is within their reach, for as long as it was."""

from collections.abc import Mapping
from dataclasses import dataclass

from perdure.artifacts.canonical import Value
from perdure.artifacts.entry import Bind
from perdure.artifacts.state import Logged
from perdure.context.reading import NodeReader
from perdure.engine.erasing.tracing import Span, spans_of_sessions
from perdure.model import RequestContext, Uri
from perdure.storage.history import MOVED_FROM, Circumstances, Event, History


@dataclass(frozen=True, slots=True)
class Reachable:
    """Chooses versions; `keep` is what an extract asks."""

    spans: tuple[Span, ...]

    @classmethod
    def by(cls, ctx: RequestContext, history: History, reader: NodeReader) -> "Reachable":
        account = Uri(ctx.account_id)
        if ctx.governs:
            return cls((Span(reader.folder(account).key, deep=True),))
        spans = [Span(reader.folder(account.child("resources")).key, deep=True)]
        for owner in sorted(ctx.owner_spaces):
            kind, _, name = owner.partition(":")
            spans.append(Span(reader.folder(account.child(f"{kind}s", name)).key, deep=True))
            spans += spans_of_sessions(history, reader, ctx.account_id, owner)
        return cls(tuple(spans))

    @staticmethod
    def said(ctx: RequestContext) -> str:
        """Return in words whose reach it is; others reach something else."""
        if ctx.governs:
            return f"account {ctx.account_id!a}"
        return f"account {ctx.account_id!a} as {sorted(ctx.owner_spaces)!a}"

    def keep(self, logged: Logged, bind: Bind) -> Bind | None:
        said = Circumstances()
        event = Event(bind.name, logged.position, logged.commit, logged.time, bind.cid, said)
        if not any(span.holds(event) for span in self.spans):
            return None
        return Bind(bind.name, bind.cid, self._told(bind.circumstances))

    def _told(self, said: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return what is said of a version, without where it came from if that is out of reach."""
        source = said.get(MOVED_FROM)
        if isinstance(source, str) and not any(span.covers(source) for span in self.spans):
            return {name: value for name, value in said.items() if name != MOVED_FROM}
        return said
