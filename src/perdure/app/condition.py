"""The condition of a memory: the parts that `status` shows, and the checks of `doctor`."""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import islice
from pathlib import Path
from re import findall, match
from typing import Any

from perdure.app.embedding import demand_packages, embedder_for
from perdure.app.identity import Store
from perdure.app.opening import (
    DERIVED,
    census_of,
    default_request,
    left_in,
    preview_storage,
    storage_of,
    store_of,
)
from perdure.config import Config, load_config
from perdure.context.reading import NodeReader
from perdure.dataclass import fields
from perdure.engine.edits import look_for_edits
from perdure.engine.indexing.feed import LogFeed
from perdure.engine.indexing.follower import LogReader
from perdure.engine.indexing.index_files import open_index
from perdure.engine.indexing.indexes import index_name
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.engine.upkeep import Check, Checkup, Severity, StatusSection
from perdure.errors import (
    ConfigError,
    ContextError,
    DamageError,
    EmbeddingError,
    PerdureError,
    StorageSelectionError,
    explain_reading,
)
from perdure.index.account.schema import LEXICAL
from perdure.index.models.installed import find
from perdure.model import RequestContext, Uri
from perdure.model.values import JSON
from perdure.storage import Capabilities, StorageBackend, select_backend, storage_preview
from perdure.storage.contract import Layout
from perdure.storage.history import History
from perdure.storage.lock.mutex import abandoned_locks
from perdure.storage.seen import SEEN, Seen

_MOST_FILES = 20_000
_MOST_RESOURCES = 5_000


def _count_nodes(reader: NodeReader, request: RequestContext) -> dict[str, JSON]:
    """Return how many nodes there are, by their folders; of resources, up to a bound."""

    def below(folder: Uri) -> list[Uri]:
        with suppress(ContextError):
            return list(map(Uri.parse, reader.list_children(str(folder), request)))
        return []

    account = Uri(request.account_id)
    categories: Counter[str] = Counter()
    for kind in ("users", "agents"):
        for owner in below(account.child(kind)):
            for folder in below(owner.child("memories")):
                categories[folder.name] += 1 if folder.is_node else len(below(folder))
            if kind == "agents":
                categories["skills"] += len(below(owner.child("skills")))
    walked = islice(reader.walk(account.child("resources")), _MOST_RESOURCES + 1)
    resources = sum(1 for _ in walked)
    return {
        "account": request.account_id,
        "categories": dict(sorted((+categories).items())),
        "memories": sum(categories.values()),
        "sessions": len(below(account.child("sessions"))),
        "resources": min(resources, _MOST_RESOURCES),
        "more_resources": resources > _MOST_RESOURCES,
    }


def _sizes(home: Path, history: Path, source: Path | None, *, exact: bool) -> dict[str, JSON]:
    """Return the bytes of each tier; of one with very many files, the first few, and so it says."""
    derived = {name: history / name for name in DERIVED}
    tiers = {"source": source, "history": history, **derived, "models": home / "models"}
    most = None if exact else _MOST_FILES
    told: dict[str, JSON] = {}
    for name, folder in tiers.items():
        passed = frozenset(map(str, derived.values())) if name == "history" else frozenset()
        files = iter(()) if folder is None else _files(str(folder), passed)
        seen = list(islice(files, None if most is None else most + 1))
        told[name] = {"bytes": sum(seen[:most]), "whole": most is None or len(seen) <= most}
    return told


def _files(folder: str, passed: frozenset[str]) -> Iterator[int]:
    """Yield the bytes of each file below; links are not followed."""
    pending = [folder]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path not in passed:
                        pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_size


Facts = dict[str, JSON]

_MOST_LOOKED_UP = 20_000
"""Entries of the log; if an index is further behind, nobody counts which places they are about."""

_LONGEST_LOOK = 2.0
"""Seconds for edits that nobody recorded yet."""
_UNOPENED = "they can't be counted without their storage. Fix: mend that first."


def status(
    environ: Mapping[str, str], caller: RequestContext, *, exact: bool = False
) -> tuple[StatusSection, ...]:
    """Return the parts of the configured memory; with `exact`, every file is counted."""
    return tuple(Condition(lambda: load_config(environ), caller, exact=exact).parts())


