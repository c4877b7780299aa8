"""What an agent is given at each moment of real coding sessions, and what that is worth.

    python benchmarks/moments.py FOLDER [--models FOLDER] [--labels FOLDER] [--cases] [--unjudged]
        [--keeps]

FOLDER is as for `coding.py`. All sessions are replayed in order into one memory, as hooks do it: at
the start the briefing, at each prompt its lines, before each edit and shell call the rule, after a
failed shell call the fix; after each turn of the agent the session is kept. `moments.json` has the
cases in which a rule that the user stated was broken by a later call: did the rule arrive before?
`moments_failures.json` has failures that came again after a fix was known, `moments_verdicts.json`
the verdicts on lines at calls; all have ids and hashes only. `--cases` lists the moments at which
each rule arrived, `--unjudged` the lines at calls without a verdict, to be judged by hand: apt, if
a careful colleague would be glad to be reminded at that very call; false else. With `--keeps`
each labelled item is kept in plain words when its session ends, as by an agent that follows
`remember`: what is left then is not a matter of keeping.
"""

import argparse
import json
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from labelled import Data, Place, UserMessages, briefing_then, has_most, is_useful, new_home
from perdure import Memory
from perdure.agents.hook_input import HookInput
from perdure.agents.moments import (
    Emission,
    Moment,
    after_tool,
    at_prompt,
    at_start,
    before_tool,
)
from perdure.app import caller_for, open_memory
from perdure.dataclass import dataclass, replace
from perdure.engine.briefing import BUDGET, Briefing
from perdure.engine.emissions import EmittedLine, key_of
from perdure.engine.learn.evidence import support_of
from perdure.engine.learn.new_statement import Citation
from perdure.engine.learn.statements import cid_of, statements
from perdure.engine.recall.result import tokens_in
from perdure.errors import PerdureError
from perdure.harness.project import identity_at
from perdure.model.speech import SpeechKind, speech_of
from perdure.model.uri import Uri
from perdure.model.values import shortened
from perdure.transfer.json_records import ShellCalls

AGENT = "claude-code"
START, PROMPT, ACTION, FAILURE = "start", "prompt", "action", "failure"
MOMENTS = (START, PROMPT, ACTION, FAILURE)
RULE_SHARE = 0.5
"""The share of a rule's words that a line must have to carry it, if it rests on its message."""
SAID_SHARE = 0.7
"""The same for a line that rests on something else."""
PROMPT_LINES, PROMPT_LETTERS, ACTION_TOKENS = 2, 160, 60
"""What hooks may say at a prompt and at a call, for those that stand beside."""


# ---------------------------------------------------------------- the steps of a session
NOT_CALLS = frozenset(
    {
        *(("minsky-02", 237), ("polychrome-p5-12", 5), ("polychrome-p5-29", 61)),
        *(("polychrome-p5-11", 7), ("polychrome-p5-12", 8), ("getspecstory-07", 5)),
        *(("getspecstory-10", at) for at in range(33, 44)),
    }
)
"""What the exports show as calls, and is none: code of an answer, a transcript that was read."""
_CALL = re.compile(r"\[called (\w+)\] (\{.*)", re.DOTALL)
_INPUT = re.compile(r'\{"input": "((?:[^"\\]|\\u[0-9a-f]{4}|\\[^u\s…])*)')
_SHELLS = frozenset({"shell", "Bash", "run_in_terminal"})
_EDITS = frozenset(
    {
        *("edit", "Edit", "Write", "copilot_applyPatch", "copilot_replaceString"),
        "copilot_multiReplaceString",
    }
)
_DESCRIBED = re.compile(r"(?:^|\n\n)`([^`]+)")
_ORIGINAL = re.compile(r'"original": "((?:[^"\\]|\\.)*)"')
_PATH = re.compile(r"(?m)^(?:Edit file: |The file |File created successfully at: )([^\s:]+)")
_NAMED = re.compile(r"[\w./@-]*\w\.(?:tsx?|jsx?|json|mdc?|go|py|ya?ml|toml)\b|CHANGELOG|README")
_FAR = 4
_STATUS = re.compile(r"Exit code [1-9]\d*\n")
_TELLS_STATUS = frozenset({"getspecstory"})
"""Exports in which a failed command begins with its status; of others it is labelled by hand."""
_MAY_FAIL = re.compile(
    r"error|fail|not found|no such|cannot|denied|fatal|invalid|missing", re.IGNORECASE
)


