"""What memory has where a process works, and what could be saved from there. Nothing is written."""

import os
from collections.abc import Mapping

from perdure.app.opening import ACCOUNT
from perdure.app.reading import Reading, open_to_read
from perdure.engine.recall.token_budget import pack
from perdure.errors import DamageError, ProjectError, StorageError, StorageSelectionError
from perdure.harness.projects import resolve_project
from perdure.model.uri import PROFILE, SLUG, Uri
from perdure.process.asked import Context, asked
from perdure.process.notes import Recalled, Scope, notes_for, phase_named, shown_by, tiers_of


def recall_here(context: Context, *, query: str | None = None, limit: int | None = None) -> str:
    """Return the memories for the work in this folder, as Markdown; empty if there are none.

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
    found = pack(tiers_of(notes, scope), scope.budget, shown_by(scope))
    return Recalled(found.markdown, reason)


def offer_save_here(context: Context, candidate: object) -> list[dict[str, object]]:
    """Return the candidate with its project and where it would be saved; nothing is saved.

    Whether it is worth saving is not judged, and nothing in it is checked. Without a candidate, a
    memory or a project there is nothing to offer.
    """
    return offered(context, candidate)[0]


def offered(context: Context, candidate: object) -> tuple[list[dict[str, object]], str]:
    """As `offer_save_here`, with the reason why there is nothing."""
    if not candidate or (isinstance(candidate, str) and not candidate.strip()):
        return [], ""
    cwd, phase, _ = asked(context)
    try:
        reading = open_to_read(os.environ)
        project = resolve_project(cwd, None, reading.aliases()).slug
    except (StorageSelectionError, StorageError, ProjectError) as error:
        return [], str(error)
    copy = dict(candidate) if isinstance(candidate, Mapping) else {"body": candidate}
    phases = {} if phase is None else {"phase": phase}
    return [{**copy, **phases, "project": project, "target": _target(reading, copy)}], ""


def _target(reading: Reading, candidate: Mapping[str, object]) -> str | None:
    """Return the URI of the memory that it would be; None if it does not say enough."""
    kind, slug = candidate.get("kind"), candidate.get("slug")
    owner = ("users", reading.user, "memories")
    if kind == PROFILE:
        return str(Uri(ACCOUNT, (*owner, PROFILE)))
    if not isinstance(kind, str) or not isinstance(slug, str):
        return None
    if not SLUG.fullmatch(kind) or not SLUG.fullmatch(slug):
        return None
    return str(Uri(ACCOUNT, (*owner, kind, slug)))