class Condition:
    def __init__(
        self, read_config: Callable[[], Config], request: RequestContext, *, exact: bool = False
    ) -> None:
        self._read_config = read_config
        self._request = request
        self._exact = exact

    def parts(self) -> Iterator[StatusSection]:
        """Yield each part. Without a config there is none to tell of but the config."""
        self._request.demand_governing("see how it stands with it")
        config, storage = self.part("config"), self.part("storage")
        yield config
        if config.trouble:
            return
        yield storage
        for name in ("nodes", "edits"):
            yield StatusSection(name, {}, _UNOPENED) if storage.trouble else self.part(name)
        yield from map(self.part, ("history", "index", "outbox", "model", "llm", "disk"))

    def _part(self, name: str) -> tuple[Mapping[str, Any], str]:
        """Return the facts of a part, and what is wrong with it."""
        found = self.part(name)
        return found.facts, found.trouble

    def part(self, name: str) -> StatusSection:
        """Ask one part: the method that is called so."""
        try:
            return StatusSection(name, getattr(self, f"_{name}")())
        except PerdureError as error:
            return StatusSection(name, {}, str(error))
        except OSError as error:
            where = Path(str(error.filename or "?"))
            return StatusSection(
                name, {}, str(explain_reading(error, str(where.parent), where.name))
            )

    # ------------------------------------------------------------ what is opened
    @cached_property
    def _settings(self) -> Config:
        return self._read_config()

    @cached_property
    def backend(self) -> StorageBackend:
        return storage_of(self._settings)

    @cached_property
    def store(self) -> Store:
        return store_of(self._settings)

    @property
    def _folder(self) -> Path:
        return self.store.folder

    # ------------------------------------------------------------ parts
    def _config(self) -> Facts:
        file = self._settings.home / "config.toml"
        return {"home": str(self._settings.home), "file": str(file) if file.exists() else None}

    def _storage(self) -> Facts:
        settings = self._settings.storage
        store = self.store.confirmed() if self.backend.identity else None
        return {
            "backend": settings.protocol,
            "where": self.backend.whereabouts,
            "chosen_by": settings.reason,
            "store": store.id if store and (store.has_note or store.is_remembered) else None,
        }

    def _nodes(self) -> Facts:
        return _count_nodes(NodeReader(self.backend), self._request)

    def _notes(self) -> Facts:
        return {"left_out": census_of(self.backend)[2]}

    def _edits(self) -> Facts:
        """Count what was edited outside Perdure and is not recorded; it is not recorded here."""
        unit = "note" if isinstance(self.backend, Layout) else "text"
        if not self._folder.is_dir():
            return {"unrecorded": 0, "unchecked": 0, "unit": unit}
        path = self._folder / SEEN
        with (
            History.open(str(self._folder)) as history,
            Seen(str(path) if path.is_file() else "") as seen,
        ):
            deadline = None if self._exact else time.monotonic() + _LONGEST_LOOK
            found = look_for_edits(self.backend, history, seen, deadline)
        return {
            "unrecorded": len(left_in(self.backend, found.found)),
            "unchecked": found.left,
            "unit": unit,
        }

    def _history(self) -> Facts:
        with History.open(str(self._folder)) as history:
            position = history.position()
            versions = history.store.catalogue.count_versions(position)
            _, time = history.store.catalogue.commit_at(position)
            cuts = len(history.store.cuts)
        return {
            "where": str(self._folder),
            "position": position,
            "versions": versions,
            "cuts": cuts,
            "last_change": _utc(datetime.fromtimestamp(time / 1000, UTC)) if time else None,
        }

    def _index(self) -> Facts:
        name = index_name(embedder_for(self._settings), self._settings.index)
        with (
            closing(open_index(self._folder / "index" / name)) as index,
            History.open(str(self._folder)) as history,
        ):
            account = self._request.account_id
            cursor, newest = index.cursor(account), history.position()
            return {
                "index": name,
                "semantic": not name.startswith(LEXICAL),
                "built": cursor > 0,
                "position": cursor,
                "behind": newest - cursor,
                "places_behind": self._places_behind(history, cursor, newest),
                "places": index.places(account),
            }

    def _places_behind(self, history: History, cursor: int, newest: int) -> int | None:
        if not cursor or newest - cursor > _MOST_LOOKED_UP:
            return None
        with suppress(StorageSelectionError):  # which the storage tells of
            logged = LogReader(history, NodeReader(self.backend))
            return len(logged.changed(self._request.account_id, cursor))
        return None

    def _outbox(self) -> Facts:
        waiting, dead, since = 0, 0, None
        with suppress(DamageError, EmbeddingError, StorageSelectionError):  # told of elsewhere
            name = index_name(embedder_for(self._settings), self._settings.index)
            with (
                closing(open_index(self._folder / "index" / name)) as index,
                History.open(str(self._folder)) as history,
            ):
                feed = LogFeed(history, NodeReader(self.backend), index.cursor)
                count = OutboxStore(lambda _: index, feed).count
                waiting, dead, since = count(self._request.account_id)
        return {"waiting": waiting, "dead": dead, "since": None if since is None else _utc(since)}

    def _model(self) -> Facts:
        embedder = embedder_for(self._settings)
        said = None if embedder is None else str(embedder.parameters.get("model", ""))
        return {"provider": self._settings.embedding.provider, "model": said}

    def _llm(self) -> Facts:
        settings = self._settings.llm
        if settings.provider == "none":
            return {"provider": "none"}
        from perdure.llm.counter import background_usage

        usage = background_usage(self._settings.home, settings)
        runs = {"background": True, "runs_today": usage.runs, "runs_per_day": usage.runs_allowed}
        return {
            "provider": settings.provider,
            "model": settings.model,
            "tokens_today": usage.tokens,
            "tokens_per_day": usage.tokens_allowed,
            **(runs if usage.is_on else {}),
        }

    def _disk(self) -> Facts:
        source = None
        with suppress(StorageSelectionError):  # as before
            source = Path(self.backend.identity) if self.backend.identity else None
        return _sizes(self._settings.home, self._folder, source, exact=self._exact)

    # ------------------------------------------------------------ checks
    def checks(self) -> Iterator[Check]:
        yield self._check_config()
        yield self._check_home()
        yield self._check_writing()
        if self._has_no_history():
            what = "this backend is for texts alone, and can have none. Fix: choose another"
            yield Check("history", Severity.NOTE, f"{what} to keep memories in")
        else:
            yield self._check_store()
            yield self._check_history()
            yield self._check_edits()
            yield from self._check_notes()
            yield self._check_index()
            yield from self._check_outbox()
        yield self._check_locks()
        yield self._check_extras()
        yield self._check_model()
        yield from self._check_hooks()

    def _has_no_history(self) -> bool:
        try:
            return not select_backend(self._settings.storage).identity
        except PerdureError:  # the storage says so
            return False

    def _check_config(self) -> Check:
        file = self._settings.home / "config.toml"
        if file.exists():
            return Check("config", Severity.OK, str(file))
        return Check("config", Severity.NOTE, "there is none. Fix: `perdure init` writes one")

    def _check_home(self) -> Check:
        home = self._settings.home
        try:
            found = home.stat()
        except FileNotFoundError:
            return Check("home", Severity.OK, f"{home} is made by the first write")
        except OSError as error:
            return Check("home", Severity.FAIL, f"{home}: {error.strerror}. Fix: let us in")
        if found.st_uid != os.geteuid():
            return Check("home", Severity.WARN, f"{home} is another user's. Fix: chown it")
        level, what = _openness(home, found.st_mode)
        fix = "" if level is Severity.OK else f". Fix: chmod 700 '{home}'"
        return Check("home", level, f"{what}{fix}")

    def _check_writing(self) -> Check:
        try:
            where = select_backend(self._settings.storage).identity
        except PerdureError as error:
            return Check("writing", Severity.FAIL, str(error))
        place = Path(where or self._settings.home)
        while not place.exists():
            place = place.parent
        if os.access(place, os.W_OK | os.X_OK):
            return Check("writing", Severity.OK, f"{place} may be written")
        message = f"{str(place)!a} can't be written. Fix: make it writable for this user"
        return Check("writing", Severity.FAIL, message)

    def _check_store(self) -> Check:
        try:
            store = self.store
        except PerdureError as error:
            return Check("store", Severity.FAIL, str(error))
        if store.refusal is not None:
            return Check("store", Severity.FAIL, str(store.refusal))
        if store.trouble:
            fix = "remove that note, or correct it; the next save writes it again"
            what = f"{store.trouble}, so its history is found by its path alone"
            return Check("store", Severity.WARN, f"{what}. Fix: {fix}")
        if not store.has_note:
            return Check(
                "store", Severity.NOTE, "it has no id yet. Fix: none needed; a save gives it one"
            )
        return Check("store", Severity.OK, f"{store.id}, with its history in {store.folder}")

    def _check_history(self) -> Check:
        facts, trouble = self._part("history")
        if trouble:
            return Check("history", Severity.FAIL, trouble)
        if facts["cuts"]:
            message = "a commit that was never finished was cut off. Fix: none needed"
            return Check("history", Severity.WARN, message)
        message = f"opens, with {facts['position']:,} entries; `perdure history verify` reads all"
        return Check("history", Severity.OK, message)

    def _check_edits(self) -> Check:
        facts, trouble = self._part("edits")
        if trouble:
            return Check("edits", Severity.WARN, trouble)
        if facts["unrecorded"]:
            fix = "Fix: none needed; the next recall indexes them"
            what = f"{facts['unrecorded']:,} {facts['unit']}s edited outside Perdure"
            return Check("edits", Severity.NOTE, f"{what} are not indexed yet. {fix}")
        if facts["unchecked"]:
            fix = "Fix: `perdure worker --once` looks at all of them"
            what = f"{facts['unchecked']:,} {facts['unit']}s were not looked at for edits in time"
            return Check("edits", Severity.NOTE, f"{what}. {fix}")
        return Check("edits", Severity.OK, "none that is not recorded")

    def _check_notes(self) -> Iterator[Check]:
        """Name the notes of a vault that are not memory."""
        from perdure.context.layouts.notes import NotesLayout

        facts, trouble = self._part("notes")
        if trouble:  # of the storage, which says so itself
            return
        for line, is_wrong in facts["left_out"].items():
            yield Check("notes", Severity.WARN if is_wrong else Severity.NOTE, line)
        layout = self.backend
        found = [*layout.unreadable(_LONGEST_LOOK)] if isinstance(layout, NotesLayout) else []
        for path, finding in found[:1]:
            more = f" `perdure lint` names {len(found) - 1:,} more." if found[1:] else ""
            yield Check("notes", Severity.WARN, f"{path!a}: its {finding}{more}")

    def _check_index(self) -> Check:
        facts, trouble = self._part("index")
        if trouble:
            model = self.part("model").trouble
            level = Severity.NOTE if trouble == model else Severity.WARN  # the model says so itself
            return Check("index", level, trouble)
        if not facts["built"]:
            return Check("index", Severity.OK, "not made yet; the first recall makes it")
        if facts["behind"] and facts["places_behind"] != 0:
            fix = "Fix: none needed; the next recall brings it up to date"
            return Check("index", Severity.NOTE, f"{facts['behind']:,} entries behind. {fix}")
        noun = "place" if facts["places"] == 1 else "places"
        return Check("index", Severity.OK, f"{facts['places']:,} {noun}, up to date")

    def _check_outbox(self) -> Iterator[Check]:
        facts, trouble = self._part("outbox")
        if trouble:
            yield Check("outbox", Severity.FAIL, trouble)
            return
        if facts["dead"]:
            fix = "Fix: see `perdure outbox dead`, then `perdure outbox requeue`"
            yield Check(
                "outbox", Severity.WARN, f"{facts['dead']:,} events failed too often. {fix}"
            )
        else:
            yield Check("outbox", Severity.OK, f"{facts['waiting']:,} events waiting, none dead")
        yield _worker(facts["since"])

    def _check_locks(self) -> Check:
        found = list(abandoned_locks(str(self._settings.home / "locks")))
        if not found:
            return Check("locks", Severity.OK, "none is held by anybody who is gone")
        message = f"held by {'; '.join(found)}. Fix: none needed; the next writer takes it over"
        return Check("locks", Severity.WARN, message)

    def _check_extras(self) -> Check:
        missing = sorted(_missing_extras())
        if not missing:
            return Check("extras", Severity.OK, "all are installed")
        fix = f"Fix: pip install '.[{','.join(missing)}]' from a checkout, if you want them"
        return Check("extras", Severity.NOTE, f"not installed: {', '.join(missing)}. {fix}")

    def _check_model(self) -> Check:
        """Say what recall would say of the model; and read all of one that is on this machine."""
        provider = self._settings.embedding.provider
        try:
            embedder = embedder_for(self._settings)
            installed = find(self._settings.home / "models")
            if embedder is None:
                if provider == "none":
                    return Check("recall", Severity.OK, "goes by words alone, as you chose")
                fix = "Fix: `perdure models install` gets one"
                return Check(
                    "recall", Severity.NOTE, f"goes by words alone, without a model. {fix}"
                )
            if installed is not None and provider in {"auto", "minilm"}:
                demand_packages()
                installed.verify()
        except PerdureError as error:
            return Check("recall", Severity.FAIL, str(error))
        return Check("recall", Severity.OK, f"by meaning, with {embedder.parameters.get('model')}")

    def _check_hooks(self) -> Iterator[Check]:
        """Yield what went wrong when agents called hooks; nothing if nothing did."""
        log = self._settings.home / "hooks" / "log"
        try:
            lines = log.read_text(errors="replace").splitlines()
        except OSError:
            return
        if lines:
            number = f"{len(lines)} trouble{'s' if len(lines) > 1 else ''}"
            fix = f"Fix: see {str(log)!a}, then remove it."
            yield Check("hooks", Severity.WARN, f"{number}, the last: {lines[-1]}. {fix}")


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH
_WAITED_LONG = timedelta(hours=1)
CAPABILITIES = tuple(field.name for field in fields(Capabilities))


