"""`perdure repo`."""

import os

import click

from perdure.app import open_recorded, open_storage
from perdure.errors import AbsentError
from perdure.harness import (
    Repo,
    list_repos,
    register_repo,
    remote_of,
    resolve_project,
    unregister_repo,
)
from perdure.harness.projects import roots_of
from perdure.surfaces.asking import OBJECT_PER_LINE, ONE_OBJECT, as_json
from perdure.surfaces.telling import mention, shown, tell_json, tell_line, tell_table


@click.group("repo")
def repo_command() -> None:
    """Register, list and unregister repositories.

    What is registered is known on every machine that shares the backend.
    """


@repo_command.command("register")
@click.argument("folder", default=".")
@as_json(ONE_OBJECT)
def register(folder: str, *, as_json: bool) -> None:
    """Let the project of FOLDER be known; this folder's, if you don't say."""
    with open_recorded(os.environ) as backend:
        project = resolve_project(folder, backend)
        repo = Repo(project.slug, remote_of(project), roots_of(project))
        known = register_repo(backend, repo)
    if as_json:
        tell_json(_json(known))
    else:
        tell_line(f"{known.slug} is registered")


@repo_command.command("list")
@as_json(OBJECT_PER_LINE)
def list_(*, as_json: bool) -> None:
    """List the repositories that are known."""
    repos = list_repos(open_storage(os.environ))
    if as_json:
        tell_json(*map(_json, repos))
        return
    rows = ((repo.slug, shown(repo.remote), shown(", ".join(repo.roots))) for repo in repos)
    if not tell_table(("project", "remote", "checked out at"), rows):
        mention("no repository is registered. Fix: run `perdure repo register` in one.")


@repo_command.command("unregister")
@click.argument("slug")
@as_json(ONE_OBJECT)
def unregister(slug: str, *, as_json: bool) -> None:
    """Forget that the project SLUG is a repository; its plans and memories stay."""
    with open_recorded(os.environ) as backend:
        was_known = unregister_repo(backend, slug)
    if not was_known:
        raise AbsentError(
            f"no repository {slug[:80]!a} is registered. Fix: `perdure repo list` shows them."
        )
    if as_json:
        tell_json({"slug": slug})
    else:
        tell_line(f"{slug} is unregistered")


def _json(repo: Repo) -> dict[str, object]:
    return {"slug": repo.slug, "remote": repo.remote or None, "roots": list(repo.roots)}
