"""What is meant by a place that is to be erased: versions, contents, and who else has them.

What else says the same stays there, and its owner is told. What is being erased is written down
from before the first step until after the last.
"""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from perdure import frontmatter
from perdure.artifacts import CID
from perdure.context.files import CONTENT, FILES, META
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.dataclass import asdict, dataclass, replace
from perdure.engine.derived import DerivedFiles
from perdure.engine.forgotten import ForgottenList, load
from perdure.engine.hide import (
    NOTHING_HIDDEN,
    ForgetTarget,
    HiddenCounts,
    readable_node,
    sessions_of,
)
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
from perdure.errors import (
    AccessDeniedError,
    DamageError,
    InvalidUriError,
    NodeNotFoundError,
)
from perdure.files import write_whole
from perdure.model import ContextNode, RequestContext, Role, Uri
from perdure.model.uri import MESSAGE
from perdure.safety.texts import strings_in
from perdure.storage.history import Event, History

LEAST = 12
"""What has fewer characters may be said by anybody."""

_ENDS = re.compile(r"(?<=[.!?;:])\s+|\n")
_AROUND = " \t#>*-_`\"'.!?;:,"
_WORD = re.compile(r"[^\W_]{3,}")
_URI = re.compile(r"ctx://[^\s\"'\])>|#]+")


class Quotation(NamedTuple):
    uri: str
    where: str


def sentences(text: str) -> set[str]:
    said = (" ".join(each.split()).strip(_AROUND) for each in _ENDS.split(text))
    return {each for each in said if len(each) >= LEAST}


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def quoting(
    reader: NodeReader, account: Uri, said: set[str], without: Iterable[Uri]
) -> Iterator[Quotation]:
    """Yield the nodes of an account, but those, that say one of these sentences or name those."""
    gone = set(without)
    for place in reader.walk(account):
        if any(each.contains(place) for each in gone):
            continue
        for name in FILES:
            text = reader.look(place, name)
            if isinstance(text, str) and _tells(name, text, said, gone):
                yield Quotation(str(place), name)
                break


def _tells(name: str, text: str, said: set[str], gone: set[Uri]) -> bool:
    return not said.isdisjoint(_all_said(name, text)) or any(
        each.contains(named) for named in _named(text) for each in gone
    )


def _named(text: str) -> Iterator[Uri]:
    for uri in set(_URI.findall(text)):
        with suppress(InvalidUriError):
            yield Uri.parse(uri)


def _all_said(name: str, text: str) -> set[str]:
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
    """Of what has it; empty if that is in another account."""


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """What goes, and what stays although it says the same."""

    uris: tuple[str, ...]
    """As they were asked for."""
    former: tuple[str, ...]
    """Other places that the same texts were at; what they were there goes too."""
    owner_space: str
    """Whose everything goes; empty if it is about places."""
    files: tuple[str, ...]
    versions: int
    """How many versions have one of the contents that go."""
    contents: tuple[CID, ...]
    size: int
    shared: tuple[SharedContent, ...]
    moved: tuple[tuple[str, str], ...]
    """From which key to which other a text went, where it stays."""
    quotations: tuple[Quotation, ...]
    referrers: tuple[str, ...]
    """Nodes that lead to what goes; their links will lead nowhere."""
    derived: Mapping[str, int]
    """How much of what is derived goes, by what it is."""
    elsewhere: tuple[str, ...]
    """What else may hold the same, and is not touched."""
    names: tuple[str, ...]
    """Names of what goes that are made of its words; they stay in the log."""
    withheld: int
    """How many versions go as soon as nobody else has their contents; a receipt is to say so."""

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
    """What of it was hidden elsewhere, by place."""
    also: tuple[str, ...] = ()
    """Other memories that said the same: archived too, or without that statement now."""
    untouched: tuple[str, ...] = ()
    """Memories that say it among other things that somebody wrote; they are left alone."""


_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class ErasureTask:
    """An erasure that was begun. It holds names, and no text."""

    id: str
    account_id: str
    owner_space: str
    """Whose everything goes; empty if it is about places."""
    owners: tuple[str, ...]
    """Whose derived things may tell of it."""
    uris: tuple[str, ...]
    spans: tuple[KeySpan, ...]
    actor: str
    reason: str
    begun: int

    @property
    def message(self) -> str:
        """The message whose sentences go; empty if it is not about one."""
        return self.uris[0] if MESSAGE.fullmatch(self.uris[0]) else ""


