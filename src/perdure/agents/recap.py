"""The recap: what an agent did in its session, shown after its context was compacted.

It is read from the end of the transcript, because the session may not be captured yet.
"""

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from perdure.agents.hook_input import within
from perdure.engine.learn.prose import sentences
from perdure.engine.recall.result import tokens_in
from perdure.errors import PerdureError
from perdure.model.messages import text_of
from perdure.model.values import shortened
from perdure.safety.validation import presentable_line
from perdure.sqlite import open_read_only
from perdure.transfer.contract import MessageFields, SessionItem
from perdure.transfer.importers.claude_code import ClaudeCodeFormat
from perdure.transfer.importers.codex import CodexFormat
from perdure.transfer.importers.gemini_cli import GeminiCliFormat
from perdure.transfer.importers.opencode import parsed_object, session_item
from perdure.transfer.source import SourceFile, open_plain_file

BUDGET = 200
MOST_BYTES = 600_000
"""The part at the end of a transcript that is read."""
_LONGEST_FIRST = 200_000
"""The limit of its first line, which names the session."""
_MESSAGE_ROWS = 400
_HEAD = "This session, before its context was compacted:"
_TASK_TOKENS, _FILES_TOKENS, _COMMANDS_TOKENS, _FIGURES_TOKENS = 54, 42, 48, 42
_LONGEST_TASK = 36
_LONGEST_COMMAND, _LONGEST_FIGURE = 90, 110
_ITEMS_TRIED = 8
"""Items that are tried for a line."""
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
"""Prompts that only tell the agent to continue."""
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
_CALL = re.compile(r"^\[called (\w+): (.+)\]$", re.MULTILINE)
_PATCHED = re.compile(r"\*\*\* (?:(?:Add|Update|Delete) File|Move to): (\S+)")
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


def recap(agent: str, transcript: Path, session_id: str, cwd: str = "") -> str:
    """Return the work at the end of a transcript, in at most 200 tokens.

    Empty if the transcript can't be read, shows no work, or has private parts.
    """
    session = None
    with suppress(PerdureError, OSError):
        session = _session(agent, transcript, session_id)
    if session is None:
        return ""
    found = [
        _fitting("The user's open request, in their words:", _task(session.messages), _TASK_TOKENS),
        _fitting("Files edited:", _files(session.messages, cwd), _FILES_TOKENS),
        _fitting("Commands that worked:", _commands(session.commands), _COMMANDS_TOKENS),
        _fitting("Figures you reported:", _figures(session.messages), _FIGURES_TOKENS),
    ]
    body = [each for each in found if each]
    return "\n".join([_HEAD, *body]) if body else ""


def _fitting(title: str, items: Iterable[str], budget: int) -> str:
    line = ""
    for item in islice(items, _ITEMS_TRIED):
        longer = f"{line}; {item}" if line else f"- {title} {item}"
        if tokens_in(longer) <= budget:
            line = longer
    return line


# ---------------------------------------------------------------- its lines
def _task(messages: Sequence[MessageFields]) -> list[str]:
    """Return the last request of the user, shortened; a question is not a request."""
    for message in reversed([each for each in messages if each["role"] == "user"]):
        own = " ".join(each.text for each in sentences(message["content"]))
        text = " ".join((own or message["content"]).split())
        is_task = len(text.split()) >= _FEWEST_WORDS and not text.startswith("/")
        if is_task and not (_QUESTION.match(text) or _GOES_ON.match(text)):
            while tokens_in(text) > _LONGEST_TASK:
                text = shortened(text, max(1, len(text) * 3 // 4))
            return [f'"{presentable_line(text)}"']
    return []


def _files(messages: Sequence[MessageFields], cwd: str) -> Iterator[str]:
    """Yield the edited files: the latest, then those that were edited most often."""
    calls = (call for each in messages for call in _CALL.findall(each["content"]))
    paths = [path for tool, text in calls if tool in _EDITS for path in _edited(text, cwd)]
    times = Counter(paths)
    latest = list(dict.fromkeys(reversed(paths)))
    most = [path for path, count in times.most_common(4) if count > 1]
    for path in dict.fromkeys([*latest[:3], *most, *latest[3:8]]):
        count = f" ({times[path]} times)" if times[path] > 1 else ""
        yield f"{presentable_line(path)}{count}"


def _edited(text: str, cwd: str) -> list[str]:
    """Return the files that a call names: one, or those of a patch."""
    found = _PATCHED.findall(text) if text.startswith("*** ") else [text]
    return [within(path, cwd) for path in found]


def _commands(ran: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """Yield the commands that worked when they were last run, the latest first."""
    latest: dict[str, bool] = {}
    for command, worked in reversed(ran):
        if not _is_noise(command):
            latest.setdefault(" ".join(_ENTERED.sub("", command).split()), worked)
    for command, worked in latest.items():
        if worked and len(command) <= _LONGEST_COMMAND and "<<" not in command:
            yield f"`{presentable_line(command)}`"


def _is_noise(command: str) -> bool:
    """Whether a command only reads."""
    commands = [_ASSIGNED.sub("", each.strip()).split() for each in _SEPARATOR.split(command)]
    return all(not each or _only_reads(each) for each in commands)


def _only_reads(words: Sequence[str]) -> bool:
    program = words[0].rpartition("/")[2]
    if program == "git":
        return len(words) < 2 or words[1] in _NOISY_GIT  # noqa: PLR2004 - git and its verb
    return program in _NOISE or (program == "sed" and "-i" not in words)


def _figures(messages: Sequence[MessageFields]) -> Iterator[str]:
    """Yield the figures in the agent's last answers, the latest first."""
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


# ---------------------------------------------------------------- the transcript
def _session(agent: str, transcript: Path, session_id: str) -> SessionItem | None:
    if agent == "opencode":
        return _of_opencode(transcript, session_id)
    if agent not in _READERS:
        return None
    data = _tail(transcript)
    if _PRIVATE.search(data):
        return None
    entry = SourceFile(transcript.name, len(data), lambda: io.BytesIO(data))
    items = _READERS[agent](entry, io.BytesIO(data))
    return next((each for each in items if isinstance(each, SessionItem)), None)


def _tail(path: Path) -> bytes:
    """Return the first line of a file, and the whole lines at its end."""
    with open_plain_file(path.resolve(strict=True)) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        if size <= MOST_BYTES:
            return stream.read(MOST_BYTES)
        first = stream.readline(_LONGEST_FIRST)
        stream.seek(size - MOST_BYTES)
        tail = stream.read(MOST_BYTES).partition(b"\n")[2]
        return first + tail if first.endswith(b"\n") else tail


def _of_opencode(path: Path, session_id: str) -> SessionItem | None:
    query = (
        "select m.data, p.data from message m join part p on p.message_id = m.id"
        " where m.session_id = ? order by m.time_created desc, m.id desc, p.id desc limit ?"
    )
    with open_read_only(path) as db:
        rows = db.execute(query, (session_id, _MESSAGE_ROWS)).fetchall()[::-1]
    if any(_PRIVATE.search(text_of(row[1]).encode(errors="replace")) for row in rows):
        return None
    entry = SourceFile(path.name, 0, io.BytesIO)
    return session_item(
        entry, {}, ((parsed_object(one), parsed_object(part)) for one, part in rows)
    )


_READERS: dict[str, Callable[..., Iterator[object]]] = {
    "claude-code": ClaudeCodeFormat().read,
    "codex": CodexFormat().read,
    "gemini-cli": GeminiCliFormat().read,
}
