"""What is recalled where a process works: what is always loaded, then what is of the project."""

import os

from perdure.app.reading import open_to_read
from perdure.engine.recall.packing import packed
from perdure.errors import DamageError, ProjectError, StorageError, StorageSelectionError
from perdure.harness.projects import resolve_project
from perdure.process.asked import Context, asked
from perdure.process.notes import Recalled, Scope, notes_for, phase_named, shown_by, tiers_of


def recall_here(context: Context, *, query: str | None = None, limit: int | None = None) -> str:
    """Return what memory has for whoever works here, as Markdown; empty if there is none.

    That is what is always loaded, then what is of the project and fits the phase, the newest
    first; with a `query`, what answers it. `limit` is the most tokens, else as the phase says. What
    can't be had is empty; nothing is ever written.
    """
    return recalled(context, query, limit).markdown


def recalled(context: Context, query: str | None, limit: int | None) -> Recalled:
    """As `recall_here`, with the reason why there is nothing, or not all."""
    cwd, name, _ = asked(context)
    phase = phase_named(name)
    try:
        reading = open_to_read(os.environ)
        project = resolve_project(cwd, None, reading.aliases()).slug
        scope = Scope(reading, project, phase, phase.budget if limit is None else limit)
        if query is None or not query.strip():
            return _unasked(scope)
        from perdure.process.searching import searched  # noqa: PLC0415 - who asks pays

        return searched(scope, query)
    except (StorageSelectionError, StorageError, ProjectError, DamageError) as error:
        return Recalled(reason=str(error))


def _unasked(scope: Scope) -> Recalled:
    notes, reason = notes_for(scope)
    found = packed(tiers_of(notes, scope), scope.budget, shown_by(scope))
    return Recalled(found.markdown, reason)
