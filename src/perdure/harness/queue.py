"""The plans of all repositories that are known, at a glance."""

from pathlib import Path
from typing import NamedTuple

from perdure.errors import PerdureError
from perdure.harness.modes import Device
from perdure.harness.plans import Plan, PlanText, list_plans, resolve_active_plan
from perdure.harness.projects import Project, project_locator, resolve_project
from perdure.harness.repo_registry import Repo, list_repos
from perdure.harness.state import StateDir, harness_state_dir
from perdure.storage import StorageBackend


class Queued(NamedTuple):
    """What one repository has to do."""

    repo: Repo
    place: StateDir | None
    """Where its plans are; None if they are on no disk of this machine."""
    plans: tuple[PlanText, ...] = ()
    active: Plan | None = None
    problem: str = ""
    """Why something of it can't be told."""


def queued(backend: StorageBackend, device: Device) -> list[Queued]:
    """Return what the repositories have to do; one that can't be read hides no other."""
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
