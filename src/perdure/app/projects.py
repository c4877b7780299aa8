"""From a user's environment to a project and its state."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from perdure.app.opening import recorded_of, storage_of
from perdure.config import Config, load_config
from perdure.errors import PerdureError, StateUnavailableError, StorageSelectionError
from perdure.harness.plans import Plan, PlanText, list_plans, resolve_active_plan
from perdure.harness.projects import (
    Project,
    identity_at,
    project_locator,
    project_root,
    resolve_project,
)
from perdure.harness.repo_registry import Repo, list_repos
from perdure.harness.state import (
    LOCAL,
    Device,
    StateDir,
    harness_state_dir,
    marked_mode,
    state_mode,
)
from perdure.model.project_aliases import ProjectIdentity
from perdure.model.uri import slug_of
from perdure.storage import StorageBackend
from perdure.storage.wrappers.read_only import ReadOnly


class ProjectState(NamedTuple):
    project: Project
    device: Device
    place: StateDir


def open_project(environ: Mapping[str, str], cwd: str) -> Project:
    """Return the project of a folder, with the configured backend or `StorageSelectionError`."""
    return resolve_project(cwd, storage_of(load_config(environ)))


def identity_named(project: Path | str) -> ProjectIdentity:
    """Return the identity of a project: of the name given, or of the project a folder is in.

    A path, and a text that begins with `.` or `~` or has a slash, is a folder. It is empty for a
    folder in no project, and for "". `ProjectError` if there is no such folder.
    """
    text = str(project)
    if isinstance(project, str) and text[:1] not in {".", "~"} and os.sep not in text:
        return ProjectIdentity(slug_of(text))
    folder = str(Path(text).expanduser().absolute())
    project_root(folder)
    return identity_at(folder)


def to_read(config: Config) -> StorageBackend:
    """Open the backend that is configured, and no way to change it."""
    return ReadOnly(storage_of(config))


def open_state(
    environ: Mapping[str, str], cwd: str, opened: Callable[[Config], StorageBackend] = storage_of
) -> ProjectState:
    """Return the project of a folder, and where its state is kept.

    Whoever keeps state locally needs no backend. If a backend is to keep it and can't be had:
    `StateUnavailableError`, for to keep it elsewhere meanwhile would make two states of one.
    """
    config = load_config(environ)
    device = device_of(config)
    is_local = state_mode(project_root(cwd), device) == LOCAL
    try:
        backend = None if is_local else opened(config)
    except StorageSelectionError as error:
        raise StateUnavailableError(
            f"the state of projects can't be reached: {error} If it is to stay on this machine, "
            "run `perdure state-mode local`."
        ) from error
    project = resolve_project(cwd, backend)
    return ProjectState(project, device, harness_state_dir(project, device))


@contextmanager
def changing_state(environ: Mapping[str, str], cwd: str) -> Iterator[ProjectState]:
    """Open the state of a project to change it; what a backend keeps of it enters history."""
    from perdure.storage.wrappers.recorded import Recorded

    opened = open_state(environ, cwd, recorded_of)
    backend = opened.project.backend
    with closing(backend) if isinstance(backend, Recorded) else nullcontext():
        yield opened


def device_of(config: Config) -> Device:
    return Device(str(config.home), config.state_mode)


class StateModes(NamedTuple):
    """Who keeps the state of a project, and who says so; None if that says nothing."""

    mode: str
    checkout: str | None
    machine: str | None


def state_modes(
    environ: Mapping[str, str], cwd: str, change: str | None = None, *, here: bool = False
) -> StateModes:
    """Return who keeps the state of a project; `change` it first, for the machine or `here`."""
    root = project_root(cwd)
    if change is not None and here:
        from perdure.harness.state_writing import mark_mode

        mark_mode(root, str(load_config(environ).home), change)
    elif change is not None:
        from perdure.app.setup import set_state_mode

        set_state_mode(environ, change)
    device = device_of(load_config(environ))
    return StateModes(state_mode(root, device), marked_mode(root), device.state_mode)


class Queued(NamedTuple):
    repo: Repo
    place: StateDir | None
    """Where its plans are; None if they are on no disk of this machine."""
    plans: tuple[PlanText, ...] = ()
    active: Plan | None = None
    problem: str = ""


def queue_of(environ: Mapping[str, str]) -> list[Queued]:
    """Return the plans of all registered repositories; one that can't be read hides no other."""
    config = load_config(environ)
    backend, device = storage_of(config), device_of(config)
    return [
        _looked_at(repo, place)
        for repo in list_repos(backend)
        for place in _places(repo, backend, device)
    ]


def _places(repo: Repo, backend: StorageBackend, device: Device) -> list[StateDir | str | None]:
    """Return where the plans of a repository are, each place once; a text says why not."""
    found: dict[str, StateDir | str | None] = {}
    for root in repo.roots:
        if Path(root).is_dir():
            try:
                project = resolve_project(root, backend)
                place = harness_state_dir(project, device)
            except PerdureError as error:
                found[root] = str(error)
                continue
            if project.slug == repo.slug:  # else something else is there by now
                found[place.shown] = place
    if not found:
        locator = project_locator(backend, repo.slug)
        elsewhere = harness_state_dir(Project(repo.slug, locator, backend, "/", ""), device)
        found[""] = None if elsewhere.is_local else elsewhere
    return list(found.values())


def _looked_at(repo: Repo, place: StateDir | str | None) -> Queued:
    if place is None:
        return Queued(repo, None, problem="it is not checked out on this machine")
    if isinstance(place, str):
        return Queued(repo, None, problem=place)
    try:
        plans = tuple(list_plans(place))
        return Queued(repo, place, plans, resolve_active_plan(place))
    except PerdureError as error:
        return Queued(repo, place, problem=str(error))
