"""The health of a memory: the parts that `status` shows, and the checks of `doctor`."""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import islice
from pathlib import Path
from re import findall, match
from typing import Any

from perdure.app.identity import Store
from perdure.app.open import (
    DERIVED,
    census,
    default_request,
    drop_left_out,
    preview_storage,
    storage_for,
    store_for,
)
from perdure.app.providers import demand_packages, embedder_for
from perdure.config import Config, load_config
from perdure.context.reader import NodeReader
from perdure.dataclass import fields
from perdure.engine.edits import look_for_edits
from perdure.engine.indexing.follower import LogReader
from perdure.engine.indexing.indexes import index_name, open_index
from perdure.engine.indexing.outbox_store import LogFeed, OutboxStore
from perdure.engine.services import Check, Checkup, Severity, StatusSection
from perdure.errors import (
    ConfigError,
    ContextError,
    DamageError,
    EmbeddingError,
    PerdureError,
    StorageSelectionError,
    storage_read_error,
)
from perdure.index.minilm import find_model
from perdure.index.sql import LEXICAL
from perdure.model import RequestContext, Uri
from perdure.model.values import JSON
from perdure.storage import Capabilities, StorageBackend, select_backend, storage_preview
from perdure.storage.contract import Layout
from perdure.storage.mutex import abandoned_locks
from perdure.storage.stamps import STAMPS_FILE, StampTable
from perdure.storage.text_history import History

Facts = dict[str, JSON]
CAPABILITIES = tuple(field.name for field in fields(Capabilities))
_FILE_LIMIT = 20_000
_RESOURCE_LIMIT = 5_000
_LOOKUP_LIMIT = 20_000
"""Log entries; of an index that is further behind, the changed places are not counted."""
_EDIT_SECONDS = 2.0
"""The time limit for finding unrecorded edits."""
_WORKER_PATIENCE = timedelta(hours=1)
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH


def status(
    environ: Mapping[str, str], caller: RequestContext, *, exact: bool = False
) -> tuple[StatusSection, ...]:
    """Return the parts of the configured memory; with `exact`, every file is counted."""
    return tuple(Health(lambda: load_config(environ), caller, exact=exact).status())


def doctor(environ: Mapping[str, str], requires: Iterable[str] = ()) -> Checkup:
    """Run every check; with an invalid config, that is the only one.

    The storage fails unless it has the required capabilities; each is one of `CAPABILITIES`.
    """
    try:
        config = load_config(environ)
    except ConfigError as error:
        return Checkup(preview_storage(environ), (_fail("config", str(error)),))
    return check_memory(config, default_request(environ), requires)


def check_memory(config: Config, caller: RequestContext, requires: Iterable[str] = ()) -> Checkup:
    """As `doctor`, for a config that is already loaded."""
    caller.demand_governing("see its status")
    required = Capabilities(**dict.fromkeys(requires, True))
    storage = storage_preview(config.storage, required=required)
    return Checkup(storage, tuple(Health(lambda: config, caller).checks()))


