"""What others write into the folder of a memory: taken in, or left alone, and told either way."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from perdure.context.files import CONTENT, FILES, META
from perdure.engine.repair import State
from perdure.engine.upkeep import accounts_of
from perdure.errors import BrokenNodeError, InvalidLocatorError
from perdure.model import RequestContext, Uri
from perdure.storage import Finding, FindingKind, Locator
from perdure.storage.joint import Discrepancy
from perdure.surfaces.nodes.opening import Memory
from perdure.surfaces.telling import counted, mention, shown, tell_line

_NOTE = ".md"
_EDIT, _NEW, _GONE = "edit", "new memory", "removed memory"

Edits = Mapping[Uri, Sequence[Discrepancy]]


class Taking:
    """Takes in what changes below a folder. What it leaves alone it tells once."""

    def __init__(self, memory: Memory, root: Path) -> None:
        self._memory = memory
        self._root = root
        self._told: set[str] = set()

    def begin(self) -> None:
        """Make nodes of the notes that somebody put there before."""
        reader = self._memory.context.reader
        for account in list(accounts_of(reader)):
            notes = self._memory.context.repair.notes(self._as(account))
            self._settle(account, [Uri.parse(note.uri) for note in notes], {})

    def take_in(self, paths: Iterable[str]) -> None:
        """Record edits as versions, make nodes of notes, and bring the index up to date."""
        files = list(dict.fromkeys(self._files(map(Path, dict.fromkeys(paths)))))
        edits = self._memory.context.recorded.notice(files) if files else []
        places = {file: self._place(file) for file in files}
        of_place: dict[Uri, list[Discrepancy]] = defaultdict(list)
        for edit in edits:
            if (place := places[edit.locator]) is not None:
                of_place[place].append(edit)
        by_account: dict[str, dict[Uri, None]] = defaultdict(dict)
        for place in filter(None, places.values()):
            by_account[place.account][place] = None
        for account, changed in by_account.items():
            self._settle(account, list(changed), of_place)

    def _settle(self, account: str, places: Sequence[Uri], edits: Edits) -> None:
        made = self._make_nodes(places, self._as(account))
        if made or any(place in edits for place in places):
            following = self._memory.context.indexes.present(account).following
            for uri, error in following.catch_up(account).failed.items():
                mention(f"left out: {uri}: {shown(str(error))}")
        kinds: dict[str, list[str]] = {_EDIT: [], _NEW: [], _GONE: []}
        for place in places:
            kind = _NEW if place in made else self._kind(place, edits.get(place, ()))
            if kind is not None:
                kinds[kind].append(self._memory.name(place))
        for kind, names in kinds.items():
            if names:
                tell_line(f"{counted(len(names), kind)}: {', '.join(names)}")

    def _as(self, account: str) -> RequestContext:
        return replace(self._memory.request, account_id=account)

    # ------------------------------------------------------------ nodes
    def _make_nodes(self, places: Sequence[Uri], ctx: RequestContext) -> set[Uri]:
        """Make nodes of notes; return those that are nodes now, and tell why others are none."""
        reader = self._memory.context.reader
        begun = [place for place in places if self._says_something(place)]
        for finding in self._memory.context.repair.make_nodes(begun, ctx):
            if finding.state is State.BROKEN:
                self._leave(finding.uri, finding.detail)
        return {place for place in begun if reader.is_active(place)}

    def _says_something(self, place: Uri) -> bool:
        """Whether a content is there that is no node; an empty one is still being written."""
        look = self._memory.context.reader.look
        said = look(place, CONTENT)
        is_blank = isinstance(said, str) and not said.strip()
        return said is not None and not is_blank and look(place, META) is None

    def _kind(self, place: Uri, edits: Sequence[Discrepancy]) -> str | None:
        """Return what others did to a node; None if there was none, or it can't be read."""
        if not edits:
            return None
        meta = next((edit for edit in edits if edit.locator.name == META), None)
        if meta is not None and meta.after is None:
            return _GONE
        try:
            stored = self._memory.context.reader.load(place)
        except BrokenNodeError as error:
            mention(f"{self._memory.name(place)} can't be read: {shown(str(error))}")
            return None
        for problem in () if stored is None else stored.node.problems:
            told = f"{self._memory.name(place)} can't be read as it is"
            mention(f"{told}, so what was there before counts: {shown(problem)}")
        if stored is None or stored.node.problems:
            return None
        return _NEW if meta is not None and meta.before is None else _EDIT

    # ------------------------------------------------------------ files
    def _files(self, paths: Iterable[Path]) -> Iterator[Locator]:
        """Yield the files of nodes among what changed, also in folders that came or went."""
        for path in paths:
            key = path.relative_to(self._root).as_posix()
            if path.name in FILES:
                yield from _locators([key])
            elif path.is_dir():
                below = [each for each in path.rglob("*") if each.is_file()]
                yield from self._files(each for each in below if not self._is_hidden(each))
            elif not path.exists():
                yield from _locators(self._known_below(key))
            elif path.suffix == _NOTE and not self._is_hidden(path):
                self._leave(key, self._why_no_memory(path, key))

    def _why_no_memory(self, path: Path, key: str) -> str:
        """Say what a note is that is no file of a node, and what to do with it."""
        copy = self._conflict_copy(key)
        if copy is not None and copy.original is not None:
            return f"it is a conflict copy of {copy.original.name}. Fix: {copy.advice}"
        command = f"perdure write CATEGORY/NAME < {quote(str(path))}"
        return f"it is no memory. Fix: `{command}` makes one of it"

    def _conflict_copy(self, key: str) -> Finding | None:
        folder, _, name = key.rpartition("/")
        for directory in _locators([folder]):
            for finding in self._memory.context.recorded.findings(directory):
                if finding.name == name and finding.kind is FindingKind.CONFLICT_COPY:
                    return finding
        return None

    def _is_hidden(self, path: Path) -> bool:
        *folders, name = path.relative_to(self._root).parts
        hidden = [part for part in folders if part.startswith(".")]
        return bool(hidden) or (name.startswith(".") and name not in FILES)

    def _known_below(self, key: str) -> list[str]:
        """Return the files of nodes that history knows below a folder that is gone."""
        history = self._memory.context.recorded.history
        names = history.store.catalogue.names(f"{key}/", history.position())
        return [name for name in names if name.rpartition("/")[2] in FILES]

    def _place(self, file: Locator) -> Uri | None:
        """Return the place that a file belongs to; None, and told, if none can be there."""
        place = Uri.of_key(file.parent.key)
        if place is not None and place.is_node:
            return place
        if file.name == CONTENT:
            where = "accounts/ACCOUNT/users/USER/memories/CATEGORY/NAME"
            self._leave(file.key, f"no memory can be there. Fix: put it into a folder {where}")
        return None

    def _leave(self, what: str, why: str) -> None:
        if what not in self._told:
            self._told.add(what)
            mention(f"left alone: {shown(what)}: {shown(why)}")


def _locators(keys: Iterable[str]) -> Iterator[Locator]:
    for key in keys:
        with suppress(InvalidLocatorError):
            yield Locator(key)
