"""The recap: what an agent did in its session, for the moment when its context was compacted.

It is read from the end of the transcript itself, because the session may not be kept yet.
"""

import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from perdure.agents.calls import PATCHED, command_of, within
from perdure.engine.commands import SHELLS
from perdure.engine.importing.contract import Conversation, Said
from perdure.engine.importing.formats.claude_code import ClaudeCode
from perdure.engine.importing.formats.codex import Codex
from perdure.engine.importing.formats.gemini_cli import GeminiCli
from perdure.engine.importing.reading import Element, lines, list_of, mapping_of, said
from perdure.engine.importing.sources import Entry, opened
from perdure.engine.learn.prose import sentences
from perdure.engine.recall.packing import tokens_in
from perdure.engine.validate.texts import presentable_line
from perdure.errors import PerdureError
from perdure.model.messages import text_of
from perdure.model.values import shortened
from perdure.sqlite import read_only

BUDGET = 200
MOST_BYTES = 600_000
"""Of the end of a transcript."""
_LONGEST_FIRST = 200_000
"""Bytes of its first line, which names the session."""
_MOST_PARTS = 400
_HEAD = "This session, before its context was compacted:"
_TASK_TOKENS, _FILES_TOKENS, _COMMANDS_TOKENS, _FIGURES_TOKENS = 54, 42, 48, 42
_LONGEST_TASK = 36
_LONGEST_COMMAND, _LONGEST_FIGURE = 90, 110
_MOST_OFFERED = 8
"""Parts of a line that are tried."""
_FEWEST_WORDS = 4
_LATEST_ANSWERS = 12
_PRIVATE = re.compile(rb"<private|/private(?![/\w])|private\s+on\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"(?:who|what|why|how|when|where|which|is|are|was|were|does|do|did|has|have)\b.*\?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_GOES_ON = re.compile(
    r"(?:please |ok,? |yes,? )*"
    r"(?:go on|go ahead|continue|proceed|keep going|carry on|and now|try again)"
    r"(?: \w+){0,3}[.!?]*\Z",
    re.IGNORECASE,
)
"""What lets the agent go on with what it was asked before."""
_CALLS = re.compile(r"^\[called [^\n]*$", re.MULTILINE)
_FIGURE = re.compile(
    r"(?<![\w.-])\d[\d.,]*\s?(?:%|percent\b|(?:ms|µs|us|ns|s|sec|seconds|min|minutes|h|hours|[kMGT]i?B"
    r"|bytes|tokens|passed|failed|fps|MHz|GHz|x|req/s|ops/s|rows/s)(?![\w/]))"
    r"|\b(?:[RP]@\d+|MRR|NDCG(?:@\d+)?|F1|AUC|recall|precision|accuracy|coverage|loss|score|p\d\d)"
    r"\W{1,3}(?:\w{2,3} )?\d[\d.,]*",
    re.IGNORECASE,
)
_PLANNED = re.compile(
    r"\b(?:will|should|could|would|might|let me|let's|expect|estimated?|target|budget|at most|limit"
    r"|need|if|goal|aim|timeout)\b|'ll\b",
    re.IGNORECASE,
)
_EXIT = re.compile(r"(?:Exit code|exited with code|exit_code)\W{1,4}(\d+)", re.IGNORECASE)
_PATHS = ("file_path", "filePath", "notebook_path", "path")
_EDITS = frozenset(
    {
        *("Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "replace", "write", "edit"),
        *("multiedit", "patch", "apply_patch"),
    }
)
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_ENTERED = re.compile(r"\A\s*cd \S+ && ")
_ASSIGNED = re.compile(r"(?:[A-Za-z_]\w*=\S*\s+)+")
_NOISE = frozenset(
    "ls cat cd pwd echo printf head tail less more grep rg egrep find fd tree wc stat file "  # noqa: SIM905 - a few lines, not fifty
    "diff "
    "which type env date sleep true test jq sort uniq cut nl ps kill touch mkdir export source "
    "set clear history man".split()
)
_NOISY_GIT = frozenset({"status", "diff", "log", "show", "branch", "remote", "fetch", "blame"})


class Call(NamedTuple):
    tool: str
    given: Mapping[str, object]
    worked: bool


class _Session(NamedTuple):
    messages: Sequence[Said]
    calls: Sequence[Call]


def recap(agent: str, transcript: Path, session_id: str, cwd: str = "") -> str:
    """Return what the end of a transcript says of the work, in at most 200 tokens.

    It is empty if the transcript can't be read, says nothing of the kind, or has private parts.
    """
    session = None
    with suppress(PerdureError, OSError):
        session = _session(agent, transcript, session_id)
    if session is None:
        return ""
    found = [
        _fitting("The user's open request, in their words:", _task(session.messages), _TASK_TOKENS),
        _fitting("Files edited:", _files(session.calls, cwd), _FILES_TOKENS),
        _fitting("Commands that worked:", _commands(session.calls), _COMMANDS_TOKENS),
        _fitting("Figures you reported:", _figures(session.messages), _FIGURES_TOKENS),
    ]
    body = [each for each in found if each]
    return "\n".join([_HEAD, *body]) if body else ""


def _fitting(title: str, parts: Iterable[str], budget: int) -> str:
    line = ""
    for part in islice(parts, _MOST_OFFERED):
        longer = f"{line}; {part}" if line else f"- {title} {part}"
        if tokens_in(longer) <= budget:
            line = longer
    return line


# ---------------------------------------------------------------- what it says
def _task(messages: Sequence[Said]) -> list[str]:
    """Return the last request of the user, as short as it has to be; a question is not one."""
    for message in reversed([each for each in messages if each["role"] == "user"]):
        own = " ".join(each.text for each in sentences(message["content"]))
        text = " ".join((own or message["content"]).split())
        is_task = len(text.split()) >= _FEWEST_WORDS and not text.startswith("/")
        if is_task and not (_QUESTION.match(text) or _GOES_ON.match(text)):
            while tokens_in(text) > _LONGEST_TASK:
                text = shortened(text, max(1, len(text) * 3 // 4))
            return [f'"{presentable_line(text)}"']
    return []


def _files(calls: Sequence[Call], cwd: str) -> Iterator[str]:
    """Yield the files that were edited: the last ones, and those that were edited most."""
    paths = [path for call in calls if call.worked for path in _edited(call, cwd)]
    times = Counter(paths)
    latest = list(dict.fromkeys(reversed(paths)))
    most = [path for path, count in times.most_common(4) if count > 1]
    for path in dict.fromkeys([*latest[:3], *most, *latest[3:8]]):
        count = f" ({times[path]} times)" if times[path] > 1 else ""
        yield f"{presentable_line(path)}{count}"


def _edited(call: Call, cwd: str) -> list[str]:
    if call.tool not in _EDITS:
        return []
    patches = (text_of(call.given.get(name)) for name in ("input", "command", "patchText"))
    found = [path for patch in patches for path in PATCHED.findall(patch)]
    found += [text_of(call.given.get(name)) for name in _PATHS]
    return [within(path.strip(), cwd) for path in found if path.strip()]


def _commands(calls: Sequence[Call]) -> Iterator[str]:
    """Yield the commands that worked the last time they were run, the last ones first."""
    latest: dict[str, bool] = {}
    for call in reversed(calls):
        command = command_of(call.given) if call.tool in SHELLS else ""
        if command and not _is_noise(command):
            latest.setdefault(" ".join(_ENTERED.sub("", command).split()), call.worked)
    for command, worked in latest.items():
        if worked and len(command) <= _LONGEST_COMMAND and "<<" not in command:
            yield f"`{presentable_line(command)}`"


def _is_noise(command: str) -> bool:
    """Whether a command only looks at something."""
    parts = [_ASSIGNED.sub("", each.strip()).split() for each in _SEPARATOR.split(command)]
    return all(not each or _only_looks(each) for each in parts)


def _only_looks(words: Sequence[str]) -> bool:
    program = words[0].rpartition("/")[2]
    if program == "git":
        return len(words) < 2 or words[1] in _NOISY_GIT  # noqa: PLR2004 - git and its verb
    return program in _NOISE or (program == "sed" and "-i" not in words)


def _figures(messages: Sequence[Said]) -> Iterator[str]:
    """Yield what the agent measured, by its last answers, the last one first."""
    answers = [each["content"] for each in messages if each["role"] == "assistant"]
    seen: set[str] = set()
    for answer in reversed(answers[-_LATEST_ANSWERS:]):
        for each in re.split(r"(?<=[.!?;])\s+|\n+", _CALLS.sub("", answer)):
            text = " ".join(each.strip(" -*|>#").split())
            figure = _FIGURE.search(text)
            if figure and len(text) <= _LONGEST_FIGURE and not _PLANNED.search(text):
                if figure[0] not in seen:
                    yield presentable_line(text.rstrip(".;"))
                seen.add(figure[0])


# ---------------------------------------------------------------- what was done
def _session(agent: str, transcript: Path, session_id: str) -> _Session | None:
    if agent == "opencode":
        return _of_opencode(transcript, session_id)
    if agent not in _READERS:
        return None
    data = _tail(transcript)
    if _PRIVATE.search(data):
        return None
    read, calls = _READERS[agent]
    entry = Entry(transcript.name, len(data), lambda: io.BytesIO(data))
    items = read(entry, io.BytesIO(data))
    found = next((each for each in items if isinstance(each, Conversation)), None)
    values = (each.value for each in lines(io.BytesIO(data)) if isinstance(each, Element))
    return _Session(found.messages, list(calls(map(mapping_of, values)))) if found else None


def _tail(path: Path) -> bytes:
    """Return the first line of a file, and as many whole lines of its end as are looked at."""
    with opened(path.resolve(strict=True)) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        if size <= MOST_BYTES:
            return stream.read(MOST_BYTES)
        first = stream.readline(_LONGEST_FIRST)
        stream.seek(size - MOST_BYTES)
        tail = stream.read(MOST_BYTES).partition(b"\n")[2]
        return first + tail if first.endswith(b"\n") else tail


def _of_claude_code(found: Iterable[Mapping[str, object]]) -> Iterator[Call]:
    asked: dict[str, Mapping[str, object]] = {}
    for line in found:
        if line.get("isSidechain") is True:
            continue
        for block in map(mapping_of, list_of(mapping_of(line.get("message")).get("content"))):
            if block.get("type") == "tool_use":
                asked[text_of(block.get("id"))] = block
            elif block.get("type") == "tool_result":
                call = asked.pop(text_of(block.get("tool_use_id")), {})
                in_background = mapping_of(line.get("toolUseResult")).get("backgroundTaskId")
                worked = block.get("is_error") is not True and not in_background
                yield Call(text_of(call.get("name")), mapping_of(call.get("input")), worked)


def _of_codex(found: Iterable[Mapping[str, object]]) -> Iterator[Call]:
    """Yield the calls; a command is known by its own record, where Codex writes one."""
    asked: dict[str, tuple[str, Mapping[str, object]]] = {}
    for line in found:
        item = mapping_of(line.get("payload"))
        kind, name = text_of(item.get("type")), text_of(item.get("call_id"))
        if kind in {"function_call", "custom_tool_call"}:
            asked[name] = text_of(item.get("name")), _arguments(item)
        elif kind in {"function_call_output", "custom_tool_call_output"} and name in asked:
            code = _EXIT.search(_output(item.get("output"))[:500])
            if code:
                yield Call(*asked.pop(name), worked=int(code[1][:9]) == 0)
        elif kind == "item_completed":
            ran = mapping_of(item.get("item"))
            if ran.get("type") == "CommandExecution" and isinstance(ran.get("exit_code"), int):
                asked.pop(text_of(ran.get("id")), None)
                yield Call("shell", {"command": ran.get("command")}, ran["exit_code"] == 0)


def _arguments(item: Mapping[str, object]) -> Mapping[str, object]:
    given = item.get("arguments")
    with suppress(ValueError, RecursionError):
        return mapping_of(json.loads(text_of(given))) if given else {"input": item.get("input")}
    return {}


def _output(value: object) -> str:
    if isinstance(value, str):
        return value
    blocks = map(mapping_of, list_of(value))
    known = mapping_of(value)
    return "\n".join(text_of(each.get("text")) for each in blocks) or text_of(known.get("content"))


def _of_gemini_cli(found: Iterable[Mapping[str, object]]) -> Iterator[Call]:
    """Yield the calls of the last version of each message."""
    every = {text_of(line.get("id")): line for line in found if line.get("id")}
    for line in every.values():
        for tool in map(mapping_of, list_of(line.get("toolCalls"))):
            text = json.dumps(tool.get("result"), default=str)
            codes = re.findall(r"Exit Code: (\d+)", text)
            worked = text_of(tool.get("status")) == "success" and codes[-1:] in ([], ["0"])
            yield Call(text_of(tool.get("name")), mapping_of(tool.get("args")), worked)


def _of_opencode(path: Path, session_id: str) -> _Session | None:
    query = (
        "select m.data, p.data from message m join part p on p.message_id = m.id"
        " where m.session_id = ? order by m.time_created desc, m.id desc, p.id desc limit ?"
    )
    with read_only(path) as db:
        rows = db.execute(query, (session_id, _MOST_PARTS)).fetchall()[::-1]
    if any(_PRIVATE.search(text_of(row[1]).encode(errors="replace")) for row in rows):
        return None
    messages: list[Said] = []
    calls: list[Call] = []
    for given, part in ((_object(one), _object(other)) for one, other in rows):
        state = mapping_of(part.get("state"))
        if part.get("type") == "tool" and state.get("status") in {"completed", "error"}:
            code = mapping_of(state.get("metadata")).get("exit", 0)
            worked = state.get("status") == "completed" and code == 0
            calls.append(Call(text_of(part.get("tool")), mapping_of(state.get("input")), worked))
        elif part.get("type") == "text" and part.get("synthetic") is not True:
            one = said(text_of(given.get("role")), text_of(part.get("text")))
            messages += [one] if one else []
    return _Session(messages, calls)


def _object(text: object) -> Mapping[str, object]:
    with suppress(ValueError, RecursionError):
        return mapping_of(json.loads(text_of(text)))
    return {}


_Calls = Callable[[Iterable[Mapping[str, object]]], Iterator[Call]]
_READERS: dict[str, tuple[Callable[..., Iterator[object]], _Calls]] = {
    "claude-code": (ClaudeCode().read, _of_claude_code),
    "codex": (Codex().read, _of_codex),
    "gemini-cli": (GeminiCli().read, _of_gemini_cli),
}
