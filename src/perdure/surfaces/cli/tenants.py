"""`perdure account`, `perdure user` and `perdure agent`."""

import click

from perdure import Memory, TenantKind
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, ask_first, with_memory, without_asking
from perdure.surfaces.out import counted, shown


def _create(kind: TenantKind) -> click.Command:
    @click.command("create", help=f"Create the {kind} NAME.")
    @click.argument("name")
    @with_memory()
    def create(memory: Memory, name: str, *, as_json: bool) -> None:
        uri = memory.tenants.create(kind, name)
        out.answer({"id": name, "uri": uri}, f"{uri} is created", as_json=as_json)

    return create


def _list(kind: TenantKind) -> click.Command:
    @click.command("list", help=f"List the {kind}s.")
    @with_memory(OBJECT_PER_LINE)
    def list_(memory: Memory, *, as_json: bool) -> None:
        names = memory.tenants.list(kind)
        if as_json:
            out.json(*({"id": each, "uri": memory.tenants.uri(kind, each)} for each in names))
            return
        for name in names:
            out.line(shown(name))
        if not names:
            out.mention(f"there is no {kind} yet")

    return list_


def _delete(kind: TenantKind) -> click.Command:
    @click.command("delete", help=f"Delete the {kind} NAME, and everything that belongs to it.")
    @click.argument("name")
    @without_asking
    @with_memory()
    def delete(memory: Memory, name: str, *, yes: bool, as_json: bool) -> None:
        uri = memory.tenants.uri(kind, name)
        if not yes:
            ask_first(f"this deletes {uri} and everything in it", "nothing was deleted")
        gone = memory.tenants.delete(kind, name)
        out.answer(
            {"id": name, "uri": uri, "deleted": dict(gone.counts)},
            f"{uri} is deleted, with {counted(gone.counts.get('nodes', 0), 'node')}",
            as_json=as_json,
        )

    return delete


def _commands(kind: TenantKind) -> click.Group:
    commands = [_create(kind), _list(kind), _delete(kind)]
    return click.Group(kind, commands, help=f"Create, list and delete {kind}s.")


account_command = _commands("account")
user_command = _commands("user")
agent_command = _commands("agent")
