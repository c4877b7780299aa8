"""What is meant by a place that is to be erased: versions, contents, and who else has them."""

import secrets
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from perdure.artifacts import CID
from perdure.context.files import CONTENT
from perdure.context.nodes import Nodes
from perdure.engine.erasing.notes import Task
from perdure.engine.erasing.plan import ErasurePlan, Kept
from perdure.engine.erasing.quotes import quoting, sentences, words
from perdure.engine.erasing.receipts import erased_versions
from perdure.engine.erasing.scope import Span, spans_of, spans_of_sessions, texts_in
from perdure.engine.erasing.tracing import Trace, Until, trace
from perdure.errors import AccessDeniedError, NodeNotFoundError
from perdure.model import RequestContext, Role, Uri
from perdure.storage.history import Event, History

_OWNER_DEPTH = 2
_MOST_READ = 2_000
"""Of so many contents it is looked up who else says what they do."""


class DerivedTraces(Protocol):
    """All that was made of memories and can be made again, or must not be."""

    def told(self, account_id: str, owners: Iterable[str], places: Iterable[Uri]) -> dict[str, int]:
        """Return how much of each kind would go."""

    def forget(
        self, account_id: str, owners: Iterable[str], places: Iterable[Uri]
    ) -> dict[str, int]:
        """Let all of it go, down to the last byte; what others need is made anew."""

    def elsewhere(self, contents: Iterable[CID]) -> list[str]:
        """Return what else may hold the same, and is not touched."""


