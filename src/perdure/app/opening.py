"""From a user's environment to the parts that work for it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.app.identity import Settled, Store, adopt, find_store, introducer, open_store, separate
from perdure.config import Config, load_config, user_name
from perdure.dataclass import replace
from perdure.errors import ConfigError, StorageSelectionError
from perdure.storage import (
    Capabilities,
    StorageBackend,
    StoragePreview,
    select_backend,
    storage_preview,
)

if TYPE_CHECKING:
    from perdure.artifacts.verify import Progress
    from perdure.engine.versions import VersionLog
    from perdure.model import RequestContext
    from perdure.proofs.keys import SigningKey
    from perdure.storage.wrappers.recorded import Recorded
    from perdure.transfer.migrate import ArchiveImport, ArchiveReport

_KEY_NAME = "perdure"
"""It stands in every proof that is given away, so it says nothing of the owner."""


def signing_key(config: Config) -> "SigningKey":
    """Return the key; the first time makes it."""
    from perdure.proofs.keys import SigningKey

    return SigningKey.load_or_make(config.home / "signing-key", _KEY_NAME)


ACCOUNT = "local"
"""The account of whoever uses this machine."""
PLACES = "places.sqlite"
"""The table of which note holds which node, beside the history."""
DERIVED = ("index", "vectors", "abstracts", "past")
"""The folders beside a history that can be thrown away; the last two hold what was paid for."""


def open_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StorageBackend:
    """Open the backend that this user configured; `StorageSelectionError` if it can't be had."""
    return select_backend(load_config(environ).storage, required=required)


def open_texts(environ: Mapping[str, str]) -> StorageBackend:
    """Open the texts of the memory that this user configured, however nodes lie in its store."""
    return storage_of(load_config(environ))


def storage_of(config: Config) -> StorageBackend:
    """Return the configured backend with nodes in its layout; it has no history of its own."""
    backend = select_backend(config.storage)
    if not backend.identity:
        return backend
    store = find_store(config.home, backend.identity, backend)
    return laid_out(config, backend, store, read_only=not store.folder.is_dir())


def laid_out(
    config: Config,
    backend: StorageBackend,
    store: Store,
    *,
    ignored: Iterable[str] = (),
    read_only: bool = False,
) -> StorageBackend:
    """Return a backend with nodes as they lie in this store."""
    if store.layout_for(config) == "agfs":
        return backend
    from perdure.context.layouts.names import Names
    from perdure.context.layouts.notes import NotesLayout
    from perdure.context.layouts.places import Places, ReadOnlyPlaces
    from perdure.storage import Locator

    folder = Locator(config.folder if backend.capabilities.sync else "")
    places = (ReadOnlyPlaces if read_only else Places)(str(store.folder / PLACES))
    names = Names(ACCOUNT, store.owner or config.user)
    ignores = _matcher(config.ignore) if config.ignore else None
    rule = "\n".join(config.ignore)
    layout = NotesLayout(
        backend, places, names, folder, ignored=ignored, ignores=ignores, rule=rule
    )
    if folder.key and not read_only:
        from perdure.storage.backends.vault import VaultBackend

        if isinstance(backend, VaultBackend):
            layout.holds_personal = backend.own_notes(folder)
    return layout


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether gitignore would leave out a path; a folder ends with a slash."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns).match_file
    except ValueError as error:
        raise ConfigError(
            f"ignore in [vault] has a pattern that can't be read: {error}. "
            "Fix: write each as in a .gitignore, such as Archive/ or *.tmp.md."
        ) from error


_MOST_NAMED = 10


def _in_one_line(path: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in path)


def census_of(layout: StorageBackend) -> tuple[int, Mapping[str, int], Mapping[str, bool]]:
    """Count the notes that are memory in place, and the files beside them that are not.

    The last is a line for each reason why notes are not memory, with their names and the
    fix, and whether something is wrong.
    """
    from perdure.context.layouts.notes import LEFT_OUT, NotesLayout

    if not isinstance(layout, NotesLayout):
        return 0, {}, {}
    found, lines = layout.census(), dict[str, bool]()
    for why, (what, fix, is_wrong) in LEFT_OUT.items():
        if paths := sorted(found.left_out.get(why, ())):
            names = ", ".join(map(_in_one_line, paths[:_MOST_NAMED]))
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            lines[f"{len(paths):,} {what}: {names}{more}. Fix: {fix}"] = is_wrong
    return found.notes, found.others, lines


def left_in(layout: StorageBackend, paths: Collection[str]) -> Collection[str]:
    from perdure.context.layouts.notes import NotesLayout

    if not isinstance(layout, NotesLayout) or not paths:
        return paths
    left_out = {path for each in layout.census().left_out.values() for path in each}
    return [path for path in paths if path not in left_out]


def open_recorded(environ: Mapping[str, str]) -> "Recorded":
    return recorded_of(load_config(environ))


def recorded_of(config: Config) -> "Recorded":
    from perdure.storage.history import History
    from perdure.storage.wrappers.recorded import Recorded

    backend = select_backend(config.storage)
    store = _opened(config, backend)
    folder = store.folder
    if folder.with_name(f"{folder.name}.arriving.json").exists():
        from perdure.transfer.migrate import require_complete

        require_complete(folder)  # only a part of it may be there yet
    layout = laid_out(config, backend, store)
    return Recorded(layout, History.open(str(folder)), introducer(store, backend, config))


def _opened(config: Config, backend: StorageBackend) -> Store:
    with suppress(OSError):  # it is there, or whoever writes there says what is wrong
        config.home.mkdir(mode=0o700, parents=True)
    _demand_identity(config, backend)
    return open_store(config.home, backend)


