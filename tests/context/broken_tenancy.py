"""Memories that keep tenants apart, but for one check."""

# ruff: noqa: ANN401 - what is taken apart here is ours, and no part of what a world promises

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from perdure.errors import AccessDeniedError, NodeNotFoundError
from perdure.model import RelationEdge, RequestContext, Role, Uri
from perdure.storage import Locator
from tests.support.context.tenancy import World

Break = Callable[[Any], None]
"""Takes one check away from a world; its parts are ours, so it knows what they are made of."""

BROKEN: dict[str, tuple[Break, tuple[str, ...]]] = {}
"""Each of them, under the name of what is wrong with it, and the verbs that give it away."""


def caught_by(*verbs: str) -> Callable[[Break], Break]:
    def keep(break_it: Break) -> Break:
        BROKEN[break_it.__name__] = break_it, verbs
        return break_it

    return keep


def _governing(ctx: RequestContext, uri: str = "") -> RequestContext:
    account = Uri.parse(uri).account if uri else ctx.account_id
    return replace(ctx, role=Role.ROOT, account_id=account)


# ---------------------------------------------------------------- who is who
@caught_by("nodes.read_node")
def forgets_the_account(world: Any) -> None:
    reach = world.nodes.reach
    see = reach.may_see
    reach.may_see = lambda place, ctx: see(place, replace(ctx, account_id=place.account))


@caught_by("nodes.exists")
def compares_ids_without_case(world: Any) -> None:
    reach = world.nodes.reach
    see = reach.may_see

    def may_see(place: Uri, ctx: RequestContext) -> bool:
        spaces = {space.lower() for space in ctx.owner_spaces}
        same = place.account == ctx.account_id and place.owner_space.lower() in spaces
        return same or see(place, ctx)

    reach.may_see = may_see


@caught_by("nodes.exists")
def takes_a_prefix_for_the_owner(world: Any) -> None:
    reach = world.nodes.reach
    see = reach.may_see

    def may_see(place: Uri, ctx: RequestContext) -> bool:
        like = place.owner_space.startswith(f"user:{ctx.user_id}")
        return (place.account == ctx.account_id and like) or see(place, ctx)

    reach.may_see = may_see


@caught_by("nodes.read_node")
def forgets_sessions(world: Any) -> None:
    world.nodes.reach._reaches_session = lambda _place, _ctx: True


@caught_by("nodes.exists")
def trims_the_owner_of_a_session(world: Any) -> None:
    reach = world.nodes.reach
    owner = reach.session_owner
    reach.session_owner = lambda place: (owner(place) or "").strip() or None


@caught_by("nodes.write_node")
def lets_anybody_name_the_owner_of_a_session(world: Any) -> None:
    owned = world.nodes.owned
    world.nodes.owned = lambda draft, node, ctx: owned(draft, node, _governing(ctx))


@caught_by("nodes.delete_node")
def lets_members_change_what_all_share(world: Any) -> None:
    world.nodes.reach.require_writable = world.nodes.reach.require_visible


# ---------------------------------------------------------------- nodes
@caught_by("nodes.read_node")
def reads_before_it_asks(world: Any) -> None:
    """Say denied where something is, and absent where nothing is."""
    read = world.nodes.read_node

    def read_node(uri: str, ctx: RequestContext) -> object:
        if not world.nodes.is_active(Uri.parse(uri)):
            raise NodeNotFoundError(f"no node is at {uri!a}. Fix: look elsewhere.")
        return read(uri, ctx)

    world.nodes.read_node = read_node


@caught_by("nodes.read_node")
def says_too_much(world: Any) -> None:
    read = world.nodes.read_node

    def read_node(uri: str, ctx: RequestContext) -> object:
        try:
            return read(uri, ctx)
        except AccessDeniedError as error:
            there = world.nodes.is_active(Uri.parse(uri))
            raise AccessDeniedError(f"{error} It is {'' if there else 'not '}there.") from None

    world.nodes.read_node = read_node


@caught_by("nodes.read_node")
def quotes_what_it_refuses(world: Any) -> None:
    read = world.nodes.read_node

    def read_node(uri: str, ctx: RequestContext) -> object:
        try:
            return read(uri, ctx)
        except AccessDeniedError as error:
            stored = world.nodes.load(Uri.parse(uri))
            error.add_note(stored.node.title if stored else "")
            raise

    world.nodes.read_node = read_node


@caught_by("nodes.exists")
def tells_that_something_exists(world: Any) -> None:
    world.nodes.exists = lambda uri, _ctx: world.nodes.is_active(Uri.parse(uri))


