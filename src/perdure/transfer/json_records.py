"""Read large JSON files, and turn messages and tool calls of other programs into messages."""

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import BinaryIO, NamedTuple

from perdure.engine.tool_calls import SHELLS, failed_mark, is_failure, may_fix, worked_mark
from perdure.errors import InvalidValueError, UnreadableSourceError
from perdure.model.messages import json_of, text_of, time_in
from perdure.model.privacy import switch_in
from perdure.model.speech import SPOKEN, SpeechKind, speech_of
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

Items = Iterator[ImportItem | ImportFinding]

MOST_CHARACTERS = 32_000_000
"""Of one element or line. Parsing it takes about ten times as many bytes of memory."""
MOST_BYTES = 1_000_000_000
"""Of a file that is one list, which is held as text while its elements are read."""

_TOKEN = later(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]|"', re.DOTALL)
"""A complete string, a structural character, or the start of a string that does not end."""

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


# ---------------------------------------------------------------- JSON
def json_elements(stream: BinaryIO, keys: Sequence[str] = ()) -> Iterator[JsonValue]:
    """Yield the elements of a list one by one, so that a malformed one does not stop the others.

    An object is one element; if it has lists under some of the `keys`, these are read instead.
    """
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UnreadableSourceError(f"it has more than {MOST_BYTES:,} bytes. Fix: split it.")
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    text = data.decode(encoding, errors="replace").strip()
    if text.startswith("["):
        for number, piece in enumerate(_pieces(text), start=1):
            yield _parsed(number, piece)
    elif text:
        found = _parsed(1, text)
        known = Record.of(found.value) if isinstance(found, JsonElement) else Record()
        lists = [inner for key in keys if isinstance(inner := known.get(key), list)]
        if not lists:
            yield found
        for number, value in enumerate(chain.from_iterable(lists), start=1):
            yield JsonElement(number, value)


def _pieces(text: str) -> Iterator[str]:
    """Yield the texts of the elements of a list; the last may be incomplete."""
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
    except ValueError as error:  # also raised for a number that is too long
        return MalformedJson(number, f"it is not JSON: {str(error)[:80]}")


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
        return MalformedJson(number, "it is not UTF-8 text")


def parsed_json(value: object) -> object:
    """Return the object of a text that is a JSON object; return any other value unchanged."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def time_of(value: object) -> str:
    """Return seconds since 1970, or a text, as ISO 8601 in UTC; "" if it is not a time."""
    found = time_in(value)
    return "" if found is None else found.isoformat()


class Record(dict[str, object]):
    """A JSON object of an imported file. A value of another type than expected counts as empty."""

    @classmethod
    def of(cls, value: object) -> "Record":
        return cls(value) if isinstance(value, dict) else cls()

    def text(self, key: str) -> str:
        return text_of(self.get(key))

    def time(self, key: str) -> str:
        return time_of(self.get(key))

    def array(self, key: str) -> list[object]:
        return list_of(self.get(key))

    def object(self, key: str) -> "Record":
        return Record.of(self.get(key))

    def objects(self, key: str) -> "list[Record]":
        return [Record.of(each) for each in self.array(key)]


def digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


# ---------------------------------------------------------------- tool calls
MOST_OF_A_CALL = 160
"""Characters of the argument of a tool call."""
MOST_OF_A_FAILURE = 300
"""Characters of the output of a tool that failed."""
_START_OF_A_FAILURE = 100
MOST_OF_A_MESSAGE = 1_000_000

_ARGUMENTS = (
    *("command", "cmd", "file_path", "filePath", "path", "notebook_path", "pattern", "query"),
    *("url", "uri", "text", "description", "prompt", "code", "input", "name"),
)
"""The arguments of a call that describe it best; the first that it has is used."""
_SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"})
_MOST_OPEN = 32
_FOLLOWED = 12
"""The number of successful commands that are noted after a failure."""


def call_line(name: str, given: object) -> str:
    """Return a tool call as one line: `[called NAME: argument]`."""
    argument = shortened(" ".join(argument_of(given).split()), MOST_OF_A_CALL)
    named = " ".join(name.split())[:MAX_SHOWN] or "a tool"
    return f"[called {named}: {argument}]" if argument else f"[called {named}]"


def argument_of(given: object) -> str:
    given = parsed_json(given)
    known = Record.of(given)
    if known:
        best = next((known[each] for each in _ARGUMENTS if known.get(each)), None)
        texts = (each for each in known.values() if isinstance(each, str) and each)
        return argument_of(best) if best is not None else next(texts, json_of(given) or "")
    if isinstance(given, list):
        words = [text_of(each) for each in given]
        return words[-1] if words[:1] and words[0] in _SHELLS else " ".join(words)
    return text_of(given)


class ShellCalls:
    """The commands of a session whose results are not read yet.

    A failure is noted with its signature, so that it is recognised later. A success is noted only
    for some commands after a failure, because one of these may be the fix.
    """

    def __init__(self, state: object = None) -> None:
        known = Record.of(state)
        left = known.get("left")
        self._left = left if isinstance(left, int) else 0
        self._open = {id_: text_of(each) for id_, each in known.object("open").items()}
        self.finished: list[tuple[str, bool]] = []

    @property
    def state(self) -> JSON:
        """What is needed to continue a session that was read in part."""
        last: dict[str, JSON] = dict([*self._open.items()][-_MOST_OPEN:])
        return {"left": self._left, "open": last}

    def start(self, id_: str, name: str, given: object) -> None:
        """Note a call, if it runs a command in the foreground."""
        if name in SHELLS and Record.of(given).get("run_in_background") is not True:
            self._open[id_] = shortened(" ".join(argument_of(given).split()), MOST_OF_A_CALL)

    def finish(
        self, id_: str, status: int | None, output: str, *, name: object = "", time: object = None
    ) -> MessageFields | None:
        """Return the message of a failure, or of a success that is noted; None for others.

        `status` is None if the call failed without one, for example because the user refused it.
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


