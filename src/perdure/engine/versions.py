"""Every version of every text of a memory: read, compare, restore, verify and prove them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.artifacts import CID, Hash, IndexState, lines
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.entry import Lift, Put, Sweep, Tombstone
from perdure.artifacts.recent_names import CATALOGUE
from perdure.artifacts.verification import HistoryFault, Report, verify
from perdure.context.node_files import CONTENT
from perdure.context.notes import NotesLayout
from perdure.dataclass import dataclass, replace
from perdure.errors import (
    AbsentError,
    ContextError,
    DamageError,
    InvalidCIDError,
    InvalidValueError,
    NotTextError,
    ProofError,
    StorageError,
    StorageSelectionError,
    StorageUnavailableError,
)
from perdure.model import RequestContext
from perdure.model.request import place_named, text_named
from perdure.proofs.proof import InclusionProof, ProvenEntry, Prover, verify_proof
from perdure.proofs.signing_keys import PublicKey, SigningKey
from perdure.sqlite import open_read_only
from perdure.storage import ABSENT, Locator, content_hash
from perdure.storage.changes import Expectation
from perdure.storage.reconciliation import EditReport, record_edits
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import BlamedLine, Event, History, Version

if TYPE_CHECKING:
    from perdure.artifacts.log import Cut
    from perdure.engine.past import When

_BOUND_TO = """SELECT folders.name || binds.name, position, (SELECT count(*) FROM binds AS earlier
        WHERE earlier.folder = binds.folder AND earlier.name = binds.name
            AND earlier.position <= binds.position)
    FROM binds JOIN folders ON id = folder WHERE cid = ? ORDER BY 1, position"""


class TextDiff(NamedTuple):
    old: Version | None
    """None if `new` is the first version."""
    new: Version
    diff: str
    """A unified diff; empty if both have the same text."""


class RestoredVersion(NamedTuple):
    version: Version
    source: Version
    written: bool
    """False if the newest version had that text already."""


class DamagedVersion(NamedTuple):
    key: str
    position: int
    version: int


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The state of every byte of the log."""

    folder: Path
    report: Report
    refusal: str
    """Why the log can't be opened; empty if it can."""
    cuts: Sequence["Cut"]
    """Commits that were never finished and were cut off."""
    damaged: Mapping[CID, Sequence[DamagedVersion]]

    @property
    def ok(self) -> bool:
        return self.report.ok and not self.refusal

    def versions_of(self, fault: HistoryFault) -> Sequence[DamagedVersion]:
        return self.damaged.get(fault.cid, ()) if fault.cid is not None else ()


@dataclass(frozen=True, slots=True)
class Proof:
    """A signed proof, what it proves, and the public key that verifies it."""

    text: str
    proven: ProvenEntry
    public_key: str


@dataclass(frozen=True, slots=True)
class Garbage:
    """Content under a tombstone that no retained state shows."""

    horizon: int
    """The first position whose state is retained afterwards."""
    time: int | None
    """Its time in milliseconds; None if every state that is retained now stays retained."""
    cids: tuple[CID, ...]
    size: int

    @property
    def is_empty(self) -> bool:
        return self.time is None and not self.cids


