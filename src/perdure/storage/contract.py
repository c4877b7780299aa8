"""What a storage backend promises, and the values that cross the seam."""

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
    ParentIsFileError,
    PersonalWriteRefusedError,
    StorageError,
    TextsGoneError,
)
from perdure.storage.content import (
    Change,
    Changes,
    Conditions,
    Expectation,
    check_changes,
    check_found,
    partly_done,
)
from perdure.storage.locator import STORE_NOTE, Locator

if TYPE_CHECKING:
    from perdure.artifacts import CID
    from perdure.artifacts.canonical import Value
    from perdure.storage.personal import Authorisation

ROOT = Locator("")
_SETTLED_SECONDS = 2.0
"""As coarse as times are on any file system in use."""


@dataclass(frozen=True, slots=True)
class Info:
    """What is known of a place without reading it."""

    locator: Locator
    is_dir: bool
    size: int
    """Bytes; 0 for a directory."""
    mtime: float
    """Seconds since the epoch."""


class Unreadable(Enum):
    UNREADABLE = "unreadable"


UNREADABLE: Final = Unreadable.UNREADABLE
"""Something is there, but no text that could enter history."""

Text = str | None | Unreadable
"""What is at a place."""

Stamp = bytes
"""Opaque: two that are equal and not empty are of one content."""

Skip = Callable[[str], bool]
"""Is asked with the key of each directory before it is entered; True leaves it out."""


class Listing(NamedTuple):
    """A directory that a scan came by."""

    directory: Locator
    stamps: dict[str, Stamp] | None
    """Of each text in it, by its name; empty where only the content can tell. None if it can't be
    read."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend promises beyond the verbs; nothing, unless it says so."""

    concurrent_writers: bool = False
    """Safe under more than one writing process."""
    conflict_files: bool = False
    """A sync client may leave conflict copies, which `findings` then tells of."""
    encryption: bool = False
    """Content is encrypted at rest."""
    sync: bool = False
    """Something else replicates the tree, so no database may live in it."""

    def missing(self, required: "Capabilities") -> tuple[str, ...]:
        """Name what `required` asks for and this does not promise."""
        names = (field.name for field in fields(self))
        return tuple(n for n in names if getattr(required, n) and not getattr(self, n))


class ConflictStrategy(Enum):
    """What becomes of two writers that meet."""

    REFUSE = "refuse"
    """A conditional write that lost is refused; no other kind of conflict can arise."""
    SURFACE = "surface"
    """Also, copies that a sync client made are kept and told of, for a human to settle."""


