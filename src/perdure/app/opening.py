"""From a user's environment to the parts that work for it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from pwd import getpwuid
from time import time_ns
from typing import TYPE_CHECKING

from perdure.config import Config, load_config
from perdure.errors import AbsentError, ConfigError, StorageSelectionError
from perdure.storage import (
    Capabilities,
    StorageBackend,
    StoragePreview,
    select_backend,
    storage_preview,
)

if TYPE_CHECKING:
    from perdure.artifacts.keys import SigningKey
    from perdure.artifacts.verify import Progress
    from perdure.engine.arriving import Arrived, Arriving
    from perdure.engine.versions import Log
    from perdure.model import RequestContext
    from perdure.storage.wrappers.recorded import Recorded

_KEY_NAME = "perdure"
"""It stands in every proof that is given away, so it says nothing of the owner."""


def signing_key_file(home: Path) -> Path:
    return home / "signing-key"


def signing_key(config: Config) -> "SigningKey":
    """Return the key; the first time makes it."""
    from perdure.artifacts.keys import SigningKey

    return SigningKey.load_or_make(signing_key_file(config.home), _KEY_NAME)


ACCOUNT = "local"
"""The account of whoever uses this machine."""
DERIVED = ("index", "vectors", "abstracts", "past", "answers")
"""The folders beside a history that can be thrown away; the last two hold what was paid for."""

SEEN = "seen.sqlite"
"""The table beside a history of what was last seen of each text; it can be thrown away, too."""


def open_storage(
    environ: Mapping[str, str], *, required: Capabilities | None = None
) -> StorageBackend:
    """Open the backend that this user configured; `StorageSelectionError` if it can't be had."""
    return select_backend(load_config(environ).storage, required=required)


def open_recorded(environ: Mapping[str, str]) -> "Recorded":
    return recorded_of(load_config(environ))


def recorded_of(config: Config) -> "Recorded":
    from perdure.storage.history import History
    from perdure.storage.wrappers.recorded import Recorded

    backend = select_backend(config.storage)
    folder = _history_folder(config, backend)
    if folder.with_name(f"{folder.name}.arriving.json").exists():
        from perdure.engine.arriving import demand_arrived

        demand_arrived(folder)  # only a part of it may be there yet
    with suppress(OSError):  # it is there, or whoever writes there says what is wrong
        config.home.mkdir(mode=0o700, parents=True)
    return Recorded(backend, History.open(str(folder)))


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


def user_name(environ: Mapping[str, str]) -> str:
    """Return who this user is: as the environment says, else the system."""
    if told := environ.get("USER") or environ.get("LOGNAME"):
        return told
    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


@contextmanager
def open_log(environ: Mapping[str, str], *, texts: bool = True) -> "Iterator[Log]":
    """Open the log of all accounts, with the texts if they can be had.

    Without the texts nothing can be restored, and `Log.refusal` says why they can't be had. The
    log itself is opened when it is first read, so that a damaged one can be verified.
    """
    from perdure.engine.versions import Log

    with ExitStack() as closing:
        recorded = refusal = None
        try:
            recorded = closing.enter_context(open_recorded(environ)) if texts else None
        except StorageSelectionError as error:
            refusal = error
        log = Log(
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
    return history_of(load_config(environ))


def history_of(config: Config) -> Path:
    path = config.storage.options_for(config.storage.protocol).get("path")
    if config.storage.protocol == "vault" and isinstance(path, str):
        return history_folder(config.home, str(Path(path).resolve()))
    return _history_folder(config, select_backend(config.storage))


def adopt_history(environ: Mapping[str, str], moved_from: str) -> Path | None:
    """Take over the history of a folder that was moved; return where one begun since is put."""
    home, here = load_config(environ).home, find_history(environ)
    there = history_folder(home, str(Path(moved_from).resolve()))
    if there == here or not there.exists():
        raise AbsentError(
            f"no other memory with a history was ever in {moved_from!a}. Fix: name the folder as "
            f"it was before the move; the histories are in {str(home / 'histories')!a}."
        )
    aside = None
    if here.exists():
        aside = here.with_name(f"{here.name}-before-{time_ns() // 1_000_000}")
        here.rename(aside)
    there.rename(here)
    return aside


def _history_folder(config: Config, backend: StorageBackend) -> Path:
    if not backend.identity:
        raise StorageSelectionError(
            f"the backend {config.storage.protocol!a} keeps nothing that a history could be of. "
            "Fix: choose another one with backend in [storage] of the config file."
        )
    return history_folder(config.home, backend.identity)


def history_folder(home: Path, identity: str) -> Path:
    """Return where the history of a tree is kept: in the home, and never in the tree itself."""
    return home / "histories" / sha256(identity.encode(errors="surrogateescape")).hexdigest()[:32]


def open_signing_key(environ: Mapping[str, str]) -> "SigningKey":
    return signing_key(load_config(environ))


def import_memory(
    environ: Mapping[str, str],
    folder: Path,
    *,
    dry_run: bool = False,
    progress: "Progress | None" = None,
) -> "Arrived":
    """Let the memory of this user become one that was exported to a folder.

    Every byte of the export is compared first; a dry run does only that. The memory is empty, or
    an earlier state of the exported one. If it is interrupted, do it again.
    """
    from perdure.engine.arriving import Arrived
    from perdure.engine.exporting import demand_whole

    if dry_run:
        manifest = demand_whole(folder)
        return Arrived(None, manifest.history, manifest.position, len(manifest.files))
    with arriving_into(load_config(environ)) as arriving:
        return arriving.from_folder(folder, progress)


def arriving_into(config: Config) -> "Arriving":
    """Open the place that a memory can be taken into: the one that a config chooses."""
    from perdure.engine.arriving import Arriving
    from perdure.storage.history import History

    backend = select_backend(config.storage)
    folder = _history_folder(config, backend)
    databases = (
        f"{name}.sqlite{log}"
        for name in ("outbox", "links", "seen")
        for log in ("", "-wal", "-shm")
    )
    derived = [folder / name for name in (*DERIVED, *databases)]
    return Arriving(backend, History.open(str(folder)), folder, derived)


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
