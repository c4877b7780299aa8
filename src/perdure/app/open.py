"""Open what a user's environment configures: storage, layout, history, log, signing key."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.app.identity import (
    Store,
    StoreDecision,
    adopt,
    find_store,
    introducer,
    open_store,
    separate,
)
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
    from perdure.artifacts.verification import Progress
    from perdure.engine.versions import VersionLog
    from perdure.model import RequestContext
    from perdure.proofs.signing_keys import SigningKey
    from perdure.storage.recorded import Recorded
    from perdure.transfer.migrate import ArchiveImport, ArchiveReport

ACCOUNT = "local"
"""The account of every user of this machine."""
PLACES = "places.sqlite"
"""The table of which note holds which node, beside the history."""
DERIVED = ("index", "vectors", "abstracts", "past")
"""The folders beside a history that can be deleted and rebuilt."""
_KEY_NAME = "perdure"
"""Part of every proof that leaves this machine, so it does not name the owner."""
_NAMES_SHOWN = 10


def open_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StorageBackend:
    """Open the configured backend; raises `StorageSelectionError` if it is not available."""
    return select_backend(load_config(environ).storage, required=required)


def open_texts(environ: Mapping[str, str]) -> StorageBackend:
    """Open the texts of the configured memory, in any layout."""
    return storage_for(load_config(environ))


def storage_for(config: Config) -> StorageBackend:
    """Return the configured backend with its layout, and without history."""
    backend = select_backend(config.storage)
    if not backend.identity:
        return backend
    store = find_store(config.home, backend.identity, backend)
    return with_layout(config, backend, store, read_only=not store.folder.is_dir())


def with_layout(
    config: Config,
    backend: StorageBackend,
    store: Store,
    *,
    ignored: Iterable[str] = (),
    read_only: bool = False,
) -> StorageBackend:
    """Return a backend wrapped in the layout of this store; `ignored` names folders to skip."""
    if store.layout_for(config) == "agfs":
        return backend
    from perdure.context.note_names import NoteNames
    from perdure.context.note_table import NoteTable, ReadOnlyNoteTable
    from perdure.context.notes import NotesLayout
    from perdure.storage import Locator

    folder = Locator(config.folder if backend.capabilities.sync else "")
    places = (ReadOnlyNoteTable if read_only else NoteTable)(str(store.folder / PLACES))
    names = NoteNames(ACCOUNT, store.owner or config.user)
    ignores = _matcher(config.ignore) if config.ignore else None
    rule = "\n".join(config.ignore)
    layout = NotesLayout(
        backend, places, names, folder, ignored=ignored, ignores=ignores, rule=rule
    )
    if folder.key and not read_only:
        from perdure.storage.vault import VaultBackend

        if isinstance(backend, VaultBackend):
            layout.holds_personal = backend.own_notes(folder)
    return layout


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a predicate: whether gitignore rules match a path; a folder ends with a slash."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns).match_file
    except ValueError as error:
        raise ConfigError(
            f"ignore in [vault] has an invalid pattern: {error}. "
            "Fix: write each as in a .gitignore, such as Archive/ or *.tmp.md."
        ) from error


def census(layout: StorageBackend) -> tuple[int, Mapping[str, int], Mapping[str, bool]]:
    """Count the notes that are nodes in place, and the other files by suffix.

    The last mapping has a line for each reason why notes are left out, with their names and the
    fix, and whether that is a problem.
    """
    from perdure.context.note_tree import LEFT_OUT
    from perdure.context.notes import NotesLayout

    if not isinstance(layout, NotesLayout):
        return 0, {}, {}
    found, lines = layout.census(), dict[str, bool]()
    for why, (what, fix, is_wrong) in LEFT_OUT.items():
        if paths := sorted(found.left_out.get(why, ())):
            names = ", ".join(map(_printable, paths[:_NAMES_SHOWN]))
            more = f" and {len(paths) - _NAMES_SHOWN:,} more" if len(paths) > _NAMES_SHOWN else ""
            lines[f"{len(paths):,} {what}: {names}{more}. Fix: {fix}"] = is_wrong
    return found.notes, found.others, lines


def _printable(path: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in path)


def drop_left_out(layout: StorageBackend, paths: Collection[str]) -> Collection[str]:
    """Return the paths without the notes that the layout leaves out."""
    from perdure.context.notes import NotesLayout

    if not isinstance(layout, NotesLayout) or not paths:
        return paths
    left_out = {path for each in layout.census().left_out.values() for path in each}
    return [path for path in paths if path not in left_out]


def open_recorded(environ: Mapping[str, str]) -> "Recorded":
    return recorded_for(load_config(environ))


def recorded_for(config: Config) -> "Recorded":
    from perdure.storage.recorded import Recorded
    from perdure.storage.text_history import History

    backend = select_backend(config.storage)
    store = _open_store(config, backend)
    folder = store.folder
    if folder.with_name(f"{folder.name}.arriving.json").exists():
        from perdure.transfer.migrate import require_complete

        require_complete(folder)  # an interrupted import is incomplete
    layout = with_layout(config, backend, store)
    return Recorded(layout, History.open(str(folder)), introducer(store, backend, config))


def _open_store(config: Config, backend: StorageBackend) -> Store:
    with suppress(OSError):  # it exists, or the first write reports the error
        config.home.mkdir(mode=0o700, parents=True)
    _demand_identity(config, backend)
    return open_store(config.home, backend)


def default_request(environ: Mapping[str, str]) -> "RequestContext":
    """Return the default caller: the user of this machine's account, with every permission."""
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
    """Open the log of all accounts, with the texts if they are available.

    Without the texts nothing can be restored; `VersionLog.refusal` has the reason. The log is
    opened when it is first read, so that a damaged one can be verified.
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
    """Return the folder of the history, also if it is absent or its vault can't be opened."""
    return store_for(load_config(environ)).folder


