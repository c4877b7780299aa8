"""The plan of an erasure: the versions, contents and derived files that go, and what stays.

Other nodes that say the same stay, and the plan lists them. The task of an erasure is stored from
before its first step until after its last.
"""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from perdure import frontmatter
from perdure.artifacts import CID, ArtifactStore
from perdure.context.node_files import ABSTRACT, CONTENT, FILES, META, OVERVIEW
from perdure.context.nodes import Nodes
from perdure.context.notes import NotesLayout
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.forgotten import ForgottenList, load
from perdure.engine.hide import (
    NOTHING_HIDDEN,
    ForgetTarget,
    HiddenCounts,
    readable_node,
    sessions_of,
)
from perdure.engine.indexing.follower import folders_of
from perdure.engine.indexing.indexes import Indexes
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.engine.learn.evidence import support_of
from perdure.engine.receipt import ErasureReceipt, erased_versions
from perdure.engine.trace import (
    ErasureCutoff,
    KeySpan,
    Trace,
    spans_of,
    spans_of_sessions,
    texts_in,
    trace,
)
from perdure.errors import AccessDeniedError, InvalidUriError, NodeNotFoundError, PerdureError
from perdure.index.vectors import memo_folder
from perdure.model import ContextNode, RequestContext, Role, Uri
from perdure.model.uri import MESSAGE
from perdure.safety.validation import strings_in
from perdure.storage.recorded import Recorded
from perdure.storage.stamps import StampTable
from perdure.storage.text_history import Event, History

_ASIDE = "*-aside-*"


class DerivedFiles:
    """Everything that is derived from memories."""

    def __init__(
        self,
        recorded: Recorded,
        indexes: Indexes,
        outbox: OutboxStore,
        seen: StampTable,
    ) -> None:
        self.recorded = recorded
        self.folder = Path(recorded.history.store.disk.whereabouts)
        self._indexes = indexes
        self._outbox = outbox
        self._seen = seen

    def counts(
        self, account_id: str, owners: Iterable[str], places: Iterable[Uri]
    ) -> dict[str, int]:
        """Return how much of each kind would be erased."""
        every = list(places)
        return {
            "index records": self._indexes.count_records(account_id, map(str, every)),
            "indexes of past moments": len(list(self.folder.glob("past/*/[0-9]*"))),
            "stores of vectors": sum(map(Path.is_dir, self._memos(account_id, owners))),
            "abstracts of folders": sum(map(Path.is_file, self._abstracts(every))),
        }

    def erase(
        self, account_id: str, owners: Iterable[str], places: Iterable[Uri]
    ) -> dict[str, int]:
        """Erase all of it to the last byte, and build what other places need again.

        Memos are erased first, because rebuilding fills them; indexes last.
        """
        every, of = list(places), list(owners)
        counts = self.counts(account_id, of, every)
        for store in self._memos(account_id, of):
            if store.is_dir():
                rmtree(store)
        for abstract in self._abstracts(every):
            abstract.unlink(missing_ok=True)
        counts["events"] = self._outbox.forget_places(account_id, map(str, every))
        self._seen.discard()
        if isinstance(layout := self.recorded.inner, NotesLayout):
            layout.rename(each.key for each in every)
            layout.table.wipe()
        self._indexes.scrub(account_id)
        self._indexes.refill(account_id, of)
        return counts

    def elsewhere(self, contents: Iterable[CID]) -> list[str]:
        """Return other files that may have the same contents, and are not erased."""
        cids = list(contents)
        return [*self._other_histories(cids), *self._leftovers()]

    # ------------------------------------------------------------ files
    def _memos(self, account_id: str, owners: Iterable[str]) -> list[Path]:
        folder = self._indexes.memo_folder
        return [memo_folder(folder, account_id, owner) for owner in owners]

    def _abstracts(self, places: Iterable[Uri]) -> list[Path]:
        """Return the abstracts of these places and of the folders above them."""
        every = {folder for place in places for folder in (place, *folders_of(place))}
        names = (ABSTRACT, OVERVIEW)
        top = self.folder / "abstracts"
        return [top / folder.key / name for folder in every for name in names]

    def _other_histories(self, cids: list[CID]) -> Iterator[str]:
        for folder in sorted(self.folder.parent.glob("*")):
            if folder == self.folder or not folder.is_dir():
                continue
            with suppress(PerdureError, OSError), ArtifactStore.open(folder) as store:
                held = sum(map(store.has_bytes, cids))
                if held:
                    yield f"the history {folder.name} of another memory has {held} of them too"

    def _leftovers(self) -> Iterator[str]:
        for path in sorted(self.folder.parent.glob(".migrating-*")):
            yield f"{path.name} is a leftover of a migration; `perdure migrate` removes it"
        for path in sorted(self.folder.rglob(_ASIDE)):
            yield f"{path.relative_to(self.folder)} was quarantined, and may contain anything"


