"""The contract of a storage backend, and the values that cross the seam."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from perdure.dataclass import dataclass, fields
from perdure.errors import (
    AccessRefusedError,
    OptionError,
    PersonalWriteRefusedError,
    StorageError,
    TextsGoneError,
)
from perdure.storage.changes import (
    Changes,
    Conditions,
    Expectation,
    TextChange,
    below_text,
    check_changes,
    check_found,
    partial_error,
)
from perdure.storage.locator import STORE_NOTE, Locator

if TYPE_CHECKING:
    from perdure.artifacts import CID
    from perdure.artifacts.artifact import Value
    from perdure.storage.personal import Authorisation

ROOT = Locator("")
_SETTLED_SECONDS = 2.0
"""The coarsest resolution of times on any file system in use."""


@dataclass(frozen=True, slots=True)
class Info:
    """The status of a text or directory."""

    locator: Locator
    is_dir: bool
    size: int
    """Bytes; 0 for a directory."""
    mtime: float
    """Seconds since the epoch."""


class Unreadable(Enum):
    UNREADABLE = "unreadable"


UNREADABLE: Final = Unreadable.UNREADABLE
"""A file is there, but it is not a text that could enter history."""

Text = str | None | Unreadable
"""What is at a locator; None if nothing is."""

Stamp = bytes
"""Opaque: two stamps that are equal and not empty are of the same content."""

Skip = Callable[[str], bool]
"""Called with the key of each directory before it is entered; True skips it."""


class Listing(NamedTuple):
    """A directory that a scan entered."""

    directory: Locator
    stamps: dict[str, Stamp] | None
    """By the names of its texts; a stamp is empty where only the content can tell. None if the
    directory can't be read."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend promises beyond the verbs; by default nothing."""

    concurrent_writers: bool = False
    """More than one process may write."""
    conflict_files: bool = False
    """A sync client may leave conflict copies, which `findings` reports."""
    encryption: bool = False
    """Content is encrypted at rest."""
    sync: bool = False
    """Another program replicates the tree, so it may not hold a database."""

    def missing(self, required: "Capabilities") -> tuple[str, ...]:
        """Return the names that `required` demands and this does not promise."""
        names = (field.name for field in fields(self))
        return tuple(n for n in names if getattr(required, n) and not getattr(self, n))


class ConflictStrategy(Enum):
    """What happens when two writers conflict."""

    REFUSE = "refuse"
    """The conditional write that comes second is refused; no other conflict can arise."""
    SURFACE = "surface"
    """Also, conflict copies of a sync client are preserved and reported to the user."""


class FindingKind(Enum):
    CONFLICT_COPY = "conflict copy"
    UNUSABLE_NAME = "unusable name"
    LINK = "link"
    LEFTOVER = "leftover"
    CLOSED = "folder that may not be read"


@dataclass(frozen=True, slots=True)
class Finding:
    """An entry of a directory that is not a memory."""

    kind: FindingKind
    directory: Locator
    name: str
    """As it is on disk; it may not be valid in a key."""
    advice: str
    original: Locator | None = None
    """Of a conflict copy: the text that it is a copy of."""


# ---------------------------------------------------------------- tiers
class Tier(Enum):
    SOURCE = "source"
    """The Markdown, from which the other tiers are rebuilt."""
    SHARED_ABSTRACTS = "shared-abstracts"
    """Summaries: used on every device, rebuilt if lost."""
    LOCAL_INDEX = "local-index"
    """Databases of one device, because replication corrupts a database file."""

    @property
    def syncs(self) -> bool:
        """Whether another program may replicate this tier."""
        return self is not Tier.LOCAL_INDEX

    @property
    def derived(self) -> bool:
        """Whether this tier can be rebuilt from the source."""
        return self is not Tier.SOURCE


@dataclass(frozen=True, slots=True)
class TierLayout:
    """The root of each tier. Creates nothing."""

    source: Locator = Locator("source")
    shared_abstracts: Locator = Locator("shared-abstracts")
    local_index: Locator = Locator("local-index")

    def __post_init__(self) -> None:
        """Refuse roots with which rebuilding one tier would delete another."""
        for derived in (Tier.SHARED_ABSTRACTS, Tier.LOCAL_INDEX):
            for other in Tier:
                if other is not derived and self.root_for(derived).contains(self.root_for(other)):
                    raise ValueError(
                        f"the {derived.value} tier at {str(self.root_for(derived))!a} would hold "
                        f"the {other.value} tier at {str(self.root_for(other))!a}. "
                        "Fix: give each tier a root of its own."
                    )

    @property
    def never_sync_root(self) -> Locator:
        return self.local_index

    def root_for(self, tier: Tier) -> Locator:
        root: Locator = getattr(self, tier.name.lower())
        return root


