"""Erasing: the files, their versions in history, what was derived from them; then the receipt.

A note says what is to be erased from before the first step until the receipt is there. Whoever is
killed in between leaves the note, and the next one who recalls, saves or forgets goes on. Each step
may be done again. The receipt comes last, so it never says more than is true.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from perdure.artifacts import CID
from perdure.artifacts.disk import take_in_time
from perdure.artifacts.entry import Sweep
from perdure.context.draft import Draft
from perdure.context.files import META, OWNER
from perdure.context.layouts.notes import NotesLayout
from perdure.context.nodes import Nodes
from perdure.context.reading import absent
from perdure.context.tenants import Deletions
from perdure.dataclass import dataclass, replace
from perdure.engine.derived import DerivedFiles
from perdure.engine.erasure_plan import (
    ErasurePlan,
    ErasurePlanner,
    ErasureReport,
    ErasureTask,
    ErasureTasks,
    ForgetReport,
    require_root,
)
from perdure.engine.hide import ForgetTarget, HiddenCounts, HidingPlan, hide, readable_node
from perdure.engine.namespaces import NamespaceManager
from perdure.engine.receipt import ErasureReceipt
from perdure.engine.trace import ErasureCutoff, KeySpan, Trace, removed_by, texts_in
from perdure.errors import (
    InvalidValueError,
    LockTimeout,
    NodeNotFoundError,
    PerdureError,
    explain,
)
from perdure.files import write_whole
from perdure.model import NodeStatus, RequestContext, Uri
from perdure.model.uri import MESSAGE
from perdure.model.values import JSON
from perdure.proofs.keys import SigningKey
from perdure.storage import Locator
from perdure.storage.history import Event
from perdure.storage.sweep import sweep
from perdure.storage.wrappers.recorded import Recorded

_BATCH = 250
_LOCK = "erasing-lock"
_PAUSE = 0.05


class Eraser:
    """Erases on behalf of somebody who may: history is one for all accounts, so that is ROOT."""

    def __init__(
        self,
        nodes: Nodes,
        derived: DerivedFiles,
        signing_key: Callable[[], SigningKey],
        tenants_on: Callable[[Recorded], NamespaceManager],
    ) -> None:
        self._nodes = nodes
        self._recorded = derived.recorded
        self._history = self._recorded.history
        self._derived = derived
        self._signing_key = signing_key
        self._tenants_on = tenants_on
        self._receipts = derived.folder / "receipts"
        self._planner = ErasurePlanner(nodes, self._history, derived, self._receipts)
        self._tasks = ErasureTasks(derived.folder / "erasing")

    # ------------------------------------------------------------ verbs
    def plan(self, uri: str, ctx: RequestContext) -> tuple[ErasurePlan, HiddenCounts]:
        """Say what would be erased. Nothing is changed; what others did by hand enters history."""
        require_root(ctx)
        sweep(self._recorded)
        task = self._planner.task(uri, ctx, "")
        hiding = HidingPlan(self._nodes, ctx, erased=True)
        hidden = hiding.plan(Draft(self._nodes, datetime.now(UTC)), self._planner.targets(task))
        sessions = {each for each in hiding.changed if Uri.parse(each).session}
        return self._planner.plan(task, ctx, sessions), hidden

    def erase(self, uri: str, ctx: RequestContext, reason: str = "") -> ErasureReport | None:
        """Erase a node, all that is in a folder, a session or a person; None if nothing is left.

        `ProofError` if no receipt could be signed, before anything is erased.
        """
        require_root(ctx)
        key = self._demand_key()
        with self._alone():
            self._finish_all(ctx, key)
            sweep(self._recorded)
            task = self._planner.task(uri, ctx, reason)
            if self._planner.is_nothing(task):
                return None
            self._tasks.begin(task)
            return self._do(task, ctx, key)

    def resume(self, ctx: RequestContext) -> list[ErasureReport]:
        """Finish the erasures that were begun and not ended; `LockTimeout` if another does."""
        if not self._tasks.begun():
            return []
        require_root(ctx)
        key = self._demand_key()
        with self._alone(seconds=0):
            return self._finish_all(ctx, key)

    def _finish_all(self, ctx: RequestContext, key: SigningKey) -> list[ErasureReport]:
        return [self._do(task, ctx, key) for task in self._tasks.begun()]

    @contextmanager
    def _alone(self, seconds: float = 10.0) -> Iterator[None]:
        held = take_in_time(partial(self._history.store.disk.lock, _LOCK), seconds, _PAUSE)
        if held is None:
            raise LockTimeout(
                "another process is erasing something of this memory just now. Nothing was "
                "changed. Fix: let it finish, then try again."
            )
        try:
            yield
        finally:
            held.release()

    def _demand_key(self) -> SigningKey:
        key = self._signing_key()
        key.sign(b"can a receipt be signed?")
        return key

    # ------------------------------------------------------------ doing it
    def _do(self, task: ErasureTask, ctx: RequestContext, key: SigningKey) -> ErasureReport:
        if targets := self._planner.targets(task):  # before they are gone and can't be known
            hide(self._nodes.because("erased"), targets, ctx, erased=True)
        self._remove(task, ctx)
        until = ErasureCutoff(task.id, task.begun)

        def chosen() -> frozenset[CID]:
            found = self._planner.trace(task.spans, until)
            return found.contents | self._planner.quoting(task)

        self._recorded.erase(chosen, f"erased: {task.reason}" if task.reason else "erased")
        found = self._with_sessions(task, self._planner.trace(task.spans, until))
        places = self._planner.places(found)
        derived = self._derived.erase(task.account_id, task.owners, places)
        erased = self._receipted(task, found, derived, key)
        self._tasks.end(task)
        return erased

    def _with_sessions(self, task: ErasureTask, found: Trace) -> Trace:
        """Return a trace with the versions elsewhere that were swept since this began."""
        swept = self._swept(task)
        events = [event for event in self._planner.events_of_users(task) if event.cid in swept]
        contents = found.contents | {event.cid for event in events if event.cid is not None}
        known = {event.position for event in found.versions}
        more = (event for event in events if event.position not in known)
        return replace(found, versions=(*found.versions, *more), contents=contents)

    def _swept(self, task: ErasureTask) -> set[CID]:
        return {
            cid
            for logged in self._history.store.log(after=task.begun)
            if isinstance(logged.entry, Sweep)
            for cid in logged.entry.cids
        }

    def _remove(self, task: ErasureTask, ctx: RequestContext) -> None:
        """Remove the texts; what came since they were removed before is somebody's anew."""
        removed = removed_by(self._history.changes(after=task.begun), task.id)
        first = min(removed.values(), default=None)
        marked = self._recorded.because(actor=task.actor, reason=task.reason, erasure=task.id)
        kind, _, name = task.owner_space.partition(":")
        is_begun = Deletions(self._recorded).is_begun(task.account_id, task.owner_space)
        if name and (first is None or is_begun):
            tenants = self._tenants_on(marked)
            delete = tenants.delete_user if kind == "user" else tenants.delete_agent
            with suppress(NodeNotFoundError):  # only history knows of them
                delete(task.account_id, name, ctx)
        texts = (text for text in texts_in(task.spans, self._nodes) if self._was_there(text, first))
        while batch := list(islice(texts, _BATCH)):
            if isinstance(layout := self._recorded.inner, NotesLayout):
                for folder in {text.parent.key for text in batch}:
                    layout.remove_copies(folder)
            _remove(marked, batch)
        self._clear(task.spans)

    def _was_there(self, text: Locator, first: int | None) -> bool:
        """Whether a text was there when the first was removed, if one was."""
        if first is None:
            return True
        now = self._history.current(text)
        return now is None or now.position < first

    def _clear(self, spans: Iterable[KeySpan]) -> None:
        for span in spans:
            self._clear_below(Locator(span.prefix), deep=span.deep)
            place = Uri.of_key(span.prefix)
            if place is not None:
                with suppress(InvalidValueError):
                    self._nodes.clear(place)

    def _clear_below(self, folder: Locator, *, deep: bool) -> None:
        with suppress(PerdureError, OSError):  # what others put there since keeps it
            if not self._recorded.info(folder).is_dir:
                return
            for child in self._recorded.list(folder) if deep else ():
                self._clear_below(child, deep=True)
            self._recorded.remove(folder)

    # ------------------------------------------------------------ the receipt
    def _receipted(
        self, task: ErasureTask, found: Trace, derived: Mapping[str, int], key: SigningKey
    ) -> ErasureReport:
        swept = self._swept(task)
        contents = tuple(sorted(cid for cid in found.contents if cid in swept))
        versions = [event for event in found.versions if event.cid in swept]
        kept = self._planner.shared(found, task.account_id)
        said: dict[str, JSON] = {
            **_told(task, self._history.store.history),
            "versions": [*map(_version, versions)],
            "contents": [str(cid) for cid in contents],
            "kept": [{"cid": str(each.cid), "key": each.key} for each in kept],
            "withheld": [*map(_version, self._planner.withheld(found))],
            "moved": [{"from": old, "to": new} for old, new in found.moved],
            "derived": dict(derived),
        }
        receipt = ErasureReceipt.signed(said, self._history, key)
        path = self._receipts / f"{task.begun:012d}-{task.id}.json"
        write_whole(path, receipt.to_text().encode())
        counted = len(versions), contents, kept, found.moved
        return ErasureReport(task.uris, task.owner_space, *counted, derived, receipt, path)


