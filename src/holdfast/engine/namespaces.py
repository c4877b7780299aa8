"""Accounts, and the users and agents in them: who is there, and how all of one goes."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from holdfast.context.contract import TenantData
from holdfast.errors import AccessDeniedError, HoldfastError, NodeExistsError, NodeNotFoundError
from holdfast.model import RequestContext, Role, Uri
from holdfast.model.uri import name_of
from holdfast.storage import ABSENT, ConcurrentModificationError, Locator, TransactionalBackend

_RECORD = ".namespace.json"
_DELETING = ".deleting"
_ROOT = Locator("")
_KINDS = {"users": "user", "agents": "agent"}


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went with an account, a user or an agent, by who held it."""

    account_id: str
    owner_space: str
    """Empty if it was the whole account."""
    counts: Mapping[str, int]


class NamespaceManager:
    """Makes, lists and deletes accounts, users and agents.

    ROOT does all of it everywhere, ADMIN does it for users and agents of its own account, and a
    MEMBER sees what is within its reach. A deletion that was interrupted is finished by `resume`.
    """

    def __init__(
        self,
        backend: TransactionalBackend,
        holders: Mapping[str, TenantData],
        root: Locator = _ROOT,
    ) -> None:
        self._backend = backend
        self._holders = holders
        self._root = root

    # ------------------------------------------------------------ accounts
    def create_account(self, account_id: str, ctx: RequestContext) -> None:
        _demand(ctx.role is Role.ROOT, ctx, "make accounts")
        self._create(Uri(account_id))

    def list_accounts(self, ctx: RequestContext) -> list[str]:
        names = self._names(self._root.child("accounts"))
        return names if ctx.role is Role.ROOT else [n for n in names if n == ctx.account_id]

    def delete_account(self, account_id: str, ctx: RequestContext) -> Deleted:
        """Remove all that belongs to an account, from whoever holds something of it."""
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

    def delete_user(self, account_id: str, user_id: str, ctx: RequestContext) -> Deleted:
        return self._delete_owner(Uri(account_id, ("users", user_id)), ctx)

    def delete_agent(self, account_id: str, agent_id: str, ctx: RequestContext) -> Deleted:
        return self._delete_owner(Uri(account_id, ("agents", agent_id)), ctx)

    def _create_owner(self, owner: Uri, ctx: RequestContext) -> None:
        _demand(_governs(ctx, owner.account), ctx, f"make users and agents of {owner.account!a}")
        self._create(owner)

    def _list_owners(self, place: Uri, ctx: RequestContext) -> list[str]:
        if ctx.role is not Role.ROOT and ctx.account_id != place.account:
            return []
        names = self._names(self._root.child(place.key))
        kind = _KINDS[place.path[0]]
        return [name for name in names if ctx.reaches(f"{kind}:{name}")]

    def _delete_owner(self, owner: Uri, ctx: RequestContext) -> Deleted:
        _demand(_governs(ctx, owner.account), ctx, f"delete users and agents of {owner.account!a}")
        return self._delete(owner, owner.owner_space)

    # ------------------------------------------------------------ after a crash
    def resume(self, ctx: RequestContext) -> list[Deleted]:
        """Finish the deletions that were begun and not ended."""
        _demand(ctx.role is Role.ROOT, ctx, "finish deletions")
        folder = self._root.child("accounts", _DELETING)
        finished = []
        for note in self._backend.list(folder):
            said = json.loads(self._backend.read(note))
            finished.append(self._finish(note, said["account_id"], said["owner_space"]))
        return finished

    # ------------------------------------------------------------ the files
    def _create(self, place: Uri) -> None:
        record = {"created_at": datetime.now(UTC).isoformat()}
        locator = self._root.child(place.key, _RECORD)
        try:
            self._backend.write(locator, json.dumps(record) + "\n", expect=ABSENT)
        except ConcurrentModificationError:
            raise NodeExistsError(
                f"{str(place)!a} is there already. Fix: use it, or choose another id."
            ) from None

    def _delete(self, place: Uri, owner_space: str) -> Deleted:
        note = self._note(place)
        if not self._backend.exists(self._root.child(place.key)) and not self._backend.exists(note):
            raise NodeNotFoundError(
                f"nothing is at {str(place)!a}. Fix: list what there is, and name one of them."
            )
        said = {"account_id": place.account, "owner_space": owner_space}
        self._backend.write(note, json.dumps(said) + "\n")
        return self._finish(note, place.account, owner_space)

    def _finish(self, note: Locator, account_id: str, owner_space: str) -> Deleted:
        """Let every holder forget, then the note. Each may be asked again after a crash."""
        counts = {
            name: holder.delete_by_owner_space(account_id, owner_space)
            if owner_space
            else holder.delete_account_data(account_id)
            for name, holder in self._holders.items()
        }
        with suppress(FileNotFoundError):  # another one finished it too
            self._backend.remove(note)
        with suppress(HoldfastError, OSError):  # others are under way
            self._backend.remove(note.parent)
        return Deleted(account_id, owner_space, counts)

    def _note(self, place: Uri) -> Locator:
        name = sha256(str(place).encode()).hexdigest()[:32]
        return self._root.child("accounts", _DELETING, f"{name}.json")

    def _names(self, folder: Locator) -> list[str]:
        names = (name_of(child.name) for child in self._backend.list(folder))
        return [name for name in names if name is not None]


def _governs(ctx: RequestContext, account_id: str) -> bool:
    return ctx.role is Role.ROOT or (ctx.role is Role.ADMIN and ctx.account_id == account_id)


def _demand(allowed: bool, ctx: RequestContext, what: str) -> None:  # noqa: FBT001 - it is the point
    if not allowed:
        raise AccessDeniedError(
            f"{ctx.user_id[:80]!a} of account {ctx.account_id[:80]!a} is {ctx.role.value} and may "
            f"not {what}. Fix: ask somebody who may."
        )
