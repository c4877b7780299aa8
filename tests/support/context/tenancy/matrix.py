"""Who may do what to whose: every verb, for every role, at every kind of place."""

from collections.abc import Callable
from dataclasses import replace

from perdure.errors import AccessDeniedError, PerdureError
from perdure.model import OutboxEvent, RelationEdge, Role, Uri
from tests.support.context.tenancy.scene import CALLER, DEAD, LEASED, PLACES, Scene, set_scenes
from tests.support.context.tenancy.world import OpenWorld

TABLE = """
                                  MEMBER     ADMIN      ROOT
nodes.read_node                   ++--++-    +++-+++    +++-+++
nodes.exists                      ++00++0    +++0+++    +++0+++
nodes.list_children               ++--++-    +++-+++    +++-+++
nodes.siblings                    ++--++-    +++-+++    +++-+++
nodes.write_node                  ++---+-    +++-+++    +++-+++
nodes.write_nodes                 ++---+-    +++-+++    +++-+++
nodes.exchange written            ++---+-    +++-+++    +++-+++
nodes.exchange removed            ++---+-    +++-+++    +++-+++
nodes.delete_node                 ++---+-    +++-+++    +++-+++
nodes.archive_node                ++---+-    +++-+++    +++-+++
nodes.unarchive_node              ++---+-    +++-+++    +++-+++
nodes.move_node from              ++---+-    +++-+++    +++-+++
nodes.move_node to                ++---+-    +++-+++    +++-+++
nodes.adopt                       ++---+-    +++-+++    +++-+++
nodes.relate                      ++---+-    +++-+++    +++-+++
relations.get_edges               ++00++0    +++0+++    +++0+++
relations.get_one_hop             ++00++0    +++0+++    +++0+++
relations.get_incoming            ++00++0    +++0+++    +++0+++
relations.upsert_edges from       ++---+-    +++-+++    +++-+++
relations.upsert_edges to         ++--++-    +++-+++    +++-+++
relations.remove_edges from       ++---+-    +++-+++    +++-+++
relations.remove_edges to         ++--++-    +++-+++    +++-+++
repair.examine                    ++000+0    +++0+++    +++0+++
repair.run                        ++000+0    +++0+++    +++0+++
namespaces.create_account         -..-...    -..-...    +..+...
namespaces.create_user            -..-...    +..-...    +..+...
namespaces.create_agent           -..-...    +..-...    +..+...
namespaces.list_accounts          +..0...    +..0...    +..+...
namespaces.list_users             ++00...    +++0...    ++++...
namespaces.list_agents            +.00...    +.+0...    +.++...
namespaces.delete_account         -..-...    -..-...    +..+...
namespaces.delete_user            ----...    +++-...    ++++...
namespaces.delete_agent           -.--...    +.+-...    +.++...
namespaces.resume                 -......    -......    +......
outbox.register_write             ++---+-    +++-+++    +++-+++
outbox.register_writes            ++---+-    +++-+++    +++-+++
outbox.register_delete            ++---+-    +++-+++    +++-+++
outbox.register_archive           ++---+-    +++-+++    +++-+++
outbox.register_move              ++---+-    +++-+++    +++-+++
outbox.register_relations         ++---+-    +++-+++    +++-+++
outbox.register_directory         ++---+-    +++-+++    +++-+++
outbox.list_pending               +++0+++    +++0+++    +++0+++
outbox.list_unfinished            +++0+++    +++0+++    +++0+++
outbox.list_dead                  +++0+++    +++0+++    +++0+++
outbox.try_acquire                +++0+++    +++0+++    +++0+++
outbox.extend                     +++0+++    +++0+++    +++0+++
outbox.release                    +++0+++    +++0+++    +++0+++
outbox.mark_processing            +++0+++    +++0+++    +++0+++
outbox.mark_done                  +++0+++    +++0+++    +++0+++
outbox.move_to_dlq                +++0+++    +++0+++    +++0+++
outbox.increment_retry            +++0+++    +++0+++    +++0+++
outbox.requeue                    +++0+++    +++0+++    +++0+++
outbox.purge                      +++0+++    +++0+++    +++0+++
outbox.delete_account_data        +++0+++    +++0+++    +++0+++
outbox.delete_by_owner_space      +000.+0    +000.+0    +000.+0
"""
"""The outcome of a verb at a place of the caller, of a user who shared it with the caller, of
another user, in another account, shared by the account, in a session of the caller, and in a
session of another user, in this order.

`+` it succeeds; `-` `AccessDeniedError`; `0` as if nothing were there; `.` makes no sense.
Workers and operators have no role: they are let into one account.
"""

