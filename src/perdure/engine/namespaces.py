"""Accounts, and the users and agents in them: create, list, and delete with all their data."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal, cast

from perdure.context.contract import TenantStore
from perdure.context.tenancy import Deletions
from perdure.dataclass import dataclass
from perdure.errors import AccessDeniedError, NodeExistsError, NodeNotFoundError
from perdure.model import RequestContext, Role, Uri
from perdure.model.uri import check_id, name_of
from perdure.storage import ABSENT, ConcurrentModificationError, Locator, TransactionalBackend
from perdure.storage.contract import is_directory

_RECORD = ".namespace.json"
_ROOT = Locator("")
_KINDS = {"users": "user", "agents": "agent"}

TenantKind = Literal["account", "user", "agent"]


@dataclass(frozen=True, slots=True)
class TenantDeletion:
    account_id: str
    owner_space: str
    """Empty if it was the whole account."""
    counts: Mapping[str, int]


class NamespaceManager:
    """Creates, lists and deletes accounts, users and agents.

    ROOT may do so everywhere, ADMIN for users and agents of its own account; a MEMBER may list
    what is within its reach. During a deletion, nothing new is written there. An interrupted
    deletion is finished by `resume`, or by deleting again.
    """

    def __init__(self, backend: TransactionalBackend, stores: Mapping[str, TenantStore]) -> None:
        self._backend = backend
        self._stores = stores
        """Everything that has data of tenants, by name."""
        self._deletions = Deletions(backend)

    # ------------------------------------------------------------ accounts
    def create_account(self, account_id: str, ctx: RequestContext) -> None:
        _demand(ctx.role is Role.ROOT, ctx, "create accounts")
        self._create(Uri(account_id))

    def list_accounts(self, ctx: RequestContext) -> list[str]:
        names = self._names(_ROOT.child("accounts"))
        return names if ctx.role is Role.ROOT else [n for n in names if n == ctx.account_id]

    def delete_account(self, account_id: str, ctx: RequestContext) -> TenantDeletion:
        _demand(ctx.role is Role.ROOT, ctx, "delete accounts")
        return self._delete(Uri(account_id), "")

    # ------------------------------------------------------------ users and agents
    def create_user(self, account_id: str, user_id: str, ctx: RequestContext) -> None:
        self._create_owner(Uri(account_id, ("users", user_id)), ctx)

    def create_agent(self, account_id: str, agent_id: str, ctx: RequestContext) -> None:
        self._create_owner(Uri(account_id, ("agents", agent_id)), ctx)

    def list_users(self, account_id: str, ctx: RequestContext) -> list[str]:
        return self._list_owners(Uri(account_id, ("users",)), ctx)

    def list_agents(self, account_id: str, ctx: RequestContext) -> list[str]:
        return self._list_owners(Uri(account_id, ("agents",)), ctx)

    def delete_user(self, account_id: str, user_id: str, ctx: RequestContext) -> TenantDeletion:
        return self._delete_owner(Uri(account_id, ("users", user_id)), ctx)

    def delete_agent(self, account_id: str, agent_id: str, ctx: RequestContext) -> TenantDeletion:
        return self._delete_owner(Uri(account_id, ("agents", agent_id)), ctx)

    def _create_owner(self, owner: Uri, ctx: RequestContext) -> None:
        _demand(_governs(ctx, owner.account), ctx, f"create users and agents of {owner.account!a}")
        self._create(owner)

    def _list_owners(self, place: Uri, ctx: RequestContext) -> list[str]:
        if ctx.role is not Role.ROOT and ctx.account_id != place.account:
            return []
        names = self._names(_ROOT.child(place.key))
        kind = _KINDS[place.path[0]]
        return [name for name in names if ctx.reaches(f"{kind}:{name}")]

    def _delete_owner(self, owner: Uri, ctx: RequestContext) -> TenantDeletion:
        _demand(_governs(ctx, owner.account), ctx, f"delete users and agents of {owner.account!a}")
        return self._delete(owner, owner.owner_space)

    # ------------------------------------------------------------ after a crash
    def resume(self, ctx: RequestContext) -> list[TenantDeletion]:
        _demand(ctx.role is Role.ROOT, ctx, "finish deletions")
        return [self._finish(account, space) for account, space in self._deletions.begun()]

    # ------------------------------------------------------------ files
    def _create(self, place: Uri) -> None:
        self._deletions.refuse(place.account, place.owner_space)
        record = {"created_at": datetime.now(UTC).isoformat()}
        locator = _ROOT.child(place.key, _RECORD)
        try:
            self._backend.write(locator, json.dumps(record) + "\n", expect=ABSENT)
        except ConcurrentModificationError:
            raise NodeExistsError(
                f"{str(place)!a} exists already. Fix: use it, or choose another id."
            ) from None

    def _delete(self, place: Uri, owner_space: str) -> TenantDeletion:
        known = self._backend.exists(_ROOT.child(place.key))
        known = known or self._deletions.is_begun(place.account, owner_space)
        self._deletions.begin(place.account, owner_space)
        deleted = self._finish(place.account, owner_space)
        if not known and not any(deleted.counts.values()):
            raise NodeNotFoundError(
                f"{str(place)!a} does not exist. Fix: list them, and name one that exists."
            )
        return deleted

    def _finish(self, account_id: str, owner_space: str) -> TenantDeletion:
        """Delete from every store until none has data left, then end the deletion.

        It may be repeated after a crash. A write that was under way when the deletion began may
        add data, so all stores are asked again.
        """
        counts = Counter(dict.fromkeys(self._stores, 0))
        while any((deleted := self._delete_data(account_id, owner_space)).values()):
            counts.update(deleted)
        self._deletions.end(account_id, owner_space)
        return TenantDeletion(account_id, owner_space, dict(counts))

    def _delete_data(self, account_id: str, owner_space: str) -> dict[str, int]:
        deleted = {}
        for name, store in self._stores.items():
            if not self._deletions.is_begun(account_id, owner_space):
                break  # another process finished it; data that is there now is new
            deleted[name] = (
                store.delete_by_owner_space(account_id, owner_space)
                if owner_space
                else store.delete_account_data(account_id)
            )
        return deleted

    def _names(self, folder: Locator) -> list[str]:
        folders = (
            child for child in self._backend.list(folder) if is_directory(self._backend, child)
        )
        names = (name_of(child.name) for child in folders)
        return [name for name in names if name is not None]


class Tenants:
    """The accounts, users and agents that a caller may create, list and delete, by kind.

    Users and agents are those of the caller's account.
    """

    def __init__(self, namespaces: Callable[[], NamespaceManager], caller: RequestContext) -> None:
        self._namespaces = namespaces
        self._caller = caller

    def uri(self, kind: TenantKind, name: str) -> str:
        """Return the URI of a tenant; `InvalidValueError` if it can't have this name."""
        check_id(name, kind)
        owner = (f"{kind}s", name)
        return str(Uri(name) if kind == "account" else Uri(self._caller.account_id, owner))

    def create(self, kind: TenantKind, name: str) -> str:
        """Create a tenant; return its URI. `NodeExistsError` if it exists."""
        uri = self.uri(kind, name)
        self._call("create", kind, name)
        return uri

    def list(self, kind: TenantKind) -> "list[str]":
        return cast("list[str]", self._call("list", f"{kind}s"))

    def delete(self, kind: TenantKind, name: str) -> TenantDeletion:
        """Delete a tenant with all its data; return the counts of what was deleted."""
        return cast("TenantDeletion", self._call("delete", kind, name))

    def _call(self, verb: str, kind: str, *names: str) -> object:
        account = () if kind.startswith("account") else (self._caller.account_id,)
        return getattr(self._namespaces(), f"{verb}_{kind}")(*account, *names, self._caller)


def _governs(ctx: RequestContext, account_id: str) -> bool:
    return ctx.role is Role.ROOT or (ctx.role is Role.ADMIN and ctx.account_id == account_id)


def _demand(allowed: bool, ctx: RequestContext, what: str) -> None:  # noqa: FBT001 - it is the point
    if not allowed:
        raise AccessDeniedError(
            f"{ctx.user_id[:80]!a} of account {ctx.account_id[:80]!a} is {ctx.role.value} and may "
            f"not {what}. Fix: ask a caller who governs it."
        )
