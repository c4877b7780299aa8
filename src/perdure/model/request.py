"""The caller of a verb: what it reaches, and the short names that it can use for URIs.

    preference/indentation    a memory of the caller's own
    profile                   the caller's profile
    skills/NAME               a skill of the caller's agent
    resources/...             what the account shares
    sessions/ID/...           what belongs to a session
    users/ID/..., agents/...  what belongs to others
    /                         the whole account

An empty name is the folder of the caller's memories. Special characters may be typed as they are,
or escaped as in a URI.
"""

import re
from collections.abc import Iterable
from enum import Enum
from urllib.parse import quote, unquote

from perdure.dataclass import dataclass, field
from perdure.errors import AccessDeniedError, InvalidUriError, InvalidValueError
from perdure.model.uri import SCHEME, Uri, check_id, name_of
from perdure.model.values import MAX_ABSTRACT, bounded, shown
from perdure.patterns import later

_OWNER_SPACE = later(r"(user|agent):(.+)", re.DOTALL)
_LIKE_ESCAPE = later(r"%(?=[0-9a-fA-F]{2})")
_OF_ACCOUNT = frozenset({"users", "agents", "resources", "sessions"})
_NO_CATEGORIES = _OF_ACCOUNT | {"skills", "memories"}
_KNOWN = (
    "CATEGORY/SLUG, profile, skills/NAME, resources/NAME, sessions/ID/NAME, or a whole ctx:// URI"
)


class Role(Enum):
    ROOT = "root"
    """Creates and deletes accounts; an admin in its own account."""
    ADMIN = "admin"
    MEMBER = "member"
    """Reaches its own spaces, those shared with it, and what the account shares."""


def check_owner_space(text: object) -> str:
    """Return `text` if it is `user:{id}` or `agent:{id}`; `InvalidValueError` if not."""
    match = _OWNER_SPACE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidValueError(
            f"{shown(text)} is not an owner space. Fix: write user:{{id}} or agent:{{id}}."
        )
    check_id(match[2], match[1])
    return match[0]


def owner_space_at(place: Uri, given: str) -> str:
    """Return the owner of a place: the one in its URI, else the given; both must agree."""
    named = place.owner_space
    if given == named:
        return named
    if named and given != "":
        raise InvalidValueError(
            f"{shown(str(place))} belongs to {shown(named)}, not to {shown(given)}. "
            "Fix: leave the owner out."
        )
    return named or check_owner_space(given)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The caller of a verb. Every verb of memory takes one, and stays within its reach."""

    account_id: str
    user_id: str
    agent_id: str = "default"
    session_id: str = ""
    trace_id: str = ""
    role: Role = Role.MEMBER
    visible_owner_spaces: frozenset[str] = field(default_factory=frozenset)
    """The spaces that it reaches beyond its own user and agent."""

    def __post_init__(self) -> None:
        check_id(self.account_id, "account")
        check_id(self.user_id, "user")
        check_id(self.agent_id, "agent")
        if self.session_id != "":
            check_id(self.session_id, "session")
        if not isinstance(self.role, Role):
            raise InvalidValueError(f"{shown(self.role)} is not a role. Fix: use a Role.")
        spaces: object = self.visible_owner_spaces
        if not isinstance(spaces, Iterable):
            raise InvalidValueError(
                f"{shown(spaces)} is not a set of owner spaces. Fix: give a set."
            )
        put = object.__setattr__
        put(self, "trace_id", bounded(self.trace_id, MAX_ABSTRACT, "trace id"))
        put(self, "visible_owner_spaces", frozenset(map(check_owner_space, spaces)))

    @property
    def owner_spaces(self) -> frozenset[str]:
        """The spaces of users and agents that a member reaches; an admin reaches all."""
        own = {f"user:{self.user_id}", f"agent:{self.agent_id}"}
        return self.visible_owner_spaces | own

    @property
    def governs(self) -> bool:
        return self.role is not Role.MEMBER

    def reaches(self, owner_space: str) -> bool:
        """Whether the caller may see an owner space of its account, or what the account shares."""
        if owner_space.startswith("account:"):
            return owner_space == f"account:{self.account_id}"
        if self.role is not Role.MEMBER:
            return True
        own = (f"user:{self.user_id}", f"agent:{self.agent_id}")
        return owner_space in own or owner_space in self.visible_owner_spaces

    def may_see(self, uri: Uri) -> bool:
        """Whether a place is within reach by its URI; the owner of a session is checked apart."""
        if uri.account != self.account_id:
            return False
        owner = uri.owner_space
        return not owner or self.reaches(owner)

    def may_change(self, uri: Uri) -> bool:
        """As `may_see`, but only those who govern change resources and folders above owners."""
        owned = len(uri.path) > 1 and uri.path[0] != "resources"
        return self.may_see(uri) and (self.governs or owned)

    def demand_governing(self, what: str) -> None:
        """Raise `AccessDeniedError` unless all of the account is within reach."""
        if not self.governs:
            raise AccessDeniedError(
                f"{self.user_id[:80]!a} of account {self.account_id[:80]!a} is {self.role.value} "
                f"and may not {what}. "
                "Fix: ask an admin, or add --as-role admin on the command line."
            )

    def refuse(self, uri: Uri | str) -> AccessDeniedError:
        """Return an error that reveals nothing about what is stored."""
        return AccessDeniedError(
            f"{str(uri)[:200]!a} is out of reach for user {self.user_id[:80]!a} and agent "
            f"{self.agent_id[:80]!a} of account {self.account_id[:80]!a}. "
            "Fix: ask as a user who may see it, or let its owner share the owner space."
        )


def place_named(text: str, ctx: RequestContext) -> Uri:
    """Return the place that a caller means by a short name or a URI; `InvalidUriError` if none."""
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
            f"{text!a} has an invalid escape. Fix: name it as {_KNOWN}."
        ) from None


def _within(ctx: RequestContext, place: Uri) -> Uri:
    if place.account != ctx.account_id:
        raise AccessDeniedError(
            f"{str(place)!a} is out of reach: it is in another account than {ctx.account_id!a}. "
            "Fix: name one in that account",
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
    names = [spelled(name) for name in place.path]
    own = _own(ctx)
    if place.path == own:
        return "memories"
    if place.path[: len(own)] == own and place.path[len(own)] not in _NO_CATEGORIES:
        return "/".join(names[len(own) :])
    if place.path[:3] == ("agents", ctx.agent_id, "skills"):
        return "/".join(names[2:])
    return "/".join(names) or "/"


_CONTENT = "/content.md"
"""The end of the key of a node's content."""


def text_named(key: str, ctx: RequestContext) -> str:
    """Return the name of a text that the caller can type; for a content, that of its node."""
    place = Uri.of_key(key.rpartition("/")[0])
    if place is None or not place.is_node or place.account != ctx.account_id:
        return "/".join(spelled(name_of(each) or each) for each in key.split("/"))
    return name_for(place, ctx) + key[len(place.key) :].removesuffix(_CONTENT)


def spelled(name: str) -> str:
    """Return one segment of a name, readable, and with unprintable characters escaped."""
    plain = _LIKE_ESCAPE.sub("%25", name)
    return "".join(c if c.isprintable() and c != "/" else quote(c, safe="") for c in plain)


def _own(ctx: RequestContext) -> tuple[str, ...]:
    return ("users", ctx.user_id, "memories")
