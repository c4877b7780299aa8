"""Summaries of folders: built from their children, visible to their owner, removed with them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.app import Context
from perdure.context.node_files import ABSTRACT, OVERVIEW, read_text
from perdure.context.reader import NodeReader
from perdure.engine.indexing.indexer import Summaries, abstract_of, overview_of
from perdure.model import ContextNode, Level, RelationEdge, Uri
from perdure.model.node import record_id
from perdure.model.values import MAX_ABSTRACT, MAX_OVERVIEW
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from tests.engine.remembering import ADMIN, ANA, BOB, PREFERENCES, of, opened, save_all

FOLDER = Uri.parse("ctx://local/users/ana/memories/preference")


class TestSummaries:
    @pytest.fixture
    def context(self, tmp_path: Path) -> Iterator[Context]:
        with opened(tmp_path) as context:
            for slug, text in PREFERENCES.items():
                node = ContextNode(uri=f"{FOLDER}/{slug}", content=text, abstract=text)
                context.nodes.write_node(node, ANA)
            yield context

    def summaries(self, context: Context, kept: MemoryBackend | None = None) -> Summaries:
        return Summaries(NodeReader(context.recorded), kept)

    def test_a_folder_says_what_is_in_it(self, context: Context) -> None:
        abstract, overview = self.summaries(context).records(FOLDER)

        assert (abstract.level, overview.level) == (Level.ABSTRACT, Level.OVERVIEW)
        assert abstract.text == "preference: coffee, indentation, travel"
        assert overview.text.split("\n")[:2] == [
            "- coffee: Drinks coffee black, never after noon.",
            "- indentation: Prefers tabs over spaces in every language.",
        ]
        assert abstract.id == record_id(str(FOLDER), Level.ABSTRACT)
        assert abstract.payload["folder"] is True
        assert dict(abstract.filters) == {
            "account_id": "local",
            "owner_space": "user:ana",
            "category": "preference",
            "session_id": "",
            "project": "",
            "parent_uri": str(FOLDER.parent),
        }

    def test_a_folder_of_folders_is_summarized_from_their_children(self, context: Context) -> None:
        tom = ContextNode(uri=f"{FOLDER.parent}/event/tom", content="", abstract="Met Tom.")
        context.nodes.write_node(tom, ANA)

        abstract, overview = self.summaries(context).records(FOLDER.parent)

        assert abstract.text == "memories: event, preference"
        assert "event: tom: Met Tom." in overview.text
        assert "preference: coffee: Drinks coffee" in overview.text

    def test_what_is_alone_needs_no_summary(self, context: Context) -> None:
        of(context).save("Met Tom.", category="event", slug="tom")

        assert self.summaries(context).records(FOLDER.parent.child("event")) == []

    @pytest.mark.parametrize("path", [(), ("users",), ("sessions",), ("agents",)])
    def test_above_all_owners_there_is_none(self, context: Context, path: tuple[str, ...]) -> None:
        of(context, BOB).save("Likes soup.", category="preference", slug="soup")
        of(context, BOB).save("Likes bread.", category="preference", slug="bread")

        assert self.summaries(context).records(Uri("local", path)) == []

    def test_it_tells_of_nobody_else(self, context: Context) -> None:
        of(context, BOB).save("Likes soup.", category="preference", slug="soup")
        edge = RelationEdge(
            f"{FOLDER}/coffee", "ctx://local/users/bob/memories/preference/soup", "x"
        )
        context.relations.upsert_edges([edge], ADMIN)

        for folder in (FOLDER, FOLDER.parent, FOLDER.parent.parent):
            for record in self.summaries(context).records(folder):
                assert "soup" not in record.text
                assert record.filters["owner_space"] == "user:ana"

    def test_a_session_is_summed_up_for_its_owner(self, context: Context) -> None:
        long = [{"role": "user", "content": "word " * 7_000} for _ in range(3)]
        of(context).commit_session(long, session_id="s1", extract=False)

        abstract, _ = self.summaries(context).records(Uri("local", ("sessions", "s1")))

        assert abstract.filters["owner_space"] == "user:ana"
        assert abstract.filters["session_id"] == "s1"
        assert self.summaries(context).records(Uri("local", ("sessions", "nobodys"))) == []

    def test_an_archived_node_is_not_in_the_summary(self, context: Context) -> None:
        context.nodes.archive_node(f"{FOLDER}/coffee", ANA)

        (abstract, _) = self.summaries(context).records(FOLDER)

        assert abstract.text == "preference: indentation, travel"

    def test_it_is_stored_in_a_tier_of_its_own_and_removed_with_the_last(
        self, context: Context
    ) -> None:
        kept = MemoryBackend()
        made = self.summaries(context, kept).records(FOLDER)
        files = [Locator(FOLDER.key).child(name) for name in (ABSTRACT, OVERVIEW)]
        assert [kept.read(file) for file in files] == [record.text for record in made]

        for slug in ("coffee", "indentation"):
            context.nodes.delete_node(f"{FOLDER}/{slug}", ANA)

        assert self.summaries(context, kept).records(FOLDER) == []
        assert [read_text(file, kept.read) for file in files] == [None, None]

    def test_the_same_summary_is_not_written_twice(
        self, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = MemoryBackend()
        made = self.summaries(context, kept).records(FOLDER)

        def refuse(*_: object) -> None:
            pytest.fail("nothing changed")

        monkeypatch.setattr(kept, "write_all", refuse)
        assert self.summaries(context, kept).records(FOLDER) == made

    def test_a_node_has_no_summary_as_a_folder(self, context: Context) -> None:
        assert self.summaries(context).records(FOLDER.child("coffee")) == []


@given(st.lists(st.text(max_size=2_000), max_size=30))
def test_a_summary_is_never_too_long(lines: list[str]) -> None:
    assert len(abstract_of(FOLDER, lines)) <= MAX_ABSTRACT
    assert len(overview_of(lines)) <= MAX_OVERVIEW


# ---------------------------------------------------------------- forgetting
@pytest.mark.parametrize("what", ["user", "account"])
def test_with_an_owner_all_that_was_derived_goes(tmp_path: Path, what: str) -> None:
    with opened(tmp_path) as context:
        namespaces = context.namespaces  # before there is an index
        for slug in ("one", "two"):
            of(context, BOB).save(f"Zebra {slug}.", category="event", slug=f"zebra-{slug}")
        long = [{"role": "user", "content": "zebra " * 6_000} for _ in range(3)]
        of(context, BOB).commit_session(long, session_id="s1", extract=False)
        save_all(of(context))
        assert derived(tmp_path, b"ebra")

        if what == "user":
            namespaces.delete_user("local", "bob", context.request)
        else:
            namespaces.delete_account("local", context.request)

        assert derived(tmp_path, b"ebra") == []
        assert bool(derived(tmp_path, b"coffee")) == (what == "user")


def derived(home: Path, word: bytes) -> list[str]:
    """Return the files of derived tiers that hold a word."""
    return [
        path.name
        for tier in ("index", "vectors", "abstracts", "past")
        for path in home.rglob(f".perdure/histories/*/{tier}/**/*")
        if path.is_file() and word in path.read_bytes()
    ]
