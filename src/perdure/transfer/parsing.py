"""What all formats read with: large JSON, and messages and texts of other programs."""

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import BinaryIO, NamedTuple

from perdure.engine.commands import SHELLS
from perdure.engine.failures import failed_mark, is_failure, may_fix, worked_mark
from perdure.errors import InvalidValueError, UnreadableSourceError
from perdure.model.messages import json_of, text_of, time_in
from perdure.model.private import switch_in
from perdure.model.speech import SAID, Kind, speech_of
from perdure.model.trust import is_own_tool, origin_of
from perdure.model.values import JSON, MAX_SHOWN, shortened
from perdure.patterns import later
from perdure.transfer.contract import (
    ImportFinding,
    ImportItem,
    MessageFields,
    SessionItem,
    ToolOutput,
)
from perdure.transfer.source import ImportSource, SourceFile

MOST_CHARACTERS = 32_000_000
"""Of one element or line. Read, it takes some ten times as many bytes of memory, no more."""
MOST_BYTES = 1_000_000_000
"""Of a file that is one list, and is held as text while its elements are read."""

_TOKEN = later(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]|"', re.DOTALL)
"""A whole string, something that structures, or a string that does not end here."""


_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class JsonElement(NamedTuple):
    number: int
    value: object


class MalformedJson(NamedTuple):
    number: int
    what: str


JsonValue = JsonElement | MalformedJson


# ---------------------------------------------------------------- lists
def json_elements(stream: BinaryIO, keys: Sequence[str] = ()) -> Iterator[JsonValue]:
    """Yield the elements of a list, one by one, so that one bad one is one finding.

    An object instead of a list is one element; if it has lists under some of the `keys`, their
    elements are meant.
    """
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        what = f"it has more than {MOST_BYTES:,} bytes. Fix: split it."
        raise UnreadableSourceError(what)
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    text = data.decode(encoding, errors="replace").strip()
    if text.startswith("["):
        for number, piece in enumerate(_pieces(text), start=1):
            yield _parsed(number, piece)
    elif text:
        yield from _single(text, keys)


def _single(text: str, keys: Sequence[str]) -> Iterator[JsonValue]:
    found = _parsed(1, text)
    known = mapping_of(found.value) if isinstance(found, JsonElement) else {}
    lists = [inner for key in keys if isinstance(inner := known.get(key), list)]
    if not lists:
        yield found
    for number, value in enumerate(chain.from_iterable(lists), start=1):
        yield JsonElement(number, value)


def _pieces(text: str) -> Iterator[str]:
    """Yield the texts of the elements of a list; the last may lack its end."""
    depth, start = 0, 1
    for token in _TOKEN.finditer(text, 1):
        mark = token[0]
        if mark == '"':  # a string that does not end
            break
        if mark in "[{":
            depth += 1
        elif depth and mark in "]}":
            depth -= 1
        elif not depth and mark in ",]}":
            piece = text[start : token.start()]
            if piece.strip() or mark == ",":
                yield piece
            if mark != ",":
                return
            start = token.end()
    if text[start:].strip():
        yield text[start:]


def _parsed(number: int, text: str | None) -> JsonValue:
    if text is None or len(text) > MOST_CHARACTERS:
        return MalformedJson(number, f"it has more than {MOST_CHARACTERS:,} characters")
    try:
        return JsonElement(number, json.loads(text))
    except RecursionError:
        return MalformedJson(number, "it is nested too deep")
    except ValueError as error:  # also of a number that is too long
        return MalformedJson(number, f"it is no JSON: {str(error)[:80]}")


# ---------------------------------------------------------------- lines
def json_lines(stream: BinaryIO) -> Iterator[JsonValue]:
    number = 0
    while line := stream.readline(MOST_CHARACTERS + 1):
        number += 1
        if len(line) > MOST_CHARACTERS:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MOST_CHARACTERS)
            yield _parsed(number, None)
        elif line.strip():
            yield _line(number, line)


