"""Proofs that stand alone: who has the owner's public key can check them, with nothing else.

A proof of inclusion shows that content was put, or that a name was bound to it, at a position and a
time of a log. It shows that the log had this, not that it still holds: a later tombstone, or a
later binding of the name, is another entry, and no path can show that there is none.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.artifacts import merkle
from perdure.artifacts.checkpoint import SignedCheckpoint
from perdure.artifacts.cid import CID
from perdure.artifacts.entry import Bind, Put, decode_all, encode
from perdure.artifacts.keys import PublicKey, from_base64, to_base64
from perdure.artifacts.merkle import Reader, leaf, leaf_hash
from perdure.artifacts.state import Logged
from perdure.errors import DamageError, ProofError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        fields = _Fields(text, _INCLUSION, _INCLUSION_FIELDS)
        proof = cls(
            fields.number("position"),
            fields.number("time"),
            from_base64(fields.text("entry")),
            fields.hashes("path"),
            SignedCheckpoint.from_text(fields.text("checkpoint")),
        )
        _check_as_written(proof, text)
        return proof

    def to_text(self) -> str:
        return _written(
            _INCLUSION,
            position=self.position,
            time=self.time,
            entry=to_base64(self.entry),
            path=[*map(to_base64, self.path)],
            checkpoint=self.checkpoint.to_text(),
        )


# ---------------------------------------------------------------- checking
@dataclass(frozen=True, slots=True)
class Proven:
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


def verify_proof(proof: InclusionProof, public_key: PublicKey, cid: CID | None = None) -> Proven:
    """Return what the proof shows, and only if `public_key` vouches for it; `ProofError` if not.

    With a `cid`, only if it is about this content. Nothing is shown about what came later.
    """
    checkpoint = proof.checkpoint.verify(public_key)
    hashed = leaf_hash(leaf(proof.time, proof.entry))
    index = proof.position - 1
    merkle.verify_inclusion(hashed, index, checkpoint.size, proof.path, checkpoint.root)
    if proof.time > checkpoint.time:
        raise ProofError("the entry is later than the last one, by what the checkpoint says")
    entry = _decoded(proof.entry)
    if cid is not None and entry.cid != cid:
        raise ProofError(f"the proof is about {entry.cid}, not {cid}. Fix: ask for another one.")
    return Proven(entry, proof.position, proof.time, checkpoint.size, checkpoint.origin)


def _decoded(encoded: bytes) -> Put | Bind:
    try:
        entries = decode_all(encoded)
    except DamageError as error:
        raise ProofError(f"the log has this entry, but it can't be read: {error}") from error
    if len(entries) != 1 or not isinstance(entries[0], Put | Bind):
        raise ProofError("the log has this entry, but it puts no content and binds no name")
    return entries[0]


# ---------------------------------------------------------------- proving
def prove_entry(logged: Logged, reader: Reader, checkpoint: SignedCheckpoint) -> InclusionProof:
    """Return the proof that the log of `checkpoint` has this entry, which puts or binds something.

    `reader` reads the tree of the entries that were signed.
    `ProofError` if it doesn't: a proof that would fail is never given out.
    """
    claim, encoded, index = checkpoint.claim, encode(logged.entry), logged.position - 1
    if not isinstance(logged.entry, Put | Bind):
        raise ProofError(f"entry {logged.position} puts no content and binds no name")
    path = merkle.prove_inclusion(reader, index, claim.size)
    hashed = leaf_hash(leaf(logged.time, encoded))
    merkle.verify_inclusion(hashed, index, claim.size, path, claim.root)
    return InclusionProof(logged.position, logged.time, encoded, path, checkpoint)


# ---------------------------------------------------------------- text
def _written(form: str, **fields: object) -> str:
    return json.dumps({"format": form, **fields}, indent=2, sort_keys=True) + "\n"


class _Fields:
    """The fields of a proof's text, each of the kind that is asked for."""

    def __init__(self, text: str, form: str, names: frozenset[str]) -> None:
        if len(text) > LONGEST_TEXT:
            raise ProofError(f"a proof has at most {LONGEST_TEXT} characters")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProofError("a proof is JSON, and this is not. Fix: copy it whole.") from error
        if not isinstance(found, dict) or found.get("format") != form:
            raise ProofError(f"this is no proof of the form {form!r}, which is the one known here")
        if found.keys() != names | {"format"}:
            raise ProofError(f"a proof of the form {form!r} has the fields {sorted(names)}")
        self._fields: Mapping[str, object] = found

    def text(self, name: str) -> str:
        return _text(self._fields[name])

    def number(self, name: str) -> int:
        found = self._fields[name]
        if type(found) is not int:
            raise ProofError(f"the field {name!r} of a proof is a number")
        return found

    def hashes(self, name: str) -> tuple[bytes, ...]:
        found = self._fields[name]
        if not isinstance(found, list) or len(found) > _LONGEST_PATH:
            raise ProofError(f"the field {name!r} of a proof is a list of few hashes")
        return tuple(from_base64(_text(each)) for each in found)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise ProofError(f"a proof has text where this one has {type(found).__name__}")
    return found


def _check_as_written(proof: InclusionProof, text: str) -> None:
    if proof.to_text() != text:
        raise ProofError("the proof is not written in its one form. Fix: copy it byte for byte.")
