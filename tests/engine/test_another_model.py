"""Another model: exactly what is needed is embedded, while the old vectors keep answering."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.app import Context, open_context
from perdure.config import EmbeddingSettings
from perdure.engine import upkeep
from perdure.engine.indexing import indexes
from perdure.errors import ConcurrentModificationError, EmbeddingError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.sql import FORMAT
from perdure.index.vectors import embedder_id
from perdure.model import ContextNode, RequestContext
from tests.engine.changing_models import (
    ANSWER,
    BY_MEANING,
    FOLDER,
    MANY,
    NEW,
    OLD,
    Counting,
    after,
    at_step,
    embedded_by,
    go_on,
    have_a_copy,
    have_many,
    rewrite,
    write,
)
from tests.engine.remembering import ANA, of, opened
from tests.index.endpoints import Server, serving
from tests.index.minilm_cache import installed_model
from tests.support.hints import texts_of

MOST = 220
"""So many vectors at the most has a memory of so many notes: one each, and those of folders."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Have a memory that is only copied."""
    home = tmp_path_factory.mktemp("many")
    have_many(home)
    return home


@pytest.fixture
def home(tmp_path: Path, many: Path) -> Path:
    have_a_copy(tmp_path, many)
    return tmp_path


def snippets(context: Context, question: str) -> list[str]:
    return [hit.snippet for hit in of(context).recall(question).hits]


def folder_of(home: Path, dimension: int) -> Path:
    """Return the folder of the index of a hashing embedder."""
    (index,) = home.glob(f".perdure/histories/*/index/{embedder_id(HashingEmbedder(dimension))}-*")
    return index