def check_up(environ: Mapping[str, str], requires: Iterable[str] = ()) -> Checkup:
    """Check all there is. What depends on a config that is wrong is not looked at.

    The storage fails unless it promises what is required; each is one of `CAPABILITIES`.
    """
    try:
        config = load_config(environ)
    except ConfigError as error:
        return Checkup(preview_storage(environ), (Check("config", Severity.FAIL, str(error)),))
    return check_memory(config, default_request(environ), requires)


def check_memory(config: Config, caller: RequestContext, requires: Iterable[str] = ()) -> Checkup:
    """As `check_up`, for a config that was read."""
    caller.demand_governing("see how it stands with it")
    required = Capabilities(**dict.fromkeys(requires, True))
    storage = storage_preview(config.storage, required=required)
    return Checkup(storage, tuple(Condition(lambda: config, caller).checks()))


def _openness(home: Path, mode: int) -> tuple[Severity, str]:
    if not os.access(home, os.W_OK | os.X_OK):
        return Severity.FAIL, f"{home} can't be written"
    if mode & _OTHERS_MAY_WRITE:
        return Severity.WARN, f"others may write to {home}"
    if mode & _OTHERS_MAY_READ:
        return Severity.NOTE, f"others may look into {home}"
    return Severity.OK, str(home)


def _worker(since: str | None) -> Check:
    """Say whether anybody works on what waits."""
    if since is None or datetime.now(UTC) - datetime.fromisoformat(since) < _WAITED_LONG:
        return Check("worker", Severity.OK, "nothing waits for one")
    fix = "Fix: run `perdure worker --once`, or recall something"
    return Check("worker", Severity.WARN, f"nobody works on what waits since {since}. {fix}")


def _missing_extras() -> Iterator[str]:
    wanted: dict[str, list[str]] = {}
    for line in requires("perdure") or ():
        name = match(r"[\w.-]+", line)
        for extra in findall(r"extra == ['\"]([\w-]+)['\"]", line):
            wanted.setdefault(extra, []).append(name[0] if name else "")
    for extra, packages in wanted.items():
        if not all(_is_installed(name) for name in packages):
            yield extra


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
