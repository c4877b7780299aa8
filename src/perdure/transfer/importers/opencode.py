"""Sessions of opencode: `~/.local/share/opencode/opencode.db`, an SQLite database.

Older ones are files below `storage/`: `session/*/ID.json`, `message/ID/*.json`, `part/ID/*.json`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from perdure.errors import StorageError
from perdure.model.messages import text_of
from perdure.sqlite import read_only
from perdure.transfer import parsing
from perdure.transfer.contract import Conversation, Finding, Heard, Item, Said
from perdure.transfer.parsing import ShellCalls, heard, mapping_of, message, said, time_of
from perdure.transfer.source import Entry, Source

Object = Mapping[str, object]
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_SQLITE = b"SQLite format 3\0"
_SESSIONS = (
    "select id, directory, title, time_created, time_updated from session"
    " where parent_id is null and (?1 is null or id = ?1) order by id"
)
_PARTS = (
    "select m.data, p.data from message m join part p on p.message_id = m.id"
    " where m.session_id = ? order by m.time_created, m.id, p.id"
)


class OpenCode:
    name = "opencode"
    kind = "sessions"

    def detect(self, source: Source) -> bool:
        return any(_is_session(each) for each in source.entries) or any(
            source.head(each).startswith(_SQLITE) for each in _databases(source)
        )

    def items(self, source: Source) -> Iterator[Item | Finding]:
        yield from self.session(source, None)
        sessions = [each for each in source.entries if _is_session(each)]
        yield from parsing.each_file(source, sessions, _Files(source).read)

    def session(self, source: Source, session_id: str | None) -> Iterator[Item | Finding]:
        for entry in _databases(source):
            yield from self._database(source, entry, session_id)

    def _database(
        self, source: Source, entry: Entry, session_id: str | None
    ) -> Iterator[Item | Finding]:
        path = source.path / entry.name if source.is_folder else source.path
        try:
            with read_only(path) as database:
                sessions = database.execute(_SESSIONS, (session_id,)).fetchall()
                for name, folder, title, began, last in sessions:
                    parts = database.execute(_PARTS, (name,))
                    found = ((object_in(first), object_in(second)) for first, second in parts)
                    times = {"created": began, "updated": last}
                    session = {"id": name, "directory": folder, "title": title, "time": times}
                    yield conversation_of(entry, session, found)
        except StorageError as error:
            what = f"it can't be read as a database of opencode: {str(error.__cause__)[:80]}"
            yield Finding(entry.name, "", what, "name the file opencode.db of a current opencode")


class _Files:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._in: dict[str, list[Entry]] = {}
        for entry in source.named(".json"):
            self._in.setdefault("/".join(entry.name.split("/")[-3:-1]), []).append(entry)

    def read(self, entry: Entry, stream: BinaryIO) -> Iterator[Item | Finding]:
        session = _object(stream)
        if text_of(session.get("id")) and not session.get("parentID"):
            yield conversation_of(entry, session, self._parts(text_of(session["id"])))

    def _parts(self, session: str) -> Iterator[tuple[Object, Object]]:
        for entry in self._in.get(f"message/{session}", ()):
            one = self._read(entry)
            for part in self._in.get(f"part/{text_of(one.get('id'))}", ()):
                yield one, self._read(part)

    def _read(self, entry: Entry) -> Object:
        with self._source.open(entry) as stream:
            return _object(stream)


def _databases(source: Source) -> list[Entry]:
    return [each for each in source.meant(".db") if not each.base.endswith((".json", ".jsonl"))]


def _is_session(entry: Entry) -> bool:
    return entry.base.startswith("ses_") and "session/" in entry.name


def _object(stream: BinaryIO) -> Object:
    found = next(parsing.elements(stream), None)
    return mapping_of(found.value) if isinstance(found, parsing.Element) else {}


def object_in(text: object) -> Object:
    return mapping_of(parsing.loaded(text_of(text)))


def conversation_of(
    entry: Entry, session: Object, parts: Iterable[tuple[Object, Object]]
) -> Conversation:
    times = mapping_of(session.get("time"))
    messages: list[Said] = []
    heard_: list[Heard] = []
    calls = ShellCalls()
    for given, part in parts:
        heard_ += _heard(part, len(messages))
        messages += _said(given, part, calls)
    return Conversation(
        file=entry.name,
        source=OpenCode.name,
        source_id=text_of(session.get("id")),
        title=text_of(session.get("title")),
        messages=tuple(messages),
        heard=tuple(heard_),
        ran=tuple(calls.ran),
        created_at=_time(times.get("created")),
        updated_at=_time(times.get("updated")),
        cwd=text_of(session.get("directory")),
    )


def _said(given: Object, part: Object, calls: ShellCalls) -> Iterator[Said]:
    role, kind = text_of(given.get("role")), text_of(part.get("type"))
    time = _time(mapping_of(given.get("time")).get("created"))
    if kind == "text" and part.get("synthetic") is not True and part.get("ignored") is not True:
        text = text_of(part.get("text"))
        text = _unquoted(text) if role == "user" else text
        is_summary = role == "assistant" and given.get("summary") is True
        one = said("system", f"[summary]\n{text}", time) if is_summary else said(role, text, time)
        yield from filter(None, [one])
    elif kind == "tool":
        name, state = text_of(part.get("tool")), mapping_of(part.get("state"))
        yield from filter(
            None, [message("assistant", parsing.call(name, state.get("input")), time=time)]
        )
        calls.called(name, name, state.get("input"))
        yield from filter(None, [_ended(state, name, calls, time)])


def _ended(state: Object, name: str, calls: ShellCalls, time: str) -> Said | None:
    """Return the note of a result; a command with a status is completed, whatever the status."""
    status = mapping_of(state.get("metadata")).get("exit")
    if state.get("status") == "error":
        return calls.ended(name, None, text_of(state.get("error")), name=name, time=time)
    if state.get("status") != "completed" or not isinstance(status, int):
        return None
    return calls.ended(name, status, text_of(state.get("output")), name=name, time=time)


def _heard(part: Object, at: int) -> Iterator[Heard]:
    if text_of(part.get("type")) == "tool":
        state = mapping_of(part.get("state"))
        yield heard(text_of(part.get("tool")), state.get("input"), text_of(state.get("output")), at)


def _unquoted(text: str) -> str:
    """Return a prompt without the quotes in which `opencode run` passes it on."""
    inner = text[1:-1]
    is_quoted = text == f'"{inner}"' and " " in inner and not _BARE_QUOTE.search(inner)
    return inner.replace('\\"', '"') if is_quoted else text


def _time(value: object) -> str:
    """Return a time of milliseconds since 1970."""
    return time_of(value / 1000) if isinstance(value, int | float) else time_of(value)