class VersionLog:
    """The log of all accounts of one memory, for its owner.

    A text is named by its key, the path in the memory (`notes/plan.md`); a version by its number
    or by the CID of its content. The log can be read without the texts, and verified when it can't
    be opened.
    """

    def __init__(
        self,
        folder: Path,
        *,
        actor: str,
        signing_key: Callable[[], SigningKey],
        recorded: Recorded | None = None,
        refusal: StorageSelectionError | None = None,
    ) -> None:
        self.refusal = refusal
        """Why the texts are not available; None if they are."""
        self._folder = folder
        self._actor = actor
        self._signing_key = signing_key
        self._recorded = recorded
        self._unreadable: frozenset[Locator] = frozenset()
        self._caller: RequestContext | None = None

    @cached_property
    def _history(self) -> History:
        """Opened when it is first read, so that a damaged log can be verified."""
        texts = self._recorded
        return History.open(str(self._folder)) if texts is None else texts.history

    def close(self) -> None:
        """Close the log if it was opened without texts; else it is closed with them."""
        if self._recorded is None and "_history" in vars(self):
            self._history.close()

    def record_edits(self) -> EditReport:
        if self._recorded is None:
            raise self.refusal or _without_texts("edits can't be found")
        found = record_edits(self._recorded)
        self._unreadable = frozenset(found.unreadable)
        return found

    # ------------------------------------------------------------ versions
    def entries(
        self, key: str | None = None, *, after: int | None = None, limit: int | None = None
    ) -> Iterator[Event]:
        """Return the events, oldest first; with a key, the versions of that text.

        `after` is a position, or the number of a version. `limit` keeps the last entries or, with
        `after`, the first ones after it.
        """
        found: Iterable[Event] = (
            self._history.changes(after or 0) if key is None else self.versions(key)[after or 0 :]
        )
        if limit is not None:
            found = deque(found, limit) if after is None else islice(found, limit)
        return iter(found)

    def find(self, name: str, ctx: RequestContext) -> str:
        """Return the key of a text by its key, the path of its note, or the name of its node."""
        self._caller = ctx
        found = self._keys(name, ctx)
        return next((key for key in found if self._history.versions(Locator(key))), name)

    def _keys(self, name: str, ctx: RequestContext) -> Iterator[str]:
        with suppress(InvalidValueError):
            yield Locator(name).key
        layout = self._recorded.inner if self._recorded else None
        if isinstance(layout, NotesLayout):
            name = name.removeprefix(f"{layout.identity}/")
            yield f"{layout.place_at(name.removeprefix('resources/'))}/{CONTENT}"
        for each in (name, f"resources/{name}"):
            for called in (each, each.removesuffix(".md")):
                with suppress(ContextError, InvalidValueError):
                    yield f"{place_named(called, ctx).key}/{CONTENT}"

    def versions(self, key: str) -> list[Version]:
        """Return the versions of a text, oldest first; `AbsentError` if it never had any."""
        found = self._history.versions(Locator(key))
        if not found:
            raise AbsentError(f"{key!a} has no history. Fix: {self._advice(Locator(key))}.")
        return found

    def file_of(self, key: str) -> tuple[str, str]:
        """Return the folder of the store, and the path in it of the file that has a text."""
        if self._recorded is None:
            raise self.refusal or _without_texts(f"{key!a} has no file")
        inner = self._recorded.inner
        path = (
            inner.path_of(Locator(key).key) if isinstance(inner, NotesLayout) else Locator(key).key
        )
        return str(self._recorded.identity), path

    def text_in(self, path: str, real: str, key: str) -> str | None:
        """Return the text of a key, if the file at a path had the content `real`."""
        inner = None if self._recorded is None else self._recorded.inner
        if not isinstance(inner, NotesLayout):
            return real
        return inner.held(path, real).get(Locator(key))

    def version(
        self, key: str, which: int | CID | str | None = None, *, at: "When | None" = None
    ) -> Version:
        """Return a version of a text: by number or CID, as of a time, or the last one."""
        versions = self.versions(key)
        if which is not None:
            return self._chosen(key, which)
        if at is not None:
            position = self._state(at).position
            versions = [each for each in versions if each.commit <= position]
        if not versions:
            raise AbsentError(
                f"{key!a} did not exist at that time. Fix: `perdure history log {key}` shows "
                "when it was created."
            )
        return versions[-1]

    def text(self, version: Version) -> str:
        """Return the text of a version; `AbsentError` if it had none, or it was erased."""
        return self._history.text(version)

    def diff(
        self, key: str, old: int | CID | str | None = None, new: int | CID | str | None = None
    ) -> TextDiff:
        """Return what changed in a text, up to the last version and from the one before it."""
        versions = self.versions(key)
        last = versions[-1] if new is None else self._chosen(key, new)
        if old is not None:
            first = self._chosen(key, old)
        elif last.number > 1:
            first = versions[last.number - 2]
        else:
            text = "" if last.unbound else self._history.text(last)
            name = f"{last.key}\tversion {last.number}"
            whole = lines.diff("", text, old_name="/dev/null", new_name=name)
            return TextDiff(None, last, whole)
        return TextDiff(first, last, self._history.diff(Locator(last.key), first, last))

    def blame(self, key: str) -> list[BlamedLine]:
        last = self.versions(key)[-1]
        if last.unbound:
            raise AbsentError(
                f"{key!a} was removed by version {last.number}, so it has no lines. Fix: `perdure "
                f"history restore {key} {max(1, last.number - 1)}` brings it back."
            )
        return self._history.blame(Locator(key))

    def restore(
        self, key: str, version: int | CID | str, *, reason: str | None = None, force: bool = False
    ) -> RestoredVersion:
        """Write the text of a version as the newest version of its key.

        If the file is not what the log has, nothing is written, unless `force`.
        """
        locator, last = Locator(key), self.versions(key)[-1]
        if locator in self._unreadable and not force:
            raise NotTextError(
                f"{key!a} is not text any more, and its content would be lost. Nothing was "
                "written. Fix: look at the file",
                options={"force": True},
            )
        chosen = self._chosen(key, version)
        if self._recorded is None:
            raise _without_texts(f"{key!a} can't be written")
        why = f"as in version {chosen.number}" if reason is None else reason
        written = self._recorded.because(actor=self._actor, reason=why).restore(
            locator, chosen, expect=None if force else self._expected(last)
        )
        return RestoredVersion(written, chosen, written.number != last.number)

    def _chosen(self, key: str, which: int | CID | str) -> Version:
        named = CID.parse(which) if isinstance(which, str) else which
        return self._history.version(Locator(key), named)

    def _expected(self, last: Version) -> Expectation:
        """Return the hash that the file should have, also if the text was erased."""
        if last.cid is None:
            return ABSENT
        is_sha256 = last.cid.hash is Hash.SHA2_256
        return last.cid.digest.hex() if is_sha256 else content_hash(self._history.text(last))

    def _state(self, when: "When") -> IndexState:
        from perdure.engine.past import state_of  # noqa: PLC0415 - it imports all of recall

        return state_of(self._history, when)

    def _advice(self, locator: Locator) -> str:
        if locator in self._unreadable:
            return "none; it is not UTF-8 text or not readable, and only texts have a history"
        names = self._history.store.catalogue.names("", self._history.position())
        if not locator.key or any(name.startswith(f"{locator.key}/") for name in names):
            return "it is a folder; name a text in it"
        known = [text_named(name, self._caller) if self._caller else name for name in names]
        same_end = [name for name in known if name.endswith(f"/{locator.key}")]
        if like := same_end or get_close_matches(locator.key, known, 1):
            return f"try {like[0]!a}"
        return "run `perdure history log` to see which keys do"

    # ------------------------------------------------------------ proofs
    def prove(self, what: str, version: int | None = None, *, at: "When | None" = None) -> Proof:
        """Prove that a key had its text, or that a CID was stored, in the log now or at a time."""
        key = self._signing_key()
        prover = Prover(self._history.store, key)
        state = None if at is None else self._state(at)
        cid = _cid(what)
        if cid is None:
            proof = prover.prove_position(self._position(what, version, state), state)
        else:
            proof = prover.prove(cid, state)
        return Proof(proof.to_text(), verify_proof(proof, key.public), str(key.public))

    def _position(self, key: str, number: int | None, state: IndexState | None) -> int:
        versions = self._history.versions(Locator(key), state)
        if not versions:
            raise AbsentError(
                f"{key!a} has no history, or had none then. Fix: `perdure history log` lists the "
                "keys; it also records files that were written outside Perdure."
            )
        return (versions[-1] if number is None else self._chosen(key, number)).position

    # ------------------------------------------------------------ upkeep
    def verify(self, progress: Callable[[int, int], None] | None = None) -> VerificationReport:
        """Read every byte, and return what is damaged, also if the log can't be opened."""
        cuts: Sequence[Cut] = ()
        try:
            report, refusal = self._history.store.verify(progress), ""
            self._history.position()  # so that the catalogue knows all names
            cuts = self._history.store.cuts
        except DamageError as damage:
            report, refusal = verify(FolderDisk(self._folder), progress=progress), str(damage)
        damaged = _damaged(self._folder / CATALOGUE, report.faults)
        return VerificationReport(self._folder, report, refusal, cuts, damaged)

    def plan_gc(self, before: "When | None" = None) -> Garbage:
        """Return what `gc` would erase; with `before`, if earlier states are not retained."""
        hidden, now = self._hidden()
        horizon = now if before is None else self._state(before).position
        cids = tuple(sorted(cid for cid, since in hidden.items() if since <= horizon))
        time = self._history.store.catalogue.commit_at(horizon)[1] if horizon > now else None
        return Garbage(horizon, time, cids, sum(self._sizes(frozenset(cids))))

    def gc(self, plan: Garbage) -> Garbage:
        """Erase content permanently, as planned; return what was erased."""
        done = self._history.store.gc(plan.horizon)
        return replace(plan, horizon=done.horizon, cids=done.cids, size=done.size)

    def _hidden(self) -> tuple[dict[CID, int], int]:
        """Return contents under tombstones with their commits, and the first retained position."""
        hidden: dict[CID, int] = {}
        horizon = 0
        for logged in self._history.store.log():
            match logged.entry:
                case Tombstone(cid, _):
                    hidden[cid] = logged.commit
                case Lift(cid):
                    hidden.pop(cid, None)
                case Sweep(horizon, cids):
                    for cid in cids:
                        hidden.pop(cid, None)
        return hidden, horizon

    def _sizes(self, cids: frozenset[CID]) -> Iterable[int]:
        entries = (logged.entry for logged in self._history.store.log()) if cids else ()
        puts = (entry for entry in entries if isinstance(entry, Put) and entry.cid in cids)
        return {put.cid: put.length for put in puts}.values()


