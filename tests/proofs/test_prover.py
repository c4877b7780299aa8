"""What a store's owner can prove to a party that has only the public key."""

from pathlib import Path

import pytest

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal, NewBinding
from perdure.errors import FuturePositionError, ProofError, UnknownContentError
from perdure.proofs.proof import (
    InclusionProof,
    Prover,
    verify_proof,
)
from perdure.proofs.signing_keys import SigningKey

KEY = SigningKey.generate("ana.example")


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore.open(tmp_path, clock=iter(range(1_000, 100_000)).__next__)


@pytest.fixture
def prover(store: ArtifactStore) -> Prover:
    return Prover(store, KEY)


def test_a_proof_says_what_was_put_and_when(store: ArtifactStore, prover: Prover) -> None:
    store.put(Literal(b"before"))
    cid, state = store.put(Literal(b"hello"))
    store.put(Literal(b"after"))

    text = prover.prove(cid).to_text()
    proven = verify_proof(InclusionProof.from_text(text), KEY.public, cid)
    assert (proven.cid, proven.position, proven.time, proven.size) == (cid, 2, 1_001, 3)
    assert verify_proof(prover.prove(cid, state), KEY.public).size == 2


def test_a_name_can_be_proved_by_its_position(store: ArtifactStore, prover: Prover) -> None:
    state = store.record([NewBinding("notes/a.md", b"hello", {"actor": "Ana"})])

    proven = verify_proof(prover.prove_position(state.position), KEY.public)

    assert (proven.name, proven.cid) == ("notes/a.md", CID.of(b"hello"))


def test_a_position_inside_a_commit_is_signed_as_of_the_last_whole_one(
    store: ArtifactStore, prover: Prover
) -> None:
    store.put(Literal(b"before"))
    store.put_many([Literal(b"%d" % number) for number in range(5)])
    store.snapshot()

    assert prover.checkpoint(IndexState(0, 4)).checkpoint.size == 1
    assert prover.checkpoint(IndexState(0, 6)).checkpoint.size == 6
    assert prover.checkpoint().checkpoint.snapshot == 1


def test_what_is_not_there_can_not_be_proved(store: ArtifactStore, prover: Prover) -> None:
    with pytest.raises(ProofError, match="nothing was ever put"):
        prover.checkpoint()
    cid, state = store.put(Literal(b"hello"))
    with pytest.raises(UnknownContentError):
        prover.prove(CID.of(b"never"))
    with pytest.raises(UnknownContentError):
        prover.prove(cid, IndexState(0, 0))
    with pytest.raises(FuturePositionError):
        prover.prove(cid, IndexState(0, 9))
    with pytest.raises(ProofError, match="no entry 7"):
        prover.prove_position(7)
    assert prover.checkpoint(IndexState(0, 0)).checkpoint.size == 0
    assert state.position == 1
