"""Links that an index keeps give the same answers as reading every node."""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.context.links import RelationReader, ScannedLinks
from perdure.context.nodes import Nodes, Relations
from perdure.errors import ContextError, DamageError, ModelNotInstalledError, StorageError
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import RelationEdge, Uri
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from tests.support.context.base import ANA, CONTENT, RELATIONS, memory, uri_of
from tests.support.context.index_outbox import indexed_links

SLUGS = ("a", "b", "style/a", "style/c", "profile")


class Memory:
    """Nodes whose links are in an index, and the file of that."""

    def __init__(self, place: Path) -> None:
        self.file = place / "index" / "acme.sqlite"
        self.inner = MemoryBackend()
        self.history = History.open(str(place / "history"))
        self.backend = Recorded(self.inner, self.history)
        self.links = indexed_links(self.history, self.backend, str(self.file.parent))
        self.nodes = Nodes(self.backend, backlinks=self.links)
        self.relations = Relations(self.nodes, self.links)

    def check(self) -> None:
        """Compare with what a scan of all nodes finds, before the index has all, and after."""
        self.compare()
        self.index()
        self.compare()

    def compare(self) -> None:
        scanned = RelationReader(self.nodes, ScannedLinks(self.nodes))
        for slug in SLUGS:
            found = self.relations.get_incoming(uri_of(slug), ANA)
            assert found == scanned.get_incoming(uri_of(slug), ANA)

    def index(self) -> None:
        try:
            self.links.catch_up("acme")
        except DamageError:  # as a recall does
            self.links.index.delete_account_data("acme")
            self.links.catch_up("acme")

    def walk(self, seed: int, steps: int) -> None:
        chance = random.Random(seed)
        for _ in range(steps):
            self.step(chance)

    def step(self, chance: random.Random) -> None:
        slug, other = chance.choice(SLUGS), chance.choice(SLUGS)
        uri, nodes = uri_of(slug), self.nodes
        with suppress(ContextError):
            match chance.randrange(9):
                case 0 | 1 | 2 if not nodes.exists(uri, ANA):
                    nodes.write_node(memory(slug, content=f"[[{other}]]"), ANA)
                case 0 | 1 | 2:
                    node = nodes.read_node(uri, ANA)
                    nodes.write_node(node.revised(content=f"[[{other}]] [[a]]"), ANA)
                case 3 | 4:
                    edges = [RelationEdge(uri, uri_of(other), "related")]
                    self.relations.upsert_edges(edges, ANA)
                case 5:
                    nodes.delete_node(uri, ANA)
                case 6:
                    nodes.move_node(uri, uri_of(other), ANA)
                case 7 if nodes.exists(uri, ANA):
                    self.edit(slug, chance.choice(["---\nno end", f"by hand [[{other}]]"]))
                case 8 if nodes.exists(uri, ANA):
                    self.take_away(slug, chance.choice([CONTENT, RELATIONS]))

    def edit(self, slug: str, text: str, name: str = CONTENT) -> None:
        """Edit a file by hand, and let history notice."""
        self.inner.write(self.locator(slug, name), text)
        self.backend.notice([self.locator(slug, name)])

    def take_away(self, slug: str, name: str) -> None:
        with suppress(FileNotFoundError):
            self.inner.remove(self.locator(slug, name))
        self.backend.notice([self.locator(slug, name)])

    def locator(self, slug: str, name: str) -> Locator:
        return Locator(f"{Uri.parse(uri_of(slug)).key}/{name}")

    def reopen(self) -> None:
        self.links.index.close()
        self.links = indexed_links(self.history, self.backend, str(self.file.parent))
        self.nodes = Nodes(self.backend, backlinks=self.links)
        self.relations = Relations(self.nodes, self.links)