class ErasureTasks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, task: ErasureTask) -> None:
        write_whole(self._path(task.id), json.dumps(asdict(task), indent=1).encode())

    def end(self, task: ErasureTask) -> None:
        with suppress(FileNotFoundError):
            self._path(task.id).unlink()
        with suppress(OSError):  # others are under way
            self._folder.rmdir()

    def begun(self) -> list[ErasureTask]:
        found = sorted(self._folder.glob(f"*{_SUFFIX}"))
        return sorted(map(_read, found), key=lambda task: task.begun)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"


def _read(path: Path) -> ErasureTask:
    try:
        said = json.loads(path.read_bytes())
        spans = said.pop("spans")
        said |= {name: tuple(said[name]) for name in ("uris", "owners")}
        return ErasureTask(spans=tuple(KeySpan(**each) for each in spans), **said)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise DamageError(
            f"{str(path)!a} does not say what is being erased: {error}. "
            "Fix: remove it, and erase again what was to be erased."
        ) from error


_OWNER_DEPTH = 2
_MOST_READ = 2_000
"""Of so many contents it is looked up who else says what they do."""


@dataclass(frozen=True, slots=True)
class ErasurePlanner:
    nodes: Nodes
    history: History
    derived: DerivedFiles
    receipts: Path

    def trace(self, spans: Sequence[KeySpan], until: ErasureCutoff | None = None) -> Trace:
        return trace(self.history, spans, until, self._noted())

    def _noted(self) -> set[int]:
        return erased_versions(self.receipts, self.history.store.history)

    def task(self, uri: str, ctx: RequestContext, reason: str) -> ErasureTask:
        require_root(ctx)
        place = self.nodes.reach.changed(uri.partition("#")[0], ctx)
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
        learned = spans_of(self._learned_too(task), self.nodes)
        return replace(task, spans=(*task.spans, *learned))

    def _learned_too(self, task: ErasureTask) -> list[Uri]:
        """Return what was learned, and says nothing but what is erased."""
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
        """Whether nothing is left of it; `NodeNotFoundError` if nothing ever was."""
        found = self.trace(task.spans)
        if texts_in(task.spans, self.nodes) or any(map(self._is_kept, found.contents)):
            return False
        if self._to_note(found) or self._saying(task):
            return False
        if not found.versions and not found.moved and not task.message:
            raise NodeNotFoundError(
                f"nothing is or ever was at {task.uris[0]!a}. Fix: list what there is, and name "
                "one of them."
            )
        return True

    def _is_kept(self, cid: CID) -> bool:
        return self.history.store.is_kept(cid)

    # ------------------------------------------------------------ sessions that quote it
    def targets(self, task: ErasureTask) -> list[ForgetTarget]:
        """Return the memories and sessions that go, each with all that it ever said."""
        if task.owner_space:
            return []
        found = []
        if task.message:
            content = self.nodes.file(Uri.parse(task.message.partition("#")[0]), CONTENT)
            texts = self.nodes.backend.earlier(content)
            found = [ForgetTarget.of_message(task.message, self.nodes, texts)]
        said: dict[Uri, list[str]] = defaultdict(list)
        for event in self.trace(task.spans).versions:
            folder, _, name = event.key.rpartition("/")
            place = Uri.of_key(folder) if name == CONTENT and event.cid is not None else None
            if place is not None and place.is_node and event.cid is not None:
                data = self.history.store.get(event.cid) or b""
                said[place].append(frontmatter.split(data.decode(errors="replace"))[1])
        return [*found, *(self._target(place, texts) for place, texts in said.items())]

    def _target(self, place: Uri, texts: Sequence[str]) -> ForgetTarget:
        stored = readable_node(self.nodes, place)
        return ForgetTarget.of(stored.node if stored else ContextNode(uri=str(place)), *texts)

    def events_of_users(self, task: ErasureTask) -> list[Event]:
        """Return what ever was in sessions, and in what was learned, of users whose things go."""
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
        """Return the contents of sessions, none of them in use unless asked, that say what goes.

        What was hidden by an erasure that was interrupted can't be read, and is among them.
        """
        living = {event.key: event.cid for event in self.history.changes()}
        below = f"{self.nodes.folder(Uri(task.account_id, ('sessions',))).key}/"
        former = {event.cid: event.key for event in self.events_of_users(task)}
        lists = [self._finder(task, user) for user in self._users(task)] if former else []
        return frozenset(
            cid
            for cid, key in former.items()
            if cid is not None and self._is_kept(cid) and self._quotes(cid, key, lists)
        ) - {cid for key, cid in living.items() if not (used and key.startswith(below))}

    def _quotes(self, cid: CID, key: str, lists: Iterable[ForgottenList]) -> bool:
        data = self.history.store.get(cid)
        if data is None:
            return True
        texts = [data.decode(errors="replace")]
        if key.endswith(".json"):
            with suppress(ValueError, RecursionError):
                texts = list(strings_in(json.loads(texts[0])))
        return any(each.says(text) for each in lists for text in texts)

    def _finder(self, task: ErasureTask, user: str) -> ForgottenList:
        """Return what tells the words that are erased: by the list, and by what history has."""
        known = load(self.nodes, task.account_id, user)
        targets = self.targets(task)
        kept = known.only([target.key for target in targets]).entries
        found = (known.entry(each.key, each.texts, each.quotes) for each in targets)
        return known.of((*kept, *found))

    def plan(
        self, task: ErasureTask, ctx: RequestContext, hidden: Collection[str] = ()
    ) -> ErasurePlan:
        self.is_nothing(task)
        found = self.trace(task.spans)
        own = sorted(filter(self._is_kept, found.contents))
        saying = self._saying(task)
        contents = dict.fromkeys((*own, *sorted(saying - found.contents)))
        events = {e.position: e for e in (*self.events_of_users(task), *found.versions)}
        files = self._files(task.spans)
        places = self.places(found, files)
        size, said = self._read(contents)[0], self._read(own)[1]
        for target in self.targets(task) if task.message else ():
            said |= {each for text in target.texts for each in sentences(text)}
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
                for each in quoting(self.nodes, Uri(task.account_id), said, gone)
                if each.uri not in hidden
            ),
            tuple(self._leading(places, ctx)),
            self.derived.counts(task.account_id, task.owners, places),
            tuple(self.derived.elsewhere(contents)),
            self._telling(found, places),
            self._to_note(found),
        )

    def _is_asked(self, task: ErasureTask, place: Uri) -> bool:
        below = f"{self.nodes.folder(place).key}/"
        return any(below.startswith(f"{span.prefix}/") for span in task.spans)

    def _telling(self, found: Trace, places: Iterable[Uri]) -> tuple[str, ...]:
        """Return the places whose names have a word in common with what was there."""
        cids = {each.cid: None for each in found.versions if each.key.endswith(f"/{CONTENT}")}
        texts = (self.history.store.get(cid) for cid in islice(cids, _MOST_READ) if cid)
        said = {word for text in texts for word in words((text or b"").decode(errors="replace"))}
        return tuple(
            str(place)
            for place in places
            if not said.isdisjoint(words(place.key.rpartition("/")[2]))
        )

    def _read(self, contents: Iterable[CID]) -> tuple[int, set[str]]:
        """Return how large contents are, and what the first of them say."""
        size, said = 0, set[str]()
        for number, cid in enumerate(contents):
            data = self.history.store.get(cid) or b""
            size += len(data)
            if number < _MOST_READ:
                said |= sentences(data.decode(errors="replace"))
        return size, said

    def _leading(self, places: Sequence[Uri], ctx: RequestContext) -> list[str]:
        found = {
            str(follower)
            for place in places
            for follower in self.nodes.leading_to(place)
            if follower not in places and self.nodes.exists(str(follower), ctx)
        }
        return sorted(found)

    def shared(self, found: Trace, account_id: str) -> tuple[SharedContent, ...]:
        """Return what stays; of what is in other accounts it is not told where."""
        below = f"{self.nodes.folder(Uri(account_id)).key}/"
        return tuple(
            SharedContent(cid, key if key.startswith(below) else "")
            for cid, key in found.shared
            if self._is_kept(cid)
        )

    def _to_note(self, found: Trace) -> int:
        """Return how many versions others have, and no receipt says that they were erased."""
        noted = self._noted()
        return sum(event.position not in noted for event in self.withheld(found))

    def withheld(self, found: Trace) -> list[Event]:
        """Return the versions that were to go, and whose contents others have."""
        shared = {cid for cid, _ in found.shared if self._is_kept(cid)}
        return [event for event in found.versions if event.cid in shared]

    def places(self, found: Trace, files: Iterable[str] = ()) -> list[Uri]:
        """Return the places that texts were in, wherever they were moved."""
        keys = dict.fromkeys((*(event.key for event in found.versions), *files))
        places = (Uri.of_key(key.rpartition("/")[0]) for key in keys)
        return list(dict.fromkeys(place for place in places if place is not None))

    def _owners(self, owner: str, places: Sequence[Uri]) -> list[str]:
        """Return whose derived things may tell of it: of who has, or had, one of the places."""
        owners = {place.owner_space for place in places} | {owner}
        sessions = {place for place in places if place.session}
        owners |= {self.nodes.reach.session_owner(place) or "" for place in sessions}
        if sessions:  # a session may have been another's, and what was learned from it is theirs
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
            "not erase: one history keeps all accounts. Nothing was changed. "
            "Fix: forget without erasing, and ask the owner of this memory to erase."
        )
