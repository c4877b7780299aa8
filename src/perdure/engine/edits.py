"""Edits made outside Perdure: found by a check of all texts, and recorded as versions."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from perdure.artifacts.cid import Hash
from perdure.context.node_files import ARCHIVED, CONTENT, META
from perdure.engine.recall.result import Hint, HintKind
from perdure.errors import StorageError, TextsGoneError
from perdure.model import RequestContext, Role, Uri
from perdure.storage import Locator, StorageBackend
from perdure.storage.changes import copied_name
from perdure.storage.contract import Layout
from perdure.storage.stamps import (
    UNKNOWN,
    FileFilter,
    ScanResult,
    StampRow,
    Stamps,
    StampTable,
    batches,
    find_changes,
    save_scan,
)

if TYPE_CHECKING:
    from perdure.engine.services import Services
    from perdure.storage.committer import Discrepancy
    from perdure.storage.text_history import History

NODES = Locator("accounts")
"""The directory of all nodes in the layout `agfs`."""
WORTH_WATCHING = 0.0002
"""Seconds. If a check takes longer, a watcher replaces the following ones in this process."""
INLINE_TEXTS = 2_000
"""Check at most this many texts while an agent waits, which takes 8 ms; more, in the background."""
_OTHER_HASH = b"-"


class EditCheck(NamedTuple):
    recorded: int = 0
    """How many edited texts were recorded as versions."""
    left: int = 0
    """How many texts were not checked and may have been edited."""
    hints: tuple[Hint, ...] = ()


def notice_edits(
    services: "Services", *, seconds: float | None, first_waits: bool = False
) -> EditCheck:
    """Record edits of nodes since the last check, within a time limit.

    With `first_waits`, the first check of a store has no limit. A text that is not empty and not a
    node yet becomes one. If a watcher reports no change, nothing is checked.
    """
    if seconds is not None and (unchecked := _unchecked(services, seconds)):
        return EditCheck(0, 1, (unchecked,))
    watcher = services.watcher
    changes = None if watcher is None else watcher.changes()
    if watcher is not None and watcher.is_settled(changes):
        return EditCheck()
    began, now = time.monotonic(), time.time()
    files, seen = services.recorded, services.seen
    try:
        known = seen.stamps()
        if first_waits and not any(known.values()):
            seconds = None
        deadline = None if seconds is None else began + seconds
        checked = look_for_edits(files.inner, files.history, seen, deadline, known)
        is_other = checked.found or checked.unreadable[checked.closed :]
        recorded = len(record(services, checked)[0]) if is_other else 0
    except TextsGoneError as error:
        return EditCheck(0, 1, (Hint(HintKind.TEXTS_GONE, str(error)),))
    except StorageError as error:
        return EditCheck(0, 1, (unrecorded_hint(error),))
    if watcher is None and time.monotonic() - began > WORTH_WATCHING:
        services.start_watcher(lambda: checked_folders(files.inner))
    with suppress(StorageError):  # then the next check looks at the same texts again
        save_scan(services.seen, checked, now if seconds is None else None)
    if not checked.left and not checked.closed:
        if watcher is not None and changes is not None:
            watcher.settle(changes)
        return EditCheck(recorded)
    text = (
        f"{checked.closed:,} folder{'s' * (checked.closed > 1)} can't be read, such as "
        f"{checked.unreadable[0]!a}. Fix: let this user read it, or add it to ignore in [vault]"
        if checked.closed
        else f"{checked.left:,} texts were not checked for edits within {seconds:g} s. "
        "Fix: ask again, which continues there; or run `perdure worker --once`"
    )
    return EditCheck(
        recorded, checked.left + checked.closed, (Hint(HintKind.EDITS_UNCHECKED, text),)
    )


def _unchecked(services: "Services", seconds: float) -> Hint | None:
    """Return why there is no check for edits before this answer; None if there is one."""
    if seconds == 0:
        why = "there was no check for edits. Fix: set check_seconds in [index] of the config file"
        return Hint(HintKind.EDITS_UNCHECKED, why)
    return (
        background_hint(services.seen)
        if services.checks_in_background and has_many(services)
        else None
    )


def background_hint(seen: StampTable) -> Hint:
    last_full_scan = seen.last_full_scan
    since = (
        f" since {datetime.fromtimestamp(last_full_scan, UTC):%Y-%m-%d %H:%M} UTC"
        if last_full_scan
        else ""
    )
    text = f"a background process checks for edits made outside Perdure{since}"
    return Hint(HintKind.EDITS_UNCHECKED, f"{text}. Fix: none needed; ask again after a moment")


def has_many(services: "Services") -> bool:
    """Whether there are more texts than `INLINE_TEXTS`; reads none of them."""
    with suppress(StorageError):  # the disk may not be writable
        known = services.seen.size(INLINE_TEXTS + 1) or services.recorded.history.position()
        return known > INLINE_TEXTS
    return False


def unrecorded_hint(error: StorageError) -> Hint:
    text = f"an edit made outside Perdure could not be recorded: {error}"
    return Hint(HintKind.EDIT_NOT_RECORDED, text)


def forget_gone(services: "Services") -> None:
    """Accept that texts are gone, so that no later check reports them."""
    backend, history, now = services.recorded.inner, services.recorded.history, time.time()
    save_scan(
        services.seen, look_for_edits(backend, history, services.seen, accept_removals=True), now
    )


def look_for_edits(  # noqa: PLR0913 - what is compared with what, and within which bounds
    backend: StorageBackend,
    history: "History",
    seen: StampTable,
    deadline: float | None = None,
    known: Stamps | None = None,
    *,
    accept_removals: bool = False,
) -> ScanResult:
    """Return the edits of nodes since the last check; records nothing."""
    if isinstance(backend, Layout):
        return look_at_notes(backend, seen, deadline, known, accept_removals=accept_removals)

    def written(keys: Sequence[str]) -> Mapping[str, bytes | None]:
        contents = history.store.catalogue.contents(list(keys), history.position())
        return {
            key: None if cid is None else cid.digest if cid.hash is Hash.SHA2_256 else _OTHER_HASH
            for key, cid in contents.items()
        }

    known = seen.stamps() if known is None else known
    if not any(known.values()):  # a new table must miss the texts that are gone already
        names = history.store.catalogue.names(f"{NODES.key}/", history.position())
        digests = written([key for key in names if not _is_hidden(key.rpartition("/")[0])])
        with suppress(StorageError):  # the disk may not be writable
            seen.put(StampRow(key, UNKNOWN, digest) for key, digest in digests.items() if digest)
        known = None
    return find_changes(
        backend,
        seen,
        directory=NODES,
        deadline=deadline,
        skip=_is_hidden,
        expected=written,
        known=known,
        accept_removals=accept_removals,
    )


def checked_folders(backend: StorageBackend) -> Iterator[str]:
    """Yield the keys of the folders whose texts are checked for edits."""
    if isinstance(backend, Layout):
        found = backend.inner.scan(skip=backend.skips)
    else:
        found = backend.scan(NODES, skip=_is_hidden)
    return (listing.directory.key for listing in found)


def look_at_notes(
    layout: Layout,
    seen: StampTable,
    deadline: float | None = None,
    known: Stamps | None = None,
    *,
    accept_removals: bool = False,
) -> ScanResult:
    """As `look_for_edits`, where a layout knows what was last written."""
    known = seen.stamps() if known is None else known
    if not any(known.values()):
        with suppress(StorageError):  # as above
            seen.put(StampRow(path, UNKNOWN, digest) for path, digest in layout.known())
        known = None

    def expected(paths: Sequence[str]) -> Mapping[str, bytes | None]:
        return {row.key: row.digest for row in seen.rows(paths)} | layout.expected(paths)

    return find_changes(
        layout.inner,
        seen,
        deadline=deadline,
        skip=layout.skips,
        file_filter=FileFilter(layout.is_note, layout.rule),
        expected=expected,
        known=known,
        accept_removals=accept_removals,
    )


def _is_hidden(directory: str) -> bool:
    return any(part.startswith(".") and part != ARCHIVED for part in directory.split("/"))


def record(services: "Services", checked: ScanResult) -> "tuple[list[Discrepancy], list[Uri]]":
    """Record edits as versions; return them, and the places of texts that became nodes."""
    noticed: list[Discrepancy] = []
    layout = services.recorded.inner
    laid_out = layout if isinstance(layout, Layout) else None
    if copies := [path for path in checked.found if copied_name(path.rpartition("/")[2])]:
        from perdure.engine.conflicts import unite  # noqa: PLC0415 - few have such copies

        unite(services.recorded, copies)
    paths = (*checked.found, *checked.unreadable[checked.closed :])
    found = list(laid_out.logical(paths) if laid_out else map(Locator, checked.found))
    same = set(found)
    for locators in batches(found):
        noticed += services.recorded.notice(locators)
    same.difference_update(each.locator for each in noticed)
    if laid_out is not None:  # every note is a node
        _index_again(services, same)
        return noticed, []
    written = (*checked.new, *checked.changed)
    return noticed, make_nodes(services, (key for key in written if key.endswith(f"/{CONTENT}")))


def _index_again(services: "Services", texts: Iterable[Locator]) -> None:
    """Index nodes whose file was renamed: the index may have read them during the rename."""
    places: dict[str, set[Uri]] = {}
    for text in texts:
        place = Uri.of_key(text.parent.key) if text.name == CONTENT else None
        if place is not None and place.is_node and services.reader.is_active(place):
            places.setdefault(place.account, set()).add(place)
    for account, renamed in places.items():
        services.indexes.current(account).follower.catch_up(account, also=renamed)


def make_nodes(services: "Services", contents: Iterable[str]) -> list[Uri]:
    """Make nodes of the contents that have no meta and are not empty; return their places."""
    places = list[Uri]()
    for key in contents:
        place = Uri.of_key(key.rpartition("/")[0])
        if place is not None and place.is_node and services.reader.text_at(place, META) is None:
            text = services.reader.text_at(place, CONTENT)
            if isinstance(text, str) and text.strip():
                places.append(place)
    for place in places:
        caller = RequestContext(place.account, "worker", role=Role.ADMIN)
        services.repair.make_nodes([place], caller)
    return places
