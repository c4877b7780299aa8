"""`perdure index`: how it is, make it again, prove it."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.errors import AccessDeniedError, DamageError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model.values import JSON
from tests.surfaces.nodes import MEMORIES, TABS, lines, one, perdure, refusal, stdout_of
from tests.surfaces.terminals import at_a_terminal

pytestmark = [
    pytest.mark.usefixtures("agfs"),
    pytest.mark.parametrize("memory", ["device-local"], indirect=True),
]


class CalledLong(HashingEmbedder):
    """Has a name that a folder can't have as it is, and that is wider than a column."""

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {**super().parameters, "model": "All MiniLM L6 v2 of a rather long name"}


@pytest.fixture
def indexed(tabs: Path) -> Path:
    """Have two memories and an index of them."""
    stdout_of("write", "preference/coffee", "Drinks coffee black.")
    stdout_of("recall", "tabs")
    return tabs


def index_file(memory: Path) -> Path:
    """Return the file of the index."""
    home = Path(os.environ["HOME"], ".perdure")
    (file,) = home.glob("histories/*/index/*/*.sqlite")
    return file


def without(uri: str) -> None:
    """Take something out of the index, as a fault would."""
    with open_context(os.environ) as context:
        context.indexes.configured.follower.index.replace("local", {uri: []})


def listed_indexes() -> list[dict[str, object]]:
    return one("index", "status")["indexes"]  # type: ignore[return-value] # JSON


# ---------------------------------------------------------------- status
class TestStatus:
    def test_it_tells_what_the_index_is_and_how_far(self, indexed: Path) -> None:
        status = one("index", "status")

        assert status == {
            "index": status["index"],
            "semantic": False,
            "built": True,
            "position": status["newest"],
            "newest": status["newest"],
            "places": 2,
            "behind": 0,
            "unrecorded": 0,
            "waiting": 0,
            "dead": 0,
            "indexes": status["indexes"],
        }
        rows = {row[0]: row[1:] for row in lines(stdout_of("index", "status")) if row}
        assert (rows["position"], rows["behind"]) == ([str(status["position"])], ["0"])
        assert str(status["index"]).startswith("lexical")

    def test_one_that_is_behind_says_what_to_do(self, indexed: Path) -> None:
        stdout_of("write", "preference/tea", "Likes tea.")

        done = perdure("index", "status")

        status = one("index", "status")
        assert status["position"] != status["newest"]
        assert (status["waiting"], status["built"]) == (1, True)
        assert int(str(status["behind"])) > 0
        assert "the next recall brings it up to date" in done.stderr

    def test_before_there_is_one_it_says_so(self, tabs: Path) -> None:
        status = one("index", "status")

        assert (status["built"], status["position"], status["places"]) == (False, 0, 0)
        assert "`perdure index rebuild`" in perdure("index", "status").stderr

    def test_its_name_can_be_read(self, tabs: Path, tmp_path: Path) -> None:
        (tmp_path / "home" / ".perdure" / "config.toml").write_text(
            '[embedding]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "My M"\n'
        )

        assert str(one("index", "status")["index"]).startswith("My M-")
        assert "index       My M-" in stdout_of("index", "status")

    def test_the_dead_are_counted(self, indexed: Path) -> None:
        stdout_of("write", "preference/tea", "Likes tea.")
        with open_context(os.environ) as context:
            ((uri, event),) = context.outbox.list_pending("local")
            context.outbox.increment_retry(event, uri, error="no")
            context.outbox.move_to_dlq(event, uri)

        assert (one("index", "status")["waiting"], one("index", "status")["dead"]) == (1, 1)

    def test_each_index_is_listed(self, indexed: Path) -> None:
        (listed,) = listed_indexes()
        size = listed.pop("bytes")

        assert listed == {"index": "lexical-9", "places": 2, "finished": True, "answers": True}
        assert size == sum(path.stat().st_size for path in index_file(indexed).parent.iterdir())
        shown = f"{int(str(size)) / 1000:.1f} kB"
        assert stdout_of("index", "status").splitlines()[-2:] == [
            f"places  {'size':{len(shown)}}  finished  answers  index",
            f"2       {shown}  True      True     lexical-9",
        ]

    def test_names_are_those_that_people_write(self, indexed: Path) -> None:
        with open_context(os.environ, embedder=CalledLong()) as context:
            context.memory.recall("tabs")
            assert "%" in context.indexes.name

        names = {str(each["index"]) for each in listed_indexes()}
        rows = stdout_of("index", "status").splitlines()[-3:]

        (name,) = names - {"lexical-9"}
        assert name.startswith("All MiniLM")
        assert {row[rows[0].index("index") :] for row in rows[1:]} == names
        assert stdout_of("index", "prune").startswith(f"removed {name}, ")


