"""`perdure worker` makes the index of another model, in steps, whatever happens to it."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from perdure.app import open_context
from perdure.engine.indexing import follower
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import ContextNode
from tests.index.endpoints import Handler, Server, embeddings, says, serving
from tests.surfaces.nodes import MEMORIES, one, perdure, stdout_of
from tests.surfaces.processes import DEADLINE_SECONDS, Running, running, until

pytestmark = pytest.mark.parametrize("memory", ["device-local"], indirect=True)

MANY = 210


@pytest.fixture
def server(memory: Path) -> Iterator[Server]:
    """Have many memories, indexed by one model, and an endpoint that is to be the next one."""
    with open_context(os.environ, embedder=HashingEmbedder()) as context:
        nodes = [
            ContextNode(uri=f"{MEMORIES}/event/n{number}", content=f"Number {number}, a thing.")
            for number in range(MANY)
        ]
        leaf = ContextNode(uri=f"{MEMORIES}/event/leaf", content="Photosynthesis.")
        context.nodes.write_nodes([*nodes, leaf], context.request)
        context.indexes.configured.follower.rebuild("local")
        context.outbox.delete_account_data("local")
    with serving() as server:
        Path(os.environ["HOME"], ".perdure", "config.toml").write_text(
            f'[embedding]\nprovider = "openai"\nbase_url = "{server.base_url}"\nmodel = "m"\n'
        )
        yield server


def asked(server: Server) -> Counter[str]:
    """Count how often each text was sent."""
    return Counter(text for each in server.asked for text in each["input"])


def built() -> bool:
    return bool(one("index", "status")["built"])


@contextmanager
def worker_at(server: Server, request: int) -> Iterator[tuple[Running, Event]]:
    """Run a worker up to a request, which is answered when the event is set."""
    reached, answer = Event(), Event()

    def slowly(handler: Handler) -> None:
        reached.set()
        answer.wait(DEADLINE_SECONDS)
        embeddings(handler)

    server.answers.extend([*[embeddings] * (request - 1), slowly])
    with running("worker") as worker:
        assert reached.wait(DEADLINE_SECONDS)
        yield worker, answer
        answer.set()


def test_it_makes_the_new_index_and_says_so(server: Server) -> None:
    assert "0 of 212 places are embedded" in perdure("index", "status").stderr

    done = perdure("worker", "--once")

    assert done.exit_code == 0
    assert done.stderr == "local: the new index is complete and in use\n"
    assert done.stdout.endswith("0 dead; 214 places indexed\n")
    assert set(asked(server).values()) == {1}
    assert one("recall", "photosynthesis")["hints"] == []


def test_a_signal_stops_it_after_a_step_and_the_next_one_continues(server: Server) -> None:
    with worker_at(server, 2) as (worker, answer):
        recalled = one("recall", "photosynthetic")
        worker.tell(signal.SIGTERM)
        answer.set()
        code, _, complained = worker.end()

    assert (recalled["semantic"], recalled["hits"][0]["snippet"]) == (True, "Photosynthesis.")  # type: ignore[index] # JSON
    assert code == 0
    assert complained == (
        "local: 127 of 212 places are embedded; the next worker continues from there\n"
    )
    assert not built()

    stdout_of("worker", "--once")

    assert built()
    assert set(asked(server).values()) == {1}
    assert one("index", "verify")["ok"] is True


def test_a_signal_also_stops_indexing_words(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Path(os.environ["HOME"], ".perdure", "config.toml")
    config.write_text('[embedding]\nprovider = "none"\n')
    replace = SqliteIndex.replace

    def signalled(*args: Any, **more: Any) -> None:  # noqa: ANN401 - as they come
        replace(*args, **more)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(follower, "BATCH", 128)
        patch.setattr(SqliteIndex, "replace", signalled)
        done = perdure("worker")

    assert (done.exit_code, done.stdout.partition("; ")[2]) == (0, "128 places indexed\n")
    assert not built()
    stdout_of("worker", "--once")
    assert built()
    assert one("index", "verify")["ok"] is True


@pytest.mark.parametrize("request_", [1, 2, 3, 4])
def test_killed_it_leaves_what_it_had_to_the_next_one(server: Server, request_: int) -> None:
    with worker_at(server, request_) as (worker, _):
        stdout_of("write", "event/new", "Something new.")
        worker.tell(signal.SIGKILL)
        assert worker.end()[0] == -signal.SIGKILL
    known = {1: 0, 2: 0, 3: 128, 4: 128}[request_]
    kept = [text for each in server.asked for text in each["input"]][:known]

    stdout_of("worker", "--once")

    assert built()
    assert {asked(server)[text] for text in kept} <= {1}
    assert asked(server)["Something new."] == 1
    assert one("index", "verify")["ok"] is True


def test_two_side_by_side_send_each_text_once(server: Server) -> None:
    with running("worker") as first, running("worker") as second:
        until(built)
        for worker in (first, second):
            worker.tell()
            worker.end()

    assert set(asked(server).values()) == {1}
    assert one("index", "verify")["ok"] is True


def test_an_endpoint_that_refuses_takes_nobodys_place(server: Server) -> None:
    server.answers.extend([says(b"{}", 401)] * 9)

    done = perdure("worker", "--once")

    assert done.exit_code == 1
    assert "status 401" in done.stderr
    assert not built()
    assert len(server.asked) <= 4
    server.answers.clear()
    assert one("recall", "photosynthetic")["hits"][0]["snippet"] == "Photosynthesis."  # type: ignore[index] # JSON
