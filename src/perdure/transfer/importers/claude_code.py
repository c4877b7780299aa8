"""Sessions of Claude Code: `~/.claude/projects/*/*.jsonl`, one file for each.

A line names its predecessor. Going back in a session starts another branch.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from perdure.errors import InvalidValueError
from perdure.model.messages import text_of
from perdure.model.privacy import switch_in
from perdure.model.speech import without_injected
from perdure.model.values import JSON
from perdure.transfer import json_records
from perdure.transfer.contract import MessageFields, NotResumableError, SessionItem, ToolOutput
from perdure.transfer.json_records import Items, Record, ShellCalls, anthropic_messages, message
from perdure.transfer.source import ImportSource, SourceFile

Line = Record

_SPOKEN = ("user", "assistant")
_SUBAGENT = "agent-"
_MOST_KNOWN = 64
"""The number of last lines in a state, by which new lines are joined to them."""
_OF_A_KNOWN_LINE = ("uuid", "parentUuid", "logicalParentUuid", "type", "sessionId")


class ClaudeCodeFormat:
    name = "claude-code"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        return any(
            (b'"sessionId"' in head or b'"leafUuid"' in head) and b'"projectHash"' not in head
            for head in json_records.file_heads(source, ".jsonl")
        )

    def items(self, source: ImportSource) -> Items:
        return json_records.each_file(source, source.selected(".jsonl"), self.read)

    def read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        if entry.base.startswith(_SUBAGENT):
            yield json_records.subagent_finding(entry)
            return
        found = _Lines()
        yield from json_records.each_object(
            entry, "line", json_records.json_lines(stream), found.add
        )
        if branch := _branch(found.own, found.session_id(_stem(entry))):
            one = self._session(entry, found, branch)
            others = (line for uuid, line in found.own.items() if uuid not in branch)
            yield from json_records.with_branches(one, sum(any(_messages(line)) for line in others))
        if found.aside:
            what = f"lines of other agents, which worked aside, were left out: {found.aside}"
            yield json_records.skipped(entry.name, what, "nothing; what you saw went in")

    def resume(self, entry: SourceFile, stream: BinaryIO, state: Mapping[str, JSON]) -> Items:
        found = _Lines()
        known = Record(state)
        found.own = {line.text("uuid"): line for line in known.objects("lines")}
        found.id, found.cwd = known.text("id"), known.text("cwd")
        found.calls = ShellCalls(known.get("calls"))
        before = set(found.own)
        yield from json_records.each_object(
            entry, "line", json_records.json_lines(stream), found.add
        )
        branch = _branch(found.own, found.session_id(_stem(entry)))
        new = [uuid for uuid in branch if uuid not in before]
        lost = [uuid for uuid in new if _parent(found.own[uuid]) not in {*found.own, ""}]
        if lost or not before.issubset(branch):
            raise NotResumableError("the user went back in the session")
        yield self._session(entry, found, branch, since=before)

    def _session(
        self,
        entry: SourceFile,
        found: "_Lines",
        branch: Mapping[str, None],
        since: frozenset[str] | set[str] = frozenset(),
    ) -> SessionItem:
        times = [time for line in found.own.values() if (time := line.time("timestamp"))]
        source_id = found.session_id(_stem(entry))
        new = (found.own[uuid] for uuid in branch if uuid not in since)
        messages, outputs = _spoken(new, found.calls)
        return SessionItem(
            file=entry.name,
            source=self.name,
            source_id=source_id,
            title=found.title,
            messages=messages,
            created_at=min(times, default=""),
            updated_at=max(times, default=""),
            cwd=found.cwd,
            branch=found.branch,
            headless=found.headless,
            tool_outputs=outputs,
            commands=tuple(found.calls.finished),
            state={
                "id": source_id,
                "cwd": found.cwd,
                "calls": found.calls.state,
                "lines": [_known(found.own[uuid]) for uuid in [*branch][-_MOST_KNOWN:]],
            },
        )


class _Lines:
    def __init__(self) -> None:
        self.own: dict[str, Line] = {}
        self.calls = ShellCalls()
        self.title = self.cwd = self.branch = self.id = ""
        self.aside = 0
        self._entrypoints: set[str] = set()
        self._ids: dict[str, None] = {}

    def add(self, _entry: SourceFile, _where: str, line: Line) -> Items:
        uuid = line.text("uuid")
        if line.get("type") == "summary":
            self.title = line.text("summary")
        elif line.get("type") in _SPOKEN and not (uuid and isinstance(line.get("message"), dict)):
            raise InvalidValueError("it has no uuid or no message")
        elif line.get("isSidechain") is True:
            self.aside += 1
        elif uuid:
            self.own.setdefault(uuid, line)
            self._ids[line.text("sessionId")] = None
            self.cwd = self.cwd or line.text("cwd")
            self.branch = line.text("gitBranch") or self.branch
            self._entrypoints.add(line.text("entrypoint"))
        return iter(())

    @property
    def headless(self) -> bool:
        """Whether all lines with an entry point name a program (`sdk-cli` …)."""
        known = self._entrypoints - {""}
        return bool(known) and all(each.startswith("sdk") for each in known)

    def session_id(self, stem: str) -> str:
        """Return the name of the file if a line has that id, else the id of the last line."""
        known = [each for each in self._ids if each]
        return self.id or (stem if stem in known or not known else known[-1])


def _stem(entry: SourceFile) -> str:
    return entry.base.rpartition(".")[0]


def _branch(own: Mapping[str, Line], session: str) -> dict[str, None]:
    """Return the lines that lead to the last line of a session, in the order of the file.

    These may include lines of another session that the session continues. A line whose
    predecessor is missing follows the line above it. Parallel tool calls and their results have
    one predecessor; all of them belong to its branch.
    """
    above = dict(zip(list(own)[1:], own, strict=False))
    spoken = [uuid for uuid, line in own.items() if line.get("type") in _SPOKEN]
    of_it = [uuid for uuid in spoken if own[uuid].get("sessionId") == session] or spoken
    at = of_it[-1] if of_it else None
    found: set[str] = set()
    while at is not None and at not in found:
        found.add(at)
        parent = _parent(own[at])
        at = parent if parent in own else above.get(at) if parent else None
    for uuid, line in own.items():
        if _parallel_kind(line) and line.text("parentUuid") in found:
            found.add(uuid)
    return {uuid: None for uuid in own if uuid in found}


def _parent(line: Line) -> str:
    return text_of(line.get("parentUuid") or line.get("logicalParentUuid"))


def _parallel_kind(line: Line) -> str:
    """Return `tool_use` or `tool_result` if a line is nothing else, else ""."""
    blocks = line.object("message").array("content")
    kinds = {Record.of(block).text("type") for block in blocks}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return kind if kind in {"tool_use", "tool_result"} else ""


def _known(line: Line) -> JSON:
    known: dict[str, JSON] = {name: line.text(name) or None for name in _OF_A_KNOWN_LINE}
    if kind := _parallel_kind(line):
        known["message"] = {"content": [{"type": kind}]}
    return known


def _spoken(
    lines_: Iterable[Line], shell: ShellCalls
) -> tuple[tuple[MessageFields, ...], tuple[ToolOutput, ...]]:
    messages: list[MessageFields] = []
    outputs: list[ToolOutput] = []
    calls: json_records.Calls = {}
    for line in lines_:
        content = line.object("message").get("content")
        outputs += json_records.anthropic_tool_outputs(content, len(messages), calls)
        messages += _messages(line, shell)
    return tuple(messages), tuple(outputs)


def _messages(line: Line, calls: ShellCalls | None = None) -> Iterator[MessageFields]:
    """Yield the messages of a line; of the program's own notes only the switch `/private`."""
    if line.get("subtype") == "local_command":
        switched = switch_in(line.text("content"))
        if switched is not None:
            yield from anthropic_messages("user", line.text("content"), line.get("timestamp"))
    if line.get("type") not in _SPOKEN or line.get("isMeta") is True:
        return
    content = line.object("message").get("content")
    time = line.get("timestamp")
    if line.get("isCompactSummary") is True:
        yield from _summary(content, time)
    elif line.get("isApiErrorMessage") is not True:
        yield from anthropic_messages(str(line["type"]), content, time, calls)


def _summary(content: object, time: object) -> Iterator[MessageFields]:
    """Yield a summary, also if its introduction is unknown."""
    for each in anthropic_messages("user", content, time):
        text = without_injected(each["content"]).strip()
        one = each if each["role"] == "system" else message("system", f"[summary]\n{text}")
        if one is not None and text:
            yield {**one, "time": each["time"]} if "time" in each else one