# ---------------------------------------------------------------- prune
class TestPrune:
    def test_what_answers_is_not_removed(self, indexed: Path) -> None:
        assert stdout_of("index", "prune") == "there is nothing to remove\n"
        assert one("index", "prune") == {"removed": []}

    def test_the_index_of_another_model_goes_and_its_vectors_stay(self, indexed: Path) -> None:
        home = Path(os.environ["HOME"], ".perdure")
        with open_context(os.environ, embedder=HashingEmbedder()) as context:
            context.memory.recall("tabs")
            context.memory.at("2100-01-01").recall("tabs")
            name = context.indexes.name
        assert len(listed_indexes()) == 2

        printed = stdout_of("index", "prune")

        assert printed.startswith(f"removed {name}, ")
        (left,) = listed_indexes()
        assert left["answers"] is True
        assert list(home.glob("histories/*/past/*")) == []
        with open_context(os.environ, embedder=HashingEmbedder()) as context:
            assert context.memory.recall("tabs").semantic
            assert context.indexes.memo is not None
            assert context.indexes.memo.embedded_count == 0

    def test_one_who_has_it_open_makes_it_again(self, indexed: Path) -> None:
        with open_context(os.environ, embedder=HashingEmbedder()) as context:
            before = context.memory.recall("tabs")
            stdout_of("index", "prune")

            assert context.memory.recall("tabs").hits == before.hits


# ---------------------------------------------------------------- rebuild
class TestRebuild:
    def test_everything_is_built_again(self, indexed: Path) -> None:
        before = one("recall", "tabs coffee")["hits"]
        without(TABS)

        assert stdout_of("index", "rebuild") == "indexed 2 places\n"

        assert one("recall", "tabs coffee")["hits"] == before
        assert stdout_of("index", "verify").startswith("ok: ")

    def test_json_says_what_was_done(self, indexed: Path) -> None:
        done = one("index", "rebuild")

        newest = one("index", "status")["newest"]
        assert done == {"indexed": 2, "position": newest, "failed": {}}

    def test_what_can_not_be_read_is_left_out_and_named(self, indexed: Path) -> None:
        (indexed.parent / ".meta.json").write_text("{")

        done = perdure("index", "rebuild")

        assert done.exit_code == 0
        assert done.stderr.startswith(f"left out: {TABS}: ")
        failed = one("index", "rebuild")["failed"]
        assert isinstance(failed, dict)
        assert list(failed) == [TABS]
        hits = one("recall", "tabs coffee")["hits"]
        assert isinstance(hits, list)
        assert [hit["uri"] for hit in hits] == [f"{MEMORIES}/preference/coffee"]

    def test_an_empty_memory_has_nothing_to_index(self, memory: Path) -> None:
        assert stdout_of("index", "rebuild") == "indexed 0 places\n"
        assert stdout_of("index", "verify").startswith("ok: 0 records of 0 places")


