"""Accounts, users and agents: who may make and delete them, and that all of one goes, no more."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from perdure.context import tenancy
from perdure.context.contract import TenantStore
from perdure.context.links import ScannedLinks
from perdure.context.tenancy import Deletions, TenantNodes
from perdure.engine.namespaces import NamespaceManager, TenantDeletion
from perdure.errors import (
    AccessDeniedError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    StorageFaultError,
)
from perdure.model import ContextNode, RelationEdge, RequestContext, Role, Uri
from perdure.storage import Locator
from perdure.storage.recorded import Recorded
from perdure.testing.storage.processes import finish, start
from tests.context.opened import GROUNDS, ROOT, Opened, memory_uri, opened
from tests.support.context.crashes import FolderGround, Ground, MemoryGround, every_crash
from tests.support.context.index_outbox import indexed_links

NOTES = Locator("accounts/.deleting")


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: a kill takes nothing away that was written."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def ground(tmp_path: Path) -> MemoryGround:
    return MemoryGround(tmp_path / "ground")


@pytest.fixture
def memory(ground: Ground) -> Iterator[Opened]:
    with opened(ground, logged=False) as memory:
        yield memory


def ctx_of(account: str, user: str = "ana", role: Role = Role.ADMIN) -> RequestContext:
    return RequestContext(account, user, role=role)


def fill(memory: Opened, account: str, *, user: str = "ana", talks: int = 1) -> None:
    """Create active and archived nodes of a user, an agent and all, and a session."""
    ctx = replace(ctx_of(account, user), session_id=f"of {user}")
    uris = [
        *(Uri(account, ("users", user, "memories", "preference", s)) for s in ("one", "two")),
        Uri(account, ("users", user, "memories", "profile")),
        Uri(account, ("agents", user, "skills", "brew")),
        *(Uri(account, ("sessions", f"of {user}", f"talk {n}")) for n in range(talks)),
    ]
    if not memory.nodes.exists(str(Uri(account, ("resources", "map"))), ctx):
        uris.append(Uri(account, ("resources", "map")))
    memory.nodes.write_nodes([_node(uri, user) for uri in uris], ctx)
    memory.nodes.archive_node(str(uris[1]), ctx)
    edge = RelationEdge(str(uris[0]), str(uris[2]), "supports")
    memory.relations.upsert_edges([edge], ctx)
    for space in (f"user:{user}", f"agent:{user}"):
        event = next(e for e in memory.events(account) if e.owner_space == space)
        memory.outbox.move_to_dlq(event, event.uri)


def fill_little(memory: Opened, account: str) -> None:
    """Give an account a user with a memory and a session of two talks, and another user."""
    ctx = replace(ctx_of(account), session_id="of ana")
    talks = [Uri(account, ("sessions", "of ana", name)) for name in ("one", "two")]
    profiles = [Uri(account, ("users", user, "memories", "profile")) for user in ("ana", "bob")]
    memory.nodes.write_nodes([_node(uri, "ana") for uri in (*talks, *profiles)], ctx)


def _node(uri: Uri, user: str) -> ContextNode:
    owner = uri.owner_space or f"user:{user}"
    return ContextNode(uri=str(uri), content=f"of {user} [[two]]", owner_space=owner)


def below(texts: Mapping[str, bytes], *uris: str) -> dict[str, bytes]:
    """Return what lies in the folders of these places."""
    prefixes = tuple(f"{Uri.parse(uri).key}/" for uri in uris)
    return {key: data for key, data in texts.items() if f"{key}/".startswith(prefixes)}


# ---------------------------------------------------------------- who may

CASES = {
    "create_account": ("new",),
    "delete_account": ("{account}",),
    "create_user": ("{account}", "new"),
    "create_agent": ("{account}", "new"),
    "delete_user": ("{account}", "ana"),
    "delete_agent": ("{account}", "ana"),
}
ALLOWED = {
    Role.ROOT: {(verb, account) for verb in CASES for account in ("own", "other")},
    Role.ADMIN: {(verb, "own") for verb in CASES if not verb.endswith("account")},
    Role.MEMBER: set[tuple[str, str]](),
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("whose", ["own", "other"])
@pytest.mark.parametrize("verb", CASES)
def test_who_may_make_and_delete(
    verb: str, whose: str, role: Role, ground: Ground, memory: Opened
) -> None:
    fill(memory, "own")
    fill(memory, "other")
    arguments = [argument.format(account=whose) for argument in CASES[verb]]
    before = ground.all_texts()
    call = partial(getattr(memory.namespaces, verb), *arguments, ctx_of("own", role=role))

    if (verb, whose) in ALLOWED[role]:
        call()
        assert ground.all_texts() != before
        return
    with pytest.raises(AccessDeniedError, match="Fix:"):
        call()
    assert ground.all_texts() == before


@pytest.mark.parametrize(
    ("role", "accounts", "own", "others"),
    [
        (Role.ROOT, ["other", "own"], ["ana", "bob"], ["ana"]),
        (Role.ADMIN, ["own"], ["ana", "bob"], []),
        (Role.MEMBER, ["own"], ["bob"], []),
    ],
)
def test_who_sees_whom(
    role: Role, accounts: list[str], own: list[str], others: list[str], memory: Opened
) -> None:
    fill(memory, "own")
    fill(memory, "own", user="bob")
    fill(memory, "other")
    ctx = replace(ctx_of("own", "bob", role), agent_id="bob")
    namespaces = memory.namespaces

    assert namespaces.list_accounts(ctx) == accounts
    assert namespaces.list_users("own", ctx) == namespaces.list_agents("own", ctx) == own
    assert namespaces.list_users("other", ctx) == namespaces.list_agents("other", ctx) == others
    assert namespaces.list_users("nowhere", ctx) == []


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER])
def test_only_root_finishes_deletions(role: Role, memory: Opened) -> None:
    with pytest.raises(AccessDeniedError):
        memory.namespaces.resume(ctx_of("own", role=role))


def test_what_was_created_is_listed_and_not_created_twice(memory: Opened) -> None:
    namespaces = memory.namespaces
    namespaces.create_account("new", ROOT)
    namespaces.create_user("new", "eve", ROOT)
    namespaces.create_agent("new", "bot", ROOT)

    assert namespaces.list_accounts(ROOT) == ["new"]
    assert namespaces.list_users("new", ROOT) == ["eve"]
    assert namespaces.list_agents("new", ROOT) == ["bot"]
    for again in (
        partial(namespaces.create_account, "new"),
        partial(namespaces.create_user, "new", "eve"),
        partial(namespaces.create_agent, "new", "bot"),
    ):
        with pytest.raises(NodeExistsError, match="Fix:"):
            again(ROOT)


def test_a_foreign_file_is_not_an_account(memory: Opened) -> None:
    memory.backend.write(Locator("accounts/readme.md"), "by hand")
    memory.backend.write(Locator("accounts/own/users/list"), "by hand")

    assert memory.namespaces.list_accounts(ROOT) == ["own"]
    assert memory.namespaces.list_users("own", ROOT) == []


# ---------------------------------------------------------------- what goes, what stays


def test_an_account_goes_and_all_else_stays_byte_for_byte(ground: Ground, memory: Opened) -> None:
    fill(memory, "other")
    others = (ground.all_texts(), memory.events("other"))
    fill(memory, "own")
    events = len(memory.events("own"))

    deleted = memory.namespaces.delete_account("own", ROOT)

    assert deleted == TenantDeletion("own", "", {"nodes": 6, "events": events})
    assert (ground.all_texts(), memory.events("other")) == others
    assert memory.events("own") == []
    assert memory.namespaces.list_accounts(ROOT) == ["other"]


@pytest.mark.parametrize(
    ("kind", "gone", "nodes"),
    [
        ("user", ["ctx://own/users/ana", "ctx://own/sessions/of%20ana"], 4),
        ("agent", ["ctx://own/agents/ana"], 1),
    ],
)
def test_an_owner_goes_with_its_sessions_and_all_else_stays(
    kind: str, gone: list[str], nodes: int, ground: Ground, memory: Opened
) -> None:
    fill(memory, "own", user="bob")
    fill(memory, "own")
    before, events = ground.all_texts(), memory.events("own")
    going = [event for event in events if event.owner_space == f"{kind}:ana"]
    assert "dead" in {event.status.value for event in going}

    delete = getattr(memory.namespaces, f"delete_{kind}")
    deleted = delete("own", "ana", ctx_of("own"))

    assert deleted == TenantDeletion("own", f"{kind}:ana", {"nodes": nodes, "events": len(going)})
    left = before.keys() - below(before, *gone).keys()
    assert ground.all_texts() == {key: before[key] for key in left}
    assert memory.events("own") == [event for event in events if event not in going]


def test_the_links_of_an_owner_go_and_those_of_others_stay(tmp_path: Path) -> None:
    ground = FolderGround(tmp_path / "ground")
    with opened(ground, logged=False) as memory:
        assert isinstance(memory.backend, Recorded)
        links = indexed_links(memory.backend.history, memory.backend, str(tmp_path / "index"))
        holders: Mapping[str, TenantStore] = {
            "nodes": TenantNodes(memory.backend),
            "events": memory.outbox,
            "index": links.index,
        }
        namespaces = NamespaceManager(memory.backend, holders)
        for user in ("ana", "an", "ana.b", "bob"):
            fill(memory, "own", user=user)
        scanned = ScannedLinks(memory.nodes)
        target = Uri.parse(memory_uri("two", account="own"))
        links.catch_up("own")
        everybody = links.leading_to(target)
        assert len(everybody) > 12

        namespaces.delete_user("own", "ana", ROOT)

        left = links.leading_to(target)
        gone = set(everybody) - set(left)
        assert set(left) == set(scanned.leading_to(target)) & set(everybody)
        assert {place.owner_space or place.session for place in gone} == {"user:ana", "of ana"}
        links.index.close()


def test_who_has_only_sessions_can_be_deleted(memory: Opened) -> None:
    ctx = replace(ctx_of("own"), session_id="monday")
    talk = Uri("own", ("sessions", "monday", "talk"))
    memory.nodes.write_node(_node(talk, "eve"), ctx)

    deleted = memory.namespaces.delete_user("own", "eve", ROOT)

    assert deleted.counts == {"nodes": 1, "events": 1}
    assert not memory.backend.exists(Locator(talk.parent.key))


def test_a_session_whose_owner_nobody_can_read_is_let_be(tmp_path: Path) -> None:
    ground = FolderGround(tmp_path / "ground")
    with opened(ground, logged=False) as memory:
        fill(memory, "own")
        fill(memory, "own", user="bob")
        session = ground.folder / "texts" / Uri("own", ("sessions", "of bob")).key
        (session / ".owner").write_bytes(b"\xff")

        assert memory.namespaces.delete_user("own", "ana", ROOT).counts["nodes"] == 4
        assert session.exists()


def test_what_is_not_there_is_not_deleted(ground: Ground, memory: Opened) -> None:
    fill(memory, "own")
    before = ground.all_texts()
    for absent in (
        partial(memory.namespaces.delete_account, "nowhere"),
        partial(memory.namespaces.delete_user, "own", "nobody"),
        partial(memory.namespaces.delete_agent, "own", "nobody"),
    ):
        with pytest.raises(NodeNotFoundError, match="Fix:"):
            absent(ROOT)
        assert ground.all_texts() == before


def test_a_deleted_tenant_can_be_created_and_deleted_again(memory: Opened) -> None:
    for _ in range(2):
        memory.namespaces.create_account("own", ROOT)
        fill(memory, "own")
        assert memory.namespaces.delete_account("own", ROOT).counts["nodes"] == 6
        with pytest.raises(NodeNotFoundError):
            memory.namespaces.delete_account("own", ROOT)


TWINS = [
    ("a|b", "ab"),
    ("a/b", "a"),
    ("a%2Fb", "a/b"),
    ("a%2fb", "a%2Fb"),
    ("Ana", "ana"),
    ("\u00e9", "e\u0301"),
    ("..", "%2e%2e"),
    (".", ".."),
    ("an", "ana"),
    ("ana.", "ana"),
    ("ana", "ana.md"),
    ("con", "con.x"),
    ("user:x", "x"),
    ("a*", "ab"),
    ("a_", "ab"),
    ("a%", "ab"),
    ("\u212a", "k"),
    (" a", "a"),
]


@pytest.mark.parametrize("pair", [*TWINS, *((b, a) for a, b in TWINS)], ids=ascii)
def test_ids_that_look_alike_do_not_touch_each_other(
    pair: tuple[str, str], ground: Ground, memory: Opened
) -> None:
    going, staying = pair
    for name in pair:
        fill(memory, name)
        fill(memory, "own", user=name)
    accounts = [str(Uri(staying)), "ctx://own"]
    before, events = below(ground.all_texts(), *accounts), memory.events(staying)

    deleted = memory.namespaces.delete_account(going, ROOT)

    assert deleted.counts["nodes"] == 6
    assert (below(ground.all_texts(), *accounts), memory.events(staying)) == (before, events)
    assert set(memory.namespaces.list_accounts(ROOT)) == {"own", staying}
    theirs = [str(Uri("own", ("users", staying))), str(Uri("own", ("sessions", f"of {staying}")))]
    before = below(ground.all_texts(), *theirs)
    events = [e for e in memory.events("own") if e.owner_space == f"user:{staying}"]

    deleted = memory.namespaces.delete_user("own", going, ROOT)

    assert deleted.counts["nodes"] == 4
    assert below(ground.all_texts(), *theirs) == before
    assert [e for e in memory.events("own") if e.owner_space.startswith("user:")] == events
    assert memory.namespaces.list_users("own", ROOT) == [staying]


# ---------------------------------------------------------------- after a crash

DELETIONS: dict[str, Callable[[Opened], TenantDeletion]] = {
    "account": lambda memory: memory.namespaces.delete_account("own", ROOT),
    "user": lambda memory: memory.namespaces.delete_user("own", "ana", ROOT),
}


@pytest.mark.search
@pytest.mark.parametrize("what", DELETIONS)
@pytest.mark.parametrize("on", GROUNDS)
def test_a_deletion_that_was_killed_is_finished_by_resume(
    what: str, on: str, tmp_path: Path
) -> None:
    ground = GROUNDS[on](tmp_path / "ground")
    with opened(ground, logged=False) as memory:
        for account in ("own", "other"):
            fill_little(memory, account)
    before = whole(ground)
    after = ground.copied(tmp_path / "after")
    with opened(after, logged=False) as memory:
        DELETIONS[what](memory)
        events = memory.events("own"), memory.events("other")

    def run(ground: Ground) -> None:
        with opened(ground, logged=False) as memory:
            DELETIONS[what](memory)

    finished = 0
    for moment, left in every_crash(ground, run):
        with opened(left, logged=False) as memory:
            if not memory.backend.list(NOTES):
                assert whole(left) in (before, whole(after)), moment
                continue
            refused(memory)
            assert [deleted.account_id for deleted in memory.namespaces.resume(ROOT)] == ["own"]
            finished += 1
            assert whole(left) == whole(after), moment
            assert (memory.events("own"), memory.events("other")) == events, moment
            assert memory.namespaces.resume(ROOT) == []
            memory.namespaces.create_user("own", "ana", ROOT)
    assert finished > 4


def whole(ground: Ground) -> dict[str, bytes]:
    """Return all texts; the empty folder of the notes makes no difference."""
    return {key: text for key, text in ground.all_texts().items() if key != NOTES.key}


def refused(memory: Opened) -> None:
    """Nothing can be written where a deletion is under way."""
    profile = Uri("own", ("users", "ana", "memories", "profile"))
    talk = Uri("own", ("sessions", "of ana", "talk 9"))
    ctx = replace(ctx_of("own"), session_id="of ana")
    for write in (
        partial(memory.nodes.write_node, _node(profile, "ana"), ctx),
        partial(memory.nodes.write_node, _node(talk, "ana"), ctx),
        partial(memory.namespaces.create_user, "own", "ana", ROOT),
    ):
        with pytest.raises((AccessDeniedError, NodeExistsError)) as refusal:
            write()
        assert "being deleted" in str(refusal.value) or refusal.type is NodeExistsError


@pytest.mark.parametrize("what", DELETIONS)
def test_a_deletion_that_was_killed_can_be_begun_again(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenancy, "_BATCH", 4)  # less than the texts of one node
    ground = MemoryGround(tmp_path / "ground")
    with opened(ground, logged=False) as memory:
        fill_little(memory, "own")

    def run(ground: Ground) -> None:
        with opened(ground, logged=False) as memory:
            DELETIONS[what](memory)

    last = {}
    for moment, left in every_crash(ground, run):
        with opened(left, logged=False) as memory:
            with suppress(NodeNotFoundError):
                DELETIONS[what](memory)
            last[moment] = whole(left)
            assert not memory.backend.exists(NOTES)
    assert len(last) > 10
    first = next(iter(last.values()))
    assert all(texts == first for texts in last.values())


class Failing:
    """Holds things of a tenant, and fails a few times to forget them."""

    def __init__(self, times: int) -> None:
        self.times = times

    def delete_account_data(self, account_id: str) -> int:
        if self.times:
            self.times -= 1
            raise StorageFaultError("it can't just now. Fix: try again.")
        return 0

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return self.delete_account_data(account_id)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("what", DELETIONS)
def test_who_fails_to_forget_is_asked_again(what: str, first: bool, ground: Ground) -> None:  # noqa: FBT001 - a parameter of the test
    failing = Failing(2)

    def order(left: Mapping[str, TenantStore]) -> Mapping[str, TenantStore]:
        return {"failing": failing, **left} if first else {**left, "failing": failing}

    with opened(ground, holders=order, logged=False) as memory:
        fill(memory, "own")
        fill(memory, "other")
        with pytest.raises(StorageFaultError):
            DELETIONS[what](memory)
        refused(memory)
        with pytest.raises(StorageFaultError):
            memory.namespaces.resume(ROOT)

        (deleted,) = memory.namespaces.resume(ROOT)

        assert deleted.counts.keys() == {"failing", "nodes", "events"}
        assert not memory.backend.exists(NOTES)
        assert texts_of_ana(ground) == {}
        assert memory.events("other") != []


def texts_of_ana(ground: Ground) -> dict[str, bytes]:
    return below(ground.all_texts(), "ctx://own/users/ana", "ctx://own/sessions/of%20ana")


@pytest.mark.parametrize("content", ["", "{}", "[]", "[" * 100_000, '{"account_id": 1}', "\u00e9"])
def test_an_invalid_note_of_a_deletion_is_reported_and_the_fix_works(
    content: str, memory: Opened
) -> None:
    fill(memory, "own")
    note = NOTES.child("0" * 32 + ".json")
    memory.backend.write(note, content)

    with pytest.raises(InvalidValueError, match="Fix: remove it"):
        memory.namespaces.resume(ROOT)
    memory.backend.remove(note)
    assert memory.namespaces.resume(ROOT) == []


def test_a_note_under_another_name_deletes_nothing(ground: Ground, memory: Opened) -> None:
    fill(memory, "own")
    content = json.dumps({"account_id": "own", "owner_space": ""})
    memory.backend.write(NOTES.child("note.json"), content)
    before = ground.all_texts()

    with pytest.raises(InvalidValueError):
        memory.namespaces.resume(ROOT)

    assert ground.all_texts() == before


# ---------------------------------------------------------------- meanwhile


class Writing:
    """Has no data; during a deletion, a write that was under way is done."""

    def __init__(self, write: Callable[[], object], times: int) -> None:
        self.write, self.times = write, times

    def delete_account_data(self, account_id: str) -> int:
        if self.times:
            self.times -= 1
            self.write()
        return 0

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return self.delete_account_data(account_id)


@pytest.mark.parametrize("what", DELETIONS)
def test_who_comes_in_between_leaves_nothing_half(
    what: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that looked before the deletion began, and commits in the midst of it."""
    numbers = count()

    def write() -> None:
        with monkeypatch.context() as patch, opened(ground, logged=False) as late:
            patch.setattr(Deletions, "refuse_nodes", lambda *_: None)  # it looked before
            slug = f"late-{next(numbers)}"
            uri = Uri("own", ("users", "ana", "memories", "preference", slug))
            late.nodes.write_node(_node(uri, "ana"), ctx_of("own"))

    for place in ("first", "middle", "last"):
        writing = Writing(write, 2)

        def order(left: Mapping[str, TenantStore], place: str = place) -> Mapping[str, TenantStore]:
            names = {"first": ["late", "nodes", "events"], "middle": ["nodes", "late", "events"]}
            every: Mapping[str, TenantStore] = {**left, "late": writing}  # noqa: B023 - it is called before the next turn
            return {name: every[name] for name in names.get(place, ["nodes", "events", "late"])}

        with opened(ground, holders=order, logged=False) as memory:
            fill(memory, "own")

            deleted = DELETIONS[what](memory)

            left = [str(uri) for uri in memory.nodes.walk(Uri("own", ("users", "ana")))]
            events = [e.uri for e in memory.events("own") if e.owner_space == "user:ana"]
            assert left == events, place
            written = {"account": 6, "user": 4}[what] + 2
            assert deleted.counts["nodes"] == written - len(left), place
            if what == "user" or left:
                memory.namespaces.delete_account("own", ROOT)


