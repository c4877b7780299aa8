"""Sessions of opencode: `~/.local/share/opencode/opencode.db`, an SQLite database.

Older ones are files below `storage/`: `session/*/ID.json`, `message/ID/*.json`, `part/ID/*.json`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from perdure.errors import StorageError
from perdure.model.messages import text_of
from perdure.sqlite import read_only
from perdure.transfer import parsing
from perdure.transfer.contract import (
    ImportFinding,
    MessageFields,
    SessionItem,
    ToolOutput,
)
from perdure.transfer.parsing import (
    Items,
    Object,
    ShellCalls,
    mapping_of,
    message,
    speech_message,
    time_of,
    tool_output,
)
from perdure.transfer.source import ImportSource, SourceFile

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


class OpenCodeFormat:
    name = "opencode"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        return any(_is_session(each) for each in source.entries) or any(
            source.head(each).startswith(_SQLITE) for each in _databases(source)
        )

    def items(self, source: ImportSource) -> Items:
        yield from self.session(source, None)
        sessions = [each for each in source.entries if _is_session(each)]
        yield from parsing.each_file(source, sessions, _SessionFiles(source).read)

    def session(self, source: ImportSource, session_id: str | None) -> Items:
        for entry in _databases(source):
            yield from self._database(source, entry, session_id)

    def _database(self, source: ImportSource, entry: SourceFile, session_id: str | None) -> Items:
        path = source.path / entry.name if source.is_folder else source.path
        try:
            with read_only(path) as database:
                sessions = database.execute(_SESSIONS, (session_id,)).fetchall()
                for name, folder, title, began, last in sessions:
                    parts = database.execute(_PARTS, (name,))
                    found = (
                        (parsed_object(first), parsed_object(second)) for first, second in parts
                    )
                    times = {"created": began, "updated": last}
                    session = {"id": name, "directory": folder, "title": title, "time": times}
                    yield session_item(entry, session, found)
        except StorageError as error:
            what = f"it can't be read as a database of opencode: {str(error.__cause__)[:80]}"
            yield ImportFinding(
                entry.name, "", what, "name the file opencode.db of a current opencode"
            )


class _SessionFiles:
    def __init__(self, source: ImportSource) -> None:
        self._source = source
        self._in: dict[str, list[SourceFile]] = {}
        for entry in source.with_suffix(".json"):
            self._in.setdefault("/".join(entry.name.split("/")[-3:-1]), []).append(entry)

    def read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        session = _object(stream)
        if text_of(session.get("id")) and not session.get("parentID"):
            yield session_item(entry, session, self._parts(text_of(session["id"])))

    def _parts(self, session: str) -> Iterator[tuple[Object, Object]]:
        for entry in self._in.get(f"message/{session}", ()):
            one = self._read(entry)
            for part in self._in.get(f"part/{text_of(one.get('id'))}", ()):
                yield one, self._read(part)

    def _read(self, entry: SourceFile) -> Object:
        with self._source.open(entry) as stream:
            return _object(stream)


def _databases(source: ImportSource) -> list[SourceFile]:
    return [each for each in source.selected(".db") if not each.base.endswith((".json", ".jsonl"))]


def _is_session(entry: SourceFile) -> bool:
    return entry.base.startswith("ses_") and "session/" in entry.name


def _object(stream: BinaryIO) -> Object:
    found = next(parsing.json_elements(stream), None)
    return mapping_of(found.value) if isinstance(found, parsing.JsonElement) else {}


def parsed_object(text: object) -> Object:
    return mapping_of(parsing.parsed_json(text_of(text)))


def session_item(
    entry: SourceFile, session: Object, parts: Iterable[tuple[Object, Object]]
) -> SessionItem:
    times = mapping_of(session.get("time"))
    messages: list[MessageFields] = []
    outputs: list[ToolOutput] = []
    calls = ShellCalls()
    for given, part in parts:
        outputs += _outputs(part, len(messages))
        messages += _messages(given, part, calls)
    return SessionItem(
        file=entry.name,
        source=OpenCodeFormat.name,
        source_id=text_of(session.get("id")),
        title=text_of(session.get("title")),
        messages=tuple(messages),
        tool_outputs=tuple(outputs),
        commands=tuple(calls.finished),
        created_at=_time(times.get("created")),
        updated_at=_time(times.get("updated")),
        cwd=text_of(session.get("directory")),
    )


def _messages(given: Object, part: Object, calls: ShellCalls) -> Iterator[MessageFields]:
    role, kind = text_of(given.get("role")), text_of(part.get("type"))
    time = _time(mapping_of(given.get("time")).get("created"))
    if kind == "text" and part.get("synthetic") is not True and part.get("ignored") is not True:
        text = text_of(part.get("text"))
        text = _unquoted(text) if role == "user" else text
        is_summary = role == "assistant" and given.get("summary") is True
        one = (
            speech_message("system", f"[summary]\n{text}", time)
            if is_summary
            else speech_message(role, text, time)
        )
        yield from filter(None, [one])
    elif kind == "tool":
        name, state = text_of(part.get("tool")), mapping_of(part.get("state"))
        yield from filter(
            None, [message("assistant", parsing.call_line(name, state.get("input")), time=time)]
        )
        calls.start(name, name, state.get("input"))
        yield from filter(None, [_ended(state, name, calls, time)])


def _ended(state: Object, name: str, calls: ShellCalls, time: str) -> MessageFields | None:
    """Return the message of a result; a command with any exit status is completed."""
    status = mapping_of(state.get("metadata")).get("exit")
    if state.get("status") == "error":
        return calls.finish(name, None, text_of(state.get("error")), name=name, time=time)
    if state.get("status") != "completed" or not isinstance(status, int):
        return None
    return calls.finish(name, status, text_of(state.get("output")), name=name, time=time)


def _outputs(part: Object, at: int) -> Iterator[ToolOutput]:
    if text_of(part.get("type")) == "tool":
        state = mapping_of(part.get("state"))
        yield tool_output(
            text_of(part.get("tool")), state.get("input"), text_of(state.get("output")), at
        )


def _unquoted(text: str) -> str:
    """Return a prompt without the quotes that `opencode run` adds."""
    inner = text[1:-1]
    is_quoted = text == f'"{inner}"' and " " in inner and not _BARE_QUOTE.search(inner)
    return inner.replace('\\"', '"') if is_quoted else text


def _time(value: object) -> str:
    """Return milliseconds since 1970, or a text, as ISO 8601."""
    return time_of(value / 1000) if isinstance(value, int | float) else time_of(value)