# ---------------------------------------------------------------- verify
class TestVerify:
    def test_a_right_one_is_proved_with_its_root(self, indexed: Path) -> None:
        proof = one("index", "verify")

        assert proof["ok"] is True
        assert (proof["places"], proof["differences"], proof["damage"]) == (2, [], None)
        assert stdout_of("index", "verify") == f"ok: 2 records of 2 places, root {proof['root']}\n"

    def test_the_root_is_that_of_the_memories(self, indexed: Path) -> None:
        root = one("index", "verify")["root"]
        stdout_of("index", "rebuild")
        assert one("index", "verify")["root"] == root

        stdout_of("write", "preference/tea", "Likes tea.")
        stdout_of("recall", "tea")

        assert one("index", "verify")["root"] != root

    def test_a_difference_is_named_and_a_fault(self, indexed: Path) -> None:
        without(TABS)

        done = perdure("index", "verify")

        assert done.exit_code == 1
        assert done.stdout == f"missing: {TABS}\n"
        assert isinstance(done.exception, DamageError)
        assert "differs in 1 place. Fix: run `perdure index verify --heal`" in str(done.exception)

    def test_heal_corrects_the_index(self, indexed: Path) -> None:
        before = one("recall", "tabs coffee")["hits"]
        without(TABS)

        printed = stdout_of("index", "verify", "--heal").splitlines()

        assert printed[0] == f"missing: {TABS}"
        assert printed[1].startswith("healed 1 place, root ")
        assert stdout_of("index", "verify").startswith("ok: ")
        assert one("recall", "tabs coffee")["hits"] == before

    def test_json_names_each_difference(self, indexed: Path) -> None:
        without(TABS)

        healed = one("index", "verify", "--heal")

        assert (healed["ok"], healed["healed"]) == (False, True)
        assert healed["differences"] == [{"uri": TABS, "kind": "missing"}]
        assert one("index", "verify", "--heal")["healed"] is False

    def test_a_note_that_is_no_node_yet_is_named(self, indexed: Path) -> None:
        note = indexed.parents[1] / "tea" / "content.md"
        note.parent.mkdir()
        note.write_text("Likes tea.")

        done = perdure("index", "verify", "--heal")

        assert done.stderr == (
            "1 text without a node, and so not indexed: preference/tea. "
            "Fix: run `perdure repair --apply`\n"
        )
        assert one("index", "verify")["notes"] == [f"{MEMORIES}/preference/tea"]
        stdout_of("repair", "--apply")
        stdout_of("recall", "tea")
        assert perdure("index", "verify").stderr == ""

    def test_an_invalid_file_is_reported_and_written_again(self, indexed: Path) -> None:
        before = one("recall", "tabs coffee")["hits"]
        index_file(indexed).write_bytes(b"x" * 9_000)

        done = perdure("index", "verify")
        assert (done.exit_code, done.stdout[:9]) == (1, "damaged: ")
        perdure("index", "verify", "--heal")

        assert stdout_of("index", "verify").startswith("ok: ")
        assert one("recall", "tabs coffee")["hits"] == before


@pytest.mark.parametrize("verb", ["status", "rebuild", "verify", "prune"])
def test_it_is_for_those_who_govern(tabs: Path, verb: str) -> None:
    refused = refusal("index", verb, "--as-role", "member")

    assert isinstance(refused, AccessDeniedError)
    assert "may not maintain its index" in str(refused)


def test_another_account_is_named(tabs: Path) -> None:
    stdout_of("write", "preference/soup", "Likes soup.", "--account", "acme")

    assert one("index", "rebuild", "--account", "acme")["indexed"] == 1
    assert one("index", "status", "--account", "acme")["places"] == 1
    assert one("index", "status")["built"] is False


def test_at_a_terminal_one_sees_how_far_it_is(memory: Path, tmp_path: Path) -> None:
    at_a_terminal(tmp_path, "write", "preference/coffee", "Drinks coffee black.")

    for verb, label in (("rebuild", "indexing"), ("verify", "comparing")):
        code, seen = at_a_terminal(tmp_path, "index", verb)

        assert code == 0
        assert label in seen
        assert "100%" in seen


def test_an_index_that_is_only_behind_is_not_wrong(memory: Path) -> None:
    stdout_of("save", "Tabs.", "--category", "preference", "--slug", "tabs")
    stdout_of("archive", "preference/tabs")
    stdout_of("index", "verify")
    stdout_of("unarchive", "preference/tabs")

    assert stdout_of("index", "verify").startswith("ok")
