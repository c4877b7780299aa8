"""Recall for the folder of a process, and offers of what it could save. Nothing is written."""

import os
from collections.abc import Mapping

from perdure.app.memory_reader import MemoryReader, open_reader
from perdure.app.open import ACCOUNT
from perdure.engine.recall.packing import packed
from perdure.errors import DamageError, ProjectError, StorageError, StorageSelectionError
from perdure.harness.project import resolve_project
from perdure.model.uri import PROFILE, SLUG, Uri
from perdure.process.phase_notes import (
    NoteScope,
    RecallAnswer,
    notes_for,
    phase_named,
    shown_by,
    tiers_of,
)
from perdure.process.process_context import ProcessContext, parse_context


def recall_here(
    context: ProcessContext, *, query: str | None = None, limit: int | None = None
) -> str:
    """Return the memories for the work in this folder as Markdown; empty if there are none.

    First the notes that are always loaded, then those of the project that fit the phase, the newest
    first; with a `query`, those that answer it. `limit` is the maximum of tokens; the default is
    the phase's. Memory that is not available is empty, and nothing is ever written.
    """
    return recall_with_reason(context, query, limit).markdown


def recall_with_reason(
    context: ProcessContext, query: str | None, limit: int | None
) -> RecallAnswer:
    """As `recall_here`, with the reason why the answer is empty or incomplete."""
    cwd, name, _ = parse_context(context)
    phase = phase_named(name)
    try:
        reading = open_reader(os.environ)
        project = resolve_project(cwd, None, reading.aliases()).slug
        scope = NoteScope(reading, project, phase, phase.budget if limit is None else limit)
        if query is None or not query.strip():
            return _notes(scope)
        from perdure.process.project_search import search_project  # noqa: PLC0415 - only a query needs it

        return search_project(scope, query)
    except (StorageSelectionError, StorageError, ProjectError, DamageError) as error:
        return RecallAnswer(reason=str(error))


def _notes(scope: NoteScope) -> RecallAnswer:
    notes, reason = notes_for(scope)
    found = packed(tiers_of(notes, scope), scope.budget, shown_by(scope))
    return RecallAnswer(found.markdown, reason)


def offer_save_here(context: ProcessContext, candidate: object) -> list[dict[str, object]]:
    """Return the candidate with its project and its target URI; nothing is saved.

    The candidate is neither judged nor checked. Without a candidate, a memory or a project the list
    is empty.
    """
    return offer_with_reason(context, candidate)[0]


def offer_with_reason(
    context: ProcessContext, candidate: object
) -> tuple[list[dict[str, object]], str]:
    """As `offer_save_here`, with the reason why the list is empty."""
    if not candidate or (isinstance(candidate, str) and not candidate.strip()):
        return [], ""
    cwd, phase, _ = parse_context(context)
    try:
        reading = open_reader(os.environ)
        project = resolve_project(cwd, None, reading.aliases()).slug
    except (StorageSelectionError, StorageError, ProjectError) as error:
        return [], str(error)
    copy = dict(candidate) if isinstance(candidate, Mapping) else {"body": candidate}
    phases = {} if phase is None else {"phase": phase}
    return [{**copy, **phases, "project": project, "target": _target(reading, copy)}], ""


def _target(reading: MemoryReader, candidate: Mapping[str, object]) -> str | None:
    """Return the URI that the candidate would have; None if kind or slug is missing or invalid."""
    kind, slug = candidate.get("kind"), candidate.get("slug")
    owner = ("users", reading.user, "memories")
    if kind == PROFILE:
        return str(Uri(ACCOUNT, (*owner, PROFILE)))
    if not isinstance(kind, str) or not isinstance(slug, str):
        return None
    if not SLUG.fullmatch(kind) or not SLUG.fullmatch(slug):
        return None
    return str(Uri(ACCOUNT, (*owner, kind, slug)))
