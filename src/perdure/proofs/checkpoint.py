"""What the owner of a log vouches for: so many entries, with this root, up to that time.

    perdure/5f0c…             whose log it is
    20852163                   how many entries
    CsUYapGGPo4dkMgIAUqo…      their root
    time 1767225600000         of the last entry, in ms
    snapshot 7                 the last one that had been taken

    — perdure/5f0c… Az3grl…   who signed the lines above

It is a signed note (C2SP signed-note) of the form that transparency logs share (C2SP
tlog-checkpoint), so their tools and witnesses can read and countersign it. Size and root are signed
together: a root alone would not fix the size.
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
    """That the key of this name and id signed a text, if it holds."""

    name: str
    key_id: bytes
    signature: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.key_id) != KEY_ID_BYTES or not self.signature:
            raise ProofError("a signature is bytes, after a key's id of four")


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A text, and who says to have signed it; to be ignored until `verify` returned."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def __post_init__(self) -> None:
        if not self.text.endswith("\n") or _CONTROLS.search(self.text):
            raise ProofError("the text of a note is whole lines, without control characters")
        if not 1 <= len(self.signatures) <= _MOST_SIGNATURES:
            raise ProofError(f"a note has 1 to {_MOST_SIGNATURES} signatures")

    @classmethod
    def sign(cls, text: str, key: SigningKey) -> "SignedNote":
        signature = key.sign(_encoded(text))
        return cls(text, (NoteSignature(key.name, key.public.id, signature),))

    @classmethod
    def from_text(cls, text: str) -> "SignedNote":
        """Read what `to_text` gives; anything else is `ProofError`."""
        if len(text) > LONGEST_NOTE:
            raise ProofError(f"a note has at most {LONGEST_NOTE} characters")
        body, blank, below = text.rpartition("\n\n")
        if not blank or not below.endswith("\n"):
            raise ProofError("a note is a text, a blank line and lines with signatures")
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
        """Return only if `key` signed the text. Signatures of other keys count for nothing."""
        of_key = [
            each for each in self.signatures if (each.name, each.key_id) == (key.name, key.id)
        ]
        if not of_key:
            raise ProofError(
                f"it is not signed by {key.name!a} with the key {key.id.hex()}. Fix: ask its "
                "owner for the public key."
            )
        for each in of_key:
            key.verify(_encoded(self.text), each.signature)


def _signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise ProofError("a line with a signature is a dash, a name and base64")
    data = from_base64(encoded)
    return NoteSignature(name, data[:KEY_ID_BYTES], data[KEY_ID_BYTES:])


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ProofError("a text in it holds half a character") from error


# ---------------------------------------------------------------- checkpoints
def origin_of(history: bytes) -> str:
    """Return how checkpoints name a history."""
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
            raise ProofError(f"{self.origin[:80]!a} names no history")
        check_size(self.size, smallest=0)
        if type(self.root) is not bytes or len(self.root) != HASH_BYTES:
            raise ProofError(f"a root has {HASH_BYTES} bytes")
        if not {type(self.time), type(self.snapshot)} <= {int}:
            raise ProofError("a time and a snapshot are numbers")
        if self.time not in _NUMBERS or self.snapshot not in _NUMBERS:
            raise ProofError("a time and a snapshot fit into 64 bits")
        if self.size == 0 and (self.root != EMPTY_ROOT or self.time):
            raise ProofError("a log without entries has the root of the empty tree, and no time")

    @classmethod
    def from_body(cls, body: str) -> "Checkpoint":
        """Read what `body` gives; anything else is `ProofError`."""
        found = _BODY.fullmatch(body)
        if found is None:
            raise ProofError(
                "this is no checkpoint of a history, or one of a later version. Fix: copy it whole."
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
    """A checkpoint, and who says to have signed it."""

    checkpoint: Checkpoint
    """To be ignored until `verify` returned it."""
    signatures: tuple[NoteSignature, ...]

    @classmethod
    def from_text(cls, text: str) -> "SignedCheckpoint":
        """Read what `to_text` gives; anything else is `ProofError`."""
        note = SignedNote.from_text(text)
        return cls(Checkpoint.from_body(note.text), note.signatures)

    def to_text(self) -> str:
        return self._note().to_text()

    def verify(self, key: PublicKey) -> Checkpoint:
        """Return what was signed, and only if `key` signed it."""
        self._note().verify(key)
        return self.checkpoint

    def _note(self) -> SignedNote:
        return SignedNote(self.checkpoint.body(), self.signatures)
