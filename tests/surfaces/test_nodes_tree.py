"""Verbs for nodes among others: listed, moved, put away, removed, related."""

from pathlib import Path

import pytest

from perdure.errors import (
    AccessRefusedError,
    BrokenNodeError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
)
from tests.surfaces.nodes import (
    MEMORIES,
    TABS,
    lines,
    objects,
    one,
    perdure,
    position,
    refusal,
    stdout_of,
)

pytestmark = pytest.mark.usefixtures("agfs")


# ---------------------------------------------------------------- list and tree
class TestList:
    def test_an_empty_memory_is_no_error(self, memory: Path) -> None:
        done = perdure("list")

        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr == "memories is empty\n"
        assert stdout_of("tree") == "memories\n\n0 nodes\n"

    def test_folders_have_counts_and_nodes_have_versions(self, tabs: Path) -> None:
        stdout_of("write", "preference/colour", "# Colours\n\nBlue.", "--abstract", "Likes blue.")
        stdout_of("write", "profile", "Ana.")

        assert lines(stdout_of("list")) == [
            ["name", "version", "updated", "about"],
            ["preference/", "2", "nodes"],
            ["profile", "1", str(one("read", "profile")["updated_at"])[:10], "Ana."],
        ]
        rows = stdout_of("list", "preference").splitlines()
        assert rows[1].endswith("  Colours: Likes blue.")
        assert rows[2].endswith("  Prefers tabs.")

    def test_json_has_the_same_fields_for_all(self, tabs: Path) -> None:
        stdout_of("write", "profile", "Ana.")

        folder, node = objects("list")
        assert set(folder) == set(node)
        assert (folder["kind"], folder["nodes"], folder["version"]) == ("folder", 1, None)
        assert (node["kind"], node["nodes"], node["version"]) == ("node", 0, 1)
        assert [each["uri"] for each in objects("tree", "/")][-1] == f"{MEMORIES}/profile"

    def test_a_folder_that_is_not_there_is_an_error(self, tabs: Path) -> None:
        assert isinstance(refusal("list", "nowhere"), NodeNotFoundError)
        assert isinstance(refusal("tree", "resources"), NodeNotFoundError)

    def test_a_node_with_nothing_below_is_no_folder(self, tabs: Path) -> None:
        for verb in ("list", "tree"):
            assert "is a node, and nothing is below" in str(refusal(verb, "preference/indentation"))

    def test_a_tree_shows_all_below(self, tabs: Path) -> None:
        stdout_of("write", "resources/papers/one", "First.")
        stdout_of("write", "resources/papers", "Papers.")

        assert stdout_of("tree", "/") == (
            "/\n"
            "├── resources/                   2 nodes\n"
            "│   └── papers/                  Papers.\n"
            "│       └── one                  First.\n"
            "└── users/                       1 node\n"
            "    └── ana/                     1 node\n"
            "        └── memories/            1 node\n"
            "            └── preference/      1 node\n"
            "                └── indentation  Prefers tabs.\n"
            "\n3 nodes\n"
        )

    def test_archived_nodes_are_listed_apart(self, tabs: Path) -> None:
        stdout_of("write", "resources/My File", "x")
        stdout_of("archive", "preference/indentation")
        stdout_of("archive", "resources/My File")

        assert "indentation" not in stdout_of("tree", "/")
        assert "My" not in stdout_of("tree", "/")
        assert [each["uri"] for each in objects("list", "/", "--archived")] == [
            "ctx://local/resources/My%20File",
            TABS,
        ]
        assert [each["status"] for each in objects("list", "--archived")] == ["ARCHIVED"]
        assert objects("list", "preference") == []
        tabs.with_name(".meta.json").write_text("{}")
        assert len(objects("list", "/", "--archived")) == 1

    def test_a_note_without_a_node_is_shown_as_one(self, tabs: Path) -> None:
        note = tabs.parents[1] / "mine" / "content.md"
        note.parent.mkdir()
        note.write_text("# Mine\n")

        assert "not a node; `perdure repair` gives the reason" in stdout_of("list", "preference")
        (tabs.parents[1] / "mine" / ".meta.json").write_text("{}")
        assert "has a meta that can" in stdout_of("tree")
        mine = next(each for each in objects("tree") if str(each["uri"]).endswith("/mine"))
        assert (mine["kind"], mine["version"]) == ("node", None)

    def test_all_that_is_listed_can_be_typed(self, tabs: Path) -> None:
        for name in ("skills/release", "profile", "users/tom/memories/profile", "sessions/1/a"):
            stdout_of("write", name, "x")
        stdout_of("write", f"{MEMORIES}/skills/mine", "x")

        for uri in (str(each["uri"]) for each in objects("tree", "/") if each["kind"] == "node"):
            folder = uri.rpartition("/")[0]
            names = [row[0] for row in lines(stdout_of("list", folder))]
            assert uri in [one("read", name)["uri"] for name in names[1:] if name[-1] != "/"]

    def test_sessions_have_title_date_and_size(self, memory: Path) -> None:
        march = b'{"role": "user", "content": "Hello.", "time": "2026-03-02T12:00:00Z"}'
        stdout_of("commit", "-", "--session", "march", typed=march)
        then = position()
        stdout_of("commit", "-", "--session", "april", typed=march.replace(b"03-02", b"04-02"))
        stdout_of("write", "sessions/notes/plan", "A plan.")

        size = one("list", "sessions", "--at", then)["bytes"]
        assert lines(stdout_of("list", "sessions")) == [
            ["name", "date", "messages", "size", "title"],
            ["sessions/april/", "2026-04-02", "1", str(size), "bytes", "Hello."],
            ["sessions/march/", "2026-03-02", "1", str(size), "bytes", "Hello."],
            ["sessions/notes/", "1", "node"],
        ]
        april, first, notes = objects("list", "sessions")
        assert set(april) == set(first) == set(notes)
        assert (april["id"], april["title"], april["messages"]) == ("april", "Hello.", 1)
        assert (april["kind"], april["date"]) == ("folder", "2026-04-02T12:00:00.000Z")
        assert (notes["id"], notes["nodes"]) == (None, 1)
        assert stdout_of("list", "sessions", "--user", "bob") == ""

    def test_an_empty_folder_is_left_out(self, tabs: Path) -> None:
        (tabs.parents[1] / "empty").mkdir()

        assert "empty" not in stdout_of("tree")


