"""Sessions of opencode: `~/.local/share/opencode/opencode.db`, an SQLite database.

Older ones are files below `storage/`: `session/*/ID.json`, `message/ID/*.json`, `part/ID/*.json`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from perdure.errors import StorageError
from perdure.model.messages import text_of
from perdure.sqlite import open_read_only
from perdure.transfer import json_records
from perdure.transfer.contract import ImportFinding, MessageFields, SessionItem, ToolOutput
from perdure.transfer.json_records import (
    Items,
    Record,
    ShellCalls,
    message,
    speech_message,
    time_of,
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
        yield from _session_files(source)

    def session(self, source: ImportSource, session_id: str | None) -> Items:
        for entry in _databases(source):
            yield from self._database(source, entry, session_id)

    def _database(self, source: ImportSource, entry: SourceFile, session_id: str | None) -> Items:
        path = source.path / entry.name if source.is_folder else source.path
        try:
            with open_read_only(path) as database:
                sessions = database.execute(_SESSIONS, (session_id,)).fetchall()
                for name, folder, title, began, last in sessions:
                    rows = database.execute(_PARTS, (name,))
                    found = ((parsed_object(one), parsed_object(part)) for one, part in rows)
                    times = {"created": began, "updated": last}
                    session = {"id": name, "directory": folder, "title": title, "time": times}
                    yield session_item(entry, session, found)
        except StorageError as error:
            what = f"it can't be read as a database of opencode: {str(error.__cause__)[:80]}"
            fix = "name the file opencode.db of a current opencode"
            yield ImportFinding(entry.name, "", what, fix)


def _session_files(source: ImportSource) -> Items:
    """Yield the sessions of an older opencode, whose messages and parts are files of their own."""
    files: dict[str, list[SourceFile]] = {}
    for each in source.with_suffix(".json"):
        files.setdefault("/".join(each.name.split("/")[-3:-1]), []).append(each)

    def objects(folder: str) -> Iterator[Record]:
        for file in files.get(folder, ()):
            with source.open(file) as stream:
                yield _object(stream)

    def read(entry: SourceFile, stream: BinaryIO) -> Items:
        session = _object(stream)
        id_ = session.text("id")
        if id_ and not session.get("parentID"):
            messages = objects(f"message/{id_}")
            pairs = ((m, part) for m in messages for part in objects(f"part/{m.text('id')}"))
            yield session_item(entry, session, pairs)

    sessions = [each for each in source.entries if _is_session(each)]
    return json_records.each_file(source, sessions, read)


def _databases(source: ImportSource) -> list[SourceFile]:
    return [each for each in source.selected(".db") if not each.base.endswith((".json", ".jsonl"))]


def _is_session(entry: SourceFile) -> bool:
    return entry.base.startswith("ses_") and "session/" in entry.name


def _object(stream: BinaryIO) -> Record:
    found = next(json_records.json_elements(stream), None)
    return Record.of(found.value) if isinstance(found, json_records.JsonElement) else Record()


def parsed_object(text: object) -> Record:
    return Record.of(json_records.parsed_json(text_of(text)))


def session_item(
    entry: SourceFile, given: Mapping[str, object], entries: Iterable[tuple[Record, Record]]
) -> SessionItem:
    session = Record(given)
    times = session.object("time")
    messages: list[MessageFields] = []
    outputs: list[ToolOutput] = []
    calls = ShellCalls()
    for message_, part in entries:
        outputs += _outputs(part, len(messages))
        messages += _messages(message_, part, calls)
    return SessionItem(
        file=entry.name,
        source=OpenCodeFormat.name,
        source_id=session.text("id"),
        title=session.text("title"),
        messages=tuple(messages),
        tool_outputs=tuple(outputs),
        commands=tuple(calls.finished),
        created_at=_time(times.get("created")),
        updated_at=_time(times.get("updated")),
        cwd=session.text("directory"),
    )


def _messages(given: Record, part: Record, calls: ShellCalls) -> Iterator[MessageFields]:
    role, kind = given.text("role"), part.text("type")
    time = _time(given.object("time").get("created"))
    if kind == "text" and part.get("synthetic") is not True and part.get("ignored") is not True:
        text = part.text("text")
        text = _unquoted(text) if role == "user" else text
        is_summary = role == "assistant" and given.get("summary") is True
        one = (
            speech_message("system", f"[summary]\n{text}", time)
            if is_summary
            else speech_message(role, text, time)
        )
        yield from filter(None, [one])
    elif kind == "tool":
        name, state = part.text("tool"), part.object("state")
        yield from filter(
            None,
            [message("assistant", json_records.call_line(name, state.get("input")), time=time)],
        )
        calls.start(name, name, state.get("input"))
        yield from filter(None, [_ended(state, name, calls, time)])


def _ended(state: Record, name: str, calls: ShellCalls, time: str) -> MessageFields | None:
    """Return the message of a result; a command with any exit status is completed."""
    status = state.object("metadata").get("exit")
    if state.get("status") == "error":
        return calls.finish(name, None, state.text("error"), name=name, time=time)
    if state.get("status") != "completed" or not isinstance(status, int):
        return None
    return calls.finish(name, status, state.text("output"), name=name, time=time)


def _outputs(part: Record, at: int) -> Iterator[ToolOutput]:
    if part.text("type") == "tool":
        state = part.object("state")
        yield json_records.tool_output(
            part.text("tool"), state.get("input"), state.text("output"), at
        )


def _unquoted(text: str) -> str:
    """Return a prompt without the quotes that `opencode run` adds."""
    inner = text[1:-1]
    is_quoted = text == f'"{inner}"' and " " in inner and not _BARE_QUOTE.search(inner)
    return inner.replace('\\"', '"') if is_quoted else text


def _time(value: object) -> str:
    """Return milliseconds since 1970, or a text, as ISO 8601."""
    return time_of(value / 1000) if isinstance(value, int | float) else time_of(value)