@caught_by("nodes.delete_node")
def deletes_whatever_is_named(world: Any) -> None:
    delete = world.nodes.delete_node
    world.nodes.delete_node = lambda uri, ctx: delete(uri, _governing(ctx, uri))


@caught_by("nodes.list_children")
def lists_everybody(world: Any) -> None:
    world.nodes._visible = lambda _place, names, _put_away, _ctx: names


@caught_by("nodes.write_nodes")
def writes_what_it_may_and_then_refuses(world: Any) -> None:
    many = world.nodes.write_nodes

    def write_nodes(nodes: list[Any], ctx: RequestContext) -> None:
        for node in nodes if len(nodes) > 1 else ():
            if world.nodes.reach.may_see(node.place, ctx):
                many([node], ctx)
        many(nodes, ctx)

    world.nodes.write_nodes = write_nodes


@caught_by("nodes.archive_node")
def archives_out_of_reach(world: Any) -> None:
    archive = world.nodes.archive_node
    world.nodes.archive_node = lambda uri, ctx: archive(uri, _governing(ctx, uri))


@caught_by("nodes.move_node")
def moves_to_where_it_may_not(world: Any) -> None:
    reach, move = world.nodes.reach, world.nodes.move_node

    def move_node(old: str, new: str, ctx: RequestContext) -> None:
        reach.require_writable(old, ctx)
        move(old, new, _governing(ctx))

    world.nodes.move_node = move_node


@caught_by("nodes.read_node")
def keeps_a_note_of_each_refusal(world: Any) -> None:
    seen = world.nodes.reach.require_visible

    def noting(uri: str, ctx: RequestContext) -> object:
        try:
            return seen(uri, ctx)
        except AccessDeniedError:
            world.nodes.backend.write(Locator("refused.md"), uri)
            raise

    world.nodes.reach.require_visible = noting


# ---------------------------------------------------------------- links and edges
@caught_by("relations.get_edges")
def shows_edges_to_everywhere(world: Any) -> None:
    relations = world.relations
    edges = relations.get_edges

    def get_edges(uri: str, ctx: RequestContext) -> object:
        return edges(uri, _governing(ctx)) if edges(uri, ctx) else []

    relations.get_edges = get_edges


@caught_by("relations.get_incoming")
def shows_edges_from_everywhere(world: Any) -> None:
    incoming = world.relations.get_incoming
    world.relations.get_incoming = lambda uri, ctx: incoming(uri, _governing(ctx))


@caught_by("nodes.read_node")
def reads_edges_that_lead_out_of_reach(world: Any) -> None:
    world.nodes.hidden_edges = lambda _node, _ctx: ()


@caught_by("nodes.write_node")
def loses_edges_that_its_author_can_not_see(world: Any) -> None:
    plan, hidden = world.nodes._plan_write, world.nodes.hidden_edges

    def plan_write(*args: Any) -> None:
        world.nodes.hidden_edges = lambda _node, _ctx: ()
        plan(*args)
        world.nodes.hidden_edges = hidden

    world.nodes._plan_write = plan_write


@caught_by("relations.upsert_edges")
def relates_to_whatever_is_named(world: Any) -> None:
    upsert = world.relations.upsert_edges

    def upsert_edges(edges: list[RelationEdge], ctx: RequestContext) -> None:
        for edge in edges:
            world.nodes.reach.require_writable(edge.from_uri, ctx)
        upsert(edges, _governing(ctx))

    world.relations.upsert_edges = upsert_edges


@caught_by("relations.remove_edges")
def takes_away_edges_that_nobody_showed(world: Any) -> None:
    remove = world.relations.remove_edges

    def remove_edges(edges: list[RelationEdge], ctx: RequestContext) -> None:
        for edge in edges:
            world.nodes.reach.require_writable(edge.from_uri, ctx)
        remove(edges, _governing(ctx))

    world.relations.remove_edges = remove_edges


@caught_by("nodes.move_node")
def follows_a_move_in_everybodys_nodes(world: Any) -> None:
    followers = world.nodes._followers
    world.nodes._followers = lambda place, ctx: followers(place, _governing(ctx))


@caught_by("nodes.move_node")
def tells_in_a_link_where_something_is_now(world: Any) -> None:
    world.nodes.reach.is_known_to = lambda _reader, _place: True