# ---------------------------------------------------------------- who answers meanwhile
def test_old_vectors_answer_until_the_new_ones_are_computed(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        result = of(context).recall(BY_MEANING)

        assert (result.semantic, result.index_lag) == (True, 0)
        assert result.hits[0].snippet == ANSWER
        (note,) = texts_of(result)
        assert "the vectors of hashing-" in note
        assert "0 of 212 places are embedded" in note
        assert "`perdure worker` or `perdure index rebuild`" in note
        assert embedded_by(context) == 0  # it was not needed


def test_words_would_not_have_found_it(home: Path) -> None:
    with opened(home, semantic=False) as context:
        assert snippets(context, BY_MEANING) == []


def test_what_is_written_meanwhile_is_found_at_once(home: Path) -> None:
    with opened(home, embedder=Counting(NEW)) as context:
        of(context).save("Chlorophyllous.", category="preference", slug="green")

        assert snippets(context, "chlorophyll")[0] == "Chlorophyllous."
        assert of(context).recall("chlorophyll").index_lag == 0
        assert embedded_by(context) == 0


def test_an_edit_by_hand_is_found_meanwhile(home: Path) -> None:
    (file,) = home.glob(".perdure/memory/**/Leaf.md")
    file.write_text(file.read_text().replace(ANSWER, "Photosynthesised."))

    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        assert snippets(context, BY_MEANING)[0] == "Photosynthesised."


def test_an_open_memory_switches_by_itself(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as asking:
        assert texts_of(of(asking).recall(BY_MEANING))
        with opened(home, embedder=HashingEmbedder(NEW)) as working:
            go_on(working)

        result = of(asking).recall(BY_MEANING)

        assert (texts_of(result), result.hits[0].snippet) == ((), ANSWER)
        assert not asking.indexes.current("local").is_interim
        assert embedded_by(asking) == 0


def test_the_progress_is_reported(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        go_on(context, after(1))

        assert "127 of 212 places are embedded" in texts_of(of(context).recall(BY_MEANING))[0]


def test_the_newest_that_is_finished_answers(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(128)) as context:
        context.indexes.configured.follower.rebuild("local")
        write(context, newer="Something newer.")
        of(context).settle()
        newest = context.indexes.name
    with opened(home, embedder=HashingEmbedder(64)) as context:
        go_on(context, after(1))  # is newer, and not finished

    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        assert newest.removesuffix(f"-{FORMAT}") in texts_of(of(context).recall(BY_MEANING))[0]


def test_the_past_is_answered_by_who_answers_now(home: Path) -> None:
    with opened(home, embedder=Counting(NEW)) as context:
        state = context.recorded.history.store.current()
        now, then = (of(context).recall(BY_MEANING, at=at) for at in (None, state))

        assert then.semantic
        assert [hit.snippet for hit in then.hits] == [hit.snippet for hit in now.hits]
        assert embedded_by(context) == 0


def test_old_vectors_that_are_far_behind_are_not_brought_up(home: Path) -> None:
    with opened(home, semantic=False) as context:
        write(context, **{f"more{number}": f"More {number}." for number in range(MANY)})

    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        result = of(context).recall(BY_MEANING)

        assert not result.semantic
        assert "places behind" in texts_of(result)[1]
        with opened(home, embedder=Counting(OLD)) as old:
            assert embedded_by(old) == 0


def test_old_vectors_that_prove_damaged_leave_the_words(home: Path) -> None:
    file = folder_of(home, OLD) / "local.sqlite"
    file.write_bytes(file.read_bytes()[:40_960] + b"x" * 40_960)

    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        results = [of(context).recall("photosynthesis") for _ in range(2)]

        assert [result.hits[0].snippet for result in results] == [ANSWER] * 2
        assert not results[1].semantic
        assert embedded_by(context) == 0


# ---------------------------------------------------------------- which embedder it was
def test_the_settings_are_beside_the_index_and_nobody_elses_to_read(home: Path) -> None:
    file = folder_of(home, OLD) / indexes.FILE

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "provider": "hashing",
        "base_url": "",
        "model": "",
        "dimension": OLD,
    }


def _json(**fields: object) -> Callable[[Path], None]:
    whole = {"provider": "hashing", "base_url": "", "model": "", "dimension": OLD, **fields}
    return lambda file: _write(file, json.dumps(whole).encode())


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o600)


def _linked(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


HOSTILE: dict[str, Callable[[Path], None]] = {
    "gone": Path.unlink,
    "empty": lambda file: _write(file, b""),
    "cut off": lambda file: _write(file, file.read_bytes()[:30]),
    "no text": lambda file: _write(file, b"\xff\xfe\x00"),
    "no object": lambda file: _write(file, b"[]"),
    "deep": lambda file: _write(file, b"[" * 9_000),
    "huge": lambda file: _write(file, file.read_bytes() + b" " * 20_000),
    "a link": _linked,
    "a pipe": _pipe,
    "a folder": _folder,
    "for all to write": lambda file: file.chmod(0o622),
    "another model": _json(dimension=128),
    "no dimension": _json(dimension=-1),
    "a truth": _json(dimension=True),
    "a list": _json(model=["x"]),
    "something more": _json(api_key="secret"),
    "nobody": _json(provider="none"),
    "auto": _json(provider="auto"),
    "stranger": _json(provider="os.system"),
    "somebody's endpoint": _json(provider="openai", base_url="http://127.0.0.1:9/", model="m"),
    "a file": _json(provider="openai", base_url="file:///etc/passwd", model="m"),
    "not installed": _json(provider="minilm"),
}


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Have a memory whose settings are attacked again and again."""
    home = tmp_path_factory.mktemp("besieged")
    have_many(home)
    return home


@pytest.mark.parametrize("what", HOSTILE)
def test_settings_that_are_damaged_or_hostile_are_passed_over(besieged: Path, what: str) -> None:
    file = folder_of(besieged, OLD) / indexes.FILE
    if file.is_dir():
        file.rmdir()
    indexes.store_settings(file.parent, EmbeddingSettings("hashing", dimension=OLD))
    HOSTILE[what](file)

    with opened(besieged, embedder=HashingEmbedder(NEW)) as context:
        result = of(context).recall("photosynthesis")

    assert not result.semantic
    assert result.hits[0].snippet == ANSWER
    assert texts_of(result)[0] == "only words were compared"
    assert "earlier vectors can't answer meanwhile: " in texts_of(result)[1]


def test_what_was_damaged_is_written_again_by_who_has_the_model(home: Path) -> None:
    file = folder_of(home, OLD) / indexes.FILE
    _write(file, b"{}")

    with opened(home, embedder=HashingEmbedder(OLD)) as context:
        of(context).recall("x")

    assert json.loads(file.read_text())["dimension"] == OLD


# ---------------------------------------------------------------- exactly what is needed
def test_each_text_is_embedded_once_for_each_model(home: Path) -> None:
    new = Counting(NEW)
    with opened(home, embedder=new) as context:

        def change() -> None:
            rewrite(context, "n3", "Number three, changed.")
            write(context, extra="Something new.")

        done = go_on(context, at_step(1, change))
        of(context).settle()

        assert done is not None
        assert done.position > 0
        assert not {text for text, times in new.asked.items() if times > 1}
        assert new.asked["Number three, changed."] == 1
        assert new.asked["Something new."] == 1
        assert embedded_by(context) == new.asked.total() <= MOST
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
    old = Counting(OLD)
    with opened(home, embedder=old) as context:
        assert snippets(context, "three")[0] == "Number three, changed."
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
        assert old.asked["Number three, changed."] == 0  # it was embedded when it was written


def test_who_goes_back_embeds_nothing(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        go_on(context)
        context.indexes.prune()
    with opened(home, embedder=HashingEmbedder(OLD)) as context:
        assert of(context).recall(BY_MEANING).semantic  # by the vectors of the other
        go_on(context)

        assert embedded_by(context) == 0
        assert texts_of(of(context).recall(BY_MEANING)) == ()
        assert snippets(context, BY_MEANING)[0] == ANSWER


@pytest.mark.parametrize("steps", [1, 2])
def test_what_was_stopped_goes_on_and_embeds_nothing_twice(home: Path, steps: int) -> None:
    new = Counting(NEW)
    with opened(home, embedder=new) as context:
        go_on(context, after(steps))
        assert context.indexes.current("local").is_interim

    with opened(home, embedder=new) as context:
        go_on(context)

        assert not context.indexes.current("local").is_interim
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
    assert not {text for text, times in new.asked.items() if times > 1}


def test_what_is_right_is_not_written_again(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        go_on(context, after(1))
        before = context.indexes.configured.follower.index.stamps("local")
        written: list[int] = []
        index = context.indexes.configured.follower.index
        replace = index.replace

        def counted(account: str, nodes: dict[str, object], **more: object) -> None:
            written.append(len(nodes))
            replace(account, nodes, **more)  # type: ignore[arg-type] # as it came

        index.replace = counted  # type: ignore[method-assign, assignment] # counts
        go_on(context)

        assert len(before) == 127
        assert sum(written) == 212 - 127


def _everything_changes(context: Context) -> None:
    rewrite(context, "n0", "Nought.")
    rewrite(context, "n209", "The last one.")
    context.nodes.delete_node(f"{FOLDER}/n1", ANA)
    context.nodes.archive_node(f"{FOLDER}/n2", ANA)
    context.nodes.move_node(f"{FOLDER}/n4", f"{FOLDER}/zz", ANA)
    write(context, aa="At the front.", zzz="At the back.")


@pytest.mark.parametrize("step", [1, 2])
def test_nodes_may_change_during_a_build(home: Path, step: int) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        go_on(context, at_step(step, lambda: _everything_changes(context)))

        assert texts_of(of(context).recall("x")) == ()
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


def test_many_new_nodes_are_indexed_before_it_switches(home: Path) -> None:
    def more() -> None:
        write(context, **{f"more{number}": f"More {number}." for number in range(MANY)})

    with opened(home, embedder=Counting(NEW)) as context:
        go_on(context, at_step(1, more))
        embedded = embedded_by(context)
        of(context).recall("x")

        assert embedded > 2 * MANY
        assert embedded_by(context) == embedded
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


def test_what_is_taken_out_meanwhile_is_put_back(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        index = context.indexes.configured.follower.index

        go_on(context, at_step(1, lambda: index.delete_account_data("local")))

        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds


def test_events_that_arrive_meanwhile_are_worked_on(home: Path) -> None:
    found = []

    def ask() -> None:
        found.append(len(context.outbox.list_unfinished("local")))

    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        write(context, event="An event.")
        assert len(context.outbox.list_unfinished("local")) == 1
        go_on(context, at_step(1, ask))

    assert found == [0]


# ---------------------------------------------------------------- several, and outages
def test_two_do_not_embed_the_same(home: Path) -> None:
    others: list[object] = []
    new = Counting(NEW)

    def try_too() -> None:
        with opened(home, embedder=new) as context:
            others.append(go_on(context))
            with pytest.raises(ConcurrentModificationError, match="another process is building"):
                context.indexes.configured.follower.rebuild("local")

    with opened(home, embedder=new) as context:
        go_on(context, at_step(1, try_too))
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds

    assert others == [None]
    assert not {text for text, times in new.asked.items() if times > 1}


def test_a_model_that_is_out_of_order_takes_nobodys_place(home: Path) -> None:
    new = Counting(NEW)
    down = EmbeddingError("no credit. Fix: pay.")
    with opened(home, embedder=new) as context:
        go_on(context, after(1))
        new.fails = lambda _: down
        with pytest.raises(EmbeddingError, match="no credit"):
            go_on(context)
        assert snippets(context, BY_MEANING)[0] == ANSWER

        new.fails = lambda _: None
        go_on(context)

        assert texts_of(of(context).recall(BY_MEANING)) == ()
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
    assert {each for text, each in new.asked.items() if text != BY_MEANING} <= {1, 2}


def test_a_text_that_can_not_be_embedded_does_not_stop_the_rest(home: Path) -> None:
    new = Counting(NEW)
    poison = EmbeddingError("poison. Fix: none.")
    new.fails = lambda texts: poison if "Number 7 is about a thing." in texts else None
    with opened(home, embedder=new) as context:
        done = go_on(context)

        assert done is not None
        assert list(done.failed) == [f"{FOLDER}/n7"]
        assert snippets(context, BY_MEANING)[0] == ANSWER
        assert snippets(context, "7")[0] == "Number 7 is about a thing."


# ---------------------------------------------------------------- what may go
def test_the_one_that_answers_is_never_removed(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        go_on(context, after(1))

        assert context.indexes.prune() == []
        assert snippets(context, BY_MEANING)[0] == ANSWER
        assert len(context.indexes.listed("local")) == 2

        go_on(context)
        ((name, size),) = context.indexes.prune()

        assert name.startswith("hashing-")
        assert size > 100_000
        (left,) = context.indexes.listed("local")
        assert left.answers
        assert snippets(context, BY_MEANING)[0] == ANSWER


def test_one_that_answers_for_another_account_is_never_removed(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        go_on(context)
        used = context.indexes.name
    with opened(home, embedder=HashingEmbedder(OLD)) as context:
        write_elsewhere(context)
        context.indexes.configured.follower.rebuild("elsewhere")
        old = context.indexes.name
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        assert context.indexes.current("elsewhere").is_interim

        assert context.indexes.prune() == []
        assert {old, used} <= {each.name for each in context.indexes.listed("local")}


def write_elsewhere(context: Context) -> None:
    folder = "ctx://elsewhere/users/eve/memories/preference"
    nodes = [ContextNode(uri=f"{folder}/n{n}", content=f"Other {n}.") for n in range(MANY)]
    context.nodes.write_nodes(nodes, RequestContext("elsewhere", "eve"))


# ---------------------------------------------------------------- real models
@contextmanager
def configured(home: Path, embedding: str) -> Iterator[Context]:
    """Open the memory of a home whose config says who embeds."""
    (home / ".perdure" / "config.toml").write_text(f"[embedding]\n{embedding}\n")
    with open_context({"HOME": str(home), "USER": "ana", "KEY": "sesame"}) as context:
        yield context


def endpoint(server: Server, model: str, provider: str = "openai") -> str:
    return (
        f'provider = "{provider}"\nbase_url = "{server.base_url}"\nmodel = "{model}"\n'
        'api_key_variable = "KEY"\n'
    )


def install(home: Path) -> None:
    (home / ".perdure" / "models").symlink_to(installed_model().folder.parent)


def test_from_a_hashing_one_to_minilm_and_on_to_an_endpoint(home: Path) -> None:
    install(home)
    asleep = "What keeps her from sleeping?"
    with configured(home, 'provider = "minilm"') as context:
        of(context).save("Lies awake after coffee.", category="preference", slug="awake")
        assert of(context).recall(BY_MEANING).hits[0].snippet == ANSWER
        assert embedded_by(context) == 0

        go_on(context)

        assert embedded_by(context) <= MOST
        assert snippets(context, asleep)[0] == "Lies awake after coffee."
    with serving() as server, configured(home, endpoint(server, "one")) as context:
        result = of(context).recall(asleep)

        assert "all-MiniLM-L6-v2" in texts_of(result)[0]
        assert result.hits[0].snippet == "Lies awake after coffee."
        assert server.asked == []


def test_a_model_that_was_removed_leaves_the_words(home: Path) -> None:
    install(home)
    with configured(home, 'provider = "minilm"') as context:
        write(context, newer="Newer than the other.")
        go_on(context)
    (home / ".perdure" / "models").unlink()
    folder = folder_of(home, OLD)
    (folder / indexes.FILE).unlink()

    with serving() as server, configured(home, endpoint(server, "one")) as context:
        result = of(context).recall("photosynthesis")

        assert not result.semantic
        assert "the embedding model is not installed" in texts_of(result)[1]
        assert server.asked == []


def test_an_endpoint_is_asked_as_long_as_the_config_names_it(home: Path) -> None:
    install(home)
    with serving() as server:
        with configured(home, endpoint(server, "one")) as context:
            go_on(context)
        settings_text = b"".join(path.read_bytes() for path in home.rglob(indexes.FILE))
        assert server.base_url.encode() in settings_text
        assert b"sesame" not in settings_text
        with configured(home, endpoint(server, "two")) as context:
            assert "the vectors of one-" in texts_of(of(context).recall(BY_MEANING))[0]
            assert (server.asked[-1]["model"], server.asked[-1]["input"]) == ("one", [BY_MEANING])
            assert server.keys[-1] == "Bearer sesame"
        with configured(
            home, endpoint(server, "", "minilm").replace('model = ""\n', "")
        ) as context:
            assert "the vectors of one-" in texts_of(of(context).recall(BY_MEANING))[0]
        asked = len(server.asked)
        (folder_of(home, OLD) / indexes.FILE).unlink()
        with configured(home, 'provider = "minilm"') as context:
            result = of(context).recall(BY_MEANING)

    assert not result.semantic
    assert "is no longer the base_url" in texts_of(result)[1]
    assert len(server.asked) == asked


# ---------------------------------------------------------------- deaths
_WORK = """
import os, sys
from pathlib import Path
from perdure.artifacts import ArtifactStore
from perdure.index.sqlite_index import SqliteIndex
from tests.engine.changing_models import NEW, Counting, go_on
from tests.engine.remembering import opened

step, seen = int(sys.argv[2]), 0
log = open(sys.argv[1] + "/embedded", "a")

class Logging(Counting):
    def embed_texts(self, texts):
        vectors = super().embed_texts(texts)
        tell(*map(repr, texts))
        return vectors

def tell(*lines):
    log.write("".join(f"{line}\\n" for line in lines))
    log.flush()

remember = ArtifactStore.record_results

def kept(*args):
    remember(*args)
    tell("kept")

ArtifactStore.record_results = kept
tell("begin")

def dying(owner, name):
    verb = getattr(owner, name)
    def run(*args, **kwargs):
        moment()
        result = verb(*args, **kwargs)
        moment()
        return result
    setattr(owner, name, run)

def moment():
    global seen
    seen += 1
    if seen == step:
        os.kill(os.getpid(), 9)

with opened(Path(sys.argv[1]), embedder=Logging(NEW)) as context:
    dying(SqliteIndex, "replace")
    dying(ArtifactStore, "record_results")
    go_on(context)
"""


def embedded_again(log: Path) -> list[str]:
    """Return the texts that were embedded although their vectors had been index_folders."""
    known: set[str] = set()
    fresh: list[str] = []
    again = []
    for line in log.read_text().splitlines():
        if line == "begin":
            fresh = []
        elif line == "kept":
            known.update(fresh)
        else:
            fresh.append(line)
            again += [line] if line in known else []
    return again


@pytest.mark.search
def test_killed_at_any_point_it_loses_nothing_and_embeds_nothing_again(home: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    deaths = 0
    for step in (1, 2, 3, 4, 3, 5, 0):  # each continues where the last one died
        command = [sys.executable, "-c", _WORK, str(home), str(step)]
        done = subprocess.run(command, env=environ, capture_output=True, check=False, timeout=60)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        deaths += done.returncode != 0

    assert deaths >= 4
    assert embedded_again(home / "embedded") == []
    with opened(home, embedder=HashingEmbedder(NEW)) as context:
        assert texts_of(of(context).recall(BY_MEANING)) == ()
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
        assert embedded_by(context) == 0