def check_proof(text: str, key: str, what: str | None = None) -> ProvenEntry:
    """Return what a proof shows; raise `ProofError` if the owner of `key` did not sign it.

    With `what`, a key or CID, the proof must be about that. No memory is needed.
    """
    cid = None if what is None else _cid(what)
    proven = verify_proof(InclusionProof.from_text(text), PublicKey.parse(key.strip()), cid)
    if what is not None and cid is None and proven.name != Locator(what).key:
        about = f"the content {proven.cid}" if proven.name is None else f"{proven.name!a}"
        raise ProofError(f"the proof is about {about}, not {what!a}. Fix: ask for another one.")
    return proven


def _cid(what: str) -> CID | None:
    try:
        return CID.parse(what)
    except InvalidCIDError:
        return None


def _damaged(catalogue: Path, faults: Iterable[HistoryFault]) -> dict[CID, list[DamagedVersion]]:
    cids = {fault.cid for fault in faults if fault.cid is not None}
    if not cids:
        return {}
    try:
        with open_read_only(catalogue) as database:
            rows = {cid: database.execute(_BOUND_TO, (bytes(cid),)) for cid in cids}
            return {cid: [DamagedVersion(*row) for row in found] for cid, found in rows.items()}
    except StorageError:  # the catalogue is derived, and may be missing or damaged
        return {}


def _without_texts(what: str) -> StorageUnavailableError:
    return StorageUnavailableError(
        f"{what} while the texts are not available. Fix: mount the memory, and try again."
    )
