"""Sessions of Claude Code: `~/.claude/projects/*/*.jsonl`, one file for each.

A line says which line it follows. Who goes back in a session starts another branch.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from perdure.engine.importing.contract import Conversation, Finding, Item, Said
from perdure.engine.importing.reading import (
    begins_with,
    each_file,
    each_object,
    lines,
    list_of,
    mapping_of,
    said_in,
    time_of,
    with_branches,
)
from perdure.engine.importing.sources import Entry, Source
from perdure.errors import InvalidValueError
from perdure.model.messages import text_of

Line = Mapping[str, object]

_SPOKEN = ("user", "assistant")


class ClaudeCode:
    name = "claude-code"
    kind = "sessions"

    def detect(self, source: Source) -> bool:
        return begins_with(source, (".jsonl",), b'"sessionId"', b'"leafUuid"')

    def items(self, source: Source) -> Iterator[Item | Finding]:
        return each_file(source, source.meant(".jsonl"), self._read)

    def _read(self, entry: Entry, stream: BinaryIO) -> Iterator[Item | Finding]:
        own: dict[str, Line] = {}
        title, aside = "", 0

        def take(_entry: Entry, _where: str, line: Line) -> Iterator[Item | Finding]:
            nonlocal title, aside
            uuid = text_of(line.get("uuid"))
            if line.get("type") == "summary":
                title = text_of(line.get("summary"))
            elif line.get("type") in _SPOKEN and not (
                uuid and isinstance(line.get("message"), dict)
            ):
                raise InvalidValueError("it has no uuid or no message")
            elif line.get("isSidechain") is True:
                aside += 1
            elif uuid:
                own.setdefault(uuid, line)
            return iter(())

        yield from each_object(entry, "line", lines(stream), take)
        yield from self._session(entry, own, title)
        if aside:
            what = f"lines of other agents, which worked aside, were left out: {aside}"
            yield Finding(entry.name, "", what, "nothing; what you saw went in", refused=False)

    def _session(
        self, entry: Entry, own: Mapping[str, Line], title: str
    ) -> Iterator[Item | Finding]:
        branch = _branch(own)
        if not branch:
            return
        messages = tuple(m for uuid in branch for m in _messages(own[uuid]))
        one = Conversation(
            file=entry.name,
            where="",
            source=self.name,
            source_id=_session_id(entry, own),
            title=title,
            messages=messages,
            created_at=min(filter(None, map(_time, own.values())), default=""),
            updated_at=max(filter(None, map(_time, own.values())), default=""),
        )
        others = (line for uuid, line in own.items() if uuid not in branch)
        yield from with_branches(one, sum(any(_messages(line)) for line in others))


def _session_id(entry: Entry, own: Mapping[str, Line]) -> str:
    """Return the name of the file if its lines know it, else what the last of them says."""
    stem = entry.base.rpartition(".")[0]
    known = [said for line in own.values() if (said := text_of(line.get("sessionId")))]
    return stem if stem in known or not known else known[-1]


def _branch(own: Mapping[str, Line]) -> dict[str, None]:
    """Return what leads to the last line, in the order of the file.

    A line whose predecessor is missing follows the one above it. Results of tools that were called
    at once hang beside each other; all that belong to the branch are of it.
    """
    above = dict(zip(list(own)[1:], own, strict=False))
    at = next((uuid for uuid in reversed(list(own)) if own[uuid].get("type") in _SPOKEN), None)
    found: set[str] = set()
    while at is not None and at not in found:
        found.add(at)
        parent = text_of(own[at].get("parentUuid") or own[at].get("logicalParentUuid"))
        at = parent if parent in own else above.get(at) if parent else None
    beside = {uuid for uuid, line in own.items() if _is_result(line) and _parent(line) in found}
    return {uuid: None for uuid in own if uuid in found or uuid in beside}


def _parent(line: Line) -> str:
    return text_of(line.get("parentUuid"))


def _is_result(line: Line) -> bool:
    blocks = list_of(mapping_of(line.get("message")).get("content"))
    kinds = {text_of(mapping_of(block).get("type")) for block in blocks}
    return line.get("type") == "user" and kinds == {"tool_result"}


def _messages(line: Line) -> Iterator[Said]:
    """Yield what a line says; nothing if it is a note of the program's own."""
    if line.get("type") not in _SPOKEN or line.get("isMeta") is True:
        return
    role = "system" if line.get("isCompactSummary") is True else str(line["type"])
    said = mapping_of(line.get("message"))
    yield from said_in(role, said.get("content"), line.get("timestamp"))


def _time(line: Line) -> str:
    return time_of(line.get("timestamp"))