class Health:
    def __init__(
        self, read_config: Callable[[], Config], request: RequestContext, *, exact: bool = False
    ) -> None:
        self._read_config = read_config
        self._request = request
        self._exact = exact

    def status(self) -> Iterator[StatusSection]:
        """Yield each part; with an invalid config, only that one."""
        self._request.demand_governing("see its status")
        config, storage = self.part("config"), self.part("storage")
        yield config
        if config.trouble:
            return
        yield storage
        unavailable = "they can't be counted without their storage. Fix: repair that first."
        for name in ("nodes", "edits"):
            yield StatusSection(name, {}, unavailable) if storage.trouble else self.part(name)
        yield from map(self.part, ("history", "index", "outbox", "model", "llm", "disk"))

    def part(self, name: str) -> StatusSection:
        """Return the facts of one part, which the method of that name collects, or its error."""
        try:
            return StatusSection(name, getattr(self, f"_{name}")())
        except PerdureError as error:
            return StatusSection(name, {}, str(error))
        except OSError as error:
            where = Path(str(error.filename or "?"))
            return StatusSection(
                name, {}, str(storage_read_error(error, str(where.parent), where.name))
            )

    # ------------------------------------------------------------ what it reads
    @cached_property
    def _settings(self) -> Config:
        return self._read_config()

    @cached_property
    def backend(self) -> StorageBackend:
        return storage_for(self._settings)

    @cached_property
    def store(self) -> Store:
        return store_for(self._settings)

    @property
    def _folder(self) -> Path:
        return self.store.folder

    # ------------------------------------------------------------ facts of each part
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
        return {"left_out": census(self.backend)[2]}

    def _edits(self) -> Facts:
        """Count edits made outside Perdure that are not recorded, without recording them."""
        unit = "note" if isinstance(self.backend, Layout) else "text"
        if not self._folder.is_dir():
            return {"unrecorded": 0, "unchecked": 0, "unit": unit}
        path = self._folder / STAMPS_FILE
        with (
            History.open(str(self._folder)) as history,
            StampTable(str(path) if path.is_file() else "") as seen,
        ):
            deadline = None if self._exact else time.monotonic() + _EDIT_SECONDS
            found = look_for_edits(self.backend, history, seen, deadline)
        return {
            "unrecorded": len(drop_left_out(self.backend, found.found)),
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
                "places": index.count_uris(account),
            }

    def _places_behind(self, history: History, cursor: int, newest: int) -> int | None:
        if not cursor or newest - cursor > _LOOKUP_LIMIT:
            return None
        with suppress(StorageSelectionError):  # reported by the storage part
            logged = LogReader(history, NodeReader(self.backend))
            return len(logged.changed(self._request.account_id, cursor))
        return None

    def _outbox(self) -> Facts:
        waiting, dead, since = 0, 0, None
        with suppress(
            DamageError, EmbeddingError, StorageSelectionError
        ):  # other parts report these
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
        model = None if embedder is None else str(embedder.parameters.get("model", ""))
        return {"provider": self._settings.embedding.provider, "model": model}

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
        with suppress(StorageSelectionError):  # reported by the storage part
            source = Path(self.backend.identity) if self.backend.identity else None
        return _sizes(self._settings.home, self._folder, source, exact=self._exact)

    # ------------------------------------------------------------ checks
    def checks(self) -> Iterator[Check]:
        yield self._check_config()
        yield self._check_home()
        yield self._check_writing()
        if self._has_no_history():
            fix = "choose another one to store memories"
            yield _note("history", "this backend stores texts only, and has no history", fix)
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

    def _facts(self, name: str) -> tuple[Mapping[str, Any], str]:
        found = self.part(name)
        return found.facts, found.trouble

    def _has_no_history(self) -> bool:
        try:
            return not select_backend(self._settings.storage).identity
        except PerdureError:  # reported by the storage
            return False

    def _check_config(self) -> Check:
        file = self._settings.home / "config.toml"
        if file.exists():
            return _ok("config", str(file))
        return _note("config", "there is none", "`perdure init` writes one")

    def _check_home(self) -> Check:
        home = self._settings.home
        try:
            found = home.stat()
        except FileNotFoundError:
            return _ok("home", f"{home} is created by the first write")
        except OSError as error:
            return _fail("home", f"{home}: {error.strerror}", "give this user access")
        if found.st_uid != os.geteuid():
            return _warn("home", f"{home} belongs to another user", "chown it")
        fix = f"chmod 700 '{home}'"
        if not os.access(home, os.W_OK | os.X_OK):
            return _fail("home", f"{home} can't be written", fix)
        if found.st_mode & _OTHERS_MAY_WRITE:
            return _warn("home", f"others may write to {home}", fix)
        is_private = not found.st_mode & _OTHERS_MAY_READ
        what = f"others may look into {home}"
        return _ok("home", str(home)) if is_private else _note("home", what, fix)

    def _check_writing(self) -> Check:
        try:
            where = select_backend(self._settings.storage).identity
        except PerdureError as error:
            return _fail("writing", str(error))
        place = Path(where or self._settings.home)
        while not place.exists():
            place = place.parent
        if os.access(place, os.W_OK | os.X_OK):
            return _ok("writing", f"{place} may be written")
        return _fail(
            "writing", f"{str(place)!a} can't be written", "make it writable for this user"
        )

    def _check_store(self) -> Check:
        try:
            store = self.store
        except PerdureError as error:
            return _fail("store", str(error))
        if store.refusal is not None:
            return _fail("store", str(store.refusal))
        if store.trouble:
            fix = "remove that note, or correct it; the next save writes it again"
            return _warn("store", f"{store.trouble}, so its history is found by path only", fix)
        if not store.has_note:
            return _note("store", "it has no id yet", "none needed; a save gives it one")
        return _ok("store", f"{store.id}, with its history in {store.folder}")

    def _check_history(self) -> Check:
        facts, trouble = self._facts("history")
        if trouble:
            return _fail("history", trouble)
        if facts["cuts"]:
            return _warn("history", "an unfinished commit was cut off", "none needed")
        entries = f"{facts['position']:,} entries"
        return _ok("history", f"opens, with {entries}; `perdure history verify` reads all")

    def _check_edits(self) -> Check:
        facts, trouble = self._facts("edits")
        if trouble:
            return _warn("edits", trouble)
        if facts["unrecorded"]:
            what = f"{facts['unrecorded']:,} {facts['unit']}s edited outside Perdure"
            fix = "none needed; the next recall indexes them"
            return _note("edits", f"{what} are not indexed yet", fix)
        if facts["unchecked"]:
            what = f"{facts['unchecked']:,} {facts['unit']}s were not checked for edits in time"
            return _note("edits", what, "`perdure worker --once` checks all of them")
        return _ok("edits", "all are recorded")

    def _check_notes(self) -> Iterator[Check]:
        """Report the notes of a vault that are left out or unreadable."""
        from perdure.context.notes import NotesLayout

        facts, trouble = self._facts("notes")
        if trouble:  # reported by the storage
            return
        for line, is_wrong in facts["left_out"].items():
            yield Check("notes", Severity.WARN if is_wrong else Severity.NOTE, line)
        layout = self.backend
        found = [*layout.unreadable(_EDIT_SECONDS)] if isinstance(layout, NotesLayout) else []
        for path, finding in found[:1]:
            more = f" `perdure lint` names {len(found) - 1:,} more." if found[1:] else ""
            yield _warn("notes", f"{path!a}: its {finding}{more}")

    def _check_index(self) -> Check:
        facts, trouble = self._facts("index")
        if trouble:
            is_model = trouble == self.part("model").trouble  # which has a check of its own
            return _note("index", trouble) if is_model else _warn("index", trouble)
        if not facts["built"]:
            return _ok("index", "not built yet; the first recall builds it")
        if facts["behind"] and facts["places_behind"] != 0:
            fix = "none needed; the next recall brings it up to date"
            return _note("index", f"{facts['behind']:,} entries behind", fix)
        noun = "place" if facts["places"] == 1 else "places"
        return _ok("index", f"{facts['places']:,} {noun}, up to date")

    def _check_outbox(self) -> Iterator[Check]:
        facts, trouble = self._facts("outbox")
        if trouble:
            yield _fail("outbox", trouble)
            return
        if facts["dead"]:
            fix = "see `perdure outbox dead`, then `perdure outbox requeue`"
            yield _warn("outbox", f"{facts['dead']:,} events failed too often", fix)
        else:
            yield _ok("outbox", f"{facts['waiting']:,} events waiting, none dead")
        since = facts["since"]
        if since is None or datetime.now(UTC) - datetime.fromisoformat(since) < _WORKER_PATIENCE:
            yield _ok("worker", "no event waits for one")
        else:
            fix = "run `perdure worker --once`, or recall something"
            yield _warn("worker", f"events have been waiting since {since}", fix)

    def _check_locks(self) -> Check:
        found = list(abandoned_locks(str(self._settings.home / "locks")))
        if not found:
            return _ok("locks", "none is held by a process that ended")
        fix = "none needed; the next writer takes it over"
        return _warn("locks", f"held by {'; '.join(found)}", fix)

    def _check_extras(self) -> Check:
        missing = sorted(_missing_extras())
        if not missing:
            return _ok("extras", "all are installed")
        fix = f"pip install '.[{','.join(missing)}]' from a checkout, if you want them"
        return _note("extras", f"not installed: {', '.join(missing)}", fix)

    def _check_model(self) -> Check:
        """Check the embedder as recall uses it, and every byte of an installed model."""
        provider = self._settings.embedding.provider
        try:
            embedder = embedder_for(self._settings)
            installed = find_model(self._settings.home / "models")
            if embedder is None and provider == "none":
                return _ok("recall", "by words only, as configured")
            if embedder is None:
                fix = "`perdure models install` installs one"
                return _note("recall", "by words only, without a model", fix)
            if installed is not None and provider in {"auto", "minilm"}:
                demand_packages()
                installed.verify()
        except PerdureError as error:
            return _fail("recall", str(error))
        return _ok("recall", f"by meaning, with {embedder.parameters.get('model')}")

    def _check_hooks(self) -> Iterator[Check]:
        """Report the errors that hooks logged; nothing without errors."""
        log = self._settings.home / "hooks" / "log"
        try:
            lines = log.read_text(errors="replace").splitlines()
        except OSError:
            return
        if lines:
            number = f"{len(lines)} error{'s' if len(lines) > 1 else ''}, the last: {lines[-1]}"
            yield _warn("hooks", number, f"see {str(log)!a}, then remove it.")


