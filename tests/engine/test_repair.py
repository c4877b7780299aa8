"""What repair finds in each state, what it does about it, and what it must never do."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.context.node_files import FILES
from perdure.engine.repair import ACTIONS, RepairAction, RepairState
from perdure.errors import BrokenNodeError, NodeNotFoundError
from perdure.model import EventType, NodeStatus, RelationEdge, RequestContext, Role, Uri
from perdure.storage import Locator, StorageBackend
from tests.context.opened import (
    ADMIN,
    ANA,
    Opened,
    check_logged,
    memory_uri,
    note,
    opened,
)
from tests.support.context.crashes import FolderGround, Ground, MemoryGround, every_crash
from tests.tiers import searched

pytestmark = pytest.mark.usefixtures("agfs")

ONE, TWO = memory_uri("one"), memory_uri("two")
TALK = "ctx://acme/sessions/monday/talk"
HUMAN = {RepairState.BROKEN}
"""What stays until a human settles it."""


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: nothing here takes away what was written."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def ground(tmp_path: Path) -> MemoryGround:
    return MemoryGround(tmp_path / "ground")


class Planter:
    """Puts files among those of nodes, behind everybody's back."""

    def __init__(self, memory: Opened) -> None:
        self._memory = memory
        self._texts: StorageBackend = memory.backend.inner  # a wrapper

    def at(self, uri: str, name: str) -> Locator:
        return self._memory.nodes.file(Uri.parse(uri), name)

    def put(self, uri: str, name: str, text: str) -> None:
        self._texts.write(self.at(uri, name), text)

    def take(self, uri: str, *names: str) -> None:
        for name in names:
            self._texts.remove(self.at(uri, name))

    def meta(self, uri: str, **changes: object) -> None:
        """Let the meta say something else."""
        meta = json.loads(self._texts.read(self.at(uri, ".meta.json")))
        self.put(uri, ".meta.json", json.dumps(meta | changes))

    def mark(self, uri: str, *, archived: bool) -> None:
        marker = self._memory.nodes.marker(Uri.parse(uri))
        if archived:
            self._texts.write(marker, "")
        else:
            self._texts.remove(marker)


# ---------------------------------------------------------------- the table


def meta_missing(memory: Opened, plant: Planter) -> None:
    plant.take(ONE, ".meta.json")


def made_by_hand(memory: Opened, plant: Planter) -> None:
    memory.nodes.delete_node(ONE, ANA)
    plant.put(ONE, "content.md", "---\ntags: [a]\n---\n# Mine\n")


def leftover(memory: Opened, plant: Planter) -> None:
    plant.take(ONE, ".meta.json", "content.md")


def pending_complete(memory: Opened, plant: Planter) -> None:
    plant.meta(ONE, status="PENDING")


def pending_incomplete(memory: Opened, plant: Planter) -> None:
    plant.meta(ONE, status="PENDING")
    plant.take(ONE, "content.md", ".abstract.md")


def meta_unreadable(memory: Opened, plant: Planter) -> None:
    plant.put(ONE, ".meta.json", "{" * 100_000)


def meta_of_another_format(memory: Opened, plant: Planter) -> None:
    plant.meta(ONE, format=2)


def broken(memory: Opened, plant: Planter) -> None:
    plant.meta(ONE, status="BROKEN")


def edited_so_that_it_breaks(memory: Opened, plant: Planter) -> None:
    plant.put(ONE, ".relations.json", "no JSON")


def edited(memory: Opened, plant: Planter) -> None:
    plant.put(ONE, "content.md", "by hand\n")


def edited_while_archived(memory: Opened, plant: Planter) -> None:
    memory.nodes.archive_node(ONE, ANA)
    plant.put(ONE, "content.md", "by hand\n")


def marked_but_active(memory: Opened, plant: Planter) -> None:
    plant.mark(ONE, archived=True)


def archived_but_not_marked(memory: Opened, plant: Planter) -> None:
    memory.nodes.archive_node(ONE, ANA)
    plant.mark(ONE, archived=False)


def pending_but_marked(memory: Opened, plant: Planter) -> None:
    plant.meta(ONE, status="PENDING")
    plant.mark(ONE, archived=True)