class Step(NamedTuple):
    """A prompt, a call or a failure, where it stands in its session."""

    moment: str
    session: str
    message: int
    text: str
    """The prompt; what the call runs or changes; what the failed call printed."""
    tool: str = ""
    given: Mapping[str, object] = {}
    """The input of the call."""

    @property
    def place(self) -> Place:
        return self.session, self.message


def steps(data: Data, session: str, failed: frozenset[Place]) -> Iterator[Step]:
    """Yield what happens in a session that a hook is called for."""
    messages = data.sessions[session]["messages"]
    for at, message in enumerate(messages):
        if message["role"] == "user":
            yield Step(PROMPT, session, at, message["content"])
        elif (session, at) not in NOT_CALLS and (call := _CALL.match(message["content"])):
            after = messages[at + 1] if at + 1 < len(messages) else {"role": "", "content": ""}
            result = after["content"] if after["role"] == "tool" else ""
            if call[1] in _SHELLS:
                yield from _run(session, at, _text(call[2]), result, (session, at) in failed)
            elif call[1] in _EDITS:
                path = _path(_text(call[2]), result) or _named_before(messages[:at])
                within = path.partition(f"/{data.sessions[session]['project']}/")[2]
                yield _edited(session, at, call, result, within or path)


def _run(
    session: str,
    at: int,
    text: str,
    result: str,
    is_failed: bool,  # noqa: FBT001 - what came of it
) -> Iterator[Step]:
    command = _command(text)
    given = {"command": command}
    yield Step(ACTION, session, at, command, "Bash", given)
    if is_failed or _STATUS.match(result):
        error = result if _STATUS.match(result) else f"Exit code 1\n{result}"
        yield Step(FAILURE, session, at, error, "Bash", given)


def _path(text: str, result: str) -> str:
    found = _PATH.search(f"{text}\n{result[:300]}")
    return found[1] if found else ""