def failure_message(
    output: str, *, name: object = "", time: object = None, mark: str = ""
) -> MessageFields | None:
    """Return the start and end of what a failed tool printed; None if Perdure printed it."""
    text = speech_of("tool", output).text
    if len(text) > MOST_OF_A_FAILURE:
        end = MOST_OF_A_FAILURE - _START_OF_A_FAILURE - 3
        text = f"{text[:_START_OF_A_FAILURE]} … {text[-end:]}"
    return message("tool", f"{mark or '[failed] '}{text}", name=name, time=time) if text else None


def tool_output(name: str, given: object, output: str, messages_before: int) -> ToolOutput:
    """Return what a tool returned to a call; without its text, if it is a tool of Perdure."""
    text = "" if is_own_tool(name) else output
    return ToolOutput(messages_before, origin_of(name, argument_of(given)), text)


# ---------------------------------------------------------------- messages
def truncate(text: str, most: int) -> str:
    """Return the first `most` characters of a text, and how many follow."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were not imported]"


def message(
    role: str, content: str, *, name: object = "", time: object = None
) -> MessageFields | None:
    """Return a message; None if it is empty."""
    if not content.strip():
        return None
    fields = {"role": role, "content": truncate(content, MOST_OF_A_MESSAGE)}
    if named := " ".join(text_of(name).split())[:MAX_SHOWN]:
        fields["name"] = named
    if when := time_of(time):
        fields["time"] = when
    return fields


def speech_message(role: str, content: str, time: object = None) -> MessageFields | None:
    """Return a message without text that an agent injected; None if nothing is left of it.

    A summary becomes a message of the system.
    """
    switched = switch_in(content) if role == "user" else None
    if switched is not None:
        return message(role, f"/private {'on' if switched else 'off'}", time=time)
    found = speech_of(role, content)
    if found.kind is SpeechKind.SUMMARY:
        return message("system", f"[summary]\n{found.text}", time=time)
    is_speech = found.kind in SPOKEN or found.kind is SpeechKind.CALL or role == "user"
    return message(role, found.text, time=time) if is_speech else None


_SHOWN = frozenset({"image", "document", "file"})
_STATUS = later(r"(?:Error: )?Exit code (\d{1,3})\b")


def anthropic_messages(
    role: str, content: object, time: object, calls: ShellCalls | None = None
) -> Iterator[MessageFields]:
    """Yield a message in Anthropic's format: texts and calls as one, and failures of tools.

    Thoughts and successful results are ignored.
    """
    calls = calls or ShellCalls()
    texts: list[str] = []
    others: list[MessageFields | None] = []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
    for block in map(Record.of, blocks):
        kind = block.text("type")
        if kind == "tool_use":
            name = block.text("name")
            calls.start(block.text("id"), name, block.get("input"))
            texts.append(call_line(name, block.get("input")))
        elif kind == "tool_result":
            output = _block_text(block.get("content"))
            exited = _STATUS.match(output)
            failed = int(exited[1]) if exited else None
            status = failed if block.get("is_error") is True else 0
            id_ = block.text("tool_use_id")
            others.append(calls.finish(id_, status, output, time=time))
        elif kind in _SHOWN:
            texts.append(f"[{kind}]")
        elif kind in {"text", ""}:
            speech = speech_message(role, block.text("text"))
            if speech is not None and speech["role"] == role:
                texts.append(speech["content"])
            elif speech is not None:
                others.append(message(speech["role"], speech["content"], time=time))
    yield from filter(None, [message(role, "\n\n".join(texts), time=time), *others])


Calls = dict[str, tuple[str, str]]
"""Tool calls by id: the name of the tool, and its argument."""


def anthropic_tool_outputs(
    content: object, messages_before: int, calls: Calls
) -> Iterator[ToolOutput]:
    """Yield what tools returned in a message in Anthropic's format; add its calls to `calls`."""
    for block in map(Record.of, list_of(content)):
        kind = block.text("type")
        if kind.endswith("tool_use"):
            call = block.text("name"), argument_of(block.get("input"))
            calls[block.text("id")] = call
        elif kind.endswith("tool_result"):
            call = calls.get(block.text("tool_use_id"), ("", ""))
            if not is_own_tool(call[0]):
                text = _block_text(block.get("content"))
                yield ToolOutput(messages_before, origin_of(*call), text)


