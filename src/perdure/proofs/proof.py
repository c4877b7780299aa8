"""Signed checkpoints of a log, and inclusion proofs that need nothing but the owner's public key.

A checkpoint is the size, root and time of a log, signed by its owner:

    perdure/5f0c…              the id of the history
    20852163                   the number of entries
    CsUYapGGPo4dkMgIAUqo…      the root of their tree
    time 1767225600000         of the last entry, in ms
    snapshot 7                 the last one

    — perdure/5f0c… Az3grl…    a signature of the lines above

It is a signed note (C2SP signed-note) in the format of transparency logs (C2SP tlog-checkpoint), so
that their tools and witnesses can read and countersign it. Size and root are signed together: a
root alone does not fix the size.

A proof shows that content was put, or a name bound to it, at a position and time of a log. It does
not show that this is still so: a later tombstone, or a later binding of the name, is another entry,
and no proof can show that there is none.
"""

import json
import re
from collections.abc import Iterator, Sequence

from perdure.artifacts.artifact_store import ArtifactStore
from perdure.artifacts.cid import CID
from perdure.artifacts.entry import Bind, IndexState, LogEntry, Put, decode_all, encode
from perdure.artifacts.merkle import (
    EMPTY_ROOT,
    HASH_BYTES,
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
from perdure.proofs.signing_keys import (
    KEY_ID_BYTES,
    PublicKey,
    SigningKey,
    check_name,
    from_base64,
    to_base64,
)

# ---------------------------------------------------------------- checkpoints
LONGEST_NOTE = 1 << 17

_MOST_SIGNATURES = 16
_DASH = "\N{EM DASH} "
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f]")
_ORIGIN = re.compile("perdure/(?:[0-9a-f]{2}){1,64}")
_NUMBER = "(0|[1-9][0-9]{0,19})"
_BODY = re.compile(f"([^\n]+)\n{_NUMBER}\n([^\n]+)\ntime {_NUMBER}\nsnapshot {_NUMBER}\n")
_NUMBERS = range(1 << 64)


# ---------------------------------------------------------------- notes
@dataclass(frozen=True, slots=True)
class NoteSignature:
    """An unverified signature of a text by the key of this name and id."""

    name: str
    key_id: bytes
    signature: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.key_id) != KEY_ID_BYTES or not self.signature:
            raise ProofError("a signature must have a key id of four bytes, and more bytes")


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A text with signatures, not to be trusted before `verify` returns."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def __post_init__(self) -> None:
        if not self.text.endswith("\n") or _CONTROLS.search(self.text):
            raise ProofError("the text of a note must be whole lines, without control characters")
        if not 1 <= len(self.signatures) <= _MOST_SIGNATURES:
            raise ProofError(f"a note has 1 to {_MOST_SIGNATURES} signatures")

    @classmethod
    def sign(cls, text: str, key: SigningKey) -> "SignedNote":
        signature = key.sign(_encoded(text))
        return cls(text, (NoteSignature(key.name, key.public.id, signature),))

    @classmethod
    def from_text(cls, text: str) -> "SignedNote":
        """Parse the form that `to_text` returns; `ProofError` for any other text."""
        if len(text) > LONGEST_NOTE:
            raise ProofError(f"a note has at most {LONGEST_NOTE} characters")
        body, blank, below = text.rpartition("\n\n")
        if not blank or not below.endswith("\n"):
            raise ProofError("a note must be a text, a blank line and lines with signatures")
        lines = below.removesuffix("\n").split("\n")
        if len(lines) > _MOST_SIGNATURES:
            raise ProofError(f"a note has at most {_MOST_SIGNATURES} signatures")
        return cls(body + "\n", tuple(map(_signature, lines)))

    def to_text(self) -> str:
        signed = (
            f"{_DASH}{each.name} {to_base64(each.key_id + each.signature)}\n"
            for each in self.signatures
        )
        return "".join((self.text, "\n", *signed))

    def verify(self, key: PublicKey) -> None:
        """Raise `ProofError` unless `key` signed the text. Signatures of other keys are ignored."""
        of_key = [
            each for each in self.signatures if (each.name, each.key_id) == (key.name, key.id)
        ]
        if not of_key:
            raise ProofError(
                f"it is not signed by {key.name!a} with the key {key.id.hex()}. Fix: get the "
                "public key from its owner."
            )
        for each in of_key:
            key.verify(_encoded(self.text), each.signature)


def _signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise ProofError("a line with a signature must be a dash, a name and base64")
    data = from_base64(encoded)
    return NoteSignature(name, data[:KEY_ID_BYTES], data[KEY_ID_BYTES:])


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ProofError("a text in it has a lone surrogate") from error


# ---------------------------------------------------------------- checkpoints
def origin_of(history: bytes) -> str:
    """Return the origin line of a history's checkpoints."""
    return f"perdure/{history.hex()}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The first `size` entries of a log have this root."""

    origin: str
    size: int
    root: bytes
    time: int
    """Of the last entry, in milliseconds since the epoch; 0 if there is none."""
    snapshot: int

    def __post_init__(self) -> None:
        if not _ORIGIN.fullmatch(self.origin):
            raise ProofError(f"{self.origin[:80]!a} is not the origin of a history")
        check_size(self.size, smallest=0)
        if type(self.root) is not bytes or len(self.root) != HASH_BYTES:
            raise ProofError(f"a root must have {HASH_BYTES} bytes")
        if not {type(self.time), type(self.snapshot)} <= {int}:
            raise ProofError("time and snapshot must be integers")
        if self.time not in _NUMBERS or self.snapshot not in _NUMBERS:
            raise ProofError("time and snapshot must fit into 64 bits")
        if self.size == 0 and (self.root != EMPTY_ROOT or self.time):
            raise ProofError("an empty log must have the root of the empty tree, and time 0")

    @classmethod
    def from_body(cls, body: str) -> "Checkpoint":
        """Parse the form that `body` returns; `ProofError` for any other text."""
        found = _BODY.fullmatch(body)
        if found is None:
            raise ProofError(
                "this is not a checkpoint, or one of a later version. Fix: copy all of it."
            )
        origin, size, root, time, snapshot = found.groups()
        return cls(origin, int(size), from_base64(root), int(time), int(snapshot))

    def body(self) -> str:
        numbers = f"time {self.time}\nsnapshot {self.snapshot}\n"
        return f"{self.origin}\n{self.size}\n{to_base64(self.root)}\n{numbers}"

    def signed(self, key: SigningKey) -> "SignedCheckpoint":
        return SignedCheckpoint(self, SignedNote.sign(self.body(), key).signatures)


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with signatures."""

    checkpoint: Checkpoint
    """Not to be trusted before `verify` returns it."""
    signatures: tuple[NoteSignature, ...]

    @classmethod
    def from_text(cls, text: str) -> "SignedCheckpoint":
        """Parse the form that `to_text` returns; `ProofError` for any other text."""
        note = SignedNote.from_text(text)
        return cls(Checkpoint.from_body(note.text), note.signatures)

    def to_text(self) -> str:
        return self._note().to_text()

    def verify(self, key: PublicKey) -> Checkpoint:
        """Return the checkpoint; `ProofError` unless `key` signed it."""
        self._note().verify(key)
        return self.checkpoint

    def _note(self) -> SignedNote:
        return SignedNote(self.checkpoint.body(), self.signatures)


# ---------------------------------------------------------------- proofs
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
