"""Recall for the folder of a process, and offers of what it could save. Nothing is written."""

import os
from collections.abc import Mapping

from perdure.app.memory_reader import open_reader
from perdure.app.open import ACCOUNT
from perdure.engine.recall.result import pack
from perdure.errors import (
    DamageError,
    InvalidValueError,
    ProjectError,
    StorageError,
    StorageSelectionError,
)
from perdure.harness.project import resolve_project
from perdure.model.uri import PROFILE, SLUG, Uri
from perdure.process.phase_notes import NoteScope, notes_for, phase_named, shown_by, tiers_of

HostContext = Mapping[str, object] | None


def parse_context(context: HostContext) -> tuple[str, object, str | None]:
    """Return the folder, the phase and the plan of a context; each may be missing."""
    given = context or {}
    cwd, plan = given.get("cwd"), given.get("plan")
    return _folder(cwd), given.get("phase"), None if plan is None or plan == "" else str(plan)


def _folder(cwd: object) -> str:
    if isinstance(cwd, str | os.PathLike) and os.fspath(cwd):
        return os.fsdecode(cwd)
    if cwd is not None and cwd != "":
        raise InvalidValueError(f"{str(cwd)[:80]!a} is not a path. Fix: give cwd as a path.")
    try:
        return os.getcwd()  # noqa: PTH109 - as a text
    except OSError:  # it was removed
        return os.curdir


def recall_here(context: HostContext, *, query: str | None = None, limit: int | None = None) -> str:
    """Return the memories for the work in this folder as Markdown; empty if there are none.

    First the notes that are always loaded, then those of the project that fit the phase, the newest
    first; with a `query`, those that answer it. `limit` is the maximum of tokens; the default is
    the phase's. Memory that is not available is empty, and nothing is ever written.
    """
    return recall_with_reason(context, query, limit)[0]


def recall_with_reason(
    context: HostContext, query: str | None, limit: int | None
) -> tuple[str, str]:
    """As `recall_here`, with the reason why the answer is empty or incomplete."""
    cwd, name, _ = parse_context(context)
    phase = phase_named(name)
    try:
        memory = open_reader(os.environ)
        project = resolve_project(cwd, None, memory.aliases()).slug
        scope = NoteScope(memory, project, phase, phase.budget if limit is None else limit)
        if query is None or not query.strip():
            notes, reason = notes_for(scope)
            found = pack(tiers_of(notes, scope), scope.budget, shown_by(scope))
            return found.markdown, reason
        from perdure.process.project_search import search_project  # noqa: PLC0415 - for queries

        return search_project(scope, query)
    except (StorageSelectionError, StorageError, ProjectError, DamageError) as error:
        return "", str(error)


def offer_save_here(context: HostContext, candidate: object) -> list[dict[str, object]]:
    """Return the candidate with its project and its target URI; nothing is saved.

    The candidate is neither judged nor checked. Without a candidate, a memory or a project the list
    is empty.
    """
    return offer_with_reason(context, candidate)[0]


def offer_with_reason(
    context: HostContext, candidate: object
) -> tuple[list[dict[str, object]], str]:
    """As `offer_save_here`, with the reason why the list is empty."""
    if not candidate or (isinstance(candidate, str) and not candidate.strip()):
        return [], ""
    cwd, phase, _ = parse_context(context)
    try:
        memory = open_reader(os.environ)
        project = resolve_project(cwd, None, memory.aliases()).slug
    except (StorageSelectionError, StorageError, ProjectError) as error:
        return [], str(error)
    copy = dict(candidate) if isinstance(candidate, Mapping) else {"body": candidate}
    phases = {} if phase is None else {"phase": phase}
    return [{**copy, **phases, "project": project, "target": _target(memory.user, copy)}], ""


def _target(user: str, candidate: Mapping[str, object]) -> str | None:
    """Return the URI that the candidate would have; None if kind or slug is missing or invalid."""
    kind, slug = candidate.get("kind"), candidate.get("slug")
    owner = ("users", user, "memories")
    if kind == PROFILE:
        return str(Uri(ACCOUNT, (*owner, PROFILE)))
    if not isinstance(kind, str) or not isinstance(slug, str):
        return None
    if not SLUG.fullmatch(kind) or not SLUG.fullmatch(slug):
        return None
    return str(Uri(ACCOUNT, (*owner, kind, slug)))
