"""An index is compared with canonical state, and healed where it differs."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.engine import upkeep
from perdure.engine.upkeep import DerivedTiers, DifferenceKind
from perdure.model import Level
from perdure.model.node import ACCOUNT, OWNER_SPACE, record_id
from perdure.storage import Locator, Tier
from perdure.storage.contract import Layout
from perdure.testing.requirement import requirement
from tests.engine.remembering import ANA, BOB, EVE, of, opened, save_all, uris
from tests.support.hints import texts_of

TABS = "ctx://local/users/ana/memories/preference/indentation"
QUESTION = "tabs coffee train preference"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path) as context:
        save_all(of(context))
        of(context, BOB).save("Likes soup.", category="preference", slug="soup")
        yield context


def index_files(home: Path) -> list[Path]:
    (folder,) = (home / ".perdure" / "histories").glob("*/index")
    return sorted(folder.rglob("*.sqlite"))


def test_a_right_index_is_proved_right(context: Context) -> None:
    proof = upkeep.verify_index(context.indexes.configured.follower, "local")

    assert proof.holds
    assert proof.records > 4
    assert proof.places > 4
    assert len(proof.root) == 64


@pytest.mark.parametrize("rebuilt", [False, True])
def test_every_folder_above_a_node_is_summed_up(context: Context, *, rebuilt: bool) -> None:
    of(context).save("Met Tom at the fair.", category="event", slug="tom")
    if rebuilt:
        context.indexes.configured.follower.rebuild("local")

    memories = record_id("ctx://local/users/ana/memories", Level.ABSTRACT)
    filters = {ACCOUNT: "local", OWNER_SPACE: "user:ana"}
    found = context.indexes.configured.follower.index.hits_by_id([memories], filters)
    assert [hit.text for hit in found] == ["memories: event, preference"]


def test_the_root_is_the_same_wherever_memory_is_the_same(context: Context, tmp_path: Path) -> None:
    proof = upkeep.verify_index(context.indexes.configured.follower, "local")
    context.indexes.configured.follower.rebuild("local")

    assert upkeep.verify_index(context.indexes.configured.follower, "local") == proof
    of(context).save("One more.", category="preference", slug="more")
    assert upkeep.verify_index(context.indexes.configured.follower, "local").root != proof.root


@pytest.mark.parametrize(
    "kind", [DifferenceKind.MISSING, DifferenceKind.SURPLUS, DifferenceKind.DIFFERENT]
)
def test_every_difference_is_named_and_healed(context: Context, kind: DifferenceKind) -> None:
    before, index = of(context).recall(QUESTION), context.indexes.configured.follower.index
    stranger = TABS.replace("indentation", "stranger")
    records = context.indexes.configured.follower.indexer.batch(
        [of(context).read(TABS).place]
    ).records[TABS]
    if kind is DifferenceKind.MISSING:
        index.replace("local", {TABS: []})
    elif kind is DifferenceKind.DIFFERENT:
        index.replace("local", {TABS: [replace(records[0], text="other")]})
    else:
        uri = of(context).save("Not for long.", category="preference", slug="stranger")
        extra = context.indexes.configured.follower.indexer.batch(
            [of(context).read(uri).place]
        ).records[uri]
        context.nodes.delete_node(uri, ANA)
        of(context).settle()
        index.replace("local", {stranger: extra})

    proof = upkeep.verify_index(context.indexes.configured.follower, "local", heal=True)

    named = {(each.uri, each.kind) for each in proof.differences}
    assert named == {(stranger if kind is DifferenceKind.SURPLUS else TABS, kind)}
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
    assert of(context).recall(QUESTION).hits == before.hits


@pytest.mark.parametrize("harm", ["deleted", "truncated", "flipped", "garbage", "emptied"])
def test_a_damaged_file_is_noticed_and_rebuilt(tmp_path: Path, harm: str) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        before = of(context).recall(QUESTION).hits
    (file,) = index_files(tmp_path)
    data = file.read_bytes()
    if harm == "deleted":
        file.unlink()
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 255]) * 2_000 + data[middle + 2_000 :]
        harmed = {"truncated": data[: middle + 7], "flipped": flipped, "garbage": b"x" * 9_000}
        file.write_bytes(harmed.get(harm, b""))

    with opened(tmp_path) as context:
        upkeep.verify_index(context.indexes.configured.follower, "local", heal=True)

        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
        assert of(context).recall(QUESTION).hits == before


@pytest.mark.parametrize("harm", ["deleted", "garbage", "emptied"])
def test_recall_makes_a_lost_index_anew_by_itself(tmp_path: Path, harm: str) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        before = of(context).recall(QUESTION).hits
    (file,) = index_files(tmp_path)
    if harm == "deleted":
        file.unlink()
    else:
        file.write_bytes(b"x" * 9_000 if harm == "garbage" else b"")

    with opened(tmp_path) as context:
        result = of(context).recall(QUESTION)

    assert result.hits == before
    if harm == "garbage":
        assert "built again" in " ".join(texts_of(result))


@requirement("003-namespace-delete-account")
def test_an_account_that_is_deleted_leaves_nothing_in_the_index(context: Context) -> None:
    of(context, EVE).save("Likes soup too.", category="preference", slug="soup")
    assert uris(of(context, EVE), "soup")

    context.namespaces.delete_account("elsewhere", context.request)

    assert context.indexes.configured.follower.index.stamps("elsewhere") == {}
    assert uris(of(context, EVE), "soup") == []


@requirement("003-namespace-delete-user-agent")
def test_a_user_that_is_deleted_leaves_nothing_in_the_index(context: Context) -> None:
    context.namespaces.delete_user("local", "bob", context.request)

    assert uris(of(context, BOB), "soup") == []
    assert all(
        "bob" not in uri for uri in context.indexes.configured.follower.index.stamps("local")
    )
    assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


class TestTiers:
    def tiers(self, context: Context) -> DerivedTiers:
        return DerivedTiers(context)

    def test_a_lost_tier_is_rebuilt(self, context: Context, tmp_path: Path) -> None:
        before = of(context).recall(QUESTION).hits
        abstracts = list(tmp_path.rglob("abstracts/**/.abstract.md"))
        assert abstracts
        texts = {path: path.read_text() for path in abstracts}
        for path in abstracts:
            path.unlink()
        context.indexes.configured.follower.index.delete_account_data("local")

        for tier in (Tier.SHARED_ABSTRACTS, Tier.LOCAL_INDEX):
            self.tiers(context).reindex(tier)

        assert {path: path.read_text() for path in abstracts} == texts
        assert of(context).recall(QUESTION).hits == before

    def test_the_source_can_not_be_rebuilt(self, context: Context) -> None:
        with pytest.raises(ValueError, match="source"):
            self.tiers(context).reindex(Tier.SOURCE)

    def test_changed_since_names_what_is_newer(self, context: Context) -> None:
        every = self.tiers(context).changed_since(0)
        newest = max(context.recorded.info(text).mtime for text in every)

        assert len(every) == 8
        assert self.tiers(context).changed_since(newest) == []

    def test_changed_since_names_an_edit_by_hand(self, context: Context, tmp_path: Path) -> None:
        every = self.tiers(context).changed_since(0)
        newest = max(context.recorded.info(text).mtime for text in every)
        (file,) = (path for path in tmp_path.rglob("*.md") if path.stem == "Soup")
        file.write_text(file.read_text() + "And bread.\n")
        os.utime(file, (newest + 60, newest + 60))

        found = self.tiers(context).changed_since(newest)

        assert {text.parent.name for text in found} == {"soup"}
        assert "And bread." in context.recorded.read(found[0].parent.child("content.md"))

    def test_changed_since_asks_only_texts_whose_stamps_do_not_tell(
        self, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for path in (path for path in tmp_path.rglob("*.md") if path.stem in {"Soup", "Coffee"}):
            os.utime(path, (1_000_000_000, 1_000_000_000))
        layout = context.recorded.inner
        assert isinstance(layout, Layout)
        monkeypatch.setattr(layout.inner, "clock", lambda: 2 * 10**18)
        asked: list[Locator] = []
        monkeypatch.setattr(layout.inner, "info", asked.append)

        found = self.tiers(context).changed_since(1_500_000_000)

        assert found
        assert not {"soup", "coffee"} & {text.parent.name for text in found}
        assert asked == []
