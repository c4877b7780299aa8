"""Names of places as people type them: whole URIs, or short forms from the caller's point of view.

    preference/indentation    a memory of the caller's own
    profile                   the caller's profile
    skills/NAME               a skill of the caller's agent
    resources/...             what the account shares
    sessions/ID/...           what belongs to a session
    users/ID/..., agents/...  what belongs to others
    /                         the whole account

Nothing at all is the folder of the caller's memories. What is no plain letter may be typed as it
is, or escaped as in a URI.
"""

from urllib.parse import quote, unquote

from perdure.errors import AccessDeniedError, InvalidUriError
from perdure.model import RequestContext, Uri
from perdure.model.uri import SCHEME

_OF_ACCOUNT = frozenset({"users", "agents", "resources", "sessions"})
_NO_CATEGORIES = _OF_ACCOUNT | {"skills", "memories"}
_KNOWN = (
    "CATEGORY/SLUG, profile, skills/NAME, resources/NAME, sessions/ID/NAME, or a whole ctx:// URI"
)


def place_named(text: str, ctx: RequestContext) -> Uri:
    """Return the place that a caller means; `InvalidUriError` if it can be none."""
    try:
        if text.startswith(SCHEME):
            return _within(ctx, Uri.parse(SCHEME + text.removeprefix(SCHEME).rstrip("/")))
        return Uri(ctx.account_id, _path(text, ctx))
    except InvalidUriError as error:
        what, _, fix = str(error).partition("\n")[0].partition(" Fix: ")
        fix = fix if fix.endswith(".") and "below" not in fix else f"name it as {_KNOWN}."
        raise InvalidUriError(f"{what} Fix: {fix}") from None
    except UnicodeDecodeError:
        raise InvalidUriError(
            f"{text!a} has an escape that stands for no character. Fix: name it as {_KNOWN}."
        ) from None


def _within(ctx: RequestContext, place: Uri) -> Uri:
    if place.account != ctx.account_id:
        raise AccessDeniedError(
            f"{str(place)!a} is out of reach: it is in another account than {ctx.account_id!a}. "
            "Fix: name a place in that one",
            options={"account": place.account},
        )
    return place


def _path(text: str, ctx: RequestContext) -> tuple[str, ...]:
    own = _own(ctx)
    plain = text.strip("/")
    if not plain:
        return () if text else own
    names = tuple(unquote(part, errors="strict") for part in plain.split("/"))
    first, *rest = names
    if text.startswith("/") or first in _OF_ACCOUNT:
        return names
    if first == "skills":
        return ("agents", ctx.agent_id, *names)
    return (*own, *rest) if first == "memories" else (*own, *names)


def name_for(place: Uri, ctx: RequestContext) -> str:
    """Return the shortest name that the caller can type for a place of its account."""
    parts = [spelled(name) for name in place.path]
    own = _own(ctx)
    if place.path == own:
        return "memories"
    if place.path[: len(own)] == own and place.path[len(own)] not in _NO_CATEGORIES:
        return "/".join(parts[len(own) :])
    if place.path[:3] == ("agents", ctx.agent_id, "skills"):
        return "/".join(parts[2:])
    return "/".join(parts) or "/"


def spelled(name: str) -> str:
    """Return one part of a name so that it can be read, typed again, and does nothing else."""
    return "".join(c if c.isprintable() and c not in "/%" else quote(c, safe="") for c in name)


def _own(ctx: RequestContext) -> tuple[str, ...]:
    return ("users", ctx.user_id, "memories")
