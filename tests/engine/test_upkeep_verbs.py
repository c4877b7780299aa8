"""The verbs of `Memory` for upkeep, and who may call them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

import perdure
from perdure import Memory
from perdure.errors import AccessDeniedError, InvalidValueError, NodeExistsError, NodeNotFoundError

pytestmark = pytest.mark.usefixtures("agfs")

VERBS: dict[str, Callable[[Memory], object]] = {
    "index": lambda memory: memory.index,
    "outbox": lambda memory: memory.outbox,
    "status": lambda memory: memory.status(),
    "doctor": lambda memory: memory.doctor(),
    "cost": lambda memory: memory.cost(),
    "work": lambda memory: memory.work(),
    "watch": lambda memory: next(memory.watch(Event())),
    "create": lambda memory: memory.tenants.create("user", "eve"),
    "delete": lambda memory: memory.tenants.delete("agent", "eve"),
}


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setenv("USER", "ana")
    with perdure.open(home=tmp_path / "home") as memory:
        memory.save("Prefers tabs.", category="preference", slug="indentation")
        yield memory


@pytest.mark.parametrize("verb", VERBS)
def test_a_member_may_not_call_it(memory: Memory, verb: str) -> None:
    with memory.for_caller(user="bob") as member, pytest.raises(AccessDeniedError, match="may not"):
        VERBS[verb](member)


def test_the_index_is_verified_rebuilt_and_described(memory: Memory) -> None:
    counted: list[tuple[int, int]] = []

    proof = memory.index.verify(progress=lambda *count: counted.append(count))

    assert (proof.holds, proof.notes) == (True, ())
    assert counted[-1] == (proof.places, proof.places)
    assert len(memory.index.rebuild().places) == proof.places
    found = memory.index.status()
    assert (found.built, found.behind, found.waiting, found.hints) == (True, 0, 0, ())
    assert [each.answers for each in found.indexes] == [True]
    assert memory.index.prune() == ()


def test_an_event_that_is_not_dead_can_not_be_named(memory: Memory) -> None:
    assert (memory.outbox.list(), memory.outbox.requeue(), memory.outbox.purge()) == ((), 0, 0)
    with pytest.raises(NodeNotFoundError, match="no dead event is called 'x'"):
        memory.outbox.purge(["x"])


def test_work_returns_when_nothing_waits(memory: Memory) -> None:
    memory.write("preference/tea", "Likes tea.")

    done = memory.work()

    assert (done.counts.done, done.failed) == (1, frozenset())
    assert memory.work().counts.events == 0


def test_watch_records_earlier_edits_first(memory: Memory, tmp_path: Path) -> None:
    file = next(tmp_path.rglob("indentation/content.md"))
    file.write_text("Prefers spaces.")
    ending = Event()

    for report in memory.watch(ending):
        ending.set()
        assert report.kind is perdure.WatchKind.WATCHING

    assert [len(edits.recorded) for edits in memory.edits()] == [1]


def test_status_and_doctor_describe_the_memory_that_is_open(memory: Memory) -> None:
    sections = {section.name: section for section in memory.status()}

    assert sections["nodes"].facts["memories"] == 1
    assert not any(section.trouble for section in sections.values())
    assert memory.doctor().ok
    assert memory.cost() == ()


def test_tenants_are_created_listed_and_deleted(memory: Memory) -> None:
    tenants = memory.tenants

    assert tenants.create("user", "bob") == "ctx://local/users/bob"
    assert tenants.create("account", "acme") == "ctx://acme"
    assert set(tenants.list("user")) == {"ana", "bob"}
    assert tenants.delete("user", "bob").counts["nodes"] >= 0
    assert tenants.list("user") == ["ana"]
    with pytest.raises(NodeExistsError):
        tenants.create("account", "acme")
    with pytest.raises(InvalidValueError):
        tenants.uri("agent", "")