def _line(number: int, line: bytes) -> JsonValue:
    try:
        return _parsed(number, line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        return MalformedJson(number, "it is no UTF-8 text")


MOST_OF_A_CALL = 160
"""Characters of what a tool was asked."""
MOST_OF_A_FAILURE = 300
"""Characters of what a tool answered when it failed."""
_START_OF_A_FAILURE = 100
MOST_OF_A_MESSAGE = 1_000_000


def mapping_of(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def time_of(value: object) -> str:
    """Return a time as ISO 8601 in UTC: of seconds since 1970, or of a text; "" if it is none."""
    found = time_in(value)
    return "" if found is None else found.isoformat()


def truncate(text: str, most: int) -> str:
    """Return a text of which no more than `most` is kept, and which says what is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were not imported]"


_ARGUMENTS = (
    *("command", "cmd", "file_path", "filePath", "path", "notebook_path", "pattern", "query"),
    *("url", "uri", "text", "description", "prompt", "code", "input", "name"),
)
"""Which argument of a call tells most; the first of these that it has."""
_SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"})


def call_line(name: str, given: object) -> str:
    """Return that a tool was called, as one line: `[called NAME: what it was asked]`."""
    asked = shortened(" ".join(argument_of(given).split()), MOST_OF_A_CALL)
    named = " ".join(name.split())[:MAX_SHOWN] or "a tool"
    return f"[called {named}: {asked}]" if asked else f"[called {named}]"


def parsed_json(value: object) -> object:
    """Return what a text says that is a JSON object; any other value as it is."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def argument_of(given: object) -> str:
    given = parsed_json(given)
    known = mapping_of(given)
    if known:
        told = next((known[each] for each in _ARGUMENTS if known.get(each)), None)
        texts = (each for each in known.values() if isinstance(each, str) and each)
        return argument_of(told) if told is not None else next(texts, json_of(given) or "")
    if isinstance(given, list):
        words = [text_of(each) for each in given]
        return words[-1] if words[:1] and words[0] in _SHELLS else " ".join(words)
    return text_of(given)


class ShellCalls:
    """The commands of a session whose results are not read yet, and what is noted of results.

    A failure is noted with its signature, so that it is known again; what worked, only for some
    commands after a failure: of these one may be what fixed it.
    """

    def __init__(self, state: object = None) -> None:
        known = mapping_of(state)
        left = known.get("left")
        self._left = left if isinstance(left, int) else 0
        self._open = {id_: text_of(each) for id_, each in mapping_of(known.get("open")).items()}
        self.finished: list[tuple[str, bool]] = []

    @property
    def state(self) -> JSON:
        """What it takes to go on with a session that was read in part."""
        kept: dict[str, JSON] = dict([*self._open.items()][-_MOST_OPEN:])
        return {"left": self._left, "open": kept}

    def start(self, id_: str, name: str, given: object) -> None:
        """Note a call, if it is of a command that somebody waits for."""
        if name in SHELLS and mapping_of(given).get("run_in_background") is not True:
            self._open[id_] = shortened(" ".join(argument_of(given).split()), MOST_OF_A_CALL)

    def finish(
        self, id_: str, status: int | None, output: str, *, name: object = "", time: object = None
    ) -> MessageFields | None:
        """Return the note of a result: of a failure, or that a command worked; None for others.

        Without a `status` the call failed in another way, as when the user refuses it.
        """
        command = self._open.pop(id_, "")
        self.finished += [(command, status == 0)] if command else []
        if status == 0:
            is_noted = self._left > 0 and may_fix(command)
            self._left -= is_noted
            return message("tool", worked_mark(command), time=time) if is_noted else None
        mark = failed_mark(output, command) if status and is_failure(status) else ""
        self._left = _FOLLOWED if mark else self._left
        return failure_message(output, name=name, time=time, mark=mark)


_MOST_OPEN = 32
_FOLLOWED = 12
"""So many commands that work are noted after a failure."""


def failure_message(
    output: str, *, name: object = "", time: object = None, mark: str = ""
) -> MessageFields | None:
    """Return a part of what a tool said that failed; None if Perdure itself said it."""
    found = speech_of("tool", output)
    text = found.text
    if len(text) > MOST_OF_A_FAILURE:
        end = MOST_OF_A_FAILURE - _START_OF_A_FAILURE - 3
        text = f"{text[:_START_OF_A_FAILURE]} … {text[-end:]}"
    return message("tool", f"{mark or '[failed] '}{text}", name=name, time=time) if text else None


def speech_message(role: str, content: str, time: object = None) -> MessageFields | None:
    """Return what was said in a text; None if nobody said it. A summary is a system's message."""
    switched = switch_in(content) if role == "user" else None
    if switched is not None:
        return message(role, f"/private {'on' if switched else 'off'}", time=time)
    found = speech_of(role, content)
    if found.kind is Kind.SUMMARY:
        return message("system", f"[summary]\n{found.text}", time=time)
    is_kept = found.kind in SAID or found.kind is Kind.CALL or role == "user"
    return message(role, found.text, time=time) if is_kept else None


def message(
    role: str, content: str, *, name: object = "", time: object = None
) -> MessageFields | None:
    """Return a message; None if nothing was said."""
    if not content.strip():
        return None
    said = {"role": role, "content": truncate(content, MOST_OF_A_MESSAGE)}
    if named := " ".join(text_of(name).split())[:MAX_SHOWN]:
        said["name"] = named
    if when := time_of(time):
        said["time"] = when
    return said


def digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


_SHOWN = frozenset({"image", "document", "file"})


_STATUS = later(r"(?:Error: )?Exit code (\d{1,3})\b")


def anthropic_messages(
    role: str, content: object, time: object, calls: ShellCalls | None = None
) -> Iterator[MessageFields]:
    """Yield what a message of Anthropic's says: its texts and calls as one, failures of tools.

    Thoughts and results are left out: nobody said them.
    """
    calls = calls or ShellCalls()
    spoken: list[str] = []
    others: list[MessageFields | None] = []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
    for block in map(mapping_of, blocks):
        kind = text_of(block.get("type"))
        if kind == "tool_use":
            name = text_of(block.get("name"))
            calls.start(text_of(block.get("id")), name, block.get("input"))
            spoken.append(call_line(name, block.get("input")))
        elif kind == "tool_result":
            output = _text(block.get("content"))
            exited = _STATUS.match(output)
            failed = int(exited[1]) if exited else None
            status = failed if block.get("is_error") is True else 0
            others.append(
                calls.finish(text_of(block.get("tool_use_id")), status, output, time=time)
            )
        elif kind in _SHOWN:
            spoken.append(f"[{kind}]")
        elif kind in {"text", ""}:
            one = speech_message(role, text_of(block.get("text")))
            if one is not None and one["role"] == role:
                spoken.append(one["content"])
            elif one is not None:
                others.append(message(one["role"], one["content"], time=time))
    yield from filter(None, [message(role, "\n\n".join(spoken), time=time), *others])


Calls = dict[str, tuple[str, str]]
"""The tools that were called, by the ids of the calls: the name, and what was asked."""


def anthropic_tool_outputs(content: object, at: int, calls: Calls) -> Iterator[ToolOutput]:
    """Yield what tools returned in a message of Anthropic's; note the calls in it."""
    for block in map(mapping_of, list_of(content)):
        kind = text_of(block.get("type"))
        if kind.endswith("tool_use"):
            called = text_of(block.get("name")), argument_of(block.get("input"))
            calls[text_of(block.get("id"))] = called
        elif kind.endswith("tool_result"):
            called = calls.get(text_of(block.get("tool_use_id")), ("", ""))
            if not is_own_tool(called[0]):
                yield ToolOutput(at, origin_of(*called), _text(block.get("content")))


def tool_output(name: str, given: object, output: str, at: int) -> ToolOutput:
    """Return what a tool returned to a call; nothing, if it is one of ours."""
    return ToolOutput(at, origin_of(name, argument_of(given)), "" if is_own_tool(name) else output)


def _text(content: object) -> str:
    blocks = [content] if isinstance(content, str) else list_of(content)
    texts = (text_of(each) or text_of(mapping_of(each).get("text")) for each in blocks)
    return "\n".join(filter(None, texts))


ReadFile = Callable[[SourceFile, BinaryIO], Iterator[ImportItem | ImportFinding]]
ReadObject = Callable[[SourceFile, str, Mapping[str, object]], Iterator[ImportItem | ImportFinding]]

CORRECT_IT = "correct it, or leave it out"
_LOOKED_AT = 20
_NAMED = 5
_EXPORTED = later(r"conversations(-\d+)?\.json")


def each_file(
    source: ImportSource, entries: list[SourceFile], read: ReadFile
) -> Iterator[ImportItem | ImportFinding]:
    """Yield what is read from each file; one that can't be read is a finding."""
    for entry in entries:
        try:
            with source.open(entry) as stream:
                yield from read(entry, stream)
        except UnreadableSourceError as error:
            what, _, fix = str(error).partition(". Fix: ")
            yield ImportFinding(entry.name, "", what, fix.removesuffix("."))


def each_text(
    source: ImportSource,
    entries: list[SourceFile],
    most: int,
    read: Callable[[SourceFile, str], Iterator[ImportItem | ImportFinding]],
) -> Iterator[ImportItem | ImportFinding]:
    """Yield what is read from the text of each file; one that is too long, or empty, is told."""

    def decoded(entry: SourceFile, stream: BinaryIO) -> Iterator[ImportItem | ImportFinding]:
        data = stream.read(4 * most + 1)
        try:
            text = data.decode(errors="replace" if len(data) > 4 * most else "strict")
        except UnicodeDecodeError:
            yield ImportFinding(entry.name, "", "it is no UTF-8 text", "save it as UTF-8")
            return
        if len(text) > most:
            what = f"it has more than {most:,} characters"
            yield ImportFinding(entry.name, "", what, "split it into several files")
        elif not text.strip():
            yield ImportFinding(
                entry.name, "", "it is empty", "nothing; write something", refused=False
            )
        else:
            try:
                yield from read(entry, text)
            except InvalidValueError as error:
                yield ImportFinding(entry.name, "", str(error).partition(" Fix: ")[0], CORRECT_IT)

    return each_file(source, entries, decoded)


def count_and_names(names: Sequence[str]) -> str:
    """Return how many names there are, and some of them."""
    some = ", ".join(ascii(name) for name in names[:_NAMED])
    return f"{len(names):,} ({some}{', …' if len(names) > _NAMED else ''})"


def subagent_finding(entry: SourceFile) -> ImportFinding:
    """Return that a file was left out because a subagent wrote it: its words are not the user's."""
    what = "it is the session of a subagent, and was left out"
    return ImportFinding(entry.name, "", what, "nothing; what you saw went in", refused=False)


def file_heads(source: ImportSource, *suffixes: str) -> Iterator[bytes]:
    for entry in source.with_suffix(*suffixes)[:_LOOKED_AT]:
        yield source.head(entry)


def each_object(
    entry: SourceFile, noun: str, found: Iterator[JsonValue], take: ReadObject
) -> Iterator[ImportItem | ImportFinding]:
    """Yield what `take` makes of each object; what is malformed or refused is a finding."""
    for each in found:
        where = f"{noun} {each.number}"
        if isinstance(each, MalformedJson):
            yield ImportFinding(entry.name, where, each.what, CORRECT_IT)
        elif not isinstance(each.value, dict):
            yield ImportFinding(entry.name, where, "it is no JSON object", CORRECT_IT)
        else:
            try:
                yield from take(entry, where, each.value)
            except InvalidValueError as error:
                yield ImportFinding(entry.name, where, str(error), CORRECT_IT)


def begins_with(source: ImportSource, suffixes: tuple[str, ...], *marks: bytes) -> bool:
    """Whether one of these marks is in how a few of the files with such names begin."""
    return any(mark in head for head in file_heads(source, *suffixes) for mark in marks)


def conversation_files(source: ImportSource) -> list[SourceFile]:
    """Return the files of an export that hold conversations; if none is named so, all JSON."""
    every = source.selected(".json")
    return [entry for entry in every if _EXPORTED.fullmatch(entry.base)] or every


def with_branches(one: SessionItem, others: int) -> Iterator[ImportItem | ImportFinding]:
    """Yield a conversation, and how many messages of its other branches are left out."""
    yield one
    if others:
        what = f"messages of other branches were left out: {others}"
        yield one.finding(what, "nothing; the branch that you see went in", refused=False)