class FindingKind(Enum):
    CONFLICT_COPY = "conflict copy"
    UNUSABLE_NAME = "unusable name"
    LINK = "link"
    LEFTOVER = "leftover"
    CLOSED = "folder that may not be read"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that lies in a directory and is no memory."""

    kind: FindingKind
    directory: Locator
    name: str
    """As found; it may be one that no key can say."""
    advice: str
    original: Locator | None = None
    """For a conflict copy: what it is a copy of."""


# ---------------------------------------------------------------- who owns the truth
class Tier(Enum):
    SOURCE = "source"
    """The Markdown: the truth that the others are rebuilt from."""
    SHARED_ABSTRACTS = "shared-abstracts"
    """Summaries: useful on every device, rebuilt if lost."""
    LOCAL_INDEX = "local-index"
    """Databases: for one device, because a replicated database file gets corrupted."""

    @property
    def syncs(self) -> bool:
        """Whether something else may replicate this tier."""
        return self is not Tier.LOCAL_INDEX

    @property
    def derived(self) -> bool:
        """Whether this tier can be rebuilt from the source."""
        return self is not Tier.SOURCE


@dataclass(frozen=True, slots=True)
class TierLayout:
    """Where each tier has its root. Placing them creates nothing."""

    source: Locator = Locator("source")
    shared_abstracts: Locator = Locator("shared-abstracts")
    local_index: Locator = Locator("local-index")

    def __post_init__(self) -> None:
        """Refuse roots by which rebuilding one tier would wipe another."""
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
        roots = {
            Tier.SOURCE: self.source,
            Tier.SHARED_ABSTRACTS: self.shared_abstracts,
            Tier.LOCAL_INDEX: self.local_index,
        }
        return roots[tier]


class DerivedMaintenance(ABC):
    """Keeps what is derived in step with the source."""

    @abstractmethod
    def reindex(self, tier: Tier) -> None:
        """Rebuild a derived tier wholly from the source.

        Afterwards it holds what the source says now and nothing else, whatever was there before.
        `Tier.SOURCE` is the truth and can't be rebuilt: `ValueError`.
        """

    @abstractmethod
    def changed_since(self, mtime: float) -> list[Locator]:
        """Return source texts newer than `mtime`, in key order; a hint, as clients set any time."""


# ---------------------------------------------------------------- backends
class StorageBackend(ABC):
    """A tree of texts. The engine knows storage through this and nothing else.

    Every verb speaks of places by `Locator`, never by a path. A name that a verb returns is one
    that `Locator` accepts. A verb that raises has changed nothing, unless the error says what is
    done: if the disk failed at the very last step, or amid the changes of `write_all`.
    """

    @classmethod
    def from_options(cls, options: Mapping[str, object], home: str) -> Self:
        """Make the backend from its table `[storage.<protocol>]` of the config file.

        `home` is the folder for what must never be synced. Nothing is created yet: `perdure
        doctor` calls this only to look. An option it doesn't know is an `OptionError`.
        """
        del home
        for name in options:
            message = f"{name!a}: {cls.__name__} takes no options. Fix: remove it."
            raise OptionError(name, message)
        return cls()

    def resolve(self, *parts: str) -> Locator:
        """Name a place; without parts, the root."""
        return Locator("/".join(parts))

    @abstractmethod
    def read(self, locator: Locator) -> str:
        """Return the text as it was written; `FileNotFoundError` or `IsADirectoryError` if none."""

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        """Return the texts with these names in a directory, in this order; others are left out."""
        found = {}
        for name in names:
            with suppress(StorageError):
                found[name] = self.read(directory.child(name))
        return found

    @abstractmethod
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        """Make `content` the text at `locator`, durably and all at once.

        Missing directories above are made. With `expect`, the text there must have that content
        hash, or nothing may be there (`ABSENT`); if not, `ConcurrentModificationError`. The check
        and the write are one step, for all processes.

        The root or a directory: `IsADirectoryError`. Below a file: `NotADirectoryError`. Text
        that UTF-8 can't say: `ValueError`.
        """

    @abstractmethod
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        """Remove a text, or an empty directory, durably.

        With `expect`, the text must have that content hash; if not, or if nothing is there,
        `ConcurrentModificationError`. Nothing there otherwise: `FileNotFoundError`. The root, or
        a directory with `expect`: `IsADirectoryError`. A directory with children: `OSError`.
        """

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        """Write these texts, and remove those that are None, in this order.

        All conditions are compared before the first change. If one does not hold, it is a
        `ConcurrentModificationError`, and nothing is changed; so it is if an argument or a place is
        wrong, as for `write`. To remove a text that is not there is fine, unless `expect` has its
        hash. A directory is not removed: `IsADirectoryError`. One of the places below another:
        `NotADirectoryError`.

        Then the texts change one after another; when this returns, all are durable. Whoever ends
        the process leaves some of the first changed, each wholly. (After a power cut, too, each is
        wholly old or new.) A failure in between leaves those before it changed, and its message
        says so; the layer above undoes. If another writer came in between, because a lock was lost
        or there is none for all of it, and a condition does not hold any more: `LockLostError`.
        """
        _change_one_by_one(self, check_changes(changes, expect))

    @property
    def defers_sync(self) -> bool:
        """Whether `write_unsynced` returns before its changes are durable."""
        return False

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        """Do as `write_all`, for a caller that has the texts in a log: a power cut may undo it.

        Then a text may be old, gone, or a part of the new one.
        """
        self.write_all(changes, expect=expect)

    def sync(self, locators: Iterable[Locator]) -> None:
        """Return when what `write_unsynced` did to these texts is durable."""
        del locators

    @abstractmethod
    def list(self, locator: Locator) -> list[Locator]:
        """Return the immediate children in key order; `[]` for a file or nothing."""

    def first(self, locator: Locator, most: int) -> Sequence[Locator]:
        """Return the first of `list`; who can looks at no more than these."""
        return self.list(locator)[:most]

    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        """Yield a directory and those below it, each with stamps that differ if a text may.

        A directory comes before those in it, and these in key order; nothing is yielded for one
        that is not there. None is entered that `skip` leaves out. What `list` leaves out is left
        out here. Nothing is read and no lock is taken; what changes meanwhile may be there as it
        was or as it is.

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
        """Make a directory, and those above; a file: `FileExistsError` or `NotADirectoryError`."""

    is_past: bool = False
    """Whether this is how a tree was at some moment, out of its history."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @property
    def whereabouts(self) -> str:
        """Where the texts are, for people and for programs that know only files."""
        return ""

    @property
    def identity(self) -> str:
        """What tells this tree from every other, in each process and on each day.

        Its history is kept under it. Empty if the tree does not outlive the process, or can't be
        told from others: then it has no history.
        """
        return ""

    def earlier(self, locator: Locator) -> Iterator[str]:
        """Yield the texts that were here, newest first; none where no history is kept."""
        del locator
        return iter(())

    def saved(self, locator: Locator) -> str | None:
        """Return the text that was last written here by Perdure; None where no history is kept."""
        del locator
        return None

    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return ConflictStrategy.REFUSE

    @property
    def derived_maintenance(self) -> DerivedMaintenance | None:
        """Who rebuilds the derived tiers that live in this backend, if any do."""
        return None

    def findings(self, locator: Locator) -> Sequence[Finding]:
        """Tell what lies directly in `locator` and is no memory. Nothing is changed."""
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
        """Write into the operator's own space, which lies above the store.

        `write` can't reach it. Without an authorisation for just this text at just this place:
        `PersonalWriteRefusedError`.
        """
        return self._write_personal(locator, content, authorisation, expect)

    def _write_personal(
        self, locator: Locator, content: str, leave: "Authorisation", expect: Expectation
    ) -> Locator:
        del content, leave, expect
        raise PersonalWriteRefusedError(
            f"{type(self).__name__} has no personal space, so {str(locator)!a} was not written. "
            "Fix: use a vault and set [storage.vault] personal to the folder above its store."
        )


class Layout(StorageBackend):
    """A logical tree on a backend whose files are others; both are trees of texts."""

    inner: StorageBackend
    rule: str = ""
    """Differs where `is_note` may say otherwise of a file than before."""
    holds_personal: bool = False
    """Whether `write_personal` writes files of this tree."""

    @abstractmethod
    def refresh(self, *, accept_removals: bool = False) -> Sequence[Locator]:
        """Take in what others did to any file; return every text that there may be.

        Nothing is taken in, and `TextsGoneError` is raised, if too many files are gone at once.
        """

    @abstractmethod
    def logical(self, paths: Iterable[str]) -> Sequence[Locator]:
        """Take in what others did to these files; return the texts that may have changed."""

    @abstractmethod
    def refuse(self, changes: Changes) -> None:
        """Raise `AccessRefusedError` if one of these changes is of a file that is not written here.

        Texts that can't be, as one above is a text or a directory is there, are refused like by a
        write. It is asked before history has anything of them.
        """

    @abstractmethod
    def expected(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Return the digests of those files that were last written here, and not by others."""

    @abstractmethod
    def known(self) -> Iterable[tuple[str, bytes]]:
        """Return all files that were last written here, with their digests."""

    @abstractmethod
    def skips(self, directory: str) -> bool:
        """Whether nothing below a directory is a text of the tree."""

    @abstractmethod
    def text_at(self, key: str) -> Text:
        """Return what the text with this key says."""

    @abstractmethod
    def look(self, locators: Iterable[Locator]) -> dict[Locator, Text]:
        """Return what is at each of these places; a file that has several texts is read once."""

    @abstractmethod
    def is_note(self, path: str) -> bool:
        """Whether a file holds texts of the tree, by its name; others are never read."""