Row = tuple[str, Role, str]


def rows() -> list[Row]:
    """Return the table: a verb, a role, and what comes of it at each place."""
    _, *lines = TABLE.strip().splitlines()
    roles = (Role.MEMBER, Role.ADMIN, Role.ROOT)
    split = (line.rsplit(maxsplit=len(roles)) for line in lines)
    return [(name, *cells) for name, *of in split for cells in zip(roles, of, strict=True)]


def check_row(open_world: OpenWorld, row: Row) -> list[str]:
    """Return the outcomes that differ from the table."""
    name, role, expected = row
    cells = [cell for cell in zip(PLACES, expected, strict=True) if cell[1] != "."]
    worlds = [[cell] for cell in cells] if name in TOGETHER else [cells]
    return [
        f"{name} of {column} by {role.value}: {actual}, not {outcome}"
        for some in worlds
        for (column, outcome), actual in zip(some, _outcomes(open_world, row, some), strict=True)
        if actual != outcome
    ]


def _outcomes(open_world: OpenWorld, row: Row, cells: list[tuple[str, str]]) -> list[str]:
    """Return what comes of a verb at some places; as expected, if the world has no such verb."""
    name, role, _ = row
    world = open_world()
    try:
        verb = world.verb(name.partition(" ")[0])
        if verb is None or (name in EDITED and world.edit is None):
            return [outcome for _, outcome in cells]
        scenes = set_scenes(world, verb, replace(CALLER, role=role))
        _prepare(scenes["own"], name)
        return [_outcome(scenes[column], name) for column, _ in cells]
    finally:
        world.close()


def _outcome(scene: Scene, name: str) -> str:
    if name == "nodes.unarchive_node":
        scene.world.nodes.archive_node(scene.uri, scene.root)
    before = scene.look()
    try:
        done = CELLS[name](scene)
    except AccessDeniedError:
        return "-" if scene.look() == before else "- but changed something"
    except PerdureError as error:
        return type(error).__name__
    if done:
        return "+"
    return "0" if scene.look() == before or name in TOGETHER else "0 but changed something"


EDITED = frozenset({"nodes.adopt", "repair.examine", "repair.run"})
"""What needs an edit by hand to have something to do."""
TOGETHER = frozenset(
    {
        "repair.run",
        "outbox.delete_account_data",
        "outbox.delete_by_owner_space",
        "namespaces.delete_account",
        "namespaces.delete_user",
        "namespaces.delete_agent",
    }
)
"""What is done for many places at once, so that others may change."""
_DEAD = frozenset({"outbox.list_dead", "outbox.requeue", "outbox.purge"})
_LEASED = frozenset({"outbox.extend", "outbox.release"})


def _prepare(scene: Scene, name: str) -> None:
    if name in EDITED and scene.world.edit is not None:
        for uri in PLACES.values():
            scene.world.edit(uri, "By hand.\n")
    if name in _DEAD:
        scene.set_events(DEAD)
    if name in _LEASED:
        scene.set_events(LEASED)


# ---------------------------------------------------------------- one cell for each verb


def _does(make: Callable[[Scene], tuple[object, ...]]) -> Callable[[Scene], bool]:
    """Let a verb be done that returns nothing of interest."""

    def cell(scene: Scene) -> bool:
        scene.verb(*make(scene))
        return True

    return cell


def _relates(start: str, to: str, kind: str) -> Callable[[Scene], bool]:
    def cell(scene: Scene) -> bool:
        edge = RelationEdge(scene.place(start), scene.place(to), kind)
        scene.verb([edge], scene.ctx)
        return True

    return cell


def _works(worker: str = "") -> Callable[[Scene], bool]:
    """Work on the event of a place; one of another account is passed off as the caller's."""

    def cell(scene: Scene) -> bool:
        event = scene.event()
        if event.account_id != scene.ctx.account_id:
            own = PLACES["own"]
            event = replace(event, uri=own, account_id=scene.ctx.account_id, owner_space="")
        before = scene.look()
        return scene.verb(event, event.uri, *filter(None, [worker])) or scene.look() != before

    return cell


def _lists(scene: Scene) -> bool:
    listed: list[tuple[str, OutboxEvent]] = scene.verb(scene.ctx.account_id)
    return any(uri == scene.uri for uri, _ in listed)


def _of_dead(scene: Scene) -> bool:
    return bool(scene.verb(scene.ctx.account_id, [scene.event().event_id]))


def _forgets(*args: str) -> Callable[[Scene], bool]:
    def cell(scene: Scene) -> bool:
        scene.verb(scene.ctx.account_id, *args)
        return not scene.events()

    return cell


