"""What could be saved from here. To save it is somebody else's call."""

import os
from collections.abc import Mapping

from perdure.app.opening import ACCOUNT
from perdure.app.reading import Reading, open_to_read
from perdure.errors import ProjectError, StorageError, StorageSelectionError
from perdure.harness.projects import resolve_project
from perdure.model.uri import PROFILE, SLUG, Uri
from perdure.process.asked import Context, asked


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
    said = {} if phase is None else {"phase": phase}
    return [{**copy, **said, "project": project, "target": _target(reading, copy)}], ""


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
