"""`perdure repo`."""

import os

import click

from perdure.app import open_recorded, open_texts
from perdure.errors import AbsentError
from perdure.harness.project import remote_of, resolve_project, roots_of
from perdure.harness.repo_registry import Repo, list_repos, register_repo, unregister_repo
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json
from perdure.surfaces.out import picked, shown

_FIELDS = "slug remote? roots"


@click.group("repo")
def repo_command() -> None:
    """Register, list and unregister repositories.

    A registered repository is known on every machine that shares the backend.
    """


@repo_command.command("register")
@click.argument("folder", default=".")
@as_json()
def register(folder: str, *, as_json: bool) -> None:
    """Register the repository of FOLDER, by default of this folder."""
    with open_recorded(os.environ) as backend:
        project = resolve_project(folder, backend)
        repo = Repo(project.slug, remote_of(project), roots_of(project))
        known = register_repo(backend, repo)
    out.answer(picked(known, _FIELDS), f"{known.slug} is registered", as_json=as_json)


@repo_command.command("list")
@as_json(OBJECT_PER_LINE)
def list_(*, as_json: bool) -> None:
    """List the registered repositories."""
    repos = list_repos(open_texts(os.environ))
    if as_json:
        out.json(*(picked(repo, _FIELDS) for repo in repos))
        return
    rows = ((repo.slug, shown(repo.remote), shown(", ".join(repo.roots))) for repo in repos)
    if not out.table(("project", "remote", "checked out at"), rows):
        out.mention("no repository is registered. Fix: run `perdure repo register` in one.")


@repo_command.command("unregister")
@click.argument("slug")
@as_json()
def unregister(slug: str, *, as_json: bool) -> None:
    """Unregister the repository of the project SLUG; its plans and memories stay."""
    with open_recorded(os.environ) as backend:
        was_known = unregister_repo(backend, slug)
    if not was_known:
        raise AbsentError(
            f"no repository {slug[:80]!a} is registered. Fix: see `perdure repo list`."
        )
    out.answer({"slug": slug}, f"{slug} is unregistered", as_json=as_json)