def meta_missing_but_marked(memory: Opened, plant: Planter) -> None:
    plant.take(ONE, ".meta.json")
    plant.mark(ONE, archived=True)


def empty_folder(memory: Opened, plant: Planter) -> None:
    plant.take(ONE, *FILES)


@dataclass(frozen=True, slots=True)
class Case:
    state: RepairState
    status: NodeStatus | None
    """Of the node after the repair, None if none is there."""
    expected: list[EventType]
    """What is registered."""
    content: str = "# one\n\nfirst\n"
    version: int = 1


ACTIVE, ARCHIVED = NodeStatus.ACTIVE, NodeStatus.ARCHIVED
WROTE = [EventType.UPSERT_NODE]

TABLE: dict[Callable[[Opened, Planter], None], Case] = {
    meta_missing: Case(RepairState.META_MISSING, ACTIVE, WROTE),
    made_by_hand: Case(RepairState.META_MISSING, ACTIVE, WROTE, "# Mine\n"),
    leftover: Case(RepairState.LEFTOVER, None, [EventType.DELETE_NODE]),
    pending_complete: Case(RepairState.PENDING_COMPLETE, ACTIVE, WROTE),
    pending_incomplete: Case(RepairState.PENDING_INCOMPLETE, ACTIVE, WROTE),
    meta_unreadable: Case(RepairState.META_UNREADABLE, ACTIVE, WROTE),
    meta_of_another_format: Case(RepairState.META_UNREADABLE, ACTIVE, WROTE),
    broken: Case(RepairState.BROKEN, NodeStatus.BROKEN, []),
    edited: Case(RepairState.EDITED, ACTIVE, WROTE, "by hand\n", 2),
    edited_while_archived: Case(RepairState.EDITED, ARCHIVED, [], "by hand\n", 3),
    marked_but_active: Case(RepairState.MARK_WRONG, ACTIVE, []),
    archived_but_not_marked: Case(RepairState.MARK_WRONG, ARCHIVED, [], version=2),
    pending_but_marked: Case(RepairState.PENDING_COMPLETE, ACTIVE, WROTE),
    meta_missing_but_marked: Case(RepairState.META_MISSING, ARCHIVED, []),
    empty_folder: Case(RepairState.LEFTOVER, None, []),
    edited_so_that_it_breaks: Case(RepairState.BROKEN, ACTIVE, []),
}


@pytest.mark.parametrize("plant", TABLE, ids=lambda plant: plant.__name__)
def test_each_state_is_found_and_mended_as_the_table_says(
    plant: Callable[[Opened, Planter], None], ground: MemoryGround
) -> None:
    case = TABLE[plant]
    with opened(ground) as memory:
        memory.nodes.write_nodes([note("one"), note("two")], ANA)
        plant(memory, Planter(memory))
        memory.drain()
        before = ground.everything()

        found = memory.repair.examine(ADMIN)

        assert [(each.uri, each.state) for each in found] == [(ONE, case.state)]
        assert found[0].action is ACTIONS[case.state]
        assert ground.everything() == before, "to look changed something"

        assert memory.repair.run(ADMIN) == found

        status = case.status
        expected = [] if status is NodeStatus.BROKEN else case.expected
        events = memory.events()
        assert {event.uri for event in events} in ({ONE}, set() if expected == [] else {ONE})
        check_outcome(memory, case)
        after = ground.all_texts()
        assert memory.repair.run(ADMIN) == [
            each for each in found if each.state is RepairState.BROKEN
        ] or (status is NodeStatus.BROKEN)
        assert ground.all_texts() == after
        assert memory.events() == events
        assert memory.nodes.read_node(TWO, ANA).version == 1


def check_outcome(memory: Opened, case: Case) -> None:
    place, status = Uri.parse(ONE), case.status
    if status is NodeStatus.BROKEN:
        with pytest.raises(NodeNotFoundError, match="BROKEN"):
            memory.nodes.read_node(ONE, ANA)
        return
    if status is None:
        assert memory.nodes.load(place) is None
        assert not memory.backend.exists(memory.nodes.folder(place))
        return
    stored = memory.nodes.load(place)
    if stored is None:
        assert case.state is RepairState.BROKEN
        return
    assert stored.meta.status is status
    assert (stored.node.content, stored.meta.version) == (case.content, case.version)
    shown = ONE in memory.nodes.list_children(str(place.parent), ANA)
    assert shown == (status is NodeStatus.ACTIVE)


