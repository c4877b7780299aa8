"""The indexes of one memory: one for each embedder that it has had, and those of past states.

Their files come first, with the abstracts of folders; then `Indexes`, which chooses the one that
answers.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from perdure.config import SQLITE, Config, EmbeddingSettings
from perdure.context.links import ScannedLinks
from perdure.context.reader import NodeReader, Reach
from perdure.dataclass import dataclass, replace
from perdure.engine.indexing.follower import (
    INLINE_LIMIT,
    BuildLock,
    IndexFollower,
    LogReader,
    accounts_of,
)
from perdure.engine.recall.result import (
    NO_MODEL,
    Hint,
    HintKind,
    Sources,
    quarantine_hints,
    rebuilt_hint,
)
from perdure.errors import DamageError, EmbeddingError, NotTextError, PerdureError, PluginError
from perdure.files import Quarantine, write_whole
from perdure.index.contract import Embedder, NodeIndex
from perdure.index.sql import FORMAT, LEXICAL, EventTable
from perdure.index.sqlite_index import SqliteIndex
from perdure.index.vectors import MemoFolders, VectorMemo, embedder_id
from perdure.model import IndexRecord
from perdure.model.uri import Uri, name_of, segment_of
from perdure.plugins import PluginGroup, create, offered
from perdure.sqlite import discard
from perdure.storage import Locator
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.recorded import Recorded

if TYPE_CHECKING:
    from perdure.context.contract import TenantStore
    from perdure.engine.indexing.indexer import Indexer, Summaries
    from perdure.engine.past import PastStates

# ---------------------------------------------------------------- the settings of an embedder
FILE = "embedder.json"
_MAX_BYTES = 10_000
_TEXTS = ("provider", "base_url", "model")
_OTHERS = 0o077


def store_settings(folder: Path, settings: EmbeddingSettings) -> None:
    """Store settings atomically, readable only by this user, with the present as their time."""
    fields = {name: getattr(settings, name) for name in (*_TEXTS, "dimension")}
    content = f"{json.dumps(fields, indent=2)}\n".encode()
    path = folder / FILE
    if _content(path) == content:
        os.utime(path)
        return
    write_whole(path, content)


def last_used(folder: Path) -> float:
    """Return when these settings were last in use; 0 if that is unknown."""
    try:
        return (folder / FILE).lstat().st_mtime
    except OSError:
        return 0.0


def stored_settings(folder: Path) -> EmbeddingSettings:
    """Return the stored settings; `DamageError` if there are none that can be trusted."""
    content = _content(folder / FILE)
    if content is None:
        raise DamageError(f"they have no {FILE}. Fix: compute new vectors.")
    with suppress(ValueError, RecursionError):
        match json.loads(content):
            case {"dimension": int() | None, **texts} as fields if set(texts) == set(_TEXTS):
                is_number = not isinstance(fields["dimension"], bool)
                if is_number and all(isinstance(text, str) for text in texts.values()):
                    return EmbeddingSettings(**fields)
    raise DamageError(f"their {FILE} can't be parsed. Fix: compute new vectors.")


def _content(path: Path) -> bytes | None:
    """Return the content of a regular file that only this user can read or write; else None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        plain = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not plain or found.st_mode & _OTHERS or found.st_size > _MAX_BYTES:
            return None
        return os.read(descriptor, _MAX_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- files
_GONE = ".gone"
_OF = "+"
"""Between the format and the provider in a folder's name; neither part has it unquoted."""


def suffix_of(provider: str) -> str:
    return f"-{FORMAT}" if provider == SQLITE else f"-{FORMAT}{_OF}{segment_of(provider)}"


def open_index(folder: Path, quarantine: Quarantine | None = None) -> "OpenIndex":
    """Open the index in a folder, whose name ends with the suffix of its provider."""
    _, of, segment = folder.name.rpartition(_OF)
    if not of:
        return SqliteIndex(str(folder), quarantine)
    provider = name_of(segment) or segment
    if provider not in offered(PluginGroup.INDEX):
        raise PluginError(
            f"{folder} was built by the index {provider!a}, which is no longer installed. "
            "Fix: install its package again, or remove the folder with `perdure index prune`."
        )
    return open_installed(provider, folder)


def open_installed(provider: str, folder: Path) -> "OpenIndex":
    """Open the index of an installed package; `PluginError` if it can't be used."""
    own = folder / "installed"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = create(PluginGroup.INDEX, provider, NodeIndex, str(own))  # type: ignore[type-abstract] # only for isinstance
    return cast("OpenIndex", _InstalledIndex(index, folder))


class OpenIndex(NodeIndex, EventTable, Protocol):
    """What a memory needs of its index besides the contract."""

    def build_lock(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Let one process or thread at a time build the index; yield whether it is this one."""

    def count_uris(self, account_id: str) -> int:
        """Return how many URIs have records."""

    def size(self, account_id: str) -> int:
        """Return how many bytes are stored for an account."""

    def vectors(self, account_id: str, owner_space: str) -> list[tuple[IndexRecord, bytes]]:
        """Return the records of an owner with their vectors; empty if the index can't list them."""

    def scrub(self, account_id: str) -> None:
        """Leave no byte of records that were removed."""


class _InstalledIndex:
    """An index of an installed package, with what `OpenIndex` adds to the contract.

    Its table of events is in a built-in index that has no records.
    """

    def __init__(self, index: NodeIndex, folder: Path) -> None:
        self._index = index
        self._folder = folder
        self._events = events = SqliteIndex(str(folder))
        self.read_events, self.change_events = events.read_events, events.change_events
        self.wipe_events, self.build_lock = events.wipe_events, events.build_lock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the verbs of the contract
        return getattr(self._index, name)

    def close(self) -> None:
        self._events.close()
        self._index.close()

    def delete_account_data(self, account_id: str) -> int:
        self._events.delete_account_data(account_id)
        return self._index.delete_account_data(account_id)

    def count_uris(self, account_id: str) -> int:
        return len(self._index.stamps(account_id))

    def size(self, account_id: str) -> int:
        """Return the bytes of the whole folder: which of them are an account's is not known."""
        return _size(self._folder) if self._index.owner_spaces(account_id) else 0

    def vectors(self, *_: str) -> list[tuple[IndexRecord, bytes]]:
        return []

    def scrub(self, account_id: str) -> None:
        self._index.delete_account_data(account_id)


class IndexFolder:
    """The folder of all indexes of a memory; opens each index once."""

    def __init__(self, folder: Path, quarantine: Quarantine) -> None:
        self.folder = folder
        self._quarantine = quarantine
        self._open: dict[str, OpenIndex] = {}

    def open(self, name: str) -> OpenIndex:
        if name not in self._open:
            self._open[name] = open_index(self.folder / name, self._quarantine)
        return self._open[name]

    def close(self) -> None:
        for index in self._open.values():
            index.close()

    def names(self) -> list[str]:
        """Return the names of the indexes on disk, those of other processes too."""
        return sorted(path.name for path in self.folder.glob("*") if path.is_dir())

    def all(self) -> list[OpenIndex]:
        return [self.open(name) for name in self.names()]

    def name_of(self, index: NodeIndex) -> str:
        return next(name for name, each in self._open.items() if each is index)

    def remove(self, name: str) -> int:
        if name in self._open:
            self._open.pop(name).close()
        return remove_folder(self.folder / name)


def remove_tree(folder: Path) -> None:
    """Remove a folder and its contents; errors are ignored."""
    from shutil import rmtree  # 2 ms, which a reader does not need

    rmtree(folder, ignore_errors=True)


def remove_folder(folder: Path) -> int:
    """Remove a folder, renamed first so that no process opens half of it; return its bytes."""
    size = _size(folder)
    away = folder.with_name(f"{folder.name}{_GONE}")
    folder.rename(away)
    remove_tree(away)
    return size


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class AbstractFiles:
    """The files of folder abstracts. None is held open; foreign files are quarantined.

    Reading is fast, because every save does it.
    """

    def __init__(self, folder: Path, home: str, quarantine: Quarantine) -> None:
        self._folder = folder
        self._home = home
        self._quarantine = quarantine

    def read(self, locator: Locator) -> str:
        """Return a text; `NotTextError` if something else is there, or above it."""
        try:
            with open(os.open(f"{self._folder}/{locator.key}", _FLAGS), "rb") as file:  # noqa: PTH123 - no link is followed
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise IsADirectoryError(locator.key)
                return file.read().decode()
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as error:
            raise NotTextError(
                f"{locator.key!a} is not a text. Fix: none needed, it is replaced."
            ) from error

    def write_all(self, changes: Mapping[Locator, str | None]) -> None:
        for text in changes:
            self._quarantine.clear_file(self._folder / text.key)
        DeviceLocalBackend(str(self._folder), home=self._home).write_unsynced(changes)


# ---------------------------------------------------------------- the data of a tenant
class IndexTenantData:
    """The data of a tenant in the indexes of all embedders."""

    def __init__(self, indexes: Callable[[], Sequence[NodeIndex]]) -> None:
        self._indexes = indexes

    def delete_account_data(self, account_id: str) -> int:
        return sum(index.delete_account_data(account_id) for index in self._indexes())

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        indexes = self._indexes()
        return sum(index.delete_by_owner_space(account_id, owner_space) for index in indexes)


class AbstractTenantData:
    """The abstracts of a tenant's folders, and of sessions that have no other owner."""

    def __init__(self, folder: Path, reach: Reach) -> None:
        self._folder = folder
        self._reach = reach

    def delete_account_data(self, account_id: str) -> int:
        return self._remove(Uri(account_id))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        sessions = self._folder.joinpath(Uri(account_id, ("sessions",)).key).glob("*")
        keys = [path.relative_to(self._folder).as_posix() for path in sessions]
        places = filter(None, map(Uri.of_key, keys))
        gone = [each for each in places if self._reach.session_owner(each) in {None, owner_space}]
        return sum(map(self._remove, (Uri(account_id, (f"{kind}s", owner)), *gone)))

    def _remove(self, place: Uri) -> int:
        path = self._folder / place.key
        there = path.exists()
        remove_tree(path)
        return int(there)


class PastTenantData:
    """The indexes of past states, which are all deleted with any tenant."""

    def __init__(self, folder: Path, close: Callable[[], None]) -> None:
        self._folder = folder
        self._close = close

    def _delete_all(self, *_: str) -> int:
        self._close()
        remove_tree(self._folder)
        return 0

    delete_account_data = delete_by_owner_space = _delete_all


# ---------------------------------------------------------------- all of them
_NOT_YET = Hint(HintKind.VECTORS_PENDING, "only words were compared")


@dataclass(frozen=True, slots=True)
class CurrentIndex:
    """An index that answers about the present: its follower, and what a recall searches."""

    follower: IndexFollower
    sources: Sources
    memo: VectorMemo | None
    hints: Callable[[], Sequence[Hint]] = tuple
    """Returns why this index answers, if another one should."""
    is_interim: bool = False
    """Whether it answers only until the index of the configured embedder is built."""
    fallback: "CurrentIndex | None" = None
    """The index that answers if this one is not built yet, and can't be now."""


@dataclass(frozen=True, slots=True)
class ListedIndex:
    name: str
    places: int
    position: int
    """The position up to which it is correct; 0 if it is not finished."""
    size: int
    answers: bool


class Embedders(NamedTuple):
    """The configured embedder, and access to those of earlier indexes."""

    configured: Callable[[], Embedder | None]
    settings: Callable[[], EmbeddingSettings | None]
    """Returns the settings of the configured one, without its key; None if a program passed it."""
    reopen: Callable[[EmbeddingSettings], Embedder]
    """Returns an earlier embedder; raises an error if it is not available."""


class Indexes:
    """Chooses the index that answers for an account, and manages the folders of derived data."""

    def __init__(
        self, recorded: Recorded, folder: Path, config: Config, embedders: Embedders
    ) -> None:
        self._history = recorded.history
        self._reader = NodeReader(recorded)
        self._folder = folder
        self._config = config
        self._embedders = embedders
        self.quarantine = Quarantine(folder)
        self._indexes = IndexFolder(folder / "index", self.quarantine)
        self._current: dict[str, CurrentIndex] = {}
        self._past_states: dict[str, PastStates] = {}
        self._memos: list[VectorMemo] = []

    def close(self) -> None:
        self._close_past_states()
        for memo in self._memos:
            memo.close()
        self._indexes.close()

    def _close_past_states(self) -> None:
        for states in self._past_states.values():
            states.close()

    # ------------------------------------------------------------ which index answers
    @cached_property
    def embedder(self) -> Embedder | None:
        return self._embedders.configured()

    @cached_property
    def memo(self) -> VectorMemo | None:
        return None if self.embedder is None else self._memo_of(self.embedder)

    @property
    def memo_folder(self) -> Path:
        return self._folder / "vectors"

    def _memo_of(self, embedder: Embedder) -> VectorMemo:
        memo = VectorMemo(self.memo_folder, embedder, self.quarantine)
        self._memos.append(memo)
        return memo

    @cached_property
    def name(self) -> str:
        """The name of the index; it changes with the embedder and with how records are built."""
        return index_name(self.embedder, self._config.index)

    @property
    def _lexical_name(self) -> str:
        return index_name(None, self._config.index)

    def current(self, account_id: str) -> CurrentIndex:
        """Return the index that answers about an account now.

        It is the index of the configured embedder. While that one is not built and would take
        long, it is the index of an earlier embedder, or one of words only.
        """
        configured = self.configured
        index = configured.follower.index
        try:
            if self.embedder is None or index.cursor(account_id):
                return configured
        except DamageError as error:  # it is derived, so it is deleted and built again
            index.delete_account_data(account_id)
            hint = rebuilt_hint(error)
            return replace(configured, hints=lambda: [hint])
        interim = self._interim_index(account_id)
        if self._has_many(account_id, interim) or not configured.follower.is_small(account_id):
            return interim
        return replace(configured, fallback=interim)

    def _has_many(self, account_id: str, current: CurrentIndex) -> bool:
        """Whether an index has many places of an account, so that they need not be counted."""
        with suppress(DamageError):
            name = self._indexes.name_of(current.follower.index)
            return self._indexes.open(name).count_uris(account_id) > INLINE_LIMIT
        return False

    def _interim_index(self, account_id: str) -> CurrentIndex:
        """Return the newest finished index that can still catch up; else that of words only."""
        why = ""
        for name in self._finished(account_id):
            try:
                earlier = self._earlier(name)
                behind = len(earlier.follower.behind(account_id))
                if behind <= INLINE_LIMIT:
                    return self._interim(account_id, name, earlier)
                why = why or f"they are {behind:,} places behind"
            except PerdureError as error:
                why = why or str(error).partition(". Fix: ")[0]
        return self._interim(account_id, self._lexical_name, self._lexical, why)

    def _finished(self, account_id: str) -> list[str]:
        """Return the finished indexes of earlier embedders, the newest first."""
        others = {*self._indexes.names()} - {self.name, self._lexical_name}
        suffix, found = suffix_of(self._config.index), []
        for name in others:
            with suppress(DamageError):  # a damaged index can't answer
                if name.endswith(suffix) and self._indexes.open(name).cursor(account_id):
                    found.append((last_used(self._indexes.folder / name), name))
        return [name for _, name in sorted(found, reverse=True)]

    def _interim(
        self, account_id: str, name: str, current: CurrentIndex, why: str = ""
    ) -> CurrentIndex:
        def hints() -> list[Hint]:
            text = self._pending_text(account_id, name, why)
            return [Hint(HintKind.VECTORS_PENDING, text), *self._quarantined()]

        return replace(current, hints=hints, is_interim=True)

    def _pending_text(self, account_id: str, name: str, why: str) -> str:
        embedded, places = self._progress(account_id, name)
        done = f"{embedded:,} of {places:,} places are embedded"
        fix = "Fix: run `perdure worker` or `perdure index rebuild`, which continues"
        new = _display_name(self.name)
        if name != self._lexical_name:
            old = _display_name(name)
            return f"the vectors of {old} answer while those of {new} are computed: {done}. {fix}"
        passed = f"; earlier vectors can't answer meanwhile: {why}" if why else ""
        return f"the vectors of {new} are not computed yet: {done}{passed}. {fix}"

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        """As `Backlinks` promises: by the current index, or by a scan if there is none."""
        try:
            follower = self.current(place.account).follower
        except PerdureError:
            return ScannedLinks(self._reader).leading_to(place, called)
        return follower.leading_to(place, called)

    def events(self, account_id: str) -> EventTable:
        """Return the table of the events that the current index failed to take in."""
        return self._indexes.open(self._indexes.name_of(self.current(account_id).follower.index))

    def progress(self, account_id: str) -> tuple[int, int]:
        """Return how many places the configured embedder's index has, and all places."""
        answering = self.current(account_id).follower.index
        return self._progress(account_id, self._indexes.name_of(answering))

    def _progress(self, account_id: str, answering: str) -> tuple[int, int]:
        places = self._indexes.open(answering).count_uris(account_id)
        with suppress(DamageError):
            return min(self._indexes.open(self.name).count_uris(account_id), places), places
        return 0, places

    # ------------------------------------------------------------ opening
    @property
    def configured(self) -> CurrentIndex:
        """The index of the configured embedder, built or not."""
        if self.name not in self._current:
            why = None if self._config.embedding.provider == "none" else NO_MODEL
            index = self._indexes.open(self.name)
            sources = Sources(self._reader, index, self.embedder, why)
            self._open(self.name, sources, self.memo, self._build_lock)
            if (self._indexes.folder / self.name).is_dir():
                self._store_settings()
            else:  # an earlier version had links in a database of their own
                with suppress(OSError):
                    discard(self._folder / "links.sqlite")
        return self._current[self.name]

    @property
    def _lexical(self) -> CurrentIndex:
        name = self._lexical_name
        if name not in self._current:
            index = self._indexes.open(name)
            sources = Sources(self._reader, index, why_words=_NOT_YET)
            self._open(name, sources, None, index.build_lock)
        return self._current[name]

    def _earlier(self, name: str) -> CurrentIndex:
        if name not in self._current:
            embedder = self._embedders.reopen(stored_settings(self._indexes.folder / name))
            if index_name(embedder, self._config.index) != name:
                raise EmbeddingError("their model has changed. Fix: compute new vectors.")
            index, memo = self._indexes.open(name), self._memo_of(embedder)
            self._open(name, Sources(self._reader, index, embedder), memo, index.build_lock)
        return self._current[name]

    def _open(
        self, name: str, sources: Sources, memo: VectorMemo | None, build_lock: BuildLock
    ) -> None:
        log = LogReader(self._history, self._reader, folders=memo is not None)
        follower = IndexFollower(log, sources.index, partial(self._indexer, memo), build_lock)
        self._current[name] = CurrentIndex(follower, sources, memo, self._quarantined)

    def _indexer(self, memo: VectorMemo | None) -> "Indexer":
        from perdure.engine.indexing.indexer import Indexer

        return Indexer(self._reader, memo, self.summaries)

    @contextmanager
    def _build_lock(self, account_id: str, *, wait: bool) -> Iterator[bool]:
        """Store the settings of the embedder beside its index before that is built."""
        self._store_settings()
        with self._indexes.open(self.name).build_lock(account_id, wait=wait) as is_ours:
            yield is_ours

    def _store_settings(self) -> None:
        settings = self._embedders.settings()
        if self.embedder is not None and settings is not None:
            with suppress(OSError):  # after a change of model, this index can't answer meanwhile
                store_settings(self._indexes.folder / self.name, settings)

    def _quarantined(self) -> tuple[Hint, ...]:
        return quarantine_hints(self.quarantine.report())

    @cached_property
    def summaries(self) -> "Summaries":
        """The abstracts of folders, in a tier of their own beside the index."""
        from perdure.engine.indexing.indexer import Summaries

        folder = self._folder / "abstracts"
        files = AbstractFiles(folder, str(self._config.home), self.quarantine)
        return Summaries(self._reader, files)

    def past_states(self, account_id: str) -> "PastStates":
        """Return the past states of an account, searched with the embedder that answers now."""
        from perdure.engine.past import PastIndexFiles, PastStates

        current = self.current(account_id)
        name = self._indexes.name_of(current.follower.index)
        if name not in self._past_states:
            past, present = self._folder / "past" / name, self._indexes.folder / name
            provider = self._config.index
            installed = None if provider == SQLITE else partial(open_installed, provider)
            files = PastIndexFiles(past, present, self.quarantine, installed)
            self._past_states[name] = PastStates(
                self._history,
                files,
                memo=current.memo,
                embedder=current.sources.embedder,
                why_words=current.sources.why_words,
                quarantined=self._quarantined,
            )
        return self._past_states[name]

    # ------------------------------------------------------------ erasing
    def tenant_data(self) -> "Mapping[str, TenantStore]":
        return {
            "index": IndexTenantData(self._indexes.all),
            "vectors": MemoFolders(self.memo_folder),
            "abstracts": AbstractTenantData(self._folder / "abstracts", self._reader.reach),
            "past indexes": PastTenantData(self._folder / "past", self._close_past_states),
        }

    def count_records(self, account_id: str, uris: Iterable[str]) -> int:
        """Return how many of these places the indexes have, counted once for each index."""
        places, count = set(uris), 0
        for index in self._indexes.all():
            with suppress(DamageError):
                count += len(places & index.stamps(account_id).keys())
        return count

    def scrub(self, account_id: str) -> None:
        """Leave no byte of removed content in any index of an account, present or past.

        The index that answers is brought up to date; the others are deleted.
        """
        self._close_past_states()
        remove_tree(self._folder / "past")
        follower = self.current(account_id).follower
        answering = self._indexes.name_of(follower.index)
        for name in self._indexes.names():
            index = self._indexes.open(name)
            try:
                if name != answering or not index.cursor(account_id):
                    index.delete_account_data(account_id)
                    continue
                follower.catch_up(account_id)
                index.scrub(account_id)
            except (DamageError, EmbeddingError):  # it can be built again
                index.delete_account_data(account_id)

    def refill(self, account_id: str, owners: Iterable[str]) -> None:
        """Copy the vectors of the current index into its memo, from which they were removed."""
        from perdure.index.records import embedding_text

        current = self.current(account_id)
        index = self._indexes.open(self._indexes.name_of(current.follower.index))
        if current.memo is None:
            return
        for owner in owners:
            vectors = {embedding_text(r): vector for r, vector in index.vectors(account_id, owner)}
            if vectors:
                current.memo.store(account_id, owner, vectors)

    # ------------------------------------------------------------ upkeep
    def listed(self, account_id: str) -> list[ListedIndex]:
        """Return each index that has data of an account; of a damaged one, its size only."""
        answering, found = self.current(account_id).follower.index, []
        for name in self._indexes.names():
            index = self._indexes.open(name)
            if size := index.size(account_id):
                places = position = 0
                with suppress(DamageError):
                    places, position = index.count_uris(account_id), index.cursor(account_id)
                answers = index is answering
                found.append(ListedIndex(name, places, position, size, answers=answers))
        return found

    def prune(self) -> list[tuple[str, int]]:
        """Remove the indexes that answer for no account; return their names and bytes.

        The index of the configured embedder stays, finished or not, and so do all vectors.
        """
        answering = map(self.current, accounts_of(self._reader))
        used = {self.name, *(self._indexes.name_of(each.follower.index) for each in answering)}
        unused = [name for name in self._indexes.names() if name not in used]
        for name in unused:
            self._current.pop(name, None)
        for past in (self._folder / "past").glob("*"):
            if past.name not in used and past.is_dir():
                remove_folder(past)
        return [(name, self._indexes.remove(name)) for name in unused]


def index_name(embedder: Embedder | None, provider: str = SQLITE) -> str:
    """Return the name of the index of an embedder; without one, of the index of words."""
    return f"{LEXICAL if embedder is None else embedder_id(embedder)}{suffix_of(provider)}"


def _display_name(name: str) -> str:
    """Return the name of an index for people: its model and digest."""
    stem = name.partition("+")[0].removesuffix(suffix_of(SQLITE))
    display = name_of(stem)
    return display if display is not None and display.isprintable() else stem