def _names(kind: str) -> Callable[[Scene], bool]:
    return lambda scene: scene.name(kind) in scene.verb(scene.account, scene.ctx)


def _repairs(scene: Scene) -> bool:
    return scene.uri in {found.uri for found in scene.verb(scene.ctx)}


def _siblings(scene: Scene) -> bool:
    beside = scene.node(beside=True)
    return scene.uri in dict(scene.verb(beside, scene.ctx))


_SELF = _does(lambda scene: (scene.uri, scene.ctx))
_NODE = _does(lambda scene: (scene.node(), scene.ctx))


def _removal(scene: Scene) -> bool:
    scene.verb(scene.uri, scene.ctx, owner_space=scene.node().owner_space)
    return True


CELLS: dict[str, Callable[[Scene], bool]] = {
    "nodes.read_node": lambda s: s.verb(s.uri, s.ctx).uri == s.uri,
    "nodes.exists": lambda s: bool(s.verb(s.uri, s.ctx)),
    "nodes.list_children": lambda s: s.uri in s.verb(str(Uri.parse(s.uri).parent), s.ctx),
    "nodes.siblings": _siblings,
    "nodes.write_node": _does(lambda s: (s.node(version=2), s.ctx)),
    "nodes.write_nodes": _does(lambda s: ([s.node(version=2), s.new()], s.ctx)),
    "nodes.exchange written": _does(lambda s: ([s.node(version=2)], [], s.ctx)),
    "nodes.exchange removed": _does(lambda s: ([], [s.uri], s.ctx)),
    "nodes.delete_node": _SELF,
    "nodes.archive_node": _SELF,
    "nodes.unarchive_node": _SELF,
    "nodes.move_node from": _does(lambda s: (s.uri, s.new().uri, s.ctx)),
    "nodes.move_node to": _does(lambda s: (s.place("anchor"), s.node(beside=True).uri, s.ctx)),
    "nodes.adopt": lambda s: bool(s.verb(s.uri, s.ctx)),
    "nodes.relate": _does(lambda s: ([s.uri], lambda node: node, s.ctx)),
    "relations.get_edges": lambda s: bool(s.verb(s.uri, s.ctx)),
    "relations.get_one_hop": lambda s: bool(s.verb(s.uri, s.ctx)),
    "relations.get_incoming": lambda s: bool(s.verb(s.uri, s.ctx)),
    "relations.upsert_edges from": _relates("here", "hub", "likes"),
    "relations.upsert_edges to": _relates("anchor", "here", "likes"),
    "relations.remove_edges from": _relates("here", "hub", "knows"),
    "relations.remove_edges to": _relates("anchor", "here", "knows"),
    "repair.examine": _repairs,
    "repair.run": _repairs,
    "namespaces.create_account": _does(lambda s: (f"new {s.account}", s.ctx)),
    "namespaces.create_user": _does(lambda s: (s.account, "new", s.ctx)),
    "namespaces.create_agent": _does(lambda s: (s.account, "new", s.ctx)),
    "namespaces.list_accounts": lambda s: s.account in s.verb(s.ctx),
    "namespaces.list_users": _names("user"),
    "namespaces.list_agents": _names("agent"),
    "namespaces.delete_account": _does(lambda s: (s.account, s.ctx)),
    "namespaces.delete_user": _does(lambda s: (s.account, s.name("user"), s.ctx)),
    "namespaces.delete_agent": _does(lambda s: (s.account, s.name("agent"), s.ctx)),
    "namespaces.resume": _does(lambda s: (s.ctx,)),
    "outbox.register_write": _NODE,
    "outbox.register_writes": _does(lambda s: ([s.node()], s.ctx)),
    "outbox.register_delete": _removal,
    "outbox.register_archive": _removal,
    "outbox.register_move": _does(lambda s: (s.uri, s.node(beside=True), s.ctx)),
    "outbox.register_relations": _NODE,
    "outbox.register_directory": _NODE,
    "outbox.list_pending": _lists,
    "outbox.list_unfinished": _lists,
    "outbox.list_dead": _lists,
    "outbox.try_acquire": _works("w"),
    "outbox.extend": _works("w"),
    "outbox.release": _works(),
    "outbox.mark_processing": _works(),
    "outbox.mark_done": _works(),
    "outbox.move_to_dlq": _works(),
    "outbox.increment_retry": _works(),
    "outbox.requeue": _of_dead,
    "outbox.purge": _of_dead,
    "outbox.delete_account_data": _forgets(),
    "outbox.delete_by_owner_space": _forgets(f"user:{CALLER.user_id}"),
}
"""How each verb is called at a place; true if it succeeded or returned something."""