def _is_broken(memory: Opened) -> bool:
    try:
        memory.nodes.load(Uri.parse(ONE))
    except BrokenNodeError:
        return True
    return False


def test_the_table_has_an_action_for_each_state() -> None:
    assert ACTIONS.keys() == set(RepairState)
    assert set(ACTIONS.values()) == set(RepairAction)


def test_what_can_not_be_repaired_is_reported_and_not_changed(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        Planter(memory).put(ONE, ".meta.json", "nonsense")
        before = ground.all_texts()

        assert [each.state for each in memory.repair.run(ADMIN)] == [RepairState.BROKEN]
        assert ground.all_texts() == before


@pytest.mark.parametrize("length", [100_001, 105_000, 200_000])
def test_a_note_that_is_too_long_is_not_cut(length: int, ground: MemoryGround) -> None:
    with opened(ground) as memory:
        planter = Planter(memory)
        planter.put(ONE, "content.md", "x" * length)

        (found,) = memory.repair.run(ADMIN)

        assert (found.state, found.action) == (RepairState.BROKEN, RepairAction.NONE)
        assert "Fix: shorten it" in found.detail
        assert memory.backend.read(planter.at(ONE, "content.md")) == "x" * length


def test_an_unreadable_time_is_a_finding(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        good = {"date": "2026-03-02", "valid_from": None, "valid_until": "2026-03-02T10:00:00Z"}
        memory.nodes.write_node(note("one", metadata=good), ANA)
        assert memory.repair.examine(ADMIN) == []
        Planter(memory).meta(ONE, metadata={**good, "date": "2026-03-02", "valid_until": "soon"})

        (found,) = memory.repair.run(ADMIN)

        assert (found.state, found.action) == (RepairState.TIME_UNREADABLE, RepairAction.NONE)
        assert found.detail == (
            "its valid_until is 'soon', not a time. "
            "Fix: write it as 2026-03-02 or 2026-03-02T10:00:00Z."
        )
        seen = memory.nodes.read_node(ONE, ANA)
        memory.nodes.write_node(seen.revised(content="More.\n"), ANA)  # it was there already
        assert memory.nodes.read_node(ONE, ANA).content == "More.\n"


def test_notes_are_distinguished_from_nodes_and_leftovers(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        memory.nodes.write_node(note("two"), ANA)
        planter = Planter(memory)
        planter.put(ONE, "content.md", "Likes tea.")
        planter.put(ONE.replace("one", "bad"), "content.md", "x" * 100_001)
        planter.put(ONE.replace("one", "rest"), ".abstract.md", "left")

        found = {each.uri.rpartition("/")[2]: each.state for each in memory.repair.notes(ADMIN)}
        assert found == {"one": RepairState.META_MISSING, "bad": RepairState.BROKEN}

        made = memory.repair.make_nodes([Uri.parse(ONE), Uri.parse(TWO)], ADMIN)
        assert [each.uri for each in made] == [ONE]
        assert memory.nodes.read_node(ONE, ANA).content == "Likes tea."
        assert [each.state for each in memory.repair.notes(ADMIN)] == [RepairState.BROKEN]


@pytest.mark.parametrize(
    "stranger",
    [
        RequestContext("acme", "bob"),
        RequestContext("other", "ana"),
        RequestContext("other", "eve", role=Role.ADMIN),
    ],
    ids=["another user", "another account", "an admin of another account"],
)
def test_a_caller_neither_sees_nor_adopts_contents_of_others(
    stranger: RequestContext, ground: MemoryGround
) -> None:
    with opened(ground) as memory:
        Planter(memory).put(ONE, "content.md", "Likes tea.")
        before = ground.everything()

        assert list(memory.repair.notes(stranger)) == []
        assert list(memory.repair.notes(stranger, [Uri.parse(ONE)])) == []
        assert memory.repair.make_nodes([Uri.parse(ONE)], stranger) == []
        assert ground.everything() == before
        assert [each.uri for each in memory.repair.notes(ANA)] == [ONE]


def test_what_is_whole_is_let_be(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        memory.nodes.write_nodes([note("one"), note("two")], ANA)
        memory.nodes.archive_node(ONE, ANA)
        before = ground.everything()

        assert memory.repair.examine(ADMIN) == memory.repair.run(ADMIN) == []
        assert ground.everything() == before


# ---------------------------------------------------------------- what is kept


def test_an_unreadable_meta_is_restored_completely(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        memory.nodes.write_node(note("two"), ANA)
        edge = RelationEdge(ONE, TWO, "supports", 0.3, "because")
        first = note("one", metadata={"colour": "red"}, relations=(edge,))
        memory.nodes.write_node(first, ANA)
        memory.nodes.write_node(memory.nodes.read_node(ONE, ANA).revised(content="2"), ANA)
        before = memory.nodes.read_node(ONE, ANA)
        Planter(memory).put(ONE, ".meta.json", "")
        memory.drain()

        memory.repair.run(ADMIN)

        assert memory.nodes.read_node(ONE, ANA) == before
        (event,) = memory.events()
        assert (event.uri, event.payload["version"]) == (ONE, 2)


def test_an_unreadable_meta_beside_an_edit_keeps_both(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        memory.nodes.write_node(note("one", metadata={"colour": "red"}), ANA)
        planter = Planter(memory)
        planter.put(ONE, ".meta.json", "")
        planter.put(ONE, "content.md", "by hand\n")

        memory.repair.run(ADMIN)

        node = memory.nodes.read_node(ONE, ANA)
        assert (node.content, node.version, node.metadata) == ("by hand\n", 2, {"colour": "red"})
        assert memory.repair.run(ADMIN) == []


def test_what_is_finished_from_history_does_not_overwrite_the_last_text(
    ground: MemoryGround,
) -> None:
    """A pending node that somebody edited is finished, and the edit is in history."""
    with opened(ground) as memory:
        memory.nodes.write_node(note("one"), ANA)
        planter = Planter(memory)
        planter.meta(ONE, status="PENDING")
        planter.put(ONE, "content.md", "by hand\n")

        memory.repair.run(ADMIN)

        assert memory.nodes.read_node(ONE, ANA).content == "# one\n\nfirst\n"
        assert "by hand\n" in memory.backend.earlier(planter.at(ONE, "content.md"))


def test_files_of_a_new_session_become_a_node_of_who_repairs(ground: Ground) -> None:
    with opened(ground) as memory:
        Planter(memory).put(TALK, "content.md", "hello\n")

        memory.repair.run(replace(ANA, session_id="monday"))

        node = memory.nodes.read_node(TALK, ANA)
        assert (node.content, node.owner_space) == ("hello\n", "user:ana")
        assert memory.events()[0].owner_space == "user:ana"


# ---------------------------------------------------------------- whose it is


def test_only_what_the_caller_may_change_is_looked_at(ground: MemoryGround) -> None:
    theirs = memory_uri("one", user="bob")
    shared = "ctx://acme/resources/map"
    elsewhere = memory_uri("one", account="other")
    with opened(ground) as memory:
        planter = Planter(memory)
        for uri in (ONE, theirs, shared, elsewhere, TALK):
            planter.put(uri, "content.md", "by hand\n")
            planter.put(uri + "-2", ".abstract.md", "left")
        planter.put("ctx://acme/sessions/of-bob/talk", "content.md", "by hand\n")
        memory.backend.write(Locator("accounts/acme/sessions/of-bob/.owner"), "user:bob\n")
        mine = {ONE, ONE + "-2"}

        assert {each.uri for each in memory.repair.examine(ANA)} == mine
        before = ground.all_texts()
        assert {each.uri for each in memory.repair.run(ANA)} == mine

        changed = {key for key, text in ground.all_texts().items() if before.get(key) != text}
        assert changed <= {f"{Uri.parse(ONE).key}/{name}" for name in FILES}
        assert {event.uri for event in memory.events()} <= mine
        assert memory.events("other") == []
        found = {each.uri for each in memory.repair.run(ADMIN)}
        assert found == {
            *(theirs, theirs + "-2", shared, shared + "-2", TALK, TALK + "-2"),
            "ctx://acme/sessions/of-bob/talk",
        }
        assert memory.nodes.load(Uri.parse(elsewhere)) is None


def test_a_session_with_an_unreadable_owner_stops_no_member(tmp_path: Path) -> None:
    ground = FolderGround(tmp_path / "ground")
    with opened(ground) as memory:
        planter = Planter(memory)
        planter.put(TALK, "content.md", "hello\n")
        planter.put(ONE, "content.md", "by hand\n")
        owner = ground.folder / "texts/accounts/acme/sessions/monday/.owner"
        owner.write_bytes(b"\xff")

        assert [each.uri for each in memory.repair.run(ANA)] == [ONE]


# ---------------------------------------------------------------- files that mean harm

DEEP = "[" * 50_000
HOSTILE: dict[str, str | bytes] = {
    "deep JSON": '{"format": 1, "metadata": ' + DEEP,
    "deep YAML": f"---\na: {DEEP}\n---\n",
    "many anchors": "---\na: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n---\n",
    "odd YAML": "---\na: !!timestamp nonsense\n---\n",
    "odd YAML too": '---\na: !!int ""\nb: !!bool x\n---\n',
    "a YAML object": "---\na: !!python/object/apply:os.abort []\n---\n",
    "binary": b"\xff\xfe\x00",
    "nothing": "",
    "a number": "1" * 10_000,
    "not a number": '{"format": NaN}',
    "half a character": '{"format": 1, "title": "\\ud800"}',
    "a zero": "\x00",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_file_stops_nothing(hostile: str, name: str, tmp_path: Path) -> None:
    ground = FolderGround(tmp_path / "ground")
    content = HOSTILE[hostile]
    with opened(ground) as memory:
        memory.nodes.write_nodes([note("one"), note("two")], ANA)
        path = ground.folder / "texts" / Planter(memory).at(ONE, name).key
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        Planter(memory).put(TWO, "content.md", "by hand\n")

        memory.repair.run(ADMIN)

        assert memory.nodes.read_node(TWO, ANA).version == 2
        assert {each.state for each in memory.repair.run(ADMIN)} <= HUMAN


@pytest.mark.parametrize("thing", ["link", "broken link", "folder", "pipe", "binary"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("alone", [True, False])
def test_what_is_not_a_file_is_not_followed_and_stops_nothing(
    thing: str,
    name: str,
    alone: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    ground = FolderGround(tmp_path / "ground")
    outside = tmp_path / "outside.md"
    outside.write_text("somebody else's")
    with opened(ground) as memory:
        memory.nodes.write_nodes([note("one"), note("two")], ANA)
        folder = ground.folder / "texts" / Uri.parse(ONE).key
        for each in FILES if alone else [name]:
            (folder / each).unlink()
        path = folder / name
        make: dict[str, Callable[[], object]] = {
            "link": lambda: path.symlink_to(outside),
            "broken link": lambda: path.symlink_to(tmp_path / "nowhere"),
            "folder": lambda: (path / "below").mkdir(parents=True),
            "pipe": lambda: os.mkfifo(path),
            "binary": lambda: path.write_bytes(b"\xff"),
        }
        make[thing]()
        Planter(memory).put(TWO, "content.md", "by hand\n")

        memory.repair.run(ADMIN)

        assert memory.nodes.read_node(TWO, ANA).version == 2
        events = memory.events()
        again = memory.repair.run(ADMIN)
        assert {each.uri for each in again} <= {ONE}
        assert memory.events() == events
        assert outside.read_text() == "somebody else's"


# ---------------------------------------------------------------- anything at all

SLUGS = ("one", "two", "three")
CONTENTS = st.sampled_from(
    ["by hand\n", "---\ntags: [a]\n---\nbody", "---\nno end", "---\n[\n---\n", "", "TOO LONG"]
)
METAS = st.sampled_from(["", "{}", "[]", "PENDING", "BROKEN", "ARCHIVED", "ACTIVE", "version 9"])
PARTS = st.sampled_from(["", "[]\n", "x", "x" * 300, "[{}]", '[{"to": "ctx://acme/resources/a"}]'])


@st.composite
def plantings(draw: st.DrawFn) -> list[tuple[str, str, str | None]]:
    """Return files to be put into the folders of nodes, or taken away: slug, name, text."""
    planted = []
    for _ in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(FILES))
        texts = {"content.md": CONTENTS, ".meta.json": METAS}.get(name, PARTS)
        planted.append((draw(st.sampled_from(SLUGS)), name, draw(st.none() | texts)))
    return planted


@pytest.mark.search
@settings(max_examples=searched(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(planted=plantings(), archived=st.booleans())
def test_whatever_lies_there_repair_ends_and_loses_no_content(
    planted: list[tuple[str, str, str | None]],
    archived: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ground = MemoryGround(tmp_path_factory.mktemp("ground"))
    with opened(ground) as memory:
        memory.nodes.write_nodes([note("one"), note("two")], ANA)
        if archived:
            memory.nodes.archive_node(TWO, ANA)
        planter = Planter(memory)
        for slug, name, text in planted:
            plant(planter, memory_uri(slug), name, text)
        contents = all_contents(memory)

        memory.repair.run(ADMIN)

        left = {state.state for state in memory.repair.run(ADMIN)}
        assert left <= HUMAN
        for locator, text in contents.items():
            body = text.rpartition("---\n")[2]
            versions = [text_at(memory, locator), *memory.backend.earlier(locator)]
            assert any(text == each or each.endswith(body) for each in versions), locator
        assert memory.repair.examine(ADMIN) == memory.repair.run(ADMIN)


def plant(planter: Planter, uri: str, name: str, text: str | None) -> None:
    if text is None:
        with suppress(FileNotFoundError):
            planter.take(uri, name)
    elif name != ".meta.json" or text in {"", "{}", "[]"}:
        planter.put(uri, name, "x" * 100_001 if text == "TOO LONG" else text)
    else:
        changes = {"version": 9} if text == "version 9" else {"status": text}
        try:
            planter.meta(uri, **changes)
        except (FileNotFoundError, ValueError, TypeError):
            planter.put(uri, name, json.dumps(changes))


def text_at(memory: Opened, locator: Locator) -> str:
    try:
        return memory.backend.read(locator)
    except FileNotFoundError:
        return ""


def all_contents(memory: Opened) -> dict[Locator, str]:
    places = [Uri.parse(memory_uri(slug)) for slug in SLUGS]
    locators = [memory.nodes.file(place, "content.md") for place in places]
    return {at: memory.backend.read(at) for at in locators if memory.backend.exists(at)}


# ---------------------------------------------------------------- killed while it mends


@pytest.mark.search
@pytest.mark.parametrize("plant", TABLE, ids=lambda plant: plant.__name__)
def test_a_repair_that_was_killed_is_finished_by_the_next(
    plant: Callable[[Opened, Planter], None], ground: MemoryGround, tmp_path: Path
) -> None:
    with opened(ground) as memory:
        memory.nodes.write_nodes([note("one"), note("two")], ANA)
        plant(memory, Planter(memory))
        memory.drain()
        contents = all_contents(memory)
        active, position = memory.active(), memory.backend.history.position()
    undisturbed = ground.copied(tmp_path / "undisturbed")

    def mend(ground: Ground) -> None:
        with opened(ground) as memory:
            memory.repair.run(ADMIN)

    mend(undisturbed)
    for moment, left in every_crash(ground, mend):
        with opened(left) as memory:
            memory.repair.run(ADMIN)
            assert left.all_texts() == undisturbed.all_texts(), moment
            assert {each.state for each in memory.repair.run(ADMIN)} <= {RepairState.BROKEN}, moment
            if not _is_broken(memory):
                check_logged(memory, active, position, moment)
            for locator, text in contents.items():
                versions = [text_at(memory, locator), *memory.backend.earlier(locator)]
                assert any(text.rpartition("---\n")[2] in each for each in versions), moment


# ---------------------------------------------------------------- what a stranger met
def test_a_meta_that_went_away_comes_back_from_history(ground: MemoryGround) -> None:
    with opened(ground) as memory:
        memory.nodes.write_node(replace(note("one"), metadata={"k": "v"}), ANA)
        before = memory.nodes.read_node(ONE, ANA)
        memory.nodes.write_node(before.revised(content="# one\n\nsecond\n"), ANA)
        Planter(memory).take(ONE, ".meta.json")

        memory.repair.run(ADMIN)

        node = memory.nodes.read_node(ONE, ANA)
        assert (node.version, node.metadata["k"]) == (2, "v")
        assert node.created_at == before.created_at