class TransactionalBackend(StorageBackend):
    """A backend where several texts change as one: all of it is there afterwards, or none."""

    @abstractmethod
    def commit(self, changes: Changes, *, expect: Conditions = None) -> object:
        """Make all these changes, or none; None is a text to be removed.

        The files are written in this order. If a condition does not hold, nothing happens. If a
        file can't be written, those before it become again what they were; what their owner wrote
        meanwhile stays. A commit whose writer is killed after it was logged is done: the next
        writer, or `settle`, writes its files.
        """

    @abstractmethod
    def committed(self, locator: Locator) -> str | None:
        """Return the text as of the last commit that finished, if any; it waits for nobody."""

    @abstractmethod
    def settle(self, *, unacknowledged: bool = False) -> None:
        """Write the files of a commit whose writer was killed, if there is one.

        With `unacknowledged`, also if it was killed before any reader could know of the commit;
        that waits for other writers.
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
        """Return the same backend for writes under these circumstances, which a history keeps."""


def _change_one_by_one(backend: StorageBackend, changes: Sequence[Change]) -> None:
    """Make the changes by the verbs for one text, once all of them could be made."""
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
            raise partly_done(error, done, len(changes)) from error


def _compare(backend: StorageBackend, change: Change) -> None:
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
        raise ParentIsFileError(
            f"{str(above)!a} is a text, so nothing can lie below it. "
            "Fix: choose a place outside of it."
        )


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

    Left out are conflict copies, which are for a human to settle, folders whose names begin with a
    dot, which belong to tools: `.obsidian`, `.git`, `.trash`, and the note that has the store's id.
    Whatever is derived from the source starts here.
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
    """Whether a directory is there; False also if it was removed since somebody saw it."""
    try:
        return backend.info(locator).is_dir
    except FileNotFoundError:
        return False


_FEW_GONE = 10
_SHARE_GONE = 10
"""More than this many texts, and more than one in so many, do not go at once unasked."""
_FEWEST_GONE = 5
"""More than this many do not go at once if they are half of all."""


def refuse_loss(backend: StorageBackend, lost: Sequence[str], *, known: int, met: int) -> None:
    """Raise `TextsGoneError` if so much is gone that a drive or a sync client may be at fault."""
    many = len(lost) > _FEW_GONE and len(lost) * _SHARE_GONE > known
    half = len(lost) > _FEWEST_GONE and len(lost) * 2 >= known
    if many or half or (len(lost) > 1 and not met):
        raise TextsGoneError(
            f"{len(lost):,} of {known:,} texts are gone from {backend.whereabouts!a}, such as "
            f"{lost[0]!a}. Nothing was recorded, because a drive may not be mounted, or a sync "
            "client not be done. Fix: bring them back; or, if they are meant to be gone, run "
            "`perdure repair --apply --accept-removals`."
        )