@pytest.fixture
def kept(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_a_scan_finds(kept: Memory, seed: int) -> None:
    for part in range(5):
        kept.walk(seed * 100 + part, 12)
        kept.check()


def test_links_of_a_text_that_was_broken_or_removed_by_hand_are_still_found(kept: Memory) -> None:
    kept.nodes.write_node(memory("b"), ANA)
    for slug in ("a", "style/a"):
        kept.nodes.write_node(memory(slug, content="[[b]]"), ANA)
    kept.check()
    kept.edit("a", "---\nno end [[b]]")
    kept.take_away("style/a", CONTENT)

    kept.check()
    assert len(kept.relations.get_incoming(uri_of("b"), ANA)) == 2


def test_what_was_deleted_leaves_no_trace(kept: Memory) -> None:
    kept.nodes.write_node(memory("b"), ANA)
    kept.nodes.write_node(memory("a", content="[[b]]"), ANA)
    kept.relations.upsert_edges([RelationEdge(uri_of("a"), uri_of("b"), "related")], ANA)
    kept.index()
    assert kept.links.leading_to(Uri.parse(uri_of("b"))) != []
    kept.nodes.delete_node(uri_of("a"), ANA)

    assert kept.links.leading_to(Uri.parse(uri_of("b"))) == []
    kept.index()
    assert kept.links.leading_to(Uri.parse(uri_of("b"))) == []


@pytest.mark.parametrize("while_open", [True, False])
def test_a_missing_file_is_created_again(kept: Memory, while_open: bool) -> None:  # noqa: FBT001
    kept.walk(1, 40)
    kept.check()
    if not while_open:
        kept.reopen()
    kept.file.unlink()
    kept.walk(2, 10)
    kept.check()
    kept.reopen()
    kept.check()


@pytest.mark.parametrize("kept_of_it", [0, 1, 50, 99, 100, 4096, 5000, 12_000])
def test_a_truncated_file_is_created_again(kept: Memory, kept_of_it: int) -> None:
    kept.walk(1, 40)
    kept.check()
    kept.reopen()
    os.truncate(kept.file, kept_of_it)
    kept.check()
    kept.walk(2, 10)
    kept.check()


@pytest.mark.parametrize("error", [StorageError, DamageError])
def test_where_the_index_can_not_be_had_every_node_is_read(
    kept: Memory, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    kept.walk(1, 40)
    kept.check()

    def refused(*_: object, **__: object) -> None:
        raise error("it can't be read. Fix: mend it.")

    monkeypatch.setattr(SqliteIndex, "uris_linking_to", refused)
    kept.compare()


def test_what_the_index_has_is_not_read(kept: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.nodes.write_node(memory("b"), ANA)
    kept.nodes.write_node(memory("a", content="[[b]]"), ANA)
    kept.index()
    monkeypatch.setattr(ScannedLinks, "_names", None)

    assert kept.links.leading_to(Uri.parse(uri_of("b"))) == [Uri.parse(uri_of("a"))]


def test_a_node_without_words_is_found_by_where_it_leads(kept: Memory) -> None:
    kept.nodes.write_node(memory("b"), ANA)
    kept.nodes.write_node(memory("a", content="", abstract="", overview=""), ANA)
    kept.relations.upsert_edges([RelationEdge(uri_of("a"), uri_of("b"), "related")], ANA)

    kept.check()
    assert len(kept.relations.get_incoming(uri_of("b"), ANA)) == 1


def test_what_was_indexed_before_its_file_was_written_is_looked_at_again(kept: Memory) -> None:
    kept.nodes.write_node(memory("b"), ANA)
    kept.nodes.write_node(memory("a", content="[[b]]"), ANA)
    here = kept.locator("a", CONTENT)
    text = kept.inner.read(here)
    kept.inner.write(here, text.replace("[[b]]", "[[c]]"))  # as if the log were ahead of the file
    kept.index()
    kept.inner.write(here, text)

    assert kept.links.leading_to(Uri.parse(uri_of("b"))) == [Uri.parse(uri_of("a"))]


def test_a_database_of_links_from_before_is_removed(tmp_path: Path) -> None:
    environ = {"PERDURE_HOME": str(tmp_path), "HOME": str(tmp_path), "USER": "ana"}
    with open_context(environ) as context:
        uri = context.memory.save("See [[Brontosaurus]].", category="event", slug="seen")
        (folder,) = (tmp_path / "histories").iterdir()
        old = [folder / f"links.sqlite{log}" for log in ("", "-wal", "-shm")]
        for file in old:
            file.write_text("Brontosaurus")
    for created in (folder / "index").iterdir():  # as where the format of the index is another
        created.rename(created.with_name(f"{created.name}0"))

    with open_context(environ) as context:
        assert context.memory.recall("Brontosaurus").hits[0].uri == uri

    assert not any(map(Path.exists, old))


def test_links_are_found_without_the_model_that_is_configured(tmp_path: Path) -> None:
    environ = {"PERDURE_HOME": str(tmp_path), "HOME": str(tmp_path), "USER": "ana"}
    with open_context(environ) as context:
        tea = context.memory.save("Likes tea.", category="entity", slug="tea")
        milk = context.memory.save("Goes with [[tea]].", category="entity", slug="milk")
    (tmp_path / "config.toml").write_text('[embedding]\nprovider = "minilm"\n')

    with open_context(environ) as context:
        with pytest.raises(ModelNotInstalledError):
            context.memory.recall("tea")
        edges = context.memory.relations(tea)

    assert [edge.from_uri for edge in edges.incoming] == [milk]
