"""The project of a folder, its state and its plans, with the configured backend."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from perdure.app.open import recorded_for, storage_for
from perdure.config import Config, load_config
from perdure.errors import PerdureError, StateUnavailableError, StorageSelectionError
from perdure.harness.project import (
    Project,
    identity_at,
    project_locator,
    project_root,
    resolve_project,
)
from perdure.harness.repo_registry import Repo, list_repos
from perdure.harness.state_files import (
    LOCAL,
    Device,
    Plan,
    PlanText,
    StateDir,
    harness_state_dir,
    list_plans,
    marked_mode,
    resolve_active_plan,
    state_mode,
)
from perdure.model.project_aliases import ProjectIdentity
from perdure.model.uri import slug_of
from perdure.storage import StorageBackend
from perdure.storage.read_only import ReadOnly


class ProjectState(NamedTuple):
    project: Project
    device: Device
    place: StateDir


def open_project(environ: Mapping[str, str], cwd: str) -> Project:
    """Return the project of a folder; raises `StorageSelectionError` without a backend."""
    return resolve_project(cwd, storage_for(load_config(environ)))


def identity_named(project: Path | str) -> ProjectIdentity:
    """Return the identity of the project with this name, or of the project of a folder.

    A path, and a text that starts with `.` or `~` or contains a slash, is a folder. The identity
    is empty for a folder in no project, and for "". Raises `ProjectError` if the folder is absent.
    """
    text = str(project)
    if isinstance(project, str) and text[:1] not in {".", "~"} and os.sep not in text:
        return ProjectIdentity(slug_of(text))
    folder = str(Path(text).expanduser().absolute())
    project_root(folder)
    return identity_at(folder)


def read_only_storage(config: Config) -> StorageBackend:
    """Open the configured backend read-only."""
    return ReadOnly(storage_for(config))


def open_state(
    environ: Mapping[str, str], cwd: str, opened: Callable[[Config], StorageBackend] = storage_for
) -> ProjectState:
    """Return the project of a folder, and the place of its state.

    Local state needs no backend. If the state belongs to a backend that is not available, raises
    `StateUnavailableError`: to write it elsewhere meanwhile would create a second state.
    """
    config = load_config(environ)
    device = device_for(config)
    is_local = state_mode(project_root(cwd), device) == LOCAL
    try:
        backend = None if is_local else opened(config)
    except StorageSelectionError as error:
        raise StateUnavailableError(
            f"the state of projects is not available: {error} To store it on this machine, run "
            "`perdure state-mode local`."
        ) from error
    project = resolve_project(cwd, backend)
    return ProjectState(project, device, harness_state_dir(project, device))


@contextmanager
def edit_state(environ: Mapping[str, str], cwd: str) -> Iterator[ProjectState]:
    """Open the state of a project for changes; changes in a backend are recorded in history."""
    from perdure.storage.recorded import Recorded

    opened = open_state(environ, cwd, recorded_for)
    backend = opened.project.backend
    with closing(backend) if isinstance(backend, Recorded) else nullcontext():
        yield opened


def device_for(config: Config) -> Device:
    return Device(str(config.home), config.state_mode)


class StateModes(NamedTuple):
    """The mode of a project's state, and the settings that decide; None if not set."""

    mode: str
    checkout: str | None
    machine: str | None


def state_modes(
    environ: Mapping[str, str], cwd: str, change: str | None = None, *, here: bool = False
) -> StateModes:
    """Return the mode of a project's state, after a `change` for the machine or only `here`."""
    root = project_root(cwd)
    if change is not None and here:
        from perdure.harness.state_writer import mark_mode

        mark_mode(root, str(load_config(environ).home), change)
    elif change is not None:
        from perdure.app.setup import set_state_mode

        set_state_mode(environ, change)
    device = device_for(load_config(environ))
    return StateModes(state_mode(root, device), marked_mode(root), device.state_mode)


class QueueEntry(NamedTuple):
    repo: Repo
    place: StateDir | None
    """Where its plans are; None if they are not on this machine."""
    plans: tuple[PlanText, ...] = ()
    active: Plan | None = None
    problem: str = ""


def plan_queue(environ: Mapping[str, str]) -> list[QueueEntry]:
    """Return the plans of all registered repositories, with the problem of each unreadable one."""
    config = load_config(environ)
    backend, device = storage_for(config), device_for(config)
    return [each for repo in list_repos(backend) for each in _entries(repo, backend, device)]


def _entries(repo: Repo, backend: StorageBackend, device: Device) -> list[QueueEntry]:
    """Return an entry for each place of a repository's plans."""
    found: dict[str, QueueEntry] = {}
    for root in filter(os.path.isdir, repo.roots):
        try:
            project = resolve_project(root, backend)
            place = harness_state_dir(project, device)
        except PerdureError as error:
            found[root] = QueueEntry(repo, None, problem=str(error))
            continue
        if project.slug == repo.slug and place.shown not in found:  # else another project
            found[place.shown] = _entry(repo, place)
    if found:
        return list(found.values())
    locator = project_locator(backend, repo.slug)
    place = harness_state_dir(Project(repo.slug, locator, backend, "/", ""), device)
    if place.is_local:
        return [QueueEntry(repo, None, problem="not checked out on this machine")]
    return [_entry(repo, place)]


def _entry(repo: Repo, place: StateDir) -> QueueEntry:
    try:
        return QueueEntry(repo, place, tuple(list_plans(place)), resolve_active_plan(place))
    except PerdureError as error:
        return QueueEntry(repo, place, problem=str(error))