def _named_before(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the file that the agent named last, if it was one: some exports leave it out."""
    for each in reversed(messages[-_FAR:]):
        if each["role"] == "user":
            return ""
        names = set(_NAMED.findall(each["content"][:600]))
        if names and not each["content"].startswith("[called edit]"):
            return names.pop() if len(names) == 1 else ""
    return ""


def _edited(session: str, at: int, call: re.Match[str], result: str, path: str) -> Step:
    text = _text(call[2])
    lines = f"{text}\n{result}".splitlines() if call[1] == "Edit" else text.splitlines()
    added = "\n".join(line[1:] for line in lines if line.startswith("+")) or text[:4000]
    removed = "\n".join(line[1:] for line in lines if line.startswith("-"))
    edit = {"file_path": path, "new_string": added, "old_string": removed}
    named = {name: value for name, value in edit.items() if value}
    return Step(ACTION, session, at, f"{path}\n{added}", "Edit", named)


def _text(arguments: str) -> str:
    """Return the input of a call; the export cuts long ones anywhere."""
    found = _INPUT.match(arguments)
    return str(json.loads(f'"{found[1]}"', strict=False)) if found else ""


def _command(text: str) -> str:
    """Return what a shell call runs; some exports put a description before it."""
    if original := _ORIGINAL.search(text):
        return str(json.loads(f'"{original[1]}"'))
    described = _DESCRIBED.search(text)
    return described[1] if described else text


# ---------------------------------------------------------------- what is given
class Line(NamedTuple):
    """One line that an agent is given."""

    text: str
    evidence: tuple[Place, ...]
    key: str = ""


class Given(NamedTuple):
    """What an agent is given at one moment."""

    step: Step
    lines: tuple[Line, ...]
    tokens: int


class Source(Protocol):
    """A memory, or what stands in its place."""

    name: str

    def start(self, session: str) -> tuple[Sequence[Line], int]:
        """Return the lines at a session's start, and their tokens with all that is around them."""

    def at(self, step: Step) -> tuple[Sequence[Line], int]:
        """Return the lines at a prompt, a call or a failure."""

    def keep(self, session: str, end: int) -> None:
        """Learn a session's messages up to an index."""


def replayed(data: Data, source: Source, failed: frozenset[Place]) -> list[Given]:
    """Return all that a source says in all sessions, in order of time."""
    found = []
    for session, of in data.sessions.items():
        opening = Step(START, session, -1, "")
        found.append(_given(opening, source.start(session)))
        for step in steps(data, session, failed):
            is_next_turn = step.message and of["messages"][step.message - 1]["role"] != "user"
            if step.moment == PROMPT and is_next_turn:
                source.keep(session, step.message)
            found.append(_given(step, source.at(step)))
        source.keep(session, len(of["messages"]))
    return found


def _given(step: Step, said: tuple[Sequence[Line], int]) -> Given:
    return Given(step, tuple(said[0]), said[1] if said[0] else 0)


class Then:
    """A memory whose briefing is as of a time."""

    def __init__(self, memory: Memory, now: datetime) -> None:
        self._memory, self._now = memory, now

    def __getattr__(self, name: str) -> object:
        return getattr(self._memory, name)

    def briefing(self, *, known: str = "") -> Briefing:
        names = self._memory._names(self._memory.project)  # noqa: SLF001 - as Memory.briefing
        return briefing_then(self._memory, names, self._now, known)


@dataclass(frozen=True)
class Replayed(Moment):
    """A moment of a session that is over: its memory is open already."""

    then: Then | None = None

    @property
    def session(self) -> str:
        return self.given.session_id

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        yield cast("Memory", self.then)


class Perdure:
    """What the hooks of Perdure say, by the same functions."""

    name = "Perdure"

    def __init__(
        self, labels: "Labels", home: Path, memories: ExitStack, *, keeps: bool = False
    ) -> None:
        self._data, self._home, self._keeps = labels.data, home, keeps
        self._noted = {name: _noted(labels, name) for name in labels.data.sessions}
        self._memories: dict[str, Memory] = {}
        self._opened = memories

    def start(self, session: str) -> tuple[Sequence[Line], int]:
        emission = at_start(self._moment(session))
        return self._lines(session, emission), tokens_in(emission.text)

    def at(self, step: Step) -> tuple[Sequence[Line], int]:
        if step.moment == PROMPT:
            emission = at_prompt(self._moment(step.session, HookInput(prompt=step.text)))
        else:
            event = "PreToolUse" if step.moment == ACTION else "PostToolUseFailure"
            raw = {"hook_event_name": event, "error": step.text, "tool_name": step.tool}
            asked = HookInput(tool=step.tool, tool_input=step.given, raw=raw)
            moment = self._moment(step.session, asked)
            emission = before_tool(moment) if step.moment == ACTION else after_tool(moment)
        lines = self._lines(step.session, emission)
        # A prompt's last line may ask the agent to remember; by the clock, so it is not replayed.
        text = emission.text.splitlines() if step.moment != PROMPT else _without_hint(emission.text)
        return lines, tokens_in("\n".join(text))

    def keep(self, session: str, end: int) -> None:
        messages = self._noted[session][:end]
        if messages:
            self._memory(session).commit_session(messages, session_id=session)
        if self._keeps and end == len(self._noted[session]):
            self._remember(session)

    def _remember(self, session: str) -> None:
        """Keep each labelled item in plain words, as an agent that follows `remember` would."""
        for item in self._data.labels.get(session, {"items": ()})["items"]:
            kind = "rule" if item["kind"] == "correction" else item["kind"]
            at = item["messages"][0]
            cited = [Citation(session, at, item["quote"])]
            with suppress(PerdureError):  # it is refused, as an agent's would be
                self._memory(session).remember(item["statement"], kind=kind, evidence=cited)

    def _moment(self, session: str, given: HookInput | None = None) -> Moment:
        started = datetime.fromisoformat(self._data.sessions[session]["started"])
        where = {"session_id": session, "cwd": self._cwd(session), "source": "startup"}
        asked = replace(given or HookInput(), **where)  # type: ignore[arg-type] # all are texts
        return Replayed(AGENT, self._home, asked, then=Then(self._memory(session), started))

    def _cwd(self, session: str) -> str:
        """Return a checkout of the session's project, without its files."""
        name = self._data.sessions[session]["project"]
        git = self._home / "work" / name / ".git"
        if not git.is_dir():
            for each in ("objects", "refs"):
                (git / each).mkdir(parents=True)
            (git / "HEAD").write_text("ref: refs/heads/main\n")
            remote = f"https://git.example.com/{name}.git"
            (git / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
        return str(git.parent)

    def _memory(self, session: str) -> Memory:
        cwd = self._cwd(session)
        if cwd not in self._memories:
            caller = caller_for(os.environ, role="member")
            opened = open_memory(os.environ, caller, project=identity_at(cwd))
            self._memories[cwd] = self._opened.enter_context(opened)
        return self._memories[cwd]

    def _lines(self, session: str, emission: Emission) -> list[Line]:
        texts = [line for line in emission.text.splitlines() if line.startswith("- ")]
        texts = texts or emission.text.splitlines()
        texts += [emission.text] * (len(emission.items) - len(texts))
        return [
            Line(text, self._evidence(session, item), item.key)
            for text, item in zip(texts, emission.items, strict=False)
        ]

    def _evidence(self, session: str, item: EmittedLine) -> tuple[Place, ...]:
        """Return the messages that an emitted line rests on."""
        if item.message is not None:
            return ((Uri.parse(item.uri).session, item.message),)
        node = self._memory(session).read(item.uri)
        support = support_of(node)
        stated = [each.text for each in statements(node.content) if key_of(each.text) == item.key]
        meant = [support[cid] for each in stated if (cid := cid_of(each)) in support]
        mentions = (each for one in meant or support.values() for each in one.mentions)
        return tuple(each.key for each in mentions)


def _noted(labels: "Labels", session: str) -> list[Mapping[str, Any]]:
    """Return the messages of a session; results of commands are noted as importers note them."""
    messages = [*labels.data.sessions[session]["messages"]]
    calls = ShellCalls()
    for step in steps(labels.data, session, labels.failed):
        at = step.message + 1
        result = messages[at] if at < len(messages) else {"role": ""}
        if step.moment != ACTION or step.tool != "Bash" or result["role"] != "tool":
            continue
        calls.start(str(at), step.tool, step.given)
        status = labels.status(step.place, result["content"])
        if status is not None:
            noted = calls.finish(str(at), status, result["content"])
            messages[at] = {**result, **(noted or {})}
    return messages


def _without_hint(text: str) -> list[str]:
    lines = text.splitlines()
    return lines if not lines or lines[-1].startswith("- ") else lines[:-1]


# ---------------------------------------------------------------- what stands beside
class Searched:
    """FTS5 over the project's user messages, within the budgets of the hooks."""

    name = "FTS5, user messages"

    def __init__(self, data: Data) -> None:
        self._data = data
        self._kept: defaultdict[str, UserMessages] = defaultdict(UserMessages)
        self._ends: Counter[str] = Counter()
        self._shown: set[tuple[str, Place]] = set()

    def _of(self, session: str) -> UserMessages:
        return self._kept[self._data.sessions[session]["project"]]

    def start(self, session: str) -> tuple[Sequence[Line], int]:
        found = [
            Line(f"- {shortened(text, 132)}", (place,))
            for place, text in self._of(session).newest()
        ]
        return _within(found, BUDGET)

    def at(self, step: Step) -> tuple[Sequence[Line], int]:
        if step.moment == FAILURE:
            return [], 0
        of_prompt = step.moment == PROMPT
        found = [
            Line(f"- {shortened(text, PROMPT_LETTERS)}", (place,))
            for place, text in self._of(step.session).found(step.text[:2000])
            if (step.session, place) not in self._shown
            and not (of_prompt and place[0] == step.session)
        ]
        chosen = found[: PROMPT_LINES if of_prompt else 1]
        self._shown |= {(step.session, place) for each in chosen for place in each.evidence}
        return _within(chosen, PROMPT_LINES * ACTION_TOKENS if of_prompt else ACTION_TOKENS)

    def keep(self, session: str, end: int) -> None:
        messages = self._data.sessions[session]["messages"][:end]
        self._of(session).add(session, messages, self._ends[session])
        self._ends[session] = end


class LastMessages:
    """How the project's last session ended: the user's last message and the agent's, at start."""

    name = "last session's end"

    def __init__(self, data: Data) -> None:
        self._data = data
        self._last: dict[str, str] = {}

    def start(self, session: str) -> tuple[Sequence[Line], int]:
        name = self._last.get(self._data.sessions[session]["project"])
        if name is None:
            return [], 0
        found = {}
        for at, each in enumerate(self._data.sessions[name]["messages"]):
            kind = speech_of(each["role"], each["content"]).kind
            if kind in {SpeechKind.USER, SpeechKind.AGENT}:
                found[kind] = (at, " ".join(each["content"].split()))
        lines = [Line(text, ((name, at),)) for at, text in found.values()]
        return _within([_cut(line, BUDGET // 2) for line in lines], BUDGET)

    def at(self, step: Step) -> tuple[Sequence[Line], int]:
        del step
        return [], 0

    def keep(self, session: str, end: int) -> None:
        del end
        self._last[self._data.sessions[session]["project"]] = session


class RuleFiles:
    """The project's own rule files, as far as transcripts of earlier sessions show their text."""

    name = "rule files"
    _SHOWN = re.compile(r"^### Rule: (\S+)\s*$")

    def __init__(self, data: Data) -> None:
        self._data = data
        self._files: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def start(self, session: str) -> tuple[Sequence[Line], int]:
        files = self._files[self._data.sessions[session]["project"]]
        lines = [line.strip() for text in files.values() for line in text.splitlines()]
        found = [Line(line, ()) for line in lines if len(line.split()) > 2]  # noqa: PLR2004
        return found, sum(map(tokens_in, files.values()))

    def at(self, step: Step) -> tuple[Sequence[Line], int]:
        del step
        return [], 0

    def keep(self, session: str, end: int) -> None:
        of = self._data.sessions[session]
        for each in of["messages"][:end]:
            name = ""
            for line in each["content"].splitlines() if each["role"] == "assistant" else ():
                if begun := self._SHOWN.match(line):
                    name = begun[1]
                    self._files[of["project"]][name] = ""
                elif name:
                    self._files[of["project"]][name] += f"{line}\n"


def _cut(line: Line, budget: int) -> Line:
    text = line.text
    while tokens_in(text) > budget:
        text = shortened(text, len(text) * 9 // 10)
    return line._replace(text=text)


def _within(lines: Iterable[Line], budget: int) -> tuple[list[Line], int]:
    """Return as many lines as fit, and their tokens."""
    found, size = [], 0
    for line in lines:
        more = tokens_in(line.text)
        if size + more <= budget:
            found.append(line)
            size += more
    return found, size


# ---------------------------------------------------------------- what it is worth
class Case(NamedTuple):
    """A rule that was stated, and the call that broke it."""

    id: int
    rule: Place
    words: str
    broken_by: Place
    names: str
    is_same_session: bool
    stated: str = ""
    """The rule in plain words, if it is kept so."""

    def is_in(self, line: Line) -> bool:
        """Whether a line carries the rule."""
        share = RULE_SHARE if self.rule in line.evidence else SAID_SHARE
        is_stated = bool(self.stated) and has_most(line.text, self.stated, SAID_SHARE)
        return is_stated or has_most(line.text, self.words, share)


@dataclass(frozen=True)
class Labels:
    """What is known about the sessions of a folder."""

    data: Data
    cases: Sequence[Case]
    failures: Sequence[Mapping[str, Any]]
    verdicts: Mapping[tuple[str, int, str], str]

    @classmethod
    def read(cls, data: Data, folder: Path, *, keeps: bool = False) -> "Labels":
        """Return the labels of those sessions that are there, from the files of a folder.

        With `keeps`, a rule that is a labelled item also arrives in the words of the item.
        """
        cases = [
            Case(
                row["id"],
                rule := (row["rule"]["session"], row["rule"]["message"]),
                data.sessions[rule[0]]["messages"][rule[1]]["content"][
                    row["rule"]["start"] : row["rule"]["end"]
                ],
                (row["broken_by"]["session"], row["broken_by"]["message"]),
                row["names"],
                row["same_session"],
                data.labels[rule[0]]["items"][row["item"]]["statement"]
                if keeps and "item" in row
                else "",
            )
            for row in _rows(folder / "moments.json")
            if {row["rule"]["session"], row["broken_by"]["session"]} <= set(data.sessions)
        ]
        failures = [
            row
            for row in _rows(folder / "moments_failures.json")
            if row["failed"][0] in data.sessions
        ]
        verdicts = {
            (s, m, key): verdict for s, m, key, verdict in _rows(folder / "moments_verdicts.json")
        }
        return cls(data, cases, failures, verdicts)

    @cached_property
    def failed(self) -> frozenset[Place]:
        """The shell calls that failed, though their output does not say by which status."""
        found = (place for row in self.failures for place in (row["failed"], *row["again"]))
        return frozenset((session, at) for session, at in found)

    def status(self, place: Place, output: str) -> int | None:
        """Return the exit status of a command; None if nothing tells it."""
        if place in self.failed or _STATUS.match(output):
            return 1
        is_known = self.data.sessions[place[0]]["project"] in _TELLS_STATUS
        is_fix = any(place == tuple(row["fixed"]) for row in self.failures)
        return 0 if is_known or is_fix or not _MAY_FAIL.search(output) else None

    @cached_property
    def gold(self) -> Mapping[Place, frozenset[Place]]:
        """By prompt, the messages that matter for it."""
        return {
            (name, each["message"]): frozenset((session, at) for session, at in each["gold"])
            for name, row in self.data.labels.items()
            for each in row["questions"]
        }

    def is_useful(self, step: Step, line: Line) -> bool:
        if step.moment == FAILURE:
            return self._is_fix(step, line)
        if is_useful(self.data, line.evidence, line.text):
            return True
        if not line.evidence:
            of = self.data.sessions[step.session]
            known = self.data.items(of["project"], of["started"])
            return any(
                has_most(line.text, each[name], SAID_SHARE)
                for each in known
                for name in ("quote", "statement")
            )
        if self.gold.get(step.place, frozenset()).intersection(line.evidence):
            return True
        return any(case.broken_by == step.place and case.is_in(line) for case in self.cases)

    def _is_fix(self, step: Step, line: Line) -> bool:
        for row in self.failures:
            if list(step.place) in row["again"]:
                session, at = row["fixed"]
                fixing = list(steps(self.data, session, frozenset()))
                return any(
                    has_most(line.text, each.text, RULE_SHARE)
                    for each in fixing
                    if each.message == at
                )
        return False


def _rows(path: Path) -> list[Any]:
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def tell_moments(labels: Labels, given: Sequence[Given]) -> None:
    print("            moments  spoke  lines  tokens  useful  per 100 tokens")
    for moment in MOMENTS:
        here = [each for each in given if each.step.moment == moment]
        lines = [(each.step, line) for each in here for line in each.lines]
        tokens = sum(each.tokens for each in here)
        useful = sum(labels.is_useful(step, line) for step, line in lines)
        spoke = sum(bool(each.lines) for each in here)
        worth = f"{100 * useful / tokens:.2f}" if tokens else "-"
        print(f"{moment:9} {len(here):8} {spoke:6} {len(lines):6} {tokens:7} {useful:7}  {worth}")


# ---------------------------------------------------------------- whether a rule arrived
def arrivals(labels: Labels, given: Sequence[Given]) -> dict[int, dict[str, Step]]:
    """Return for each case by which moment its rule arrived first, and where; before the call.

    `action` is at the very call that broke it, or at one before it.
    """
    by_session: dict[str, list[Given]] = defaultdict(list)
    for each in given:
        by_session[each.step.session].append(each)
    found: dict[int, dict[str, Step]] = {}
    for case in labels.cases:
        session, at = case.broken_by
        found[case.id] = {}
        for each in by_session[session]:
            step = each.step
            is_before = step.message < at or (step.message == at and step.moment == ACTION)
            if is_before and any(map(case.is_in, each.lines)):
                found[case.id].setdefault(step.moment, step)
    return found


def tell_arrivals(labels: Labels, given: Sequence[Given]) -> None:
    found = arrivals(labels, given)
    groups: dict[str, list[Case]] = {}
    for case in labels.cases:
        groups.setdefault("all", []).append(case)
        groups.setdefault(f"names {case.names}", []).append(case)
        where = (
            "stated in the same session" if case.is_same_session else "stated in another session"
        )
        groups.setdefault(where, []).append(case)
    for name, cases in groups.items():
        counts = {m: sum(m in found[case.id] for case in cases) for m in MOMENTS}
        total = sum(bool(found[case.id]) for case in cases)
        late = sum(_is_at_call(case, found[case.id]) for case in cases)
        each = ", ".join(f"{counts[m]} at {m}" for m in MOMENTS)
        share = 100 * total / len(cases)
        print(f"{name:26} {total:2} of {len(cases):2} ({share:.0f} %): {each}; {late} only at it")


def _is_at_call(case: Case, came: Mapping[str, Step]) -> bool:
    """Whether a rule came with the very call that broke it, and not before."""
    return bool(came) and all(step.place == case.broken_by for step in came.values())


def tell_cases(labels: Labels, given: Sequence[Given]) -> None:
    found = arrivals(labels, given)
    for case in labels.cases:
        came = ", ".join(f"{m} [{step.message}]" for m, step in found[case.id].items())
        print(f"case {case.id:2} {case.rule} -> {case.broken_by}: {came or 'not'}")


def tell_false(labels: Labels, given: Sequence[Given], *, lists: bool) -> None:
    """Print how many lines at calls are false, and those that nobody judged."""
    at_calls = [each for each in given if each.step.moment == ACTION]
    sessions = {each.step.session for each in at_calls}
    verdicts: Counter[str] = Counter()
    worst: Counter[str] = Counter()
    for each in at_calls:
        for line in each.lines:
            verdict = labels.verdicts.get((*each.step.place, line.key), "unjudged")
            verdicts[verdict] += 1
            worst[each.step.session] += verdict == "false"
            if lists and verdict == "unjudged":
                row = (*each.step.place, line.key, line.text, each.step.text[:300])
                print(json.dumps(row, ensure_ascii=False))
    mean = verdicts["false"] / max(1, len(sessions))
    print(
        f"lines at calls: {dict(verdicts)} in {len(sessions)} sessions with calls; "
        f"{mean:.2f} false ones per session, at most {max(worst.values(), default=0)}"
    )


def tell_fixes(labels: Labels, given: Sequence[Given]) -> None:
    """Print at how many failures that came again the fix of the first was shown."""
    again = {(session, at) for row in labels.failures for session, at in row["again"]}
    here = [each for each in given if each.step.moment == FAILURE and each.step.place in again]
    fixed = sum(any(labels.is_useful(each.step, line) for line in each.lines) for each in here)
    print(f"failures that came again: {len(here)}, with the fix {fixed}")


def tell_beside(labels: Labels, given: Sequence[Given]) -> None:
    tell_moments(labels, given)
    found = arrivals(labels, given)
    arrived = sum(bool(each) for each in found.values())
    calls = [each for each in given if each.step.moment == ACTION]
    lines = [(each.step, line) for each in calls for line in each.lines]
    idle = sum(not labels.is_useful(step, line) for step, line in lines)
    sessions = len({each.step.session for each in calls})
    had = len({each.step.session for each in given if each.lines})
    print(f"rules that arrive: {arrived} of {len(found)}; speaks in {had} sessions")
    if lines:
        print(
            f"lines at calls without use: {idle / max(1, sessions):.1f} per session (n={sessions})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--labels", type=Path, default=Path(__file__).parent)
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--unjudged", action="store_true")
    parser.add_argument("--keeps", action="store_true")
    asked = parser.parse_args()
    data = Data.read(asked.folder)
    labels = Labels.read(data, asked.labels, keeps=asked.keeps)
    print(
        f"{len(data.sessions)} sessions, {len(labels.cases)} rules that were broken, "
        f"{sum(len(row['again']) for row in labels.failures)} failures that came again"
    )
    for models in dict.fromkeys((None, asked.models)):
        began = time.monotonic()
        with new_home(models) as home, ExitStack() as memories:
            os.environ["PERDURE_HOME"] = str(home)
            given = replayed(
                data, Perdure(labels, home, memories, keeps=asked.keeps), labels.failed
            )
        print(
            f"\nPerdure, {'MiniLM' if models else 'words only'} ({time.monotonic() - began:.0f} s)"
        )
        tell_moments(labels, given)
        tell_arrivals(labels, given)
        tell_false(labels, given, lists=asked.unjudged)
        tell_fixes(labels, given)
        if asked.cases:
            tell_cases(labels, given)
    for beside in (Searched(data), LastMessages(data), RuleFiles(data)):
        print(f"\n{beside.name}")
        tell_beside(labels, replayed(data, beside, labels.failed))


if __name__ == "__main__":
    main()