def default_request(environ: Mapping[str, str]) -> "RequestContext":
    """Return the default caller: the owner of this machine's account, who may do everything."""
    from perdure.model import RequestContext, Role

    return RequestContext(ACCOUNT, user_name(environ), role=Role.ROOT)


def caller_for(  # noqa: PLR0913 - a field each
    environ: Mapping[str, str],
    *,
    account: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str = "",
    role: str | None = None,
) -> "RequestContext":
    """Return the caller with these fields; a named user is a member unless a role is given."""
    from perdure.model import Role

    default = default_request(environ)
    implied = default.role if user is None else Role.MEMBER
    return replace(
        default,
        account_id=default.account_id if account is None else account,
        user_id=default.user_id if user is None else user,
        agent_id=default.agent_id if agent is None else agent,
        session_id=session,
        role=implied if role is None else Role(role),
    )


@contextmanager
def open_log(environ: Mapping[str, str], *, texts: bool = True) -> "Iterator[VersionLog]":
    """Open the log of all accounts, with the texts if they can be had.

    Without the texts nothing can be restored, and `Log.refusal` says why they can't be had. The
    log itself is opened when it is first read, so that a damaged one can be verified.
    """
    from perdure.engine.versions import VersionLog

    with ExitStack() as closing:
        recorded = refusal = None
        try:
            recorded = closing.enter_context(open_recorded(environ)) if texts else None
        except StorageSelectionError as error:
            refusal = error
        log = VersionLog(
            find_history(environ),
            actor=user_name(environ),
            signing_key=lambda: open_signing_key(environ),
            recorded=recorded,
            refusal=refusal,
        )
        closing.callback(log.close)
        yield log


def find_history(environ: Mapping[str, str]) -> Path:
    """Return the folder of the history, also if it is not there or its vault can't be opened."""
    return store_of(load_config(environ)).folder


def store_of(config: Config) -> Store:
    """Return the configured store as it is found; as it was last, if it can't be opened."""
    try:
        backend = select_backend(config.storage)
    except StorageSelectionError:
        path = config.storage.options_for(config.storage.protocol).get("path")
        if config.storage.protocol != "vault" or not isinstance(path, str):
            raise
        return find_store(config.home, str(Path(path).resolve()), None)
    _demand_identity(config, backend)
    return find_store(config.home, backend.identity, backend)


def adopt_store(
    environ: Mapping[str, str], folder: str, *, moved_from: str | None = None
) -> Settled:
    """Let the store in a folder have the history of its id, or of the folder where it was."""
    return adopt(*_store_in(environ, folder), moved_from)


def separate_store(environ: Mapping[str, str], folder: str) -> Settled:
    """Give the copy of a store in a folder an id and a history of its own."""
    return separate(*_store_in(environ, folder), _copy_history)


def _store_in(environ: Mapping[str, str], folder: str) -> tuple[Path, StorageBackend]:
    from perdure.storage.backends.device_local import DeviceLocalBackend

    home = load_config(environ).home
    return home, DeviceLocalBackend(str(Path(folder).expanduser()), str(home))


def _copy_history(source: Path, target: Path) -> None:
    """Copy every version; the files are as they are, so no text of theirs is unfinished."""
    from tempfile import TemporaryFile

    from perdure.artifacts.archiving import export, import_archive
    from perdure.storage.history import History

    with (
        History.open(str(source)) as ours,
        History.open(str(target)) as theirs,
        TemporaryFile(dir=source.parent) as file,
    ):
        if ours.position():
            export(ours.store, file)
            file.seek(0)
            import_archive(theirs.store, file)
            with theirs.fence.held():
                theirs.fence.settle_durably(theirs.position())


def _demand_identity(config: Config, backend: StorageBackend) -> None:
    if not backend.identity:
        raise StorageSelectionError(
            f"the backend {config.storage.protocol!a} keeps nothing that a history could be of. "
            "Fix: choose another one with backend in [storage] of the config file."
        )


def open_signing_key(environ: Mapping[str, str]) -> "SigningKey":
    return signing_key(load_config(environ))


def import_memory(
    environ: Mapping[str, str],
    folder: Path,
    *,
    dry_run: bool = False,
    progress: "Progress | None" = None,
) -> "ArchiveReport":
    """Let the memory of this user become one that was exported to a folder.

    Every byte of the export is compared first; a dry run does only that. The memory is empty, or
    an earlier state of the exported one. If it is interrupted, do it again.
    """
    from perdure.transfer.export import verify_export
    from perdure.transfer.migrate import ArchiveReport

    if dry_run:
        manifest = verify_export(folder)
        return ArchiveReport(None, manifest.history, manifest.position, len(manifest.files))
    with arriving_into(load_config(environ)) as arriving:
        return arriving.from_folder(folder, progress)


def arriving_into(config: Config) -> "ArchiveImport":
    """Open the place that a memory can be taken into: the one that a config chooses."""
    from perdure.storage.history import History
    from perdure.transfer.migrate import ArchiveImport

    backend = select_backend(config.storage)
    store = _opened(config, backend)
    folder = store.folder
    databases = (f"seen.sqlite{log}" for log in ("", "-wal", "-shm"))
    derived = [folder / name for name in (*DERIVED, *databases)]
    layout = laid_out(config, backend, store)
    history, introduce = History.open(str(folder)), introducer(store, backend, config)
    return ArchiveImport(layout, history, folder, derived, introduce)


def preview_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StoragePreview:
    """Say what `open_storage` would do, in its own words; changes nothing, refuses nothing."""
    try:
        settings = load_config(environ).storage
    except ConfigError as refusal:
        reason = "the config file and the environment"
        return StoragePreview("unknown", reason, ok=False, message=str(refusal))
    return storage_preview(settings, required=required)
