"""Proofs about a store's log, signed by its owner."""

from perdure.artifacts.checkpoint import Checkpoint, SignedCheckpoint, origin_of
from perdure.artifacts.cid import CID
from perdure.artifacts.entry import Put
from perdure.artifacts.keys import SigningKey
from perdure.artifacts.proof import InclusionProof, prove_entry
from perdure.artifacts.state import IndexState, Logged
from perdure.artifacts.store import ArtifactStore
from perdure.artifacts.tree import log_reader, log_root
from perdure.errors import ProofError, UnknownContentError


class Prover:
    """Shows to others, who have no more than the public key, what a log holds."""

    def __init__(self, store: ArtifactStore, key: SigningKey) -> None:
        self._store = store
        self._key = key

    def checkpoint(self, state: IndexState | None = None) -> SignedCheckpoint:
        """Sign that the log, up to a state, is what it is."""
        snapshot, position = self._store.whole(state)
        if not self._store.history:
            raise ProofError("nothing was ever put, so there is no log to sign. Fix: put first.")
        time = self._entry(position).time if position else 0
        root = log_root(self._store, position)
        origin = origin_of(self._store.history)
        return Checkpoint(origin, position, root, time, snapshot).signed(self._key)

    def prove(self, cid: CID, state: IndexState | None = None) -> InclusionProof:
        """Prove that content was put, and when, in the log up to a state that shows it."""
        location = self._store.locate(cid, state)
        if location is None:
            raise UnknownContentError(f"{cid} is not there in that state. Fix: check the CID.")
        for logged in self._store.log(after=location[0].block - 1):
            if isinstance(logged.entry, Put) and logged.entry.cid == cid:
                return self._proof(logged, state)
        raise ProofError(f"the log does not say that {cid} was put. Fix: verify the history.")

    def prove_position(self, position: int, state: IndexState | None = None) -> InclusionProof:
        """Prove what the log says at a position: that content was put, or a name bound."""
        return self._proof(self._entry(position), state)

    def _proof(self, logged: Logged, state: IndexState | None) -> InclusionProof:
        checkpoint = self.checkpoint(state)
        reader = log_reader(self._store, checkpoint.claim.size)
        return prove_entry(logged, reader, checkpoint)

    def _entry(self, position: int) -> Logged:
        for logged in self._store.log(after=position - 1):
            return logged
        raise ProofError(f"the log has no entry {position}. Fix: name one that it has.")
