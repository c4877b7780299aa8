"""What was erased, signed by who did it, so that others can check it.

A receipt is a JSON object of two texts: what is said, as JSON with its names in order, and a signed
note (C2SP signed-note) over the history and the digest of what is said.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.artifacts.entry import Put, Sweep
from perdure.dataclass import dataclass
from perdure.errors import InvalidCIDError, ProofError
from perdure.model.values import JSON
from perdure.proofs.checkpoint import Note, SignedCheckpoint, origin_of
from perdure.proofs.keys import PublicKey, SigningKey
from perdure.proofs.proof import Prover, log_root
from perdure.storage.history import History

FORMAT = "perdure erasure 1"
_LONGEST = 1 << 28


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Says what was erased; to be ignored until `verify` returned."""

    statement: str
    note: Note

    @classmethod
    def signed(
        cls, said: Mapping[str, JSON], history: History, key: SigningKey
    ) -> "ErasureReceipt":
        """Sign what is said, and up to where the log had grown by then."""
        checkpoint = Prover(history.store, key).checkpoint()
        told = {**said, "checkpoint": checkpoint.to_text()}
        text = json.dumps(told, sort_keys=True, ensure_ascii=True, indent=1)
        return cls(text, Note.sign(_signed_text(text, history.store.history), key))

    @classmethod
    def from_text(cls, text: str) -> "ErasureReceipt":
        """Read what `to_text` gives; anything else is `ProofError`."""
        try:
            read = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError) as error:
            raise _malformed() from error
        match read:
            case {"said": str(said), "note": str(note), **more} if not more:
                return cls(said, Note.from_text(note))
        raise _malformed()

    def to_text(self) -> str:
        return json.dumps({"said": self.statement, "note": self.note.to_text()}, indent=1) + "\n"

    def verify(self, key: PublicKey) -> Mapping[str, JSON]:
        """Return what is said, if the owner of the key signed it."""
        self.note.verify(key)
        try:
            said = json.loads(self.statement)
            history = bytes.fromhex(said["history"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ProofError("what is signed says nothing. Fix: none.") from error
        if self.note.text != _signed_text(self.statement, history):
            raise ProofError("what is said is not what was signed. Fix: get the receipt again.")
        told: Mapping[str, JSON] = said
        return told


def _malformed() -> ProofError:
    return ProofError("this is no receipt of an erasure. Fix: copy it whole.")


def _signed_text(said: str, history: bytes) -> str:
    digest = sha256(said.encode(errors="surrogatepass")).hexdigest()
    return f"{FORMAT}\n{origin_of(history)}\n{digest}\n"


# ---------------------------------------------------------------- those that are kept
def erased_versions(folder: Path, history: bytes) -> set[int]:
    """Return the positions of versions that were erased, also if others still had their contents.

    Content may come back, and then they are not among those who have it. What is no receipt says
    nothing: then more is kept, and told of.
    """
    return {
        position
        for path in sorted(folder.glob("*.json"))
        for position in _erased_versions(path, history.hex())
    }


def _erased_versions(path: Path, history: str) -> Iterator[int]:
    try:
        said = json.loads(ErasureReceipt.from_text(path.read_text()).statement)
    except (OSError, ValueError, RecursionError, ProofError):
        return
    if not isinstance(said, dict) or said.get("history") != history:
        return
    for told in (said.get("versions"), said.get("withheld")):
        for each in told if isinstance(told, list) else ():
            match each:
                case {"position": int(position)}:
                    yield position


# ---------------------------------------------------------------- against a history
class ReceiptCheck(NamedTuple):
    facts: Mapping[str, JSON]
    differences: tuple[str, ...]


def check_receipt(text: str, history: History, key: PublicKey) -> ReceiptCheck:
    said = ErasureReceipt.from_text(text).verify(key)
    return ReceiptCheck(said, tuple(differences(said, history, key)))


def differences(said: Mapping[str, JSON], history: History, key: PublicKey) -> Iterator[str]:
    """Yield what a history has otherwise than a receipt says that its key has signed."""
    store = history.store
    if said.get("history") != store.history.hex():
        yield "it is of another history than this one"
        return
    signed = SignedCheckpoint.from_text(str(said.get("checkpoint")))
    claim = signed.verify(key)
    if store.current().position < claim.size:
        yield f"the log ends before entry {claim.size}, at which it was signed"
        return
    if log_root(store, claim.size) != claim.root:
        yield f"the log up to entry {claim.size} is not the one that was signed"
        return
    contents = _contents(said)
    yield from _still_there(contents, history, claim.size)
    for cid in sorted(store.with_bytes_left(contents, claim.size)):
        yield f"{cid} has bytes left in the segments of the history"


def _contents(said: Mapping[str, JSON]) -> set[CID]:
    told = said.get("contents")
    try:
        return {CID.parse(str(each)) for each in told} if isinstance(told, list) else set()
    except InvalidCIDError as error:
        raise ProofError(f"the receipt names what is no content: {error}") from error


def _still_there(contents: set[CID], history: History, size: int) -> Iterator[str]:
    """Yield the contents that are there, or that the log does not say to be gone."""
    gone: set[CID] = set()
    again: dict[CID, int] = {}
    for logged in history.store.log():
        match logged.entry:
            case Sweep(_, cids) if logged.position <= size:
                gone.update(contents.intersection(cids))
            case Put(cid) if cid in contents:
                gone.discard(cid)
                if logged.position > size:
                    again[cid] = logged.position
    for cid in sorted(contents):
        if cid in again:
            if history.store.is_kept(cid):
                yield f"{cid} was saved again at entry {again[cid]}, after it was erased"
        elif cid not in gone or history.store.is_kept(cid):
            yield f"{cid} is not erased"
