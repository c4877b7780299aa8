"""The signed receipt of an erasure, which others can check.

A receipt is a JSON object of two texts: the statement, which is JSON with sorted keys, and a signed
note (C2SP signed-note) over the history and the digest of the statement.
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
from perdure.proofs.proof import Prover, SignedCheckpoint, SignedNote, log_root, origin_of
from perdure.proofs.signing_keys import PublicKey, SigningKey
from perdure.storage.text_history import History

FORMAT = "perdure erasure 1"
_MAX_LENGTH = 1 << 28


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """States what was erased. Do not trust the statement before `verify` has returned."""

    statement: str
    note: SignedNote

    @classmethod
    def signed(
        cls, facts: Mapping[str, JSON], history: History, key: SigningKey
    ) -> "ErasureReceipt":
        """Sign the facts, with a checkpoint of the log."""
        checkpoint = Prover(history.store, key).checkpoint()
        signed = {**facts, "checkpoint": checkpoint.to_text()}
        text = json.dumps(signed, sort_keys=True, ensure_ascii=True, indent=1)
        return cls(text, SignedNote.sign(_signed_text(text, history.store.history), key))

    @classmethod
    def from_text(cls, text: str) -> "ErasureReceipt":
        """Parse the result of `to_text`; raise `ProofError` for any other text."""
        try:
            read = json.loads(text) if len(text) <= _MAX_LENGTH else None
        except (ValueError, RecursionError) as error:
            raise _malformed() from error
        match read:
            case {"said": str(statement), "note": str(note), **more} if not more:
                return cls(statement, SignedNote.from_text(note))
        raise _malformed()

    def to_text(self) -> str:
        return json.dumps({"said": self.statement, "note": self.note.to_text()}, indent=1) + "\n"

    def verify(self, key: PublicKey) -> Mapping[str, JSON]:
        """Return the facts of the statement; raise `ProofError` if this key did not sign it."""
        self.note.verify(key)
        try:
            facts: Mapping[str, JSON] = json.loads(self.statement)
            history = bytes.fromhex(str(facts["history"]))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ProofError(
                "the signed statement is not that of an erasure. Fix: none."
            ) from error
        if self.note.text != _signed_text(self.statement, history):
            raise ProofError("the statement is not the signed one. Fix: get the receipt again.")
        return facts


def _malformed() -> ProofError:
    return ProofError("this is not a receipt of an erasure. Fix: copy it whole.")


def _signed_text(statement: str, history: bytes) -> str:
    digest = sha256(statement.encode(errors="surrogatepass")).hexdigest()
    return f"{FORMAT}\n{origin_of(history)}\n{digest}\n"


# ---------------------------------------------------------------- earlier receipts
def erased_versions(folder: Path, history: bytes) -> set[int]:
    """Return the positions of versions that were erased, also if their contents were shared.

    Such a version does not count as an owner of its content, if that is saved again. Files that
    are not receipts are ignored: then more contents count as shared, which a plan reports.
    """
    return {
        position
        for path in sorted(folder.glob("*.json"))
        for position in _erased_versions(path, history.hex())
    }


def _erased_versions(path: Path, history: str) -> Iterator[int]:
    try:
        facts = json.loads(ErasureReceipt.from_text(path.read_text()).statement)
    except (OSError, ValueError, RecursionError, ProofError):
        return
    if not isinstance(facts, dict) or facts.get("history") != history:
        return
    for versions in (facts.get("versions"), facts.get("withheld")):
        for each in versions if isinstance(versions, list) else ():
            match each:
                case {"position": int(position)}:
                    yield position


# ---------------------------------------------------------------- against a history
class ReceiptCheck(NamedTuple):
    facts: Mapping[str, JSON]
    differences: tuple[str, ...]


def check_receipt(text: str, history: History, key: PublicKey) -> ReceiptCheck:
    facts = ErasureReceipt.from_text(text).verify(key)
    return ReceiptCheck(facts, tuple(differences(facts, history, key)))


def differences(facts: Mapping[str, JSON], history: History, key: PublicKey) -> Iterator[str]:
    """Yield how a history differs from the facts of a signed receipt."""
    store = history.store
    if facts.get("history") != store.history.hex():
        yield "it belongs to another history"
        return
    signed = SignedCheckpoint.from_text(str(facts.get("checkpoint")))
    checkpoint = signed.verify(key)
    if store.current().position < checkpoint.size:
        yield f"the log ends before entry {checkpoint.size}, at which it was signed"
        return
    if log_root(store, checkpoint.size) != checkpoint.root:
        yield f"the log up to entry {checkpoint.size} is not the one that was signed"
        return
    contents = _contents(facts)
    yield from _still_there(contents, history, checkpoint.size)
    for cid in sorted(store.find_unerased(contents, checkpoint.size)):
        yield f"{cid} has bytes left in the segments of the history"


def _contents(facts: Mapping[str, JSON]) -> set[CID]:
    listed = facts.get("contents")
    try:
        return {CID.parse(str(each)) for each in listed} if isinstance(listed, list) else set()
    except InvalidCIDError as error:
        raise ProofError(f"the receipt contains an invalid CID: {error}") from error


def _still_there(contents: set[CID], history: History, size: int) -> Iterator[str]:
    """Yield the contents that exist, or that the log does not record as erased."""
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
            if history.store.has_bytes(cid):
                yield f"{cid} was saved again at entry {again[cid]}, after it was erased"
        elif cid not in gone or history.store.has_bytes(cid):
            yield f"{cid} is not erased"