class DerivedMaintenance(ABC):
    """Keeps the derived tiers up to date with the source."""

    @abstractmethod
    def reindex(self, tier: Tier) -> None:
        """Rebuild a derived tier wholly from the source.

        Afterwards it holds what the source has now and nothing else, whatever was there before.
        `Tier.SOURCE` can't be rebuilt: `ValueError`.
        """

    @abstractmethod
    def changed_since(self, mtime: float) -> list[Locator]:
        """Return source texts newer than `mtime`, in key order; a hint, as clients set times."""


# ---------------------------------------------------------------- backends
class StorageBackend(ABC):
    """A tree of texts. The engine uses storage through this contract only.

    Verbs take and return a `Locator`, never a path. A name that a verb returns is valid in a
    `Locator`. A verb that raises has changed nothing, unless the error says what was done: if the
    disk failed at the very last step, or between the changes of `write_all`.
    """

    @classmethod
    def from_options(cls, options: Mapping[str, object], home: str) -> Self:
        """Return a backend for the table `[storage.<protocol>]` of the config file.

        `home` is the folder for files that must never be synced. Creates nothing: `perdure doctor`
        calls this to inspect. An unknown option raises `OptionError`.
        """
        del home
        for name in options:
            message = f"{name!a}: {cls.__name__} takes no options. Fix: remove it."
            raise OptionError(name, message)
        return cls()

    def resolve(self, *parts: str) -> Locator:
        """Return the locator of these segments; without any, the root."""
        return Locator("/".join(parts))

    @abstractmethod
    def read(self, locator: Locator) -> str:
        """Return the text as it was written; `FileNotFoundError` or `IsADirectoryError` if none."""

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        """Return the texts with these names in a directory, in this order; omit unreadable ones."""
        found = {}
        for name in names:
            with suppress(StorageError):
                found[name] = self.read(directory.child(name))
        return found

    @abstractmethod
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        """Make `content` the text at `locator`, durably and atomically.

        Creates missing directories. With `expect`, the text there must have that content hash, or
        nothing may be there (`ABSENT`); if not, raises `ConcurrentModificationError`. The check and
        the write are one step, for all processes.

        The root or a directory: `IsADirectoryError`. Below a file: `NotADirectoryError`. Text
        that UTF-8 can't encode: `ValueError`.
        """

    @abstractmethod
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        """Remove a text, or an empty directory, durably.

        With `expect`, the text must have that content hash; if not, or if nothing is there,
        `ConcurrentModificationError`. Without it, if nothing is there, `FileNotFoundError`. The
        root, or a directory with `expect`: `IsADirectoryError`. A directory with children:
        `OSError`.
        """

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        """Write these texts, and remove those that are None, in this order.

        All conditions are checked before the first change. If one does not hold, raises
        `ConcurrentModificationError` and changes nothing. Invalid arguments and places raise as
        for `write`, and change nothing. Removing a text that is not there is allowed, unless
        `expect` has its hash. A directory is not removed: `IsADirectoryError`. One locator below
        another: `NotADirectoryError`.

        Then the texts change one after another; all are durable when this returns. If the process
        is killed, some of the first are changed, each completely. (After a power cut, too, each is
        completely old or new.) A failure in between leaves those before it changed, and its message
        says so; the layer above restores them. If a condition does not hold any more because
        another writer came in between (a lock was lost, or the backend has none): `LockLostError`.
        """
        _change_one_by_one(self, check_changes(changes, expect))

    @property
    def defers_sync(self) -> bool:
        """Whether `write_unsynced` returns before its changes are durable."""
        return False

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        """Write as `write_all` does, for a caller that has the texts in a log.

        After a power cut a text may be old, absent, or a part of the new one.
        """
        self.write_all(changes, expect=expect)

    def sync(self, locators: Iterable[Locator]) -> None:
        """Return when the changes of these texts by `write_unsynced` are durable."""
        del locators

    @abstractmethod
    def list(self, locator: Locator) -> list[Locator]:
        """Return the immediate children in key order; `[]` for a file or nothing."""

    def first(self, locator: Locator, most: int) -> Sequence[Locator]:
        """Return the first of `list`. Override it where that costs less than listing all."""
        return self.list(locator)[:most]

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        """Yield a directory and those below it, each with the stamps of its texts.

        The stamp of a text changes whenever its content may have. A directory comes before those
        in it, and these in key order; a directory that is not there yields nothing. Directories
        that `skip` returns True for are not entered, and names that `list` omits are omitted. Reads
        no text and takes no lock; a text that changes meanwhile has its old stamp or its new one.

        This implementation trusts the times of `info`. Override it where others can set them.
        """
        pending = [directory]
        while pending:
            here = pending.pop()
            if here != directory and skip(here.key):
                continue
            stamps, below = dict[str, Stamp](), list[Locator]()
            try:
                for child in self.list(here):
                    with suppress(FileNotFoundError):  # removed since it was listed
                        info = self.info(child)
                        if info.is_dir:
                            below.append(child)
                        else:
                            stamps[child.name] = _stamp(info)
            except AccessRefusedError:
                yield Listing(here, None)
                continue
            if stamps or below or here == directory:
                yield Listing(here, stamps)
            pending.extend(reversed(below))

    @abstractmethod
    def exists(self, locator: Locator) -> bool:
        """Whether a text or directory is there; the root always is."""

    @abstractmethod
    def info(self, locator: Locator) -> Info:
        """Describe what is there; `FileNotFoundError` if nothing is."""

    @abstractmethod
    def mkdir(self, locator: Locator) -> Locator:
        """Create a directory and those above; a file: `FileExistsError` or `NotADirectoryError`."""

    is_past: bool = False
    """Whether this is a past state of a tree, read from its history."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @property
    def whereabouts(self) -> str:
        """Where the texts are, for people and for programs that use files."""
        return ""

    @property
    def identity(self) -> str:
        """A name that identifies this tree among all others, in every process.

        Its history is stored under this name. Empty if the tree does not outlive the process or
        can't be identified: then it has no history.
        """
        return ""

    def earlier(self, locator: Locator) -> Iterator[str]:
        """Yield the texts that were here, newest first; none without a history."""
        del locator
        return iter(())

    def saved(self, locator: Locator) -> str | None:
        """Return the text that Perdure last wrote here; None without a history."""
        del locator
        return None

    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return ConflictStrategy.REFUSE

    @property
    def derived_maintenance(self) -> DerivedMaintenance | None:
        """Rebuilds the derived tiers in this backend, if there are any."""
        return None

    def findings(self, locator: Locator) -> Sequence[Finding]:
        """Return the entries of the directory `locator` that are not memories. Changes nothing."""
        del locator
        return ()

    def write_personal(
        self,
        locator: Locator,
        content: str,
        *,
        authorisation: "Authorisation",
        expect: Expectation = None,
    ) -> Locator:
        """Write into the operator's own space, which is above the store.

        `write` can't reach it. Without an authorisation for exactly this text at exactly this
        locator: `PersonalWriteRefusedError`.
        """
        return self._write_personal(locator, content, authorisation, expect)

    def _write_personal(
        self, locator: Locator, content: str, authorisation: "Authorisation", expect: Expectation
    ) -> Locator:
        del content, authorisation, expect
        raise PersonalWriteRefusedError(
            f"{type(self).__name__} has no personal space, so {str(locator)!a} was not written. "
            "Fix: use a vault and set [storage.vault] personal to the folder above its store."
        )


class Layout(StorageBackend):
    """A logical tree of texts, stored in the files of another backend."""

    inner: StorageBackend
    rule: str = ""
    """Changes whenever `is_note` may return another result for a file."""
    holds_personal: bool = False
    """Whether `write_personal` writes files of this tree."""

    @abstractmethod
    def refresh(self, *, accept_removals: bool = False) -> Sequence[Locator]:
        """Process what others did to any file; return every text that may exist.

        Raises `TextsGoneError`, and processes nothing, if too many files are gone at once.
        """

    @abstractmethod
    def logical(self, paths: Iterable[str]) -> Sequence[Locator]:
        """Process what others did to these files; return the texts that may have changed."""

    @abstractmethod
    def refuse(self, changes: Changes) -> None:
        """Raise `AccessRefusedError` if a change is of a file that this layout does not write.

        A text below a text, or at a directory, is refused as by a write. Called before the changes
        enter history.
        """

    @abstractmethod
    def expected(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Return the digests of those files that this layout, and not others, wrote last."""

    @abstractmethod
    def known(self) -> Iterable[tuple[str, bytes]]:
        """Return all files that this layout wrote last, with their digests."""

    @abstractmethod
    def skips(self, directory: str) -> bool:
        """Whether nothing below a directory is a text of the tree."""

    @abstractmethod
    def text_at(self, key: str) -> Text:
        """Return the text with this key."""

    @abstractmethod
    def look(self, locators: Iterable[Locator]) -> dict[Locator, Text]:
        """Return the text at each locator; a file that holds several texts is read once."""

    @abstractmethod
    def is_note(self, path: str) -> bool:
        """Whether a file holds texts of the tree, by its name; other files are never read."""