# ---------------------------------------------------------------- the outbox
@caught_by("outbox.register_delete")
def registers_for_whoever_is_named(world: Any) -> None:
    register = world.outbox.register_delete
    world.outbox.register_delete = lambda uri, ctx, *, owner_space="": register(
        uri, _governing(ctx, uri), owner_space=owner_space
    )


@caught_by("nodes.siblings")
def tells_of_siblings_out_of_reach(world: Any) -> None:
    siblings = world.nodes.siblings
    reported = lambda node, ctx: siblings(node, _governing(ctx, node.uri))  # noqa: E731 - it is one
    world.outbox._siblings = world.nodes.siblings = reported


@caught_by("outbox.list_pending")
def lists_events_of_accounts_that_begin_alike(world: Any) -> None:
    pending = world.outbox.list_pending
    world.outbox.list_pending = lambda account: [
        each for known in list(world.outbox._accounts) for each in _like(known, account, pending)
    ]


def _like(known: str, account: str, listed: Callable[[str], list[Any]]) -> list[Any]:
    return listed(known) if known.casefold()[:1] == account.casefold()[:1] else []


@caught_by("outbox.delete_by_owner_space")
def counts_events_of_other_accounts(world: Any) -> None:
    delete = world.outbox.delete_by_owner_space

    def delete_by_owner_space(account: str, space: str) -> int:
        others = [events for name, events in world.outbox._accounts.items() if name != account]
        foreign = [k for events in others for k in events.values() if k.event.owner_space == space]
        return int(delete(account, space)) + len(foreign)

    world.outbox.delete_by_owner_space = delete_by_owner_space


@caught_by("outbox.move_to_dlq")
def buries_events_by_their_id_alone(world: Any) -> None:
    bury = world.outbox.move_to_dlq

    def move_to_dlq(event: Any, uri: str, **options: Any) -> None:
        for account in list(world.outbox._accounts):
            for where, known in world.outbox.list_unfinished(account):
                if known.event_id == event.event_id:
                    bury(known, where, **options)

    world.outbox.move_to_dlq = move_to_dlq


@caught_by("outbox.purge")
def purges_events_by_their_id_alone(world: Any) -> None:
    purge = world.outbox.purge
    world.outbox.purge = lambda account, ids=None: sum(
        purge(known, ids) for known in list(world.outbox._accounts) if ids or known == account
    )


# ---------------------------------------------------------------- tenants and repair
@caught_by("namespaces.create_user")
def lets_admins_make_users_everywhere(world: Any) -> None:
    create = world.namespaces.create_user
    world.namespaces.create_user = lambda account, user, ctx: create(
        account, user, ctx if ctx.role is Role.MEMBER else _governing(ctx)
    )


@caught_by("namespaces.list_accounts")
def lists_accounts_to_all(world: Any) -> None:
    accounts = world.namespaces.list_accounts
    world.namespaces.list_accounts = lambda ctx: accounts(_governing(ctx))


@caught_by("namespaces.list_users")
def lists_users_to_all_of_an_account(world: Any) -> None:
    users = world.namespaces.list_users
    world.namespaces.list_users = lambda account, ctx: users(
        account, _governing(ctx) if account == ctx.account_id else ctx
    )


@caught_by("namespaces.delete_user")
def deletes_users_whose_ids_begin_alike(world: Any) -> None:
    delete, users = world.namespaces.delete_user, world.namespaces.list_users

    def delete_user(account: str, user: str, ctx: RequestContext) -> object:
        deleted = delete(account, user, ctx)
        for other in users(account, ctx):
            if other.startswith(user):
                delete(account, other, ctx)
        return deleted

    world.namespaces.delete_user = delete_user


@caught_by("edit", "repair.run")
def repairs_out_of_reach(world: Any) -> None:
    run = world.repair.run
    world.repair.run = lambda ctx: run(_governing(ctx))


@caught_by("edit", "repair.examine")
def examines_out_of_reach(world: Any) -> None:
    world.repair._may = lambda _place, _ctx: True


def opened(break_it: Break, open_world: Callable[[], World]) -> Callable[[], World]:
    def open_broken() -> World:
        world = open_world()
        break_it(world)
        return world

    return open_broken


@caught_by("nodes.exchange")
def removes_in_exchange_what_is_anybodys(world: Any) -> None:
    exchange = world.nodes.exchange

    def careless(nodes: Any, without: Any, ctx: RequestContext) -> None:
        exchange(nodes, (), ctx)
        for uri in without:
            exchange((), [uri], _governing(ctx, uri))

    world.nodes.exchange = careless