MIN_SENTENCE = 12
"""A shorter sentence may occur anywhere by chance."""

_ENDS = re.compile(r"(?<=[.!?;:])\s+|\n")
_AROUND = " \t#>*-_`\"'.!?;:,"
_WORD = re.compile(r"[^\W_]{3,}")
_URI = re.compile(r"ctx://[^\s\"'\])>|#]+")


class Quotation(NamedTuple):
    uri: str
    where: str


def sentences(text: str) -> set[str]:
    found = (" ".join(each.split()).strip(_AROUND) for each in _ENDS.split(text))
    return {each for each in found if len(each) >= MIN_SENTENCE}


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def quoting(
    reader: NodeReader, account: Uri, wanted: set[str], without: Iterable[Uri]
) -> Iterator[Quotation]:
    """Yield the other nodes of an account that contain a wanted sentence, or name these places."""
    gone = set(without)
    for place in reader.walk(account):
        if any(each.contains(place) for each in gone):
            continue
        for name in FILES:
            text = reader.text_at(place, name)
            if isinstance(text, str) and _quotes_or_names(name, text, wanted, gone):
                yield Quotation(str(place), name)
                break


def _quotes_or_names(name: str, text: str, wanted: set[str], gone: set[Uri]) -> bool:
    return not wanted.isdisjoint(_sentences_of_file(name, text)) or any(
        each.contains(named) for named in _uris_in(text) for each in gone
    )


def _uris_in(text: str) -> Iterator[Uri]:
    for uri in set(_URI.findall(text)):
        with suppress(InvalidUriError):
            yield Uri.parse(uri)


def _sentences_of_file(name: str, text: str) -> set[str]:
    if name != META and not name.endswith(".json"):
        return sentences(text)
    try:
        return {each for string in strings_in(json.loads(text)) for each in sentences(string)}
    except (ValueError, RecursionError):
        return sentences(text)


@dataclass(frozen=True, slots=True)
class SharedContent:
    cid: CID
    key: str
    """The key of another version with it; empty if that is in another account."""


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """What would be erased, and what would stay although it says the same."""

    uris: tuple[str, ...]
    """The URIs that the caller named."""
    former: tuple[str, ...]
    """Former places of the same texts; their versions there are erased too."""
    owner_space: str
    """The owner all of whose texts are erased; empty if places are erased."""
    files: tuple[str, ...]
    versions: int
    """The number of versions that have one of these contents."""
    contents: tuple[CID, ...]
    size: int
    shared: tuple[SharedContent, ...]
    moved: tuple[tuple[str, str], ...]
    """Texts that were moved out of the places, from and to; they stay."""
    quotations: tuple[Quotation, ...]
    referrers: tuple[str, ...]
    """Nodes with links to what is erased; these links will be broken."""
    derived: Mapping[str, int]
    """The number of derived files and records, by kind."""
    elsewhere: tuple[str, ...]
    """Other files that may have the same contents, and are not erased."""
    names: tuple[str, ...]
    """Erased places whose names contain words of their texts; names stay in the log."""
    withheld: int
    """The number of versions whose contents are shared, which no receipt lists yet."""

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.contents and not self.withheld


@dataclass(frozen=True, slots=True)
class ErasureReport:
    uris: tuple[str, ...]
    owner_space: str
    versions: int
    contents: tuple[CID, ...]
    shared: tuple[SharedContent, ...]
    moved: tuple[tuple[str, str], ...]
    derived: Mapping[str, int]
    receipt: ErasureReceipt
    path: Path


@dataclass(frozen=True, slots=True)
class ForgetReport:
    archived: tuple[str, ...] = ()
    archived_before: tuple[str, ...] = ()
    plan: ErasurePlan | None = None
    erased: ErasureReport | None = None
    hidden: HiddenCounts = NOTHING_HIDDEN
    """How much was hidden in other nodes."""
    also: tuple[str, ...] = ()
    """Other memories with the same statement: archived too, or without it now."""
    untouched: tuple[str, ...] = ()
    """Memories that contain it among other text of the user; they are not changed."""