def test_a_late_deletion_leaves_what_was_created_again(ground: Ground) -> None:
    """Two delete the same at once; when the first is done, the second stops."""

    def make_anew() -> None:
        with opened(ground, logged=False) as other:
            Deletions(other.backend).end("own", "")
            fill(other, "own")

    def order(left: Mapping[str, TenantStore]) -> Mapping[str, TenantStore]:
        return {"late": Writing(make_anew, 1), **left}

    with opened(ground, holders=order, logged=False) as memory:
        memory.namespaces.create_account("own", ROOT)

        memory.namespaces.delete_account("own", ROOT)

        assert len(memory.active("own")) == 5
        assert memory.events("own") != []


def test_writers_in_another_account_are_not_disturbed(tmp_path: Path) -> None:
    ground = FolderGround(tmp_path / "ground")
    writes = 12

    def write() -> None:
        with opened(FolderGround(tmp_path / "ground"), logged=False) as memory:
            for number in range(writes):
                uri = Uri("other", ("users", "ana", "memories", "preference", f"n-{number}"))
                memory.nodes.write_node(_node(uri, "ana"), ctx_of("other"))

    with opened(ground, logged=False) as memory:
        fill(memory, "own", talks=60)
        writer = start(write)
        memory.namespaces.delete_account("own", ROOT)
        finish([writer])

        assert memory.namespaces.list_accounts(ROOT) == ["other"]
        assert len(memory.active("other")) == len(memory.events("other")) == writes


def test_deleting_while_others_write_there_leaves_whole_nodes_only(tmp_path: Path) -> None:
    """A writer is refused, or comes after everything is deleted."""
    ground = FolderGround(tmp_path / "ground")

    def write(user: str) -> None:
        with (
            opened(FolderGround(tmp_path / "ground"), logged=False) as memory,
            suppress(AccessDeniedError),
        ):
            for number in range(150):
                uri = Uri("own", ("users", user, "memories", "preference", f"n-{number}"))
                memory.nodes.write_node(_node(uri, user), ctx_of("own", user))

    with opened(ground, logged=False) as memory:
        fill(memory, "own")
        writers = [start(partial(write, user)) for user in ("ana", "bob")]
        while len(memory.namespaces.list_users("own", ROOT)) < 2:
            threading.Event().wait(0.01)

        memory.namespaces.delete_account("own", ROOT)

        finish(writers)
        active = memory.active("own")
        assert {e.uri for e in memory.events("own")} >= active.keys()
        assert memory.repair.run(ctx_of("own")) == []