# ---------------------------------------------------------------- moving and removing
class TestMove:
    def test_links_follow(self, tabs: Path) -> None:
        stdout_of("write", "habit/editor", "Because of [[indentation]].")

        assert one("move", "preference/indentation", "style/tabs") == {
            "from_uri": TABS,
            "uri": f"{MEMORIES}/style/tabs",
            "version": 2,
        }
        assert stdout_of("read", "habit/editor") == "Because of [[style/tabs|indentation]]."
        assert isinstance(refusal("read", "preference/indentation"), NodeNotFoundError)

    @pytest.mark.parametrize("to", ["style", "style/"])
    def test_a_folder_keeps_the_name(self, tabs: Path, to: str) -> None:
        assert stdout_of("move", "preference/indentation", to).startswith(
            f"{MEMORIES}/style/indentation"
        )

    def test_a_place_that_is_taken_is_refused(self, tabs: Path) -> None:
        stdout_of("write", "style/tabs", "x")

        refused = refusal("move", "preference/indentation", "style/tabs")
        assert isinstance(refused, NodeExistsError)
        assert isinstance(refusal("move", "a/b", "a/c"), NodeNotFoundError)
        assert isinstance(refusal("move", "style/tabs", "sessions"), InvalidValueError)


class TestArchive:
    def test_there_and_back(self, tabs: Path) -> None:
        assert one("archive", "preference/indentation") == {"uri": TABS, "archived": True}
        assert "is ARCHIVED. Fix: " in str(refusal("read", "preference/indentation"))
        assert one("unarchive", "preference/indentation") == {"uri": TABS, "archived": False}
        assert stdout_of("read", "preference/indentation") == "Prefers tabs."

    def test_only_what_is_there(self, tabs: Path) -> None:
        assert isinstance(refusal("archive", "a/b"), NodeNotFoundError)
        assert isinstance(refusal("unarchive", "preference/indentation"), NodeNotFoundError)
        stdout_of("archive", "preference/indentation")
        assert stdout_of("unarchive", "preference/indentation") == f"{TABS} is in use again\n"