class TransactionalBackend(StorageBackend):
    """A backend that can change several texts atomically."""

    @abstractmethod
    def commit(self, changes: Changes, *, expect: Conditions = None) -> object:
        """Make all these changes, or none; None removes a text.

        The files are written in this order. If a condition does not hold, nothing is changed. If a
        file can't be written, those before it are restored; edits that their owner made meanwhile
        stay. A commit whose writer is killed after it was logged is done: the next writer, or
        `settle`, writes its files.
        """

    @abstractmethod
    def committed(self, locator: Locator) -> str | None:
        """Return the text as of the last commit that finished, if any; does not wait for a lock."""

    @abstractmethod
    def settle(self, *, unacknowledged: bool = False) -> None:
        """Write the files of a commit whose writer was killed, if there is one.

        With `unacknowledged`, also if it was killed before a reader could see the commit; this
        waits for other writers.
        """

    @abstractmethod
    def because(
        self,
        *,
        actor: str | None = None,
        reason: str | None = None,
        origin: str | None = None,
        derived_from: "Iterable[CID] | None" = None,
        **more: "Value",
    ) -> Self:
        """Return this backend for writes under these circumstances, which history records."""


def _change_one_by_one(backend: StorageBackend, changes: Sequence[TextChange]) -> None:
    """Make the changes by `write` and `remove`, once all of them are possible."""
    for change in changes:
        _compare(backend, change)
    for done, (locator, data, expect) in enumerate(changes):
        try:
            if data is None:
                _remove(backend, locator, expect)
            else:
                backend.write(locator, data.decode(), expect=expect)
        except StorageError as error:
            if not done:
                raise
            raise partial_error(error, done, len(changes)) from error


