"""The log of a memory: versions of texts by key, for the owner of all accounts only."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.engine.memory import Memory
from perdure.engine.versions import check_proof
from perdure.errors import AbsentError, AccessDeniedError, ProofError
from perdure.model import RequestContext
from tests.engine.remembering import ADMIN, ANA, of, opened

TEXTS = ("Prefers tabs.\n", "Prefers spaces.\n")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        yield context


@pytest.fixture
def memory(context: Context) -> Memory:
    for text in TEXTS:
        context.memory.save(text, category="preference", slug="indentation")
    return context.memory


def key(memory: Memory) -> str:
    return memory.key("preference/indentation")


@pytest.mark.parametrize("caller", [ANA, ADMIN])
def test_only_the_owner_of_all_accounts_reads_the_log(
    context: Context, caller: RequestContext
) -> None:
    with pytest.raises(AccessDeniedError, match="all accounts"):
        _ = of(context, caller).log


def test_a_version_is_found_by_number_content_and_moment(memory: Memory) -> None:
    log = memory.log
    first, last = log.versions(key(memory))

    assert log.version(key(memory)) == last
    assert log.version(key(memory), 1) == log.version(key(memory), str(first.cid)) == first
    assert log.version(key(memory), at=str(first.commit)) == first
    assert log.version(key(memory), at=last.commit) == last
    assert TEXTS[0].strip() in log.text(first)
    with pytest.raises(AbsentError):
        log.version(key(memory), at="1999-01-01")


def test_a_limit_returns_the_newest_entries_or_the_next_after_a_position(
    memory: Memory,
) -> None:
    every = list(memory.log.entries())

    assert list(memory.log.entries(limit=1)) == every[-1:]
    assert list(memory.log.entries(after=every[0].position, limit=1)) == every[1:2]
    assert [each.key for each in memory.log.entries(key(memory), after=1)] == [key(memory)]


def test_what_is_restored_names_the_caller(memory: Memory) -> None:
    restored = memory.log.restore(key(memory), 1)

    assert restored.written
    assert (restored.version.number, restored.source.number) == (3, 1)
    assert restored.version.actor == memory.caller.user_id
    assert "tabs" in memory.read("preference/indentation").content
    assert not memory.log.restore(key(memory), 3).written


def test_a_proof_is_checked_without_the_memory(memory: Memory) -> None:
    proof = memory.log.prove(key(memory), 1)

    assert check_proof(proof.text, proof.public_key, key(memory)) == proof.proven
    assert proof.proven.cid == memory.log.version(key(memory), 1).cid
    with pytest.raises(ProofError, match="not 'another'"):
        check_proof(proof.text, proof.public_key, "another")


def test_a_sound_log_verifies_and_has_no_garbage(memory: Memory) -> None:
    assert memory.log.verify().ok
    assert memory.log.plan_gc().is_empty