class TestDelete:
    def test_nobody_to_ask_is_no_leave(self, tabs: Path) -> None:
        refused = refusal("delete", "preference/indentation")

        assert isinstance(refused, AccessRefusedError)
        assert str(refused).endswith("Fix: add --yes.")
        assert tabs.exists()

    def test_the_history_stays(self, tabs: Path) -> None:
        before = position()

        assert stdout_of("delete", "preference/indentation", "--yes") == f"{TABS} is deleted\n"
        assert not tabs.exists()
        assert stdout_of("read", "preference/indentation", "--at", before) == "Prefers tabs."
        assert isinstance(refusal("delete", "preference/indentation", "--yes"), NodeNotFoundError)

    def test_what_can_not_be_read_can_be_deleted(self, tabs: Path) -> None:
        tabs.with_name(".meta.json").write_text("{}")

        assert isinstance(refusal("read", "preference/indentation"), BrokenNodeError)
        assert one("delete", "preference/indentation", "-y") == {"uri": TABS, "deleted": True}


# ---------------------------------------------------------------- relate
class TestRelate:
    @pytest.fixture(autouse=True)
    def _editor_node(self, agfs: None, tabs: Path) -> None:
        stdout_of("write", "habit/editor", "Vim.")

    def test_an_edge_is_seen_from_both_ends(self) -> None:
        words = ("--type", "depends_on", "--weight", "0.7", "--reason", "he said so")
        done = one("relate", "habit/editor", "preference/indentation", *words)

        assert done["type"] == "depends_on"
        assert str(done["created_at"]).startswith("20")
        assert done["removed"] is False
        assert lines(stdout_of("relate", "habit/editor"))[1] == [
            *("to", "preference/indentation", "depends_on", "0.7", "he", "said", "so")
        ]
        assert lines(stdout_of("relate", "preference/indentation"))[1][:2] == [
            "from",
            "habit/editor",
        ]
        assert one("relate", "preference/indentation")["direction"] == "in"

    def test_it_is_summed_up_in_a_sentence(self) -> None:
        assert stdout_of("relate", "habit/editor", "preference/indentation", "--type", "needs") == (
            "habit/editor needs preference/indentation, weight 1\n"
        )
        assert perdure("relate", "profile").exit_code == 1

    def test_it_can_be_removed(self) -> None:
        for kind in ("needs", "likes"):
            stdout_of("relate", "habit/editor", "preference/indentation", "--type", kind)
        words = ("relate", "habit/editor", "preference/indentation", "--remove")

        assert stdout_of(*words, "--type", "needs").startswith("removed: habit/editor needs ")
        assert isinstance(refusal(*words, "--type", "needs"), NodeNotFoundError)
        assert [each["type"] for each in objects(*words)] == ["likes"]
        assert "no relation that can be removed" in str(refusal(*words))
        assert perdure("relate", "habit/editor").stderr == "habit/editor has no relations\n"

    def test_a_link_is_removed_in_the_text(self) -> None:
        stdout_of("write", "habit/editor", "See [[indentation]].", "--replace")

        words = ("relate", "habit/editor", "preference/indentation", "--type", "mentions")
        assert "a link goes with its text" in str(refusal(*words, "--remove"))
        assert isinstance(refusal(*words), InvalidValueError)

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (("preference/indentation",), 2),
            (("--remove",), 2),
            (("--type", "x"), 2),
            (("preference/indentation", "--type", "x", "--weight", "much"), 2),
            (("preference/indentation", "--type", "x", "--weight", "2"), 1),
            (("preference/indentation", "--type", "Not a slug"), 1),
            (("a/b", "--type", "x"), 1),
            (("habit/editor", "--type", "x"), 1),
        ],
    )
    def test_what_can_not_be_is_refused(self, words: tuple[str, ...], code: int) -> None:
        assert perdure("relate", "habit/editor", *words).exit_code == code