@dataclass(frozen=True, slots=True)
class ErasureTask:
    """An erasure that was begun. It has names, but no texts."""

    id: str
    account_id: str
    owner_space: str
    """The owner all of whose texts are erased; empty if places are erased."""
    owners: tuple[str, ...]
    """The owners whose derived files may contain it."""
    uris: tuple[str, ...]
    spans: tuple[KeySpan, ...]
    actor: str
    reason: str
    begun: int

    @property
    def message(self) -> str:
        """The message whose sentences are erased; empty if a place or owner is erased."""
        return self.uris[0] if MESSAGE.fullmatch(self.uris[0]) else ""


_OWNER_DEPTH = 2
_MOST_READ = 2_000
"""The number of contents whose sentences are searched for in other nodes."""


@dataclass(frozen=True, slots=True)
class ErasurePlanner:
    nodes: Nodes
    history: History
    derived: DerivedFiles
    receipts: Path

    def trace(self, spans: Sequence[KeySpan], cutoff: ErasureCutoff | None = None) -> Trace:
        return trace(self.history, spans, cutoff, self._listed())

    def _listed(self) -> set[int]:
        return erased_versions(self.receipts, self.history.store.history)

    def task(self, uri: str, ctx: RequestContext, reason: str) -> ErasureTask:
        require_root(ctx)
        place = self.nodes.reach.require_writable(uri.partition("#")[0], ctx)
        is_owner = len(place.path) == _OWNER_DEPTH and place.path[0] in {"users", "agents"}
        owner = place.owner_space if is_owner else ""
        spans = spans_of([] if MESSAGE.fullmatch(uri) else [place], self.nodes)
        if owner:
            spans += spans_of_sessions(self.history, self.nodes, place.account, owner)
        actor = f"{ctx.user_id}/{ctx.agent_id}"
        id_, begun = secrets.token_hex(8), self.history.position()
        found = self.places(self.trace(spans), self._files(spans))
        owners = tuple(self._owners(owner, found if spans else [place]))
        task = ErasureTask(
            id_, place.account, owner, owners, (uri,), tuple(spans), actor, reason, begun
        )
        learned = spans_of(self._learned_only_from_it(task), self.nodes)
        return replace(task, spans=(*task.spans, *learned))

    def _learned_only_from_it(self, task: ErasureTask) -> list[Uri]:
        """Return learned memories all of whose statements are erased."""
        places = {target.place for target in self.targets(task)}
        found = []
        for user in self._users(task) if places else ():
            finder = self._finder(task, user)
            learned = (node for node in self._learned(task, user) if node.place not in places)
            found += [node.place for node in learned if finder.is_all(node.content)]
        return found

    def _learned(self, task: ErasureTask, user: str) -> Iterator[ContextNode]:
        for place in self.nodes.walk(Uri(task.account_id, ("users", user, "memories"))):
            stored = readable_node(self.nodes, place)
            if stored is not None and support_of(stored.node):
                yield stored.node

    def _files(self, spans: Iterable[KeySpan]) -> tuple[str, ...]:
        return tuple(text.key for text in texts_in(spans, self.nodes))

    def is_nothing(self, task: ErasureTask) -> bool:
        """Return whether nothing is left to erase; `NodeNotFoundError` if nothing ever existed."""
        found = self.trace(task.spans)
        if texts_in(task.spans, self.nodes) or any(map(self._exists, found.contents)):
            return False
        if self._unlisted(found) or self._saying(task):
            return False
        if not found.versions and not found.moved and not task.message:
            raise NodeNotFoundError(
                f"nothing exists or ever existed at {task.uris[0]!a}. Fix: name one of the places "
                "that `perdure list` shows."
            )
        return True

    def _exists(self, cid: CID) -> bool:
        return self.history.store.has_bytes(cid)

    # ------------------------------------------------------------ sessions that quote it
    def targets(self, task: ErasureTask) -> list[ForgetTarget]:
        """Return the memories and sessions to erase, each with the statements of all versions."""
        if task.owner_space:
            return []
        found = []
        if task.message:
            content = self.nodes.file(Uri.parse(task.message.partition("#")[0]), CONTENT)
            texts = self.nodes.backend.earlier(content)
            found = [ForgetTarget.of_message(task.message, self.nodes, texts)]
        texts_at: dict[Uri, list[str]] = defaultdict(list)
        for event in self.trace(task.spans).versions:
            folder, _, name = event.key.rpartition("/")
            place = Uri.of_key(folder) if name == CONTENT and event.cid is not None else None
            if place is not None and place.is_node and event.cid is not None:
                data = self.history.store.get(event.cid) or b""
                texts_at[place].append(frontmatter.split(data.decode(errors="replace"))[1])
        return [*found, *(self._target(place, texts) for place, texts in texts_at.items())]

    def _target(self, place: Uri, texts: Sequence[str]) -> ForgetTarget:
        stored = readable_node(self.nodes, place)
        return ForgetTarget.of(stored.node if stored else ContextNode(uri=str(place)), *texts)

    def events_of_users(self, task: ErasureTask) -> list[Event]:
        """Return all events of sessions and learned memories of the users of a task."""
        below = tuple(f"{self.nodes.folder(place).key}/" for place in self._quotable(task))
        return [event for event in self.history.changes() if event.key.startswith(below)]

    def _quotable(self, task: ErasureTask) -> Iterator[Uri]:
        if task.owner_space:
            return
        for user in self._users(task):
            for session, _ in sessions_of(self.nodes, task.account_id, user):
                yield session
            yield from (node.place for node in self._learned(task, user))

    def _users(self, task: ErasureTask) -> set[str]:
        names = (each.partition(":") for each in task.owners)
        of_tasks = {name for kind, _, name in names if kind == "user"}
        return of_tasks | {task.actor.partition("/")[0]}

    def _saying(self, task: ErasureTask) -> frozenset[CID]:
        return self.quoting(task, used=True) if task.message else frozenset()

    def quoting(self, task: ErasureTask, *, used: bool = False) -> frozenset[CID]:
        """Return former contents of sessions and learned memories that quote what is erased.

        With `used`, current contents of sessions are included. So are contents that can't be read,
        because an interrupted erasure has removed them.
        """
        current = {event.key: event.cid for event in self.history.changes()}
        below = f"{self.nodes.folder(Uri(task.account_id, ('sessions',))).key}/"
        former = {event.cid: event.key for event in self.events_of_users(task)}
        lists = [self._finder(task, user) for user in self._users(task)] if former else []
        return frozenset(
            cid
            for cid, key in former.items()
            if cid is not None and self._exists(cid) and self._quotes(cid, key, lists)
        ) - {cid for key, cid in current.items() if not (used and key.startswith(below))}

    def _quotes(self, cid: CID, key: str, lists: Iterable[ForgottenList]) -> bool:
        data = self.history.store.get(cid)
        if data is None:
            return True
        texts = [data.decode(errors="replace")]
        if key.endswith(".json"):
            with suppress(ValueError, RecursionError):
                texts = list(strings_in(json.loads(texts[0])))
        return any(each.matches(text) for each in lists for text in texts)

    def _finder(self, task: ErasureTask, user: str) -> ForgottenList:
        """Return a finder of the erased words, from the forgotten list and from history."""
        known = load(self.nodes, task.account_id, user)
        targets = self.targets(task)
        listed = known.only([target.key for target in targets]).entries
        found = (known.entry(each.key, each.texts, each.quotes) for each in targets)
        return known.of((*listed, *found))

    def plan(
        self, task: ErasureTask, ctx: RequestContext, hidden: Collection[str] = ()
    ) -> ErasurePlan:
        self.is_nothing(task)
        found = self.trace(task.spans)
        own = sorted(filter(self._exists, found.contents))
        saying = self._saying(task)
        contents = dict.fromkeys((*own, *sorted(saying - found.contents)))
        events = {e.position: e for e in (*self.events_of_users(task), *found.versions)}
        files = self._files(task.spans)
        places = self.places(found, files)
        size, wanted = self._read(contents)[0], self._read(own)[1]
        for target in self.targets(task) if task.message else ():
            wanted |= {each for text in target.texts for each in sentences(text)}
        gone = [place for span in task.spans if (place := Uri.of_key(span.prefix)) is not None]
        return ErasurePlan(
            task.uris,
            tuple(str(each) for each in places if not self._is_asked(task, each)),
            task.owner_space,
            files,
            sum(event.cid in contents for event in events.values()),
            tuple(contents),
            size,
            self.shared(found, task.account_id),
            found.moved,
            tuple(
                each
                for each in quoting(self.nodes, Uri(task.account_id), wanted, gone)
                if each.uri not in hidden
            ),
            tuple(self._leading(places, ctx)),
            self.derived.counts(task.account_id, task.owners, places),
            tuple(self.derived.elsewhere(contents)),
            self._revealing_names(found, places),
            self._unlisted(found),
        )

    def _is_asked(self, task: ErasureTask, place: Uri) -> bool:
        below = f"{self.nodes.folder(place).key}/"
        return any(below.startswith(f"{span.prefix}/") for span in task.spans)

    def _revealing_names(self, found: Trace, places: Iterable[Uri]) -> tuple[str, ...]:
        """Return the places whose names have a word in common with their texts."""
        cids = {each.cid: None for each in found.versions if each.key.endswith(f"/{CONTENT}")}
        texts = (self.history.store.get(cid) for cid in islice(cids, _MOST_READ) if cid)
        found_words = {
            word for text in texts for word in words((text or b"").decode(errors="replace"))
        }
        return tuple(
            str(place)
            for place in places
            if not found_words.isdisjoint(words(place.key.rpartition("/")[2]))
        )

    def _read(self, contents: Iterable[CID]) -> tuple[int, set[str]]:
        """Return the size of contents, and the sentences of the first of them."""
        size, found = 0, set[str]()
        for number, cid in enumerate(contents):
            data = self.history.store.get(cid) or b""
            size += len(data)
            if number < _MOST_READ:
                found |= sentences(data.decode(errors="replace"))
        return size, found

    def _leading(self, places: Sequence[Uri], ctx: RequestContext) -> list[str]:
        found = {
            str(follower)
            for place in places
            for follower in self.nodes.leading_to(place)
            if follower not in places and self.nodes.exists(str(follower), ctx)
        }
        return sorted(found)

    def shared(self, found: Trace, account_id: str) -> tuple[SharedContent, ...]:
        """Return the shared contents; the keys of other accounts are left out."""
        below = f"{self.nodes.folder(Uri(account_id)).key}/"
        return tuple(
            SharedContent(cid, key if key.startswith(below) else "")
            for cid, key in found.shared
            if self._exists(cid)
        )

    def _unlisted(self, found: Trace) -> int:
        """Return the number of versions with shared contents that no receipt lists."""
        listed = self._listed()
        return sum(event.position not in listed for event in self.withheld(found))

    def withheld(self, found: Trace) -> list[Event]:
        """Return the erased versions whose contents are shared, and stay."""
        shared = {cid for cid, _ in found.shared if self._exists(cid)}
        return [event for event in found.versions if event.cid in shared]

    def places(self, found: Trace, files: Iterable[str] = ()) -> list[Uri]:
        """Return the places of texts, including those they were moved to."""
        keys = dict.fromkeys((*(event.key for event in found.versions), *files))
        places = (Uri.of_key(key.rpartition("/")[0]) for key in keys)
        return list(dict.fromkeys(place for place in places if place is not None))

    def _owners(self, owner: str, places: Sequence[Uri]) -> list[str]:
        """Return the present and former owners of places, whose derived files may contain them."""
        owners = {place.owner_space for place in places} | {owner}
        sessions = {place for place in places if place.session}
        owners |= {self.nodes.reach.session_owner(place) or "" for place in sessions}
        if sessions:  # a session may have had another owner, who has what was learned from it
            owners |= self._session_owners(sessions)
        return sorted(owners - {""})

    def _session_owners(self, sessions: Iterable[Uri]) -> set[str]:
        files = {self.nodes.reach.owner_file(place).key for place in sessions}
        found = set()
        for event in self.history.changes():
            data = None
            if event.key in files and event.cid is not None:
                data = self.history.store.get(event.cid)
            if data is not None:
                found.add(data.decode(errors="replace").removesuffix("\n"))
        return found


def require_root(ctx: RequestContext) -> None:
    if ctx.role is not Role.ROOT:
        raise AccessDeniedError(
            f"{ctx.user_id[:80]!a} of account {ctx.account_id[:80]!a} is {ctx.role.value} and may "
            "not erase: all accounts share one history. Nothing was changed. "
            "Fix: forget without erasing, and ask the owner of this memory to erase."
        )
