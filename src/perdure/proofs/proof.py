"""Inclusion proofs, which can be verified with nothing but the owner's public key.

A proof shows that content was put, or a name bound to it, at a position and time of a log. It does
not show that this is still so: a later tombstone, or a later binding of the name, is another entry,
and no proof can show that there is none.
"""

import json
from collections.abc import Iterator, Sequence

from perdure.artifacts.artifact import CID
from perdure.artifacts.artifact_store import ArtifactStore
from perdure.artifacts.entry import Bind, IndexState, LogEntry, Put, decode_all, encode
from perdure.artifacts.merkle import (
    check_size,
    leaf,
    leaf_hash,
    leaf_hashes,
    prove_inclusion,
    root_of,
    verify_inclusion,
)
from perdure.dataclass import dataclass
from perdure.errors import DamageError, ProofError, UnknownContentError
from perdure.proofs.checkpoint import Checkpoint, SignedCheckpoint, origin_of
from perdure.proofs.signing_keys import PublicKey, SigningKey, from_base64, to_base64

LONGEST_TEXT = 1 << 21

_LONGEST_ENTRY = 1 << 20
_INCLUSION = "perdure-inclusion-1"
_INCLUSION_FIELDS = frozenset({"checkpoint", "entry", "path", "position", "time"})
_LONGEST_PATH = 64


# ---------------------------------------------------------------- proofs
@dataclass(frozen=True, slots=True)
class InclusionProof:
    """Proves that a log had this entry at this position and time, if `verify_proof` accepts it."""

    position: int
    time: int
    entry: bytes
    path: tuple[bytes, ...]
    checkpoint: SignedCheckpoint

    def __post_init__(self) -> None:
        if type(self.position) is not int:
            raise ProofError("a position must be an integer")
        if len(self.entry) > _LONGEST_ENTRY:
            raise ProofError(f"an entry of more than {_LONGEST_ENTRY} bytes can't be proved")

    @classmethod
    def from_text(cls, text: str) -> "InclusionProof":
        """Parse the form that `to_text` returns; `ProofError` for any other text."""
        fields = _fields(text)
        proof = cls(
            _number(fields, "position"),
            _number(fields, "time"),
            from_base64(_text(fields["entry"])),
            _hashes(fields, "path"),
            SignedCheckpoint.from_text(_text(fields["checkpoint"])),
        )
        if proof.to_text() != text:
            raise ProofError("the proof is not in canonical form. Fix: copy it byte for byte.")
        return proof

    def to_text(self) -> str:
        fields = {
            "format": _INCLUSION,
            "position": self.position,
            "time": self.time,
            "entry": to_base64(self.entry),
            "path": [*map(to_base64, self.path)],
            "checkpoint": self.checkpoint.to_text(),
        }
        return json.dumps(fields, indent=2, sort_keys=True) + "\n"


# ---------------------------------------------------------------- verification
@dataclass(frozen=True, slots=True)
class ProvenEntry:
    """What a proof shows: the log `origin` had this entry among its first `size`."""

    entry: Put | Bind
    position: int
    time: int
    """When it was logged, in milliseconds since the epoch, by the clock of the log's owner."""
    size: int
    origin: str

    @property
    def cid(self) -> CID | None:
        """The content that was put, or that the name was bound to; None if it was unbound."""
        return self.entry.cid

    @property
    def name(self) -> str | None:
        """The name that was bound; None if content was put."""
        return self.entry.name if isinstance(self.entry, Bind) else None


def verify_proof(
    proof: InclusionProof, public_key: PublicKey, cid: CID | None = None
) -> ProvenEntry:
    """Return what the proof shows; `ProofError` unless `public_key` signed its checkpoint.

    With a `cid`, the proof must be about this content. It shows nothing about later entries.
    """
    checkpoint = proof.checkpoint.verify(public_key)
    hashed = leaf_hash(leaf(proof.time, proof.entry))
    index = proof.position - 1
    verify_inclusion(hashed, index, checkpoint.size, proof.path, checkpoint.root)
    if proof.time > checkpoint.time:
        raise ProofError("the entry is later than the last one of the checkpoint")
    entry = _decoded(proof.entry)
    if cid is not None and entry.cid != cid:
        raise ProofError(f"the proof is about {entry.cid}, not {cid}. Fix: request another one.")
    return ProvenEntry(entry, proof.position, proof.time, checkpoint.size, checkpoint.origin)


def _decoded(encoded: bytes) -> Put | Bind:
    try:
        entries = decode_all(encoded)
    except DamageError as error:
        raise ProofError(f"the log has this entry, but it can't be read: {error}") from error
    if len(entries) != 1 or not isinstance(entries[0], Put | Bind):
        raise ProofError("the log has this entry, but it is neither a put nor a bind")
    return entries[0]


