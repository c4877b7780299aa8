"""Who asks, and what is within their reach."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from perdure.errors import AccessDeniedError, InvalidValueError
from perdure.model.uri import Uri, check_id
from perdure.model.values import MAX_ABSTRACT, bounded, shown

_OWNER_SPACE = re.compile(r"(user|agent):(.+)", re.DOTALL)


class Role(Enum):
    ROOT = "root"
    """Makes and deletes accounts; in its own account it may all that an admin may."""
    ADMIN = "admin"
    """Reaches all that is in its account."""
    MEMBER = "member"
    """Reaches its own spaces, those it was shown, and what the account shares."""


def check_owner_space(text: object) -> str:
    """Return `text` if it is `user:{id}` or `agent:{id}`; `InvalidValueError` if not."""
    match = _OWNER_SPACE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidValueError(
            f"{shown(text)} is no owner space. Fix: write user:{{id}} or agent:{{id}}."
        )
    check_id(match[2], match[1])
    return match[0]


def owner_space_at(place: Uri, given: str) -> str:
    """Return whose a place is: as its name says, else as given; a contradiction is refused."""
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
    """On whose behalf a verb is called. Every verb of memory takes one, and obeys it."""

    account_id: str
    user_id: str
    agent_id: str = "default"
    session_id: str = ""
    trace_id: str = ""
    role: Role = Role.MEMBER
    visible_owner_spaces: frozenset[str] = field(default_factory=frozenset)
    """What it was shown beyond its own user and agent."""

    def __post_init__(self) -> None:
        check_id(self.account_id, "account")
        check_id(self.user_id, "user")
        check_id(self.agent_id, "agent")
        if self.session_id != "":
            check_id(self.session_id, "session")
        if not isinstance(self.role, Role):
            raise InvalidValueError(f"{shown(self.role)} is no role. Fix: use a Role.")
        spaces: object = self.visible_owner_spaces
        if not isinstance(spaces, Iterable):
            raise InvalidValueError(f"{shown(spaces)} is no set of owner spaces. Fix: give a set.")
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
        """Whether what somebody has in this account is within reach; so is what all share."""
        if owner_space.startswith("account:"):
            return owner_space == f"account:{self.account_id}"
        return self.governs or owner_space in self.owner_spaces

    def may_see(self, uri: Uri) -> bool:
        """Whether a place is within reach, as far as its name tells; a session has its owner."""
        if uri.account != self.account_id:
            return False
        owner = uri.owner_space
        return not owner or self.reaches(owner)

    def may_change(self, uri: Uri) -> bool:
        """As `may_see`; but resources and folders above owners are changed by those who govern."""
        owned = len(uri.path) > 1 and uri.path[0] != "resources"
        return self.may_see(uri) and (self.governs or owned)

    def demand_governing(self, what: str) -> None:
        """Raise `AccessDeniedError` unless all of the account is within reach."""
        if not self.governs:
            raise AccessDeniedError(
                f"{self.user_id[:80]!a} of account {self.account_id[:80]!a} is {self.role.value} "
                f"and may not {what}. Fix: ask an admin",
                options={"role": Role.ADMIN.value},
            )

    def refuse(self, uri: Uri | str) -> AccessDeniedError:
        """Say no in words that tell nothing of what is there."""
        return AccessDeniedError(
            f"{str(uri)[:200]!a} is out of reach for user {self.user_id[:80]!a} and agent "
            f"{self.agent_id[:80]!a} of account {self.account_id[:80]!a}. "
            "Fix: ask as somebody who may see it, or have its owner space shown to you."
        )
