"""What a verb is about to do to the files, gathered before anything is done."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from perdure import frontmatter
from perdure.context.files import (
    CONTENT,
    FILES,
    LEARNED,
    META,
    METADATA,
    PARTS,
    Files,
    Found,
    Meta,
    cid_of,
    said_at,
    short_hash,
    texts_of,
)
from perdure.context.reading import NodeReader, Stored
from perdure.dataclass import dataclass, field, replace
from perdure.errors import BrokenNodeError, VersionMismatchError
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.model.values import JSON
from perdure.storage import ABSENT, Expectation, Locator, content_hash
from perdure.storage.contract import UNREADABLE

_NOTHING: Files = dict.fromkeys(FILES)


@dataclass(slots=True)
class Draft:
    """Texts to be written and removed in this order, and what must be there before."""

    reader: NodeReader
    now: datetime
    changes: dict[Locator, str | None] = field(default_factory=dict)
    expect: dict[Locator, Expectation] = field(default_factory=dict)
    written: list[ContextNode] = field(default_factory=list)

    def write(
        self,
        node: ContextNode,
        stored: Stored | None,
        *,
        status: NodeStatus = NodeStatus.ACTIVE,
        files: Files = _NOTHING,
        dated: bool = True,
    ) -> None:
        """Let a node be written in place of what is stored, or of `files` that are no node.

        If it is not `dated`, it keeps the time of its last update: what it says did not change.
        """
        final = self._final(node, stored, status)
        if not dated:
            final = replace(final, updated_at=node.updated_at)
        before = files if stored is None else stored.files
        in_one, in_session = self.reader.is_laid_out, bool(final.place.session)
        texts = texts_of(final, _content_file(final, stored), sparse=in_one or in_session)
        meta = Meta(
            final.status,
            final.version,
            final.owner_space if in_session or not in_one else "",
            final.created_at,
            final.updated_at,
            {} if in_one else {name: cid_of(text) for name, text in texts.items()},
            final.metadata,
            short_hash(texts[CONTENT]) if in_one else "",
        )
        folder = self.reader.folder(final.place)
        for name in PARTS:
            text, found = texts.get(name), before[name]
            # A part that stays the same is let be, also where somebody broke its file. One that
            # was edited by hand is written again as it is, so that history has it.
            if text is None:
                if found is not None:
                    self.put(folder.child(name), None, found)
            elif stored is None or found is None or not stored.keeps(name, text):
                self.put(folder.child(name), text, found)
        self.put(folder.child(META), meta.text(), before[META])
        self.written.append(final)

    def remove(self, place: Uri, files: Files) -> None:
        """Let a node go: its meta first, so that nobody sees half of it."""
        folder = self.reader.folder(place)
        for name, found in sorted(files.items(), key=lambda file: file[0] != META):
            if found is not None:
                self.put(folder.child(name), None, found)

    def mark(self, place: Uri, *, archived: bool) -> None:
        marker = self.reader.marker(place)
        if archived:
            self.changes[marker] = f"{place}\n"
        elif self.reader.backend.exists(marker):
            self.changes[marker] = None

    def own(self, place: Uri, owner_space: str) -> None:
        locator = self.reader.reach.owner_file(place)
        self.changes[locator] = f"{owner_space}\n"
        self.expect[locator] = ABSENT

    def owner(self, place: Uri) -> str | None:
        """Return whose a session is about to be; None if nobody's yet."""
        said = self.changes.get(self.reader.reach.owner_file(place))
        return None if said is None else said.removesuffix("\n")  # an id may end in space

    def put(self, locator: Locator, text: str | None, found: Found) -> None:
        """Let a text take the place of what was found; what is no text has no history to be in."""
        if found is UNREADABLE and text is not None and locator.name != META:
            raise BrokenNodeError(
                f"{locator.key!a} is no UTF-8 text, so no history would keep it. Nothing was "
                "changed. Fix: save it as UTF-8, or remove the file."
            )
        self.changes[locator] = text
        if found is None:
            self.expect[locator] = ABSENT
        elif isinstance(found, str):
            self.expect[locator] = content_hash(found)

    def _final(self, node: ContextNode, stored: Stored | None, status: NodeStatus) -> ContextNode:
        metadata = {**(stored.meta.metadata if stored else {}), **node.metadata}
        created = self.now if stored is None else stored.meta.created_at
        if not created.timestamp():  # its file does not say
            created = self._first_seen(node.place)
        return replace(
            node,
            status=status,
            created_at=created,
            updated_at=max(self.now, created),
            metadata={name: metadata[name] for name in ordered(metadata)},
            relations=tuple(
                edge if edge.created_at.timestamp() else replace(edge, created_at=self.now)
                for edge in node.relations
            ),
            basis="",
            problems=(),
        )

    def _first_seen(self, place: Uri) -> datetime:
        """Return when history has a node first."""
        from perdure.storage.wrappers.recorded import Recorded  # noqa: PLC0415 - hardly ever asked

        backend, file = self.reader.backend, self.reader.file(place, CONTENT)
        versions = backend.history.versions(file) if isinstance(backend, Recorded) else ()
        return datetime.fromtimestamp(versions[0].time / 1000, UTC) if versions else self.now


def ordered(metadata: Mapping[str, JSON]) -> list[str]:
    """Return the names that have a value: first those that Perdure knows, then the others."""
    known = [name for name in METADATA if name in metadata]
    names = [*known, *(name for name in metadata if name not in METADATA)]
    return [name for name in names if metadata[name] is not None]


def _content_file(node: ContextNode, stored: Stored | None) -> str:
    known = "" if stored is None else stored.lines
    lines = known if node.frontmatter is None else node.frontmatter
    if lines != known:
        frontmatter.properties(lines)
    if lines and not lines.endswith("\n"):
        lines += "\n"
    return frontmatter.join(lines, node.content)


class Marks:
    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader

    def read(self, session: Uri, ctx: RequestContext) -> str:
        """Return the mark of a session; none is empty, and so is what is no text."""
        self._reader.reach.seen(str(session), ctx)
        found = said_at(self._file(session), self._reader.backend.read)
        return found if isinstance(found, str) else ""

    def moved(self, session: Uri, before: str, after: str) -> Callable[[Draft], None]:
        """Return the plan to move a mark; refused (`VersionMismatchError`) if others moved it."""

        def plan(draft: Draft) -> None:
            found = said_at(self._file(session), self._reader.backend.read)
            if (found if isinstance(found, str) else "") != before:
                raise VersionMismatchError(
                    f"{str(session)!a} was learned from by somebody else meanwhile. "
                    "Nothing was changed. Fix: commit it again."
                )
            draft.put(self._file(session), after, found)

        return plan

    def _file(self, session: Uri) -> Locator:
        return self._reader.file(Uri(session.account, session.path[:2]), LEARNED)
