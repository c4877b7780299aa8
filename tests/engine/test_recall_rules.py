"""Rules of recall that hold for any weights: filters, order, owners."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from perdure.engine import upkeep
from perdure.engine.briefing_records import KnownRecords
from perdure.engine.indexing.follower import IndexFollower
from perdure.engine.indexing.indexer import FirstChildren, FolderPayloads, IndexBatch, Indexer
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.vectors import VectorMemo
from perdure.model import ContextNode, Uri
from tests.engine.remembering import ANA, BOB, of, opened, save_all, uris

FOLDER = "ctx://local/users/ana/memories/preference"
MESSAGES = "ctx://local/sessions/s1/messages"
TALK = [
    {"role": "user", "content": "Which instrument?", "name": "Ana", "time": "2026-01-01T10:00:00Z"},
    {"role": "user", "content": "The oboe.", "name": "Bo", "time": "2026-03-01T10:00:00Z"},
]


class Meaningful(HashingEmbedder):
    """Knows that a cat is a feline: what speaks of either is near, and all else is far."""

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = []
        for text in texts:
            near = any(word in text.lower() for word in ("cat", "feline"))
            vectors.append([1.0 if near else 0.0, 0.0 if near else 1.0])
        return vectors

    @property
    def dimension(self) -> int:
        return 2


# ---------------------------------------------------------------- what is asked for
@pytest.mark.parametrize("semantic", [True, False])
def test_no_more_hits_than_were_asked_for(tmp_path: Path, *, semantic: bool) -> None:
    with opened(tmp_path, semantic=semantic) as context:
        save_all(of(context))

        for most in (1, 2, 3):
            assert len(of(context).recall("tabs coffee train", top_k=most).hits) == most


@pytest.mark.parametrize("semantic", [True, False])
def test_what_did_not_hold_then_is_no_neighbour_either(tmp_path: Path, *, semantic: bool) -> None:
    with opened(tmp_path, semantic=semantic) as context:
        of(context).commit_session(TALK, session_id="s1", extract=False)

        now = of(context).recall("which instrument").hits
        then = of(context).recall("which instrument", valid_at="2026-02-01").hits

    assert {hit.message_indexes for hit in now} == {(0,), (1,)}
    assert {hit.message_indexes for hit in then} == {(0,)}


@pytest.mark.parametrize("semantic", [True, False])
def test_what_is_related_is_filtered_too(tmp_path: Path, *, semantic: bool) -> None:
    with opened(tmp_path, semantic=semantic) as context:
        save_all(of(context))
        of(context).save("See [[travel]] about zebras.", category="event", slug="link")

        assert f"{FOLDER}/travel" in uris(of(context), "zebras")
        only = of(context).recall("zebras", filters={"category": "event"}).hits

    assert {hit.category for hit in only} == {"event"}


# ---------------------------------------------------------------- the order
def test_where_words_say_little_meaning_decides(tmp_path: Path) -> None:
    with opened(tmp_path, embedder=Meaningful()) as context:
        for number in range(20):
            of(context).save(f"Filler number {number}.", category="event", slug=f"filler-{number}")
        of(context).save("Her cat is called Miso.", category="preference", slug="miso")
        of(context).save("A zebra stood there.", category="preference", slug="zebra")

        found = uris(of(context), "Does any feline belong to someone beside some zebra keeper?")

    assert found[0] == f"{FOLDER}/miso"


def test_what_is_from_the_time_that_was_named_comes_first(tmp_path: Path) -> None:
    with opened(tmp_path, semantic=False) as context:
        for month in ("01", "05", "09"):
            metadata = {"date": f"2024-{month}-10"}
            of(context).save(f"Had soup, {month}.", category="event", slug=month, metadata=metadata)

        found = [uris(of(context), f"soup in {month} 2024")[0] for month in ("January", "May")]

    assert [uri.rpartition("/")[2] for uri in found] == ["01", "05"]


def test_a_user_is_heard_before_an_assistant(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": "An oboe is an instrument."},
        {"role": "user", "content": "An oboe is an instrument!", "name": "Ana"},
    ]
    with opened(tmp_path, semantic=False) as context:
        of(context).commit_session(messages, session_id="s1", extract=False)

        first = of(context).recall("oboe instrument").hits[0]

    assert first.role == "user"


def test_who_is_named_is_heard_first(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "I love the oboe.", "name": name} for name in ("Bo", "Cy", "Di")
    ]
    with opened(tmp_path, semantic=False) as context:
        of(context).commit_session(messages, session_id="s1", extract=False)

        first = [of(context).recall(f"Does {name} love the oboe?").hits[0] for name in ("Cy", "Di")]

    assert [hit.speaker for hit in first] == ["Cy", "Di"]
    assert all(
        hit.score_terms.get("speaker", 0) > 0 and hit.score_terms.get("party", 0) > 0
        for hit in first
    )


# ---------------------------------------------------------------- what an index is trusted with
def test_a_record_under_the_wrong_owner_is_not_returned(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        of(context).commit_session(TALK, session_id="s1", extract=False)
        follower = context.indexes.configured.follower
        records = follower.indexer.batch([Uri.parse(MESSAGES)]).records[MESSAGES]
        wrong = [replace(r, filters={**r.filters, "owner_space": "user:bob"}) for r in records]
        follower.index.replace("local", {MESSAGES: wrong})

        assert of(context, BOB).recall("which instrument, the oboe").hits == ()


def test_what_a_dead_writer_did_not_register_is_indexed_by_the_log(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        node = ContextNode(uri=f"{FOLDER}/zebra", content="Likes zebras.")
        context.nodes.write_node(node, ANA)
        context.outbox.delete_account_data("local")

        assert uris(of(context), "zebras")[0] == node.uri


def test_a_reader_that_was_overtaken_by_a_writer_looks_again(tmp_path: Path) -> None:
    with opened(tmp_path, semantic=False) as context:
        save_all(of(context))
        following = context.indexes.current("local").follower
        node = ContextNode(uri=f"{FOLDER}/zebra", content="Likes zebras.")
        context.nodes.write_node(node, ANA)

        class Slow(Indexer):
            """Is overtaken by another writer, once."""

            overtaken = False

            def batch(
                self,
                places: Iterable[Uri],
                beginning: FirstChildren | None = None,
                known: KnownRecords | None = None,
                folder_payloads: FolderPayloads = MappingProxyType({}),
            ) -> IndexBatch:
                batch = super().batch(places, beginning, known, folder_payloads)
                if not self.overtaken:
                    self.overtaken = True
                    of(context).save("Likes giraffes.", category="preference", slug="zebra")
                return batch

        slow = Slow(context.reader, None)
        IndexFollower(following.log, following.index, lambda: slow).catch_up("local")

        assert slow.overtaken
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
        assert of(context).recall("giraffes").hits[0].uri == node.uri


# ---------------------------------------------------------------- vectors
class Counting(HashingEmbedder):
    def __init__(self, dimension: int = 64) -> None:
        super().__init__(dimension)
        self.asked: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return super().embed_texts(texts)


def test_the_same_text_is_embedded_once_for_each_owner(tmp_path: Path) -> None:
    embedder = Counting()
    memo = VectorMemo(tmp_path, embedder)

    vectors = [
        memo.vectors("local", owner, ["soup", "soup"])
        for owner in ("user:ana", "user:ana", "user:bob")
    ]

    assert embedder.asked == ["soup", "soup"]  # the time reveals nothing of others
    assert len({vector for of_owner in vectors for vector in of_owner}) == 1
    assert memo.vectors("elsewhere", "user:ana", ["soup"])
    assert len(embedder.asked) == 3
    memo.close()


def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    embedders = [Counting(64), Counting(32), Counting(64)]
    lengths = []
    for embedder in embedders:
        memo = VectorMemo(tmp_path, embedder)
        lengths.append(len(memo.vectors("a", "user:b", ["soup"])[0]))
        memo.close()

    assert lengths == [64, 32, 64]
    assert [len(embedder.asked) for embedder in embedders] == [1, 1, 0]