def _compare(backend: StorageBackend, change: TextChange) -> None:
    locator, data, expect = change
    try:
        if expect is not None or backend.info(locator).is_dir:
            check_found(backend.read(locator).encode(), expect, locator)
    except FileNotFoundError:
        if data is not None:
            _refuse_text_above(backend, locator)
        check_found(None, expect, locator)


def _refuse_text_above(backend: StorageBackend, locator: Locator) -> None:
    above = locator.parent
    while not backend.exists(above):
        above = above.parent
    if not backend.info(above).is_dir:
        raise below_text(above)


def _stamp(info: Info) -> Stamp:
    is_settled = info.mtime < time.time() - _SETTLED_SECONDS
    return f"{info.size} {info.mtime!r}".encode() if is_settled else b""


def _remove(backend: StorageBackend, locator: Locator, expect: Expectation) -> None:
    try:
        backend.remove(locator, expect=expect)
    except FileNotFoundError:
        if expect is not None:
            raise


def walk(backend: StorageBackend, root: Locator) -> Iterator[Locator]:
    """Yield the texts below `root`, directory by directory, in key order within each.

    Omits conflict copies, which the user must resolve, folders whose names begin with a dot, which
    belong to tools (`.obsidian`, `.git`, `.trash`), and the note that has the store's id. All
    derived state is built from these texts.
    """
    pending = [root]
    while pending:
        directory = pending.pop()
        copies = {
            finding.name
            for finding in backend.findings(directory)
            if finding.kind is FindingKind.CONFLICT_COPY
        }
        below = []
        for child in backend.list(directory):
            if child.name in copies or child == STORE_NOTE:
                continue
            try:
                is_dir = backend.info(child).is_dir
            except FileNotFoundError:  # removed since it was listed
                continue
            if not is_dir:
                yield child
            elif not child.name.startswith("."):
                below.append(child)
        pending.extend(reversed(below))


def is_directory(backend: StorageBackend, locator: Locator) -> bool:
    """Whether a directory is there."""
    try:
        return backend.info(locator).is_dir
    except FileNotFoundError:
        return False


_FEW_GONE = 10
_SHARE_GONE = 10
"""Losing more texts than both, this many and one in this many, is refused."""
_FEWEST_GONE = 5
"""Losing more texts than this is refused if they are half of all."""


def refuse_loss(backend: StorageBackend, lost: Sequence[str], *, known: int, met: int) -> None:
    """Raise `TextsGoneError` if so much is gone that a drive or a sync client may be the cause."""
    many = len(lost) > _FEW_GONE and len(lost) * _SHARE_GONE > known
    half = len(lost) > _FEWEST_GONE and len(lost) * 2 >= known
    if many or half or (len(lost) > 1 and not met):
        raise TextsGoneError(
            f"{len(lost):,} of {known:,} texts are gone from {backend.whereabouts!a}, such as "
            f"{lost[0]!a}. Nothing was recorded, because a drive may not be mounted, or a sync "
            "client may still be working. Fix: restore them; or, if you removed them, run "
            "`perdure repair --apply --accept-removals`."
        )
