"""Edits that were made outside Perdure, recorded before anything is answered."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from perdure.artifacts.cid import Hash
from perdure.context.files import ARCHIVED, CONTENT, META
from perdure.engine.recall.result import Hint, HintKind
from perdure.errors import StorageError, TextsGoneError
from perdure.model import RequestContext, Role, Uri
from perdure.storage import Locator, StorageBackend
from perdure.storage.conflicts import copied_name
from perdure.storage.contract import Layout
from perdure.storage.seen import UNKNOWN, Checked, Row, Seen, Stamps, Taking, batches, check, settle

if TYPE_CHECKING:
    from perdure.engine.parts import Parts
    from perdure.storage.history import History
    from perdure.storage.joint import Discrepancy

NODES = Locator("accounts")
"""Where all texts of nodes are, in the layout `agfs`."""
WORTH_WATCHING = 0.0002
"""Seconds of a check, above which a process that asks again has a watcher instead."""
INLINE_TEXTS = 2_000
"""So many texts are looked at while an agent waits, which takes 8 ms; more, in the background."""
_OTHER_HASH = b"-"


class Noticed(NamedTuple):
    recorded: int = 0
    """How many texts others had written, which are versions now."""
    left: int = 0
    """How many texts may have been edited without anybody having looked."""
    hints: tuple[Hint, ...] = ()


def notice_edits(parts: "Parts", *, seconds: float | None, first_waits: bool = False) -> Noticed:
    """Record what others wrote to nodes since the last check, as far as the time allows.

    With `first_waits`, the first look at a store takes the time that it takes. A text that says
    something and is not a node yet becomes one. Where a watcher knows that nothing changed, nothing
    is looked at.
    """
    if seconds is not None and (unchecked := _unchecked(parts, seconds)):
        return Noticed(0, 1, (unchecked,))
    watcher = parts.watcher
    changes = None if watcher is None else watcher.changes()
    if watcher is not None and watcher.is_settled(changes):
        return Noticed()
    began, now = time.monotonic(), time.time()
    files, seen = parts.recorded, parts.seen
    try:
        known = seen.stamps()
        if first_waits and not any(known.values()):
            seconds = None
        deadline = None if seconds is None else began + seconds
        checked = look_for_edits(files.inner, files.history, seen, deadline, known)
        is_other = checked.found or checked.unreadable[checked.closed :]
        recorded = len(record(parts, checked)[0]) if is_other else 0
    except TextsGoneError as error:
        return Noticed(0, 1, (Hint(HintKind.TEXTS_GONE, str(error)),))
    except StorageError as error:
        return Noticed(0, 1, (unrecorded(error),))
    if watcher is None and time.monotonic() - began > WORTH_WATCHING:
        parts.keep_watch(lambda: folders(files.inner))
    with suppress(StorageError):  # then the next check looks at the same texts again
        settle(parts.seen, checked, now if seconds is None else None)
    if not checked.left and not checked.closed:
        if watcher is not None and changes is not None:
            watcher.settle(changes)
        return Noticed(recorded)
    text = (
        f"{checked.closed:,} folder{'s' * (checked.closed > 1)} may not be read, such as "
        f"{checked.unreadable[0]!a}. Fix: let this user read it, or name it in ignore of [vault]"
        if checked.closed
        else f"{checked.left:,} texts were not looked at for edits within {seconds:g} s. "
        "Fix: ask again, which goes on there; or run `perdure worker --once`"
    )
    return Noticed(recorded, checked.left + checked.closed, (Hint(HintKind.EDITS_UNCHECKED, text),))


def _unchecked(parts: "Parts", seconds: float) -> Hint | None:
    """Return why edits are not looked for before this answer; None if they are."""
    if seconds == 0:
        why = "edits were not looked for. Fix: set check_seconds in [index] of the config file"
        return Hint(HintKind.EDITS_UNCHECKED, why)
    return left_to_background(parts.seen) if parts.leaves_checks and has_many(parts) else None


def left_to_background(seen: Seen) -> Hint:
    looked = seen.looked
    since = f" since {datetime.fromtimestamp(looked, UTC):%Y-%m-%d %H:%M} UTC" if looked else ""
    what = f"edits made outside Perdure{since} are being looked for"
    return Hint(
        HintKind.EDITS_UNCHECKED, f"{what}. Fix: none needed; a moment later they are known"
    )


def has_many(parts: "Parts") -> bool:
    """Whether there are more texts than are looked at while an agent waits; none is read for it."""
    with suppress(StorageError):  # as where the disk can't be written
        known = parts.seen.size(INLINE_TEXTS + 1) or parts.recorded.history.position()
        return known > INLINE_TEXTS
    return False


def unrecorded(error: StorageError) -> Hint:
    text = f"an edit made outside Perdure could not be recorded: {error}"
    return Hint(HintKind.EDIT_NOT_RECORDED, text)


def forget_gone(parts: "Parts") -> None:
    """Let no later check ask about the texts that are gone: their owner accepted that."""
    backend, history, now = parts.recorded.inner, parts.recorded.history, time.time()
    settle(parts.seen, look_for_edits(backend, history, parts.seen, accept_removals=True), now)


def look_for_edits(  # noqa: PLR0913 - what is compared with what, and within which bounds
    backend: StorageBackend,
    history: "History",
    seen: Seen,
    deadline: float | None = None,
    known: Stamps | None = None,
    *,
    accept_removals: bool = False,
) -> Checked:
    """Return what others wrote to nodes since the last check; nothing is recorded."""
    if isinstance(backend, Layout):
        return look_at_notes(backend, seen, deadline, known, accept_removals=accept_removals)

    def written(keys: Sequence[str]) -> Mapping[str, bytes | None]:
        contents = history.store.catalogue.contents(list(keys), history.position())
        return {
            key: None if cid is None else cid.digest if cid.hash is Hash.SHA2_256 else _OTHER_HASH
            for key, cid in contents.items()
        }

    known = seen.stamps() if known is None else known
    if not any(known.values()):  # so that texts are missed that went before it was made
        names = history.store.catalogue.names(f"{NODES.key}/", history.position())
        digests = written([key for key in names if not _is_hidden(key.rpartition("/")[0])])
        with suppress(StorageError):  # as where the disk can't be written
            seen.put(Row(key, UNKNOWN, digest) for key, digest in digests.items() if digest)
        known = None
    return check(
        backend,
        seen,
        directory=NODES,
        deadline=deadline,
        skip=_is_hidden,
        expected=written,
        known=known,
        accept_removals=accept_removals,
    )


def folders(backend: StorageBackend) -> Iterator[str]:
    """Yield the keys of the folders whose texts are looked at for edits."""
    if isinstance(backend, Layout):
        found = backend.inner.scan(skip=backend.skips)
    else:
        found = backend.scan(NODES, skip=_is_hidden)
    return (listing.directory.key for listing in found)


def look_at_notes(
    layout: Layout,
    seen: Seen,
    deadline: float | None = None,
    known: Stamps | None = None,
    *,
    accept_removals: bool = False,
) -> Checked:
    """As `look_for_edits`, where a layout tells what was last written."""
    known = seen.stamps() if known is None else known
    if not any(known.values()):
        with suppress(StorageError):  # as above
            seen.put(Row(path, UNKNOWN, digest) for path, digest in layout.known())
        known = None

    def expected(paths: Sequence[str]) -> Mapping[str, bytes | None]:
        return {row.key: row.digest for row in seen.rows(paths)} | layout.expected(paths)

    return check(
        layout.inner,
        seen,
        deadline=deadline,
        skip=layout.skips,
        takes=Taking(layout.is_note, layout.rule),
        expected=expected,
        known=known,
        accept_removals=accept_removals,
    )


def _is_hidden(directory: str) -> bool:
    return any(part.startswith(".") and part != ARCHIVED for part in directory.split("/"))


def record(parts: "Parts", checked: Checked) -> "tuple[list[Discrepancy], list[Uri]]":
    """Let edits become versions; return them, and where texts without a meta were to be nodes."""
    noticed: list[Discrepancy] = []
    layout = parts.recorded.inner
    laid_out = layout if isinstance(layout, Layout) else None
    if copies := [path for path in checked.found if copied_name(path.rpartition("/")[2])]:
        from perdure.engine.conflict_copies import unite  # noqa: PLC0415 - who has such copies pays

        unite(parts.recorded, copies)
    paths = (*checked.found, *checked.unreadable[checked.closed :])
    found = list(laid_out.logical(paths) if laid_out else map(Locator, checked.found))
    same = set(found)
    for locators in batches(found):
        noticed += parts.recorded.notice(locators)
    same.difference_update(each.locator for each in noticed)
    if laid_out is not None:  # every note is a node
        _index_again(parts, same)
        return noticed, []
    written = (*checked.new, *checked.changed)
    return noticed, make_nodes(parts, (key for key in written if key.endswith(f"/{CONTENT}")))


def _index_again(parts: "Parts", texts: Iterable[Locator]) -> None:
    """Index nodes whose file has another name: the index may have read them between the two."""
    places: dict[str, set[Uri]] = {}
    for text in texts:
        place = Uri.of_key(text.parent.key) if text.name == CONTENT else None
        if place is not None and place.is_node and parts.reader.is_active(place):
            places.setdefault(place.account, set()).add(place)
    for account, renamed in places.items():
        parts.present(account).following.catch_up(account, also=renamed)


def make_nodes(parts: "Parts", contents: Iterable[str]) -> list[Uri]:
    """Make nodes of contents that have no meta and are not empty; return their places."""
    places = list[Uri]()
    for key in contents:
        place = Uri.of_key(key.rpartition("/")[0])
        if place is not None and place.is_node and parts.reader.look(place, META) is None:
            text = parts.reader.look(place, CONTENT)
            if isinstance(text, str) and text.strip():
                places.append(place)
    for place in places:
        somebody = RequestContext(place.account, "worker", role=Role.ADMIN)
        parts.repair.make_nodes([place], somebody)
    return places
