"""Large folders are listed once, and summarized as if they were listed each time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.context.reader import NodeReader
from perdure.engine import upkeep
from perdure.engine.indexing import indexer
from perdure.engine.indexing.indexer import MOST
from perdure.model import ContextNode, Level, Uri
from perdure.model.node import record_id
from tests.engine.remembering import ANA, of, opened

FOLDER = Uri.parse("ctx://local/users/ana/memories/event")
NOTES = 30


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setattr(indexer, "LARGE", MOST)
    with opened(tmp_path) as context:
        write(context, *(f"m{number:02}" for number in range(NOTES)))
        save(context, "zebra")
        yield context


def write(context: Context, *slugs: str) -> None:
    nodes = [ContextNode(uri=f"{FOLDER}/{slug}", content=slug, abstract=slug) for slug in slugs]
    context.nodes.write_nodes(nodes, ANA)
    of(context).settle()


def save(context: Context, slug: str) -> None:
    of(context).save(f"Something about {slug}.", category="event", slug=slug)


def summary(context: Context) -> str:
    """Return what the index says of the folder."""
    id_ = record_id(str(FOLDER), Level.ABSTRACT)
    return context.indexes.current("local").follower.index.read("local", [id_])[id_].text


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that are listed from now on."""
    listed: list[str] = []
    list_children = NodeReader.list_children

    def counted(self: NodeReader, uri: str, ctx: object) -> list[str]:
        listed.append(uri)
        return list_children(self, uri, ctx)  # type: ignore[arg-type] # it is passed on

    monkeypatch.setattr(NodeReader, "list_children", counted)
    return listed


def test_a_large_folder_is_not_listed_for_each_that_is_added(
    context: Context, listings: list[str]
) -> None:
    for slug in ("zoo", "aardvark", "m05a", "zz"):
        save(context, slug)

    assert str(FOLDER) not in listings
    assert summary(context).startswith("event: aardvark, m00, m01, m02, m03, m04, m05, m05a, m06")
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


def test_a_small_folder_is_listed_each_time(context: Context, listings: list[str]) -> None:
    of(context).save("Likes tea.", category="preference", slug="tea")
    of(context).save("Likes cake.", category="preference", slug="cake")

    assert listings.count(f"{FOLDER.parent}/preference") == 2


def test_a_folder_is_looked_at_once_in_an_update(tmp_path: Path, listings: list[str]) -> None:
    with opened(tmp_path) as context:
        save(context, "one")
        listings.clear()
        save(context, "two")

    assert len(listings) == len(set(listings))


def archive(context: Context) -> None:
    context.nodes.archive_node(f"{FOLDER}/m03", ANA)


def take_back(context: Context) -> None:
    archive(context)
    of(context).settle()
    context.nodes.unarchive_node(f"{FOLDER}/m03", ANA)


def delete(context: Context) -> None:
    context.nodes.delete_node(f"{FOLDER}/m03", ANA)


def delete_the_last_that_is_told_of(context: Context) -> None:
    context.nodes.delete_node(f"{FOLDER}/m{MOST - 1}", ANA)


def delete_one_that_is_not_told_of(context: Context) -> None:
    context.nodes.delete_node(f"{FOLDER}/m29", ANA)


def move_out(context: Context) -> None:
    context.nodes.move_node(f"{FOLDER}/m03", f"{FOLDER.parent}/case/m03", ANA)


def move_to_the_end(context: Context) -> None:
    context.nodes.move_node(f"{FOLDER}/m03", f"{FOLDER}/n03", ANA)


def move_to_the_front(context: Context) -> None:
    context.nodes.move_node(f"{FOLDER}/m29", f"{FOLDER}/a29", ANA)


def say_otherwise(context: Context) -> None:
    node = context.nodes.read_node(f"{FOLDER}/m03", ANA)
    context.nodes.write_node(node.revised(abstract="Another one."), ANA)


def write_many(context: Context) -> None:
    write(context, *(f"l{number:02}" for number in range(NOTES)))


CHANGES = [
    archive,
    take_back,
    delete,
    delete_the_last_that_is_told_of,
    delete_one_that_is_not_told_of,
    move_out,
    move_to_the_end,
    move_to_the_front,
    say_otherwise,
    write_many,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("by", ["us", "another"])
def test_any_change_is_summarized_as_if_the_folder_were_listed(
    context: Context, tmp_path: Path, change: Callable[[Context], None], by: str
) -> None:
    if by == "us":
        change(context)
        of(context).settle()
    else:
        with opened(tmp_path) as another:
            change(another)
            of(another).settle()
    save(context, "zoo")

    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
    save(context, "abc")
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


def test_who_was_overtaken_does_not_trust_what_was_known(
    context: Context, tmp_path: Path, listings: list[str]
) -> None:
    """Another process added a node and indexed it; ours was listed without it."""
    with opened(tmp_path) as another:
        save(another, "aardvark")
    listings.clear()

    save(context, "abc")

    assert str(FOLDER) in listings
    assert summary(context).startswith("event: aardvark, abc, m00")


def test_folders_beside_the_one_that_changed_are_not_listed_again(
    context: Context, tmp_path: Path, listings: list[str]
) -> None:
    with opened(tmp_path) as another:
        of(another).save("Likes tea.", category="preference", slug="tea")
        assert str(FOLDER) in listings
        listings.clear()

        of(another).save("Likes cake.", category="preference", slug="cake")

    assert str(FOLDER) not in listings
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
