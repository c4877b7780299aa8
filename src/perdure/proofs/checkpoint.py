"""Signed checkpoints: the size, root and time of a log, signed by its owner.

    perdure/5f0c…              the id of the history
    20852163                   the number of entries
    CsUYapGGPo4dkMgIAUqo…      the root of their tree
    time 1767225600000         of the last entry, in ms
    snapshot 7                 the last one

    — perdure/5f0c… Az3grl…    a signature of the lines above

It is a signed note (C2SP signed-note) in the format of transparency logs (C2SP tlog-checkpoint), so
that their tools and witnesses can read and countersign it. Size and root are signed together: a
root alone does not fix the size.
"""

import re

from perdure.artifacts.merkle import EMPTY_ROOT, HASH_BYTES, check_size
from perdure.dataclass import dataclass
from perdure.errors import ProofError
from perdure.proofs.signing_keys import (
    KEY_ID_BYTES,
    PublicKey,
    SigningKey,
    check_name,
    from_base64,
    to_base64,
)

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
