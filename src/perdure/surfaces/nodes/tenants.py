"""`account`, `user` and `agent`."""

from collections.abc import Callable
from dataclasses import dataclass

import click

from perdure.engine.namespaces import Deleted, NamespaceManager
from perdure.model import RequestContext, Uri
from perdure.model.uri import check_id
from perdure.surfaces.asking import (
    OBJECT_PER_LINE,
    ONE_OBJECT,
    as_json,
    ask_first,
    without_asking,
)
from perdure.surfaces.nodes.opening import Memory, with_memory
from perdure.surfaces.telling import counted, mention, shown, tell_json, tell_line


@dataclass(frozen=True, slots=True)
class Kind:
    """Accounts, users or agents, and what is done with them."""

    noun: str
    place: Callable[[RequestContext, str], Uri]
    create: Callable[[NamespaceManager, RequestContext, str], None]
    every: Callable[[NamespaceManager, RequestContext], list[str]]
    delete: Callable[[NamespaceManager, RequestContext, str], Deleted]


ACCOUNTS = Kind(
    "account",
    lambda _ctx, name: Uri(name),
    lambda manager, ctx, name: manager.create_account(name, ctx),
    lambda manager, ctx: manager.list_accounts(ctx),
    lambda manager, ctx, name: manager.delete_account(name, ctx),
)
USERS = Kind(
    "user",
    lambda ctx, name: Uri(ctx.account_id, ("users", name)),
    lambda manager, ctx, name: manager.create_user(ctx.account_id, name, ctx),
    lambda manager, ctx: manager.list_users(ctx.account_id, ctx),
    lambda manager, ctx, name: manager.delete_user(ctx.account_id, name, ctx),
)
AGENTS = Kind(
    "agent",
    lambda ctx, name: Uri(ctx.account_id, ("agents", name)),
    lambda manager, ctx, name: manager.create_agent(ctx.account_id, name, ctx),
    lambda manager, ctx: manager.list_agents(ctx.account_id, ctx),
    lambda manager, ctx, name: manager.delete_agent(ctx.account_id, name, ctx),
)


def _create(kind: Kind) -> click.Command:
    @click.command("create", help=f"Make the {kind.noun} NAME.")
    @click.argument("name")
    @as_json(ONE_OBJECT)
    @with_memory
    def create(memory: Memory, name: str, *, as_json: bool) -> None:
        place = kind.place(memory.request, check_id(name, kind.noun))
        kind.create(memory.context.namespaces, memory.request, name)
        if as_json:
            tell_json({"id": name, "uri": str(place)})
        else:
            tell_line(f"{place} is made")

    return create


def _list(kind: Kind) -> click.Command:
    @click.command("list", help=f"List the {kind.noun}s that there are.")
    @as_json(OBJECT_PER_LINE)
    @with_memory
    def list_(memory: Memory, *, as_json: bool) -> None:
        names = kind.every(memory.context.namespaces, memory.request)
        if as_json:
            tell_json(*({"id": n, "uri": str(kind.place(memory.request, n))} for n in names))
            return
        for name in names:
            tell_line(shown(name))
        if not names:
            mention(f"there is no {kind.noun} yet")

    return list_


def _delete(kind: Kind) -> click.Command:
    @click.command("delete", help=f"Remove the {kind.noun} NAME, and all that belongs to it.")
    @click.argument("name")
    @without_asking
    @as_json(ONE_OBJECT)
    @with_memory
    def delete(memory: Memory, name: str, *, yes: bool, as_json: bool) -> None:
        place = kind.place(memory.request, check_id(name, kind.noun))
        if not yes:
            ask_first(f"this removes {place} and all that is in it", "nothing was removed")
        gone = kind.delete(memory.context.namespaces, memory.request, name)
        if as_json:
            tell_json({"id": name, "uri": str(place), "deleted": dict(gone.counts)})
        else:
            tell_line(f"{place} is deleted, with {counted(gone.counts.get('nodes', 0), 'node')}")

    return delete


def _commands(kind: Kind) -> click.Group:
    commands = [_create(kind), _list(kind), _delete(kind)]
    return click.Group(kind.noun, commands, help=f"Make, list and delete {kind.noun}s.")


account_command = _commands(ACCOUNTS)
user_command = _commands(USERS)
agent_command = _commands(AGENTS)