def store_for(config: Config) -> Store:
    """Return the configured store; if its vault can't be opened, as the home remembers it."""
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
) -> StoreDecision:
    """Assign the store in a folder the history of its id, or of the folder it was moved from."""
    return adopt(*_store_in(environ, folder), moved_from)


def separate_store(environ: Mapping[str, str], folder: str) -> StoreDecision:
    """Give the copy of a store in a folder an id and a history of its own."""
    return separate(*_store_in(environ, folder), _copy_history)


def _store_in(environ: Mapping[str, str], folder: str) -> tuple[Path, StorageBackend]:
    from perdure.storage.device_local import DeviceLocalBackend

    home = load_config(environ).home
    return home, DeviceLocalBackend(str(Path(folder).expanduser()), str(home))


def _copy_history(source: Path, target: Path) -> None:
    """Copy every version, and mark all of them as applied: the files are there already."""
    from tempfile import TemporaryFile

    from perdure.artifacts.archive_transfer import export, import_archive
    from perdure.storage.text_history import History

    with (
        History.open(str(source)) as source_history,
        History.open(str(target)) as copied,
        TemporaryFile(dir=source.parent) as file,
    ):
        if source_history.position():
            export(source_history.store, file)
            file.seek(0)
            import_archive(copied.store, file)
            with copied.lock.hold():
                copied.lock.settle_durably(copied.position())


def _demand_identity(config: Config, backend: StorageBackend) -> None:
    if not backend.identity:
        raise StorageSelectionError(
            f"the backend {config.storage.protocol!a} stores nothing durable, so it can't have a "
            "history. Fix: choose another one with backend in [storage] of the config file."
        )


def open_signing_key(environ: Mapping[str, str]) -> "SigningKey":
    return signing_key_for(load_config(environ))


def signing_key_for(config: Config) -> "SigningKey":
    """Return the signing key of this home; the first call creates it."""
    from perdure.proofs.signing_keys import SigningKey

    return SigningKey.load_or_generate(config.home / "signing-key", _KEY_NAME)


def import_memory(
    environ: Mapping[str, str],
    folder: Path,
    *,
    dry_run: bool = False,
    progress: "Progress | None" = None,
) -> "ArchiveReport":
    """Import an exported memory into the configured one.

    Every byte of the export is verified first; a dry run does only that. The configured memory
    must be empty, or an earlier state of the exported one. An interrupted import can be repeated.
    """
    from perdure.transfer.export import verify_export
    from perdure.transfer.migrate import ArchiveReport

    if dry_run:
        manifest = verify_export(folder)
        return ArchiveReport(None, manifest.history, manifest.position, len(manifest.files))
    with import_target(load_config(environ)) as arriving:
        return arriving.from_folder(folder, progress)


def import_target(config: Config) -> "ArchiveImport":
    """Open the store that a config chooses as the target of an import or a migration."""
    from perdure.storage.text_history import History
    from perdure.transfer.migrate import ArchiveImport

    backend = select_backend(config.storage)
    store = _open_store(config, backend)
    folder = store.folder
    databases = (f"seen.sqlite{log}" for log in ("", "-wal", "-shm"))
    derived = [folder / name for name in (*DERIVED, *databases)]
    layout = with_layout(config, backend, store)
    history, introduce = History.open(str(folder)), introducer(store, backend, config)
    return ArchiveImport(layout, history, folder, derived, introduce)


def preview_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StoragePreview:
    """Report what `open_storage` would do, in its own words; never raises, changes nothing."""
    try:
        settings = load_config(environ).storage
    except ConfigError as refusal:
        reason = "the config file and the environment"
        return StoragePreview("unknown", reason, ok=False, message=str(refusal))
    return storage_preview(settings, required=required)
