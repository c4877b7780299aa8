"""Proofs that stand alone: who has the owner's public key can check them, with nothing else.

A proof of inclusion shows that content was put, or that a name was bound to it, at a position and a
time of a log. It shows that the log had this, not that it still holds: a later tombstone, or a
later binding of the name, is another entry, and no path can show that there is none.
"""

import json
from collections.abc import Iterator, Sequence

from perdure.artifacts.artifact_store import ArtifactStore
from perdure.artifacts.cid import CID
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


# ---------------------------------------------------------------- what a proof holds
@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That a log had this entry at this position and time; shown only by `verify_proof`."""

    position: int
    time: int
    entry: bytes
    path: tuple[bytes, ...]
    checkpoint: SignedCheckpoint

    def __post_init__(self) -> None:
        if type(self.position) is not int:
            raise ProofError("a position is a number")
        if len(self.entry) > _LONGEST_ENTRY:
            raise ProofError(f"an entry of more than {_LONGEST_ENTRY} bytes can't be proved")

    @classmethod
    def from_text(cls, text: str) -> "InclusionProof":
        """Read what `to_text` gives; anything else is `ProofError`."""
        fields = _fields(text)
        proof = cls(
            _number(fields, "position"),
            _number(fields, "time"),
            from_base64(_text(fields["entry"])),
            _hashes(fields, "path"),
            SignedCheckpoint.from_text(_text(fields["checkpoint"])),
        )
        if proof.to_text() != text:
            raise ProofError(
                "the proof is not written in its one form. Fix: copy it byte for byte."
            )
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


# ---------------------------------------------------------------- checking
@dataclass(frozen=True, slots=True)
class ProvenEntry:
    """What was shown: the log `origin`, `size` entries long, had this entry there and then."""

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
    """Return what the proof shows, and only if `public_key` vouches for it; `ProofError` if not.

    With a `cid`, only if it is about this content. Nothing is shown about what came later.
    """
    checkpoint = proof.checkpoint.verify(public_key)
    hashed = leaf_hash(leaf(proof.time, proof.entry))
    index = proof.position - 1
    verify_inclusion(hashed, index, checkpoint.size, proof.path, checkpoint.root)
    if proof.time > checkpoint.time:
        raise ProofError("the entry is later than the last one, by what the checkpoint says")
    entry = _decoded(proof.entry)
    if cid is not None and entry.cid != cid:
        raise ProofError(f"the proof is about {entry.cid}, not {cid}. Fix: ask for another one.")
    return ProvenEntry(entry, proof.position, proof.time, checkpoint.size, checkpoint.origin)


def _decoded(encoded: bytes) -> Put | Bind:
    try:
        entries = decode_all(encoded)
    except DamageError as error:
        raise ProofError(f"the log has this entry, but it can't be read: {error}") from error
    if len(entries) != 1 or not isinstance(entries[0], Put | Bind):
        raise ProofError("the log has this entry, but it puts no content and binds no name")
    return entries[0]


# ---------------------------------------------------------------- text
def _fields(text: str) -> dict[str, object]:
    if len(text) > LONGEST_TEXT:
        raise ProofError(f"a proof has at most {LONGEST_TEXT} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProofError("a proof is JSON, and this is not. Fix: copy it whole.") from error
    if not isinstance(found, dict) or found.get("format") != _INCLUSION:
        raise ProofError(
            f"this is no proof of the form {_INCLUSION!r}, which is the one known here"
        )
    if found.keys() != _INCLUSION_FIELDS | {"format"}:
        raise ProofError(
            f"a proof of the form {_INCLUSION!r} has the fields {sorted(_INCLUSION_FIELDS)}"
        )
    return found


def _number(fields: dict[str, object], name: str) -> int:
    found = fields[name]
    if type(found) is not int:
        raise ProofError(f"the field {name!r} of a proof is a number")
    return found


def _hashes(fields: dict[str, object], name: str) -> tuple[bytes, ...]:
    found = fields[name]
    if not isinstance(found, list) or len(found) > _LONGEST_PATH:
        raise ProofError(f"the field {name!r} of a proof is a list of few hashes")
    return tuple(from_base64(_text(each)) for each in found)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise ProofError(f"a proof has text where this one has {type(found).__name__}")
    return found


# ---------------------------------------------------------------- proving
def prove_entry(
    logged: LogEntry, leaves: Sequence[bytes], checkpoint: SignedCheckpoint
) -> InclusionProof:
    """Return the proof that the log of `checkpoint` has this entry, which puts or binds something.

    `leaves` are the leaf hashes of the entries that were signed.
    `ProofError` if it doesn't: a proof that would fail is never given out.
    """
    claim, encoded, index = checkpoint.checkpoint, encode(logged.entry), logged.position - 1
    if not isinstance(logged.entry, Put | Bind):
        raise ProofError(f"entry {logged.position} puts no content and binds no name")
    path = prove_inclusion(leaves, index)
    verify_inclusion(leaf_hash(leaf(logged.time, encoded)), index, claim.size, path, claim.root)
    return InclusionProof(logged.position, logged.time, encoded, path, checkpoint)


def log_root(store: ArtifactStore, size: int) -> bytes:
    """Return the root of the tree of a log's first `size` entries; nothing of it is kept.

    `FuturePositionError` if the log is shorter.
    """
    return root_of(log_leaves(store, size))


def log_leaves(store: ArtifactStore, size: int) -> Iterator[bytes]:
    check_size(size, smallest=0)
    for time, records in store.records(size):
        yield from leaf_hashes(map(leaf(time, b"").__add__, records))


class Prover:
    """Shows to others, who have no more than the public key, what a log holds."""

    def __init__(self, store: ArtifactStore, key: SigningKey) -> None:
        self._store = store
        self._key = key

    def checkpoint(self, state: IndexState | None = None) -> SignedCheckpoint:
        """Sign that the log, up to a state, is what it is."""
        snapshot, position = self._store.last_commit(state)
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

    def _proof(self, logged: LogEntry, state: IndexState | None) -> InclusionProof:
        checkpoint = self.checkpoint(state)
        leaves = list(log_leaves(self._store, checkpoint.checkpoint.size))
        return prove_entry(logged, leaves, checkpoint)

    def _entry(self, position: int) -> LogEntry:
        for logged in self._store.log(after=position - 1):
            return logged
        raise ProofError(f"the log has no entry {position}. Fix: name one that it has.")