def _block_text(content: object) -> str:
    blocks = [content] if isinstance(content, str) else list_of(content)
    texts = (text_of(each) or Record.of(each).text("text") for each in blocks)
    return "\n".join(filter(None, texts))


# ---------------------------------------------------------------- files of a source
CORRECT_IT = "correct it, or leave it out"
_LOOKED_AT = 20
_NAMED = 5
_EXPORTED = later(r"conversations(-\d+)?\.json")


def each_file(
    source: ImportSource,
    entries: list[SourceFile],
    read: Callable[[SourceFile, BinaryIO], Items],
) -> Items:
    """Yield the items of each file; one that can't be read is a finding."""
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
    read: Callable[[SourceFile, str], Items],
) -> Items:
    """Yield the items of the text of each file; one that is too long or empty is a finding."""

    def decoded(entry: SourceFile, stream: BinaryIO) -> Items:
        data = stream.read(4 * most + 1)
        try:
            text = data.decode(errors="replace" if len(data) > 4 * most else "strict")
        except UnicodeDecodeError:
            yield ImportFinding(entry.name, "", "it is not UTF-8 text", "save it as UTF-8")
            return
        if len(text) > most:
            what = f"it has more than {most:,} characters"
            yield ImportFinding(entry.name, "", what, "split it into several files")
        elif not text.strip():
            yield skipped(entry.name, "it is empty", "nothing; write something")
        else:
            try:
                yield from read(entry, text)
            except InvalidValueError as error:
                what = str(error).partition(" Fix: ")[0]
                yield ImportFinding(entry.name, "", what, CORRECT_IT)

    return each_file(source, entries, decoded)


def each_object(
    entry: SourceFile,
    noun: str,
    values: Iterator[JsonValue],
    read: Callable[[SourceFile, str, Record], Items],
) -> Items:
    """Yield the items of each JSON object; what is malformed or refused is a finding."""
    for each in values:
        where = f"{noun} {each.number}"
        if isinstance(each, MalformedJson):
            yield ImportFinding(entry.name, where, each.what, CORRECT_IT)
        elif not isinstance(each.value, dict):
            yield ImportFinding(entry.name, where, "it is not a JSON object", CORRECT_IT)
        else:
            try:
                yield from read(entry, where, Record(each.value))
            except InvalidValueError as error:
                yield ImportFinding(entry.name, where, str(error), CORRECT_IT)


def file_heads(source: ImportSource, *suffixes: str) -> Iterator[bytes]:
    """Yield the first bytes of a few files with these suffixes."""
    for entry in source.with_suffix(*suffixes)[:_LOOKED_AT]:
        yield source.head(entry)


def begins_with(source: ImportSource, suffixes: tuple[str, ...], *marks: bytes) -> bool:
    """Return whether the first bytes of a few files contain one of the marks."""
    return any(mark in head for head in file_heads(source, *suffixes) for mark in marks)


def conversation_files(source: ImportSource) -> list[SourceFile]:
    """Return the files of an export called `conversations`; all JSON files if there is none."""
    every = source.selected(".json")
    return [entry for entry in every if _EXPORTED.fullmatch(entry.base)] or every


def count_and_names(names: Sequence[str]) -> str:
    """Return the number of names, and the first of them."""
    some = ", ".join(ascii(name) for name in names[:_NAMED])
    return f"{len(names):,} ({some}{', …' if len(names) > _NAMED else ''})"


def skipped(file: str, what: str, fix: str, where: str = "") -> ImportFinding:
    """Return the finding for something that was left out, which is not an error."""
    return ImportFinding(file, where, what, fix, refused=False)


def subagent_finding(entry: SourceFile) -> ImportFinding:
    """Return the finding for a file of a subagent, whose words are not the user's."""
    what = "it is the session of a subagent, and was left out"
    return skipped(entry.name, what, "nothing; what you saw went in")


def with_branches(item: SessionItem, others: int) -> Items:
    """Yield a session, and how many messages of its other branches are left out."""
    yield item
    if others:
        what = f"messages of other branches were left out: {others}"
        yield item.finding(what, "nothing; the branch that you see went in", refused=False)


def counted_findings(file: str, counts: Mapping[str, int], fix: str = "nothing") -> Items:
    """Yield what was left out, with the number of each kind that is not zero."""
    for what, count in counts.items():
        if count > 0:
            yield skipped(file, f"{what} were left out: {count:,}", fix)