def _version(event: Event) -> JSON:
    return {"key": event.key, "position": event.position, "cid": str(event.cid)}


def _told(task: ErasureTask, history: bytes) -> dict[str, JSON]:
    return {
        "history": history.hex(),
        "erasure": task.id,
        "uris": list(task.uris),
        "owner_space": task.owner_space,
        "by": task.actor,
        "reason": task.reason,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _remove(backend: Recorded, batch: Sequence[Locator]) -> None:
    """Remove texts in one commit, metas first, owners last; what is no text goes alone."""
    texts, others = [], []
    for each in batch:
        try:
            backend.read(each)
        except FileNotFoundError:
            continue
        except ValueError:
            others.append(each)
        else:
            texts.append(each)
    backend.commit(dict.fromkeys(sorted(texts, key=_when)))
    for each in others:
        with suppress(FileNotFoundError):
            backend.remove(each)


def _when(text: Locator) -> int:
    """Return in which turn a text goes, so that nobody sees half of a node, or one of nobody's."""
    return 0 if text.name == META else 1 + (text.name == OWNER)


@dataclass(frozen=True, slots=True)
class Forgetting:
    nodes: Nodes
    erasing: Callable[[], Eraser]
    request: RequestContext

    def archive(self, uri: str, reason: str, *, dry_run: bool) -> ForgetReport:
        """Archive what is at a place, as `Memory.forget` describes it, in one commit."""
        said = self._said(uri)
        place = said[0].place if said else self.nodes.reach.changed(uri, self.request)
        now, before = [], []
        for each in () if said else [place] if place.is_node else list(self._below(place)):
            if self._is_archived(each):
                before.append(each)
            elif place.is_node or self.nodes.is_active(each):
                now.append(each)
        if not now and not before and not said:
            raise absent(place)
        hiding, hidden = HidingPlan(self.nodes, self.request), HiddenCounts()

        def plan(draft: Draft) -> None:
            nonlocal hiding, hidden
            for each in now:
                self.nodes.plan_archive(draft, each)
            hiding = HidingPlan(self.nodes, self.request)
            hidden = hiding.plan(draft, said or self._targets((*now, *before)))
            if said and hidden.statements and not hiding.changed | hiding.untouched:
                raise NodeNotFoundError(
                    f"no session and no memory says {said[0].texts[0][:80]!a}. "
                    "Fix: use the words that it was said in; `perdure recall` finds them."
                )

        if dry_run:
            plan(Draft(self.nodes, datetime.now(UTC)))
        else:
            nodes = self.nodes.because(reason)
            nodes.change(plan, self.request)
            late = hide(nodes, said or self._targets((*now, *before)), self.request, hiding)
            hidden += replace(late, statements=0)
        also = sorted(each for each in hiding.changed if not Uri.parse(each).session)
        archived, known = (tuple(map(str, each)) for each in (now, before))
        left = tuple(sorted(hiding.untouched))
        return ForgetReport(archived, known, hidden=hidden, also=tuple(also), untouched=left)

    def _said(self, what: str) -> list[ForgetTarget]:
        """Return what a message states, or what words say; nothing for a URI."""
        if MESSAGE.fullmatch(what):
            stored = self.nodes.load(self.nodes.reach.changed(what.partition("#")[0], self.request))
            return [
                ForgetTarget.of_message(what, self.nodes, [stored.node.content] if stored else [])
            ]
        user = Uri(self.request.account_id, ("users", self.request.user_id))
        words = " ".join(what.split())
        return [ForgetTarget(user, (words,), name=words)] if " " in words else []

    def _targets(self, places: Iterable[Uri]) -> list[ForgetTarget]:
        found = filter(None, map(self.nodes.load, places))
        return [ForgetTarget.of(stored.node) for stored in found]

    def erase(self, uri: str, reason: str, *, dry_run: bool) -> ForgetReport:
        erasing = self.erasing()
        try:
            plan, hidden = erasing.plan(uri, self.request)
            if dry_run or plan.is_empty:
                return ForgetReport(plan=plan, hidden=hidden)
            erased = erasing.erase(uri, self.request, reason)
        except PerdureError:
            raise
        except OSError as error:  # of what is beside the texts: notes, receipts, derived data
            raise explain(error, "what is kept beside the texts", str(error.filename)) from error
        return ForgetReport(plan=plan, erased=erased, hidden=hidden)

    def _below(self, folder: Uri) -> Iterator[Uri]:
        reach = self.nodes.reach
        for place in self.nodes.walk(folder):
            if self.request.may_change(place) and reach.may_see(place, self.request):
                yield place

    def _is_archived(self, place: Uri) -> bool:
        stored = readable_node(self.nodes, place)
        return stored is not None and stored.meta.status is NodeStatus.ARCHIVED