class Planner:
    """Finds out what an erasure is about; nothing is changed."""

    def __init__(
        self, nodes: Nodes, history: History, derived: DerivedTraces, receipts: Path
    ) -> None:
        self._nodes = nodes
        self._history = history
        self._derived = derived
        self._receipts = receipts

    def trace(self, spans: Sequence[Span], until: Until | None = None) -> Trace:
        """Return what there is to erase, given what was erased before."""
        return trace(self._history, spans, until, self._noted())

    def _noted(self) -> set[int]:
        return erased_versions(self._receipts, self._history.store.history)

    def task(self, uri: str, ctx: RequestContext, reason: str) -> Task:
        demand_root(ctx)
        place = self._nodes.reach.changed(uri, ctx)
        owner = place.owner_space if _is_owner(place) else ""
        spans = spans_of([place], self._nodes)
        if owner:
            spans += spans_of_sessions(self._history, self._nodes, place.account, owner)
        actor = f"{ctx.user_id}/{ctx.agent_id}"
        id_, begun = secrets.token_hex(8), self._history.position()
        found = self.places(self.trace(spans), self._files(spans))
        owners = tuple(self._owners(owner, found))
        return Task(id_, place.account, owner, owners, (uri,), tuple(spans), actor, reason, begun)

    def _files(self, spans: Iterable[Span]) -> tuple[str, ...]:
        return tuple(text.key for text in texts_in(spans, self._nodes))

    def is_nothing(self, task: Task) -> bool:
        """Whether nothing is left of it; `NodeNotFoundError` if nothing ever was."""
        found = self.trace(task.spans)
        if texts_in(task.spans, self._nodes) or any(map(self._is_kept, found.contents)):
            return False
        if self._to_note(found):
            return False
        if not found.versions and not found.moved:
            raise NodeNotFoundError(
                f"nothing is or ever was at {task.uris[0]!a}. Fix: list what there is, and name "
                "one of them."
            )
        return True

    def _is_kept(self, cid: CID) -> bool:
        return self._history.store.is_kept(cid)

    def plan(self, task: Task, ctx: RequestContext) -> ErasurePlan:
        self.is_nothing(task)
        found = self.trace(task.spans)
        contents = dict.fromkeys(sorted(filter(self._is_kept, found.contents)))
        files = self._files(task.spans)
        places = self.places(found, files)
        size, said = self._read(contents)
        return ErasurePlan(
            task.uris,
            tuple(str(each) for each in places if not self._is_asked(task, each)),
            task.owner_space,
            files,
            sum(event.cid in contents for event in found.versions),
            tuple(contents),
            size,
            self.kept(found, task.account_id),
            found.moved,
            tuple(quoting(self._nodes, Uri(task.account_id), said, self._gone(task))),
            tuple(self._leading(places, ctx)),
            self._derived.told(task.account_id, task.owners, places),
            tuple(self._derived.elsewhere(contents)),
            self._telling(found, places),
            self._to_note(found),
        )

    def _is_asked(self, task: Task, place: Uri) -> bool:
        below = f"{self._nodes.folder(place).key}/"
        return any(below.startswith(f"{span.prefix}/") for span in task.spans)

    def _telling(self, found: Trace, places: Iterable[Uri]) -> tuple[str, ...]:
        """Return the places whose names have a word in common with what was there."""
        cids = {each.cid: None for each in found.versions if each.key.endswith(f"/{CONTENT}")}
        texts = (self._history.store.get(cid) for cid in islice(cids, _MOST_READ) if cid)
        said = {word for text in texts for word in words((text or b"").decode(errors="replace"))}
        return tuple(
            str(place)
            for place in places
            if not said.isdisjoint(words(place.key.rpartition("/")[2]))
        )

    def _read(self, contents: Iterable[CID]) -> tuple[int, set[str]]:
        """Return how large contents are, and what the first of them say."""
        size, said = 0, set[str]()
        for number, cid in enumerate(contents):
            data = self._history.store.get(cid) or b""
            size += len(data)
            if number < _MOST_READ:
                said |= sentences(data.decode(errors="replace"))
        return size, said

    def _gone(self, task: Task) -> list[Uri]:
        return [p for p in (self.place(span.prefix) for span in task.spans) if p is not None]

    def _leading(self, places: Sequence[Uri], ctx: RequestContext) -> list[str]:
        found = {
            str(follower)
            for place in places
            for follower in self._nodes.leading_to(place)
            if follower not in places and self._nodes.exists(str(follower), ctx)
        }
        return sorted(found)

    def kept(self, found: Trace, account_id: str) -> tuple[Kept, ...]:
        """Return what stays; of what is in other accounts it is not told where."""
        below = f"{self._nodes.folder(Uri(account_id)).key}/"
        return tuple(
            Kept(cid, key if key.startswith(below) else "")
            for cid, key in found.kept
            if self._is_kept(cid)
        )

    def _to_note(self, found: Trace) -> int:
        """Return how many versions others have, and no receipt says that they were erased."""
        noted = self._noted()
        return sum(event.position not in noted for event in self.withheld(found))

    def withheld(self, found: Trace) -> list[Event]:
        """Return the versions that were to go, and whose contents others have."""
        shared = {cid for cid, _ in found.kept if self._is_kept(cid)}
        return [event for event in found.versions if event.cid in shared]

    def places(self, found: Trace, files: Iterable[str] = ()) -> list[Uri]:
        """Return the places that texts were in, wherever they were moved."""
        keys = dict.fromkeys((*(event.key for event in found.versions), *files))
        places = (self.place(key.rpartition("/")[0]) for key in keys)
        return list(dict.fromkeys(place for place in places if place is not None))

    def place(self, folder: str) -> Uri | None:
        root = len(self._nodes.root.key) + 1 if self._nodes.root.key else 0
        return Uri.of_key(folder[root:])

    def _owners(self, owner: str, places: Sequence[Uri]) -> list[str]:
        """Return whose derived things may tell of it: of who has, or had, one of the places."""
        owners = {place.owner_space for place in places} | {owner}
        sessions = {place for place in places if place.session}
        owners |= {self._nodes.reach.session_owner(place) or "" for place in sessions}
        if sessions:  # a session may have been another's, and what was learned from it is theirs
            owners |= self._session_owners(sessions)
        return sorted(owners - {""})

    def _session_owners(self, sessions: Iterable[Uri]) -> set[str]:
        files = {self._nodes.reach.owner_file(place).key for place in sessions}
        found = set()
        for event in self._history.changes():
            data = None
            if event.key in files and event.cid is not None:
                data = self._history.store.get(event.cid)
            if data is not None:
                found.add(data.decode(errors="replace").removesuffix("\n"))
        return found


def _is_owner(place: Uri) -> bool:
    return len(place.path) == _OWNER_DEPTH and place.path[0] in {"users", "agents"}


def demand_root(ctx: RequestContext) -> None:
    if ctx.role is not Role.ROOT:
        raise AccessDeniedError(
            f"{ctx.user_id[:80]!a} of account {ctx.account_id[:80]!a} is {ctx.role.value} and may "
            "not erase: one history keeps all accounts. Nothing was changed. "
            "Fix: forget without erasing, and ask the owner of this memory to erase."
        )
