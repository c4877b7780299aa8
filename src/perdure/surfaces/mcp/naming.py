"""Which place a model means."""

from perdure.artifacts import IndexState
from perdure.errors import InvalidUriError, InvalidValueError
from perdure.model import RequestContext, Uri
from perdure.model.short_names import place_named
from perdure.model.uri import SCHEME
from perdure.storage.history import History
from perdure.surfaces.asking import is_number


def place_of(text: str, ctx: RequestContext) -> Uri:
    """Return the place; one of another account is refused in words that tell nothing of it."""
    if text.startswith(SCHEME):
        place = Uri.parse(text)
        if place.account != ctx.account_id:
            raise ctx.refuse(place)
        return place
    return place_named(text, ctx)


def node_of(text: str, ctx: RequestContext) -> Uri:
    """Return the place of a memory; a folder is refused."""
    place = place_of(text, ctx)
    if not place.is_node:
        raise InvalidUriError(
            f"{text[:200]!a} names a folder, and no memory. Fix: call list with it, and take a "
            "URI from there."
        )
    return place


def state_of(history: History, at: str) -> IndexState:
    """Return the state of a moment that a model wrote."""
    if is_number(at):
        return history.store.whole(IndexState(0, int(at)))
    try:
        return history.store.whole(history.state_at(at))
    except ValueError as error:
        raise InvalidValueError(
            f"{at!a} is no moment. Fix: write it as 2026-03-02 or 2026-03-02T10:00:00Z."
        ) from error