# ---------------------------------------------------------------- text
def _fields(text: str) -> dict[str, object]:
    if len(text) > LONGEST_TEXT:
        raise ProofError(f"a proof can have at most {LONGEST_TEXT} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProofError("a proof must be JSON. Fix: copy all of it.") from error
    if not isinstance(found, dict) or found.get("format") != _INCLUSION:
        raise ProofError(
            f"this is not a proof of the format {_INCLUSION!r}, the only one that is known"
        )
    if found.keys() != _INCLUSION_FIELDS | {"format"}:
        raise ProofError(
            f"a proof of the format {_INCLUSION!r} has the fields {sorted(_INCLUSION_FIELDS)}"
        )
    return found


def _number(fields: dict[str, object], name: str) -> int:
    found = fields[name]
    if type(found) is not int:
        raise ProofError(f"the field {name!r} of a proof must be an integer")
    return found


def _hashes(fields: dict[str, object], name: str) -> tuple[bytes, ...]:
    found = fields[name]
    if not isinstance(found, list) or len(found) > _LONGEST_PATH:
        raise ProofError(
            f"the field {name!r} of a proof must be a list of at most {_LONGEST_PATH} hashes"
        )
    return tuple(from_base64(_text(each)) for each in found)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise ProofError(f"the proof has {type(found).__name__} where it must have text")
    return found


# ---------------------------------------------------------------- proving
def prove_entry(
    logged: LogEntry, leaves: Sequence[bytes], checkpoint: SignedCheckpoint
) -> InclusionProof:
    """Return the proof that the log of `checkpoint` has this entry, a put or a bind.

    `leaves` are the leaf hashes of the signed entries. Raises `ProofError` if the proof would not
    be valid.
    """
    claim, encoded, index = checkpoint.checkpoint, encode(logged.entry), logged.position - 1
    if not isinstance(logged.entry, Put | Bind):
        raise ProofError(f"entry {logged.position} is neither a put nor a bind")
    path = prove_inclusion(leaves, index)
    verify_inclusion(leaf_hash(leaf(logged.time, encoded)), index, claim.size, path, claim.root)
    return InclusionProof(logged.position, logged.time, encoded, path, checkpoint)


def log_root(store: ArtifactStore, size: int) -> bytes:
    """Return the root of the tree of a log's first `size` entries.

    `FuturePositionError` if the log is shorter.
    """
    return root_of(log_leaves(store, size))


def log_leaves(store: ArtifactStore, size: int) -> Iterator[bytes]:
    check_size(size, smallest=0)
    for time, records in store.records(size):
        yield from leaf_hashes(map(leaf(time, b"").__add__, records))


class Prover:
    """Signs checkpoints of a log, and proves its entries."""

    def __init__(self, store: ArtifactStore, key: SigningKey) -> None:
        self._store = store
        self._key = key

    def checkpoint(self, state: IndexState | None = None) -> SignedCheckpoint:
        """Return a signed checkpoint of the log up to a state."""
        snapshot, position = self._store.last_commit(state)
        if not self._store.history:
            raise ProofError(
                "nothing was ever put, so there is no log to sign. Fix: put something first."
            )
        time = self._entry(position).time if position else 0
        root = log_root(self._store, position)
        origin = origin_of(self._store.history)
        return Checkpoint(origin, position, root, time, snapshot).signed(self._key)

    def prove(self, cid: CID, state: IndexState | None = None) -> InclusionProof:
        """Prove that content was put, in the log up to a state that shows it."""
        location = self._store.locate(cid, state)
        if location is None:
            raise UnknownContentError(f"{cid} is not visible in that state. Fix: check the CID.")
        for logged in self._store.log(after=location[0].block - 1):
            if isinstance(logged.entry, Put) and logged.entry.cid == cid:
                return self._proof(logged, state)
        raise ProofError(f"the log has no put of {cid}. Fix: verify the history.")

    def prove_position(self, position: int, state: IndexState | None = None) -> InclusionProof:
        """Prove the entry at a position, a put or a bind."""
        return self._proof(self._entry(position), state)

    def _proof(self, logged: LogEntry, state: IndexState | None) -> InclusionProof:
        checkpoint = self.checkpoint(state)
        leaves = list(log_leaves(self._store, checkpoint.checkpoint.size))
        return prove_entry(logged, leaves, checkpoint)

    def _entry(self, position: int) -> LogEntry:
        for logged in self._store.log(after=position - 1):
            return logged
        raise ProofError(f"the log has no entry {position}. Fix: choose an existing one.")
