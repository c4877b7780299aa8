"""Erase files, their versions in history and what is derived from them; then write the receipt.

A task is stored before the first step, and removed after the receipt is written. If the process is
killed in between, the next process that recalls, saves or forgets continues. Each step can be
repeated. The receipt comes last, so it never states more than is true.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

from perdure.artifacts import CID
from perdure.artifacts.disk import acquire_within
from perdure.artifacts.entry import Sweep
from perdure.context.node_files import META, OWNER
from perdure.context.nodes import NodeDraft, Nodes
from perdure.context.notes import NotesLayout
from perdure.context.reader import not_found
from perdure.context.tenancy import Deletions
from perdure.dataclass import asdict, replace
from perdure.engine.erasure_plan import (
    DerivedFiles,
    ErasurePlan,
    ErasurePlanner,
    ErasureReport,
    ErasureTask,
    ForgetReport,
    require_root,
)
from perdure.engine.hide import ForgetTarget, HiddenCounts, HidingPlan, hide, readable_node
from perdure.engine.namespaces import NamespaceManager
from perdure.engine.receipt import ErasureReceipt
from perdure.engine.trace import ErasureCutoff, KeySpan, Trace, removed_by, texts_in
from perdure.errors import (
    DamageError,
    InvalidValueError,
    LockTimeout,
    NodeNotFoundError,
    PerdureError,
    storage_error,
)
from perdure.files import write_whole
from perdure.model import NodeStatus, RequestContext, Uri
from perdure.model.uri import MESSAGE
from perdure.model.values import JSON
from perdure.proofs.signing_keys import SigningKey
from perdure.storage import Locator
from perdure.storage.reconciliation import record_external_edits
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import Event

_BATCH = 250
_LOCK = "erasing-lock"
_PAUSE = 0.05
_SUFFIX = ".json"


class Eraser:
    """Erases for a caller with the role ROOT, because all accounts share one history."""

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
        self._tasks = derived.folder / "erasing"

    # ------------------------------------------------------------ verbs
    def plan(self, uri: str, ctx: RequestContext) -> tuple[ErasurePlan, HiddenCounts]:
        """Return what would be erased. Only edits by hand are recorded; nothing else changes."""
        require_root(ctx)
        record_external_edits(self._recorded)
        task = self._planner.task(uri, ctx, "")
        hiding = HidingPlan(self._nodes, ctx, erased=True)
        hidden = hiding.plan(NodeDraft(self._nodes, datetime.now(UTC)), self._planner.targets(task))
        sessions = {each for each in hiding.changed if Uri.parse(each).session}
        return self._planner.plan(task, ctx, sessions), hidden

    def erase(self, uri: str, ctx: RequestContext, reason: str = "") -> ErasureReport | None:
        """Erase a node, a folder, a session or a user; return None if nothing is left of it.

        Raises `ProofError` before anything is erased, if no receipt can be signed.
        """
        require_root(ctx)
        key = self._demand_key()
        with self._alone():
            self._finish_all(ctx, key)
            record_external_edits(self._recorded)
            task = self._planner.task(uri, ctx, reason)
            if self._planner.is_nothing(task):
                return None
            begin_task(self._tasks, task)
            return self._do(task, ctx, key)

    def resume(self, ctx: RequestContext) -> list[ErasureReport]:
        """Finish interrupted erasures; raise `LockTimeout` if another process is erasing."""
        if not _begun_tasks(self._tasks):
            return []
        require_root(ctx)
        key = self._demand_key()
        with self._alone(seconds=0):
            return self._finish_all(ctx, key)

    def _finish_all(self, ctx: RequestContext, key: SigningKey) -> list[ErasureReport]:
        return [self._do(task, ctx, key) for task in _begun_tasks(self._tasks)]

    @contextmanager
    def _alone(self, seconds: float = 10.0) -> Iterator[None]:
        lock = acquire_within(partial(self._history.store.disk.lock, _LOCK), seconds, _PAUSE)
        if lock is None:
            raise LockTimeout(
                "another process is erasing something of this memory. Nothing was changed. "
                "Fix: wait until it has finished, then try again."
            )
        try:
            yield
        finally:
            lock.release()

    def _demand_key(self) -> SigningKey:
        key = self._signing_key()
        key.sign(b"can a receipt be signed?")
        return key

    # ------------------------------------------------------------ the steps
    def _do(self, task: ErasureTask, ctx: RequestContext, key: SigningKey) -> ErasureReport:
        if targets := self._planner.targets(task):  # before the texts that define them are gone
            hide(self._nodes.because("erased"), targets, ctx, erased=True)
        self._remove(task, ctx)
        cutoff = ErasureCutoff(task.id, task.begun)

        def contents() -> frozenset[CID]:
            found = self._planner.trace(task.spans, cutoff)
            return found.contents | self._planner.quoting(task)

        self._recorded.erase(contents, f"erased: {task.reason}" if task.reason else "erased")
        found = self._with_sessions(task, self._planner.trace(task.spans, cutoff))
        places = self._planner.places(found)
        derived = self._derived.erase(task.account_id, task.owners, places)
        erased = self._receipted(task, found, derived, key)
        _end_task(self._tasks, task)
        return erased

    def _with_sessions(self, task: ErasureTask, found: Trace) -> Trace:
        """Return a trace that includes the versions elsewhere that this erasure removed."""
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
        """Remove the texts, but not those that were saved after an earlier attempt."""
        removed = removed_by(self._history.changes(after=task.begun), task.id)
        first = min(removed.values(), default=None)
        marked = self._recorded.because(actor=task.actor, reason=task.reason, erasure=task.id)
        kind, _, name = task.owner_space.partition(":")
        is_begun = Deletions(self._recorded).is_begun(task.account_id, task.owner_space)
        if name and (first is None or is_begun):
            tenants = self._tenants_on(marked)
            delete = tenants.delete_user if kind == "user" else tenants.delete_agent
            with suppress(NodeNotFoundError):  # it exists only in history
                delete(task.account_id, name, ctx)
        texts = (text for text in texts_in(task.spans, self._nodes) if self._is_older(text, first))
        while batch := list(islice(texts, _BATCH)):
            if isinstance(layout := self._recorded.inner, NotesLayout):
                for folder in {text.parent.key for text in batch}:
                    layout.remove_copies(folder)
            _remove(marked, batch)
        self._clear(task.spans)

    def _is_older(self, text: Locator, first: int | None) -> bool:
        """Return whether a text is older than position `first`; True without one."""
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
        with suppress(PerdureError, OSError):  # a folder with new files stays
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
        shared = self._planner.shared(found, task.account_id)
        facts: dict[str, JSON] = {
            **_task_facts(task, self._history.store.history),
            "versions": [*map(_version, versions)],
            "contents": [str(cid) for cid in contents],
            "kept": [{"cid": str(each.cid), "key": each.key} for each in shared],
            "withheld": [*map(_version, self._planner.withheld(found))],
            "moved": [{"from": old, "to": new} for old, new in found.moved],
            "derived": dict(derived),
        }
        receipt = ErasureReceipt.signed(facts, self._history, key)
        path = self._receipts / f"{task.begun:012d}-{task.id}.json"
        write_whole(path, receipt.to_text().encode())
        counts = len(versions), contents, shared, found.moved
        return ErasureReport(task.uris, task.owner_space, *counts, derived, receipt, path)


# ---------------------------------------------------------------- tasks
def begin_task(folder: Path, task: ErasureTask) -> None:
    content = json.dumps(asdict(task), indent=1).encode()
    write_whole(folder / f"{task.id}{_SUFFIX}", content)


def _end_task(folder: Path, task: ErasureTask) -> None:
    (folder / f"{task.id}{_SUFFIX}").unlink(missing_ok=True)
    with suppress(OSError):  # other tasks are stored there
        folder.rmdir()


def _begun_tasks(folder: Path) -> list[ErasureTask]:
    found = map(_read_task, sorted(folder.glob(f"*{_SUFFIX}")))
    return sorted(found, key=lambda task: task.begun)


def _read_task(path: Path) -> ErasureTask:
    try:
        fields = json.loads(path.read_bytes())
        spans = fields.pop("spans")
        fields |= {name: tuple(fields[name]) for name in ("uris", "owners")}
        return ErasureTask(spans=tuple(KeySpan(**each) for each in spans), **fields)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise DamageError(
            f"{str(path)!a} is not a task of an erasure: {error}. "
            "Fix: remove it, and repeat the erasure."
        ) from error


def _version(event: Event) -> JSON:
    return {"key": event.key, "position": event.position, "cid": str(event.cid)}


def _task_facts(task: ErasureTask, history: bytes) -> dict[str, JSON]:
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
    """Remove texts in one commit, metas first, owners last; then the files that are not texts."""
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
    backend.commit(dict.fromkeys(sorted(texts, key=_removal_order)))
    for each in others:
        with suppress(FileNotFoundError):
            backend.remove(each)


def _removal_order(text: Locator) -> int:
    """Return the order of removal: no reader sees a part of a node, or a node without owner."""
    return 0 if text.name == META else 1 + (text.name == OWNER)


def forget(
    nodes: Nodes, what: str, ctx: RequestContext, reason: str, *, dry_run: bool
) -> ForgetReport:
    """Archive a node or folder, or hide a message or words, in one commit (`Memory.forget`)."""
    words = _words_target(nodes, what, ctx)
    place = words[0].place if words else nodes.reach.require_writable(what, ctx)
    now, before = [], []
    for each in () if words else [place] if place.is_node else list(_below(nodes, place, ctx)):
        stored = readable_node(nodes, each)
        if stored is not None and stored.meta.status is NodeStatus.ARCHIVED:
            before.append(each)
        elif place.is_node or nodes.is_active(each):
            now.append(each)
    if not now and not before and not words:
        raise not_found(place)
    hiding, hidden = HidingPlan(nodes, ctx), HiddenCounts()

    def targets() -> list[ForgetTarget]:
        found = filter(None, map(nodes.load, (*now, *before)))
        return words or [ForgetTarget.of(stored.node) for stored in found]

    def plan(draft: NodeDraft) -> None:
        nonlocal hiding, hidden
        for each in now:
            nodes.plan_archive(draft, each)
        hiding = HidingPlan(nodes, ctx)
        hidden = hiding.plan(draft, targets())
        if words and hidden.statements and not hiding.changed | hiding.untouched:
            raise NodeNotFoundError(
                f"no session and no memory says {words[0].texts[0][:80]!a}. "
                "Fix: use the exact words; `perdure recall` finds them."
            )

    if dry_run:
        plan(NodeDraft(nodes, datetime.now(UTC)))
    else:
        because = nodes.because(reason)
        because.change(plan, ctx)
        late = hide(because, targets(), ctx, hiding)
        hidden += replace(late, statements=0)
    also = sorted(each for each in hiding.changed if not Uri.parse(each).session)
    archived, known = (tuple(map(str, each)) for each in (now, before))
    untouched = tuple(sorted(hiding.untouched))
    return ForgetReport(archived, known, hidden=hidden, also=tuple(also), untouched=untouched)


def _words_target(nodes: Nodes, what: str, ctx: RequestContext) -> list[ForgetTarget]:
    """Return the target for a message or for words; an empty list for a URI."""
    if MESSAGE.fullmatch(what):
        stored = nodes.load(nodes.reach.require_writable(what.partition("#")[0], ctx))
        return [ForgetTarget.of_message(what, nodes, [stored.node.content] if stored else [])]
    user = Uri(ctx.account_id, ("users", ctx.user_id))
    words = " ".join(what.split())
    return [ForgetTarget(user, (words,), name=words)] if " " in words else []


def _below(nodes: Nodes, folder: Uri, ctx: RequestContext) -> Iterator[Uri]:
    for place in nodes.walk(folder):
        if ctx.may_change(place) and nodes.reach.may_see(place, ctx):
            yield place


def erase(
    eraser: Eraser, uri: str, ctx: RequestContext, reason: str, *, dry_run: bool
) -> ForgetReport:
    """Erase what is at a URI, unless nothing is left of it; in a dry run, only plan it."""
    try:
        plan, hidden = eraser.plan(uri, ctx)
        if dry_run or plan.is_empty:
            return ForgetReport(plan=plan, hidden=hidden)
        erased = eraser.erase(uri, ctx, reason)
    except PerdureError:
        raise
    except OSError as error:  # of files beside the texts: tasks, receipts, derived files
        raise storage_error(error, "the files beside the texts", str(error.filename)) from error
    return ForgetReport(plan=plan, erased=erased, hidden=hidden)