def _check(level: Severity, name: str, message: str, fix: str = "") -> Check:
    return Check(name, level, f"{message}. Fix: {fix}" if fix else message)


_ok, _note, _warn, _fail = (partial(_check, level) for level in Severity)


# ---------------------------------------------------------------- counting
def _count_nodes(reader: NodeReader, request: RequestContext) -> Facts:
    """Count nodes by folder; resources only up to a limit."""

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
    walked = islice(reader.walk(account.child("resources")), _RESOURCE_LIMIT + 1)
    resources = sum(1 for _ in walked)
    return {
        "account": request.account_id,
        "categories": dict(sorted((+categories).items())),
        "memories": sum(categories.values()),
        "sessions": len(below(account.child("sessions"))),
        "resources": min(resources, _RESOURCE_LIMIT),
        "more_resources": resources > _RESOURCE_LIMIT,
    }


def _sizes(home: Path, history: Path, source: Path | None, *, exact: bool) -> Facts:
    """Return the bytes of each tier, and whether that is all of it or a part."""
    derived = {name: history / name for name in DERIVED}
    tiers = {"source": source, "history": history, **derived, "models": home / "models"}
    limit = None if exact else _FILE_LIMIT
    sizes: Facts = {}
    for name, folder in tiers.items():
        skipped = frozenset(map(str, derived.values())) if name == "history" else frozenset()
        files = iter(()) if folder is None else _files(str(folder), skipped)
        seen = list(islice(files, None if limit is None else limit + 1))
        sizes[name] = {"bytes": sum(seen[:limit]), "whole": limit is None or len(seen) <= limit}
    return sizes


def _files(top: str, skipped: frozenset[str]) -> Iterator[int]:
    """Yield the size of each file below a folder; links are not followed."""
    for folder, folders, names in os.walk(top):
        folders[:] = [each for each in folders if os.path.join(folder, each) not in skipped]  # noqa: PTH118 - as `os.walk` has them
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - as above
                if stat.S_ISREG(status.st_mode):
                    yield status.st_size


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


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
