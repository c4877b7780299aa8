"""Claude's data export: `conversations.json`, alone or in the downloaded archive.

Beside it are `projects.json` and `memories.json`, or folders with one file for each of them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from perdure.errors import InvalidValueError
from perdure.model import slugify
from perdure.model.messages import text_of
from perdure.model.uri import stable_slug
from perdure.transfer import json_records
from perdure.transfer.contract import (
    DocumentItem,
    ImportItem,
    MessageFields,
    SessionItem,
    StatementItem,
)
from perdure.transfer.json_records import CORRECT_IT, Items, Record, begins_with, time_of, truncate
from perdure.transfer.source import ImportSource, SourceFile

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_MOST_OF_AN_ATTACHMENT = 20_000
_MEMORIES = ("conversations_memory", "project_memories")
_BESIDE = re.compile(r"(?:.*/)?(?:projects|memories)(?:\.json|/[^/]+\.json)")
_SEPARATOR = re.compile(r"[/\\]")

Messages = Sequence[Record]


class ClaudeFormat:
    name = "claude"
    kind = "sessions"

    def detect(self, source: ImportSource) -> bool:
        marks = b'"chat_messages"', b'"prompt_template"', b'"conversations_memory"'
        return begins_with(source, (".json",), *marks)

    def items(self, source: ImportSource) -> Items:
        beside = [entry for entry in source.entries if _BESIDE.fullmatch(entry.name)]
        beside.sort(key=lambda entry: "projects" not in entry.name)  # memories refer to projects
        others = [entry for entry in json_records.conversation_files(source) if entry not in beside]
        return json_records.each_file(source, [*beside, *others], _ClaudeExport().read)


class _ClaudeExport:
    def __init__(self) -> None:
        self._projects: dict[str, str] = {}

    def read(self, entry: SourceFile, stream: BinaryIO) -> Items:
        found = json_records.json_elements(stream, keys=("conversations",))
        return json_records.each_object(entry, "conversation", found, self._read_record)

    def _read_record(self, entry: SourceFile, where: str, record: Record) -> Items:
        where = where.removeprefix("conversation ")
        if any(name in record for name in _MEMORIES):
            return self._memories(entry, f"memory {where}", record)
        if "chat_messages" not in record and ("docs" in record or "prompt_template" in record):
            return self._project(entry, f"project {where}", record)
        return self._conversation(entry, f"conversation {where}", record)

    # ------------------------------------------------------------ projects
    def _project(self, entry: SourceFile, where: str, record: Record) -> Items:
        source_id, name = record.text("uuid"), record.text("name").strip()
        if not source_id:
            raise InvalidValueError("it has no uuid")
        self._projects[source_id] = project = slugify((name or source_id)[:60])
        texts = {"template": record.get("prompt_template"), "about": record.get("description")}
        for part, category in (("template", "pattern"), ("about", "entity")):
            yield from self._statement(
                entry,
                where,
                f"project/{source_id}/{part}",
                texts[part],
                category,
                project,
                record.get("updated_at"),
            )
        empty = Counter[str]()
        for number, doc in enumerate(record.objects("docs"), start=1):
            file = _SEPARATOR.sub("-", doc.text("filename")).strip() or f"document {number}"
            text = doc.text("content")
            empty["documents without a text"] += not text.strip()
            if text.strip():
                yield DocumentItem(
                    file=entry.name,
                    where=f"{where}, document {number}",
                    source=ClaudeFormat.name,
                    source_id=f"{stable_slug(name or source_id)}/{file}",
                    text=text,
                )
        files = len(record.array("files"))
        left = +(empty + Counter({"files, whose texts an export lacks": files}))
        for what, count in left.items():
            yield json_records.skipped(entry.name, f"{what}: {count:,}", CORRECT_IT, where)

    # ------------------------------------------------------------ memories
    def _memories(self, entry: SourceFile, where: str, record: Record) -> Items:
        account = record.text("account_uuid")
        source_id = f"memory/{account}" if account else "memory"
        yield from self._statement(
            entry, where, source_id, record.get("conversations_memory"), "entity", ""
        )
        for uuid, text in record.object("project_memories").items():
            project = self._projects.get(uuid, "")
            yield from self._statement(
                entry, where, f"memory/project/{uuid}", text, "entity", project
            )
        files = len(record.array("memory_files"))
        if files:
            what = f"memory files were left out: {files:,}"
            fix = "save what you need by hand"
            yield json_records.skipped(entry.name, what, fix, where)

    def _statement(  # noqa: PLR0913, PLR0917 - the fields of an item
        self,
        entry: SourceFile,
        where: str,
        source_id: str,
        text: object,
        category: str,
        project: str,
        updated: object = None,
    ) -> Iterator[ImportItem]:
        time = time_of(updated)
        if content := text_of(text).strip():
            yield StatementItem(
                file=entry.name,
                where=where,
                source=ClaudeFormat.name,
                source_id=source_id,
                content=content,
                category=category,
                project=project,
                metadata={"source_updated_at": time} if time else {},
            )

    # ------------------------------------------------------------ conversations
    def _conversation(self, entry: SourceFile, where: str, record: Record) -> Items:
        source_id, every = record.text("uuid"), record.get("chat_messages")
        if not source_id or not isinstance(every, list):
            raise InvalidValueError("it has no uuid, or no list chat_messages")
        known = [Record.of(each) for each in every]
        branch = _branch(known, record.get("current_leaf_message_uuid"))
        one = SessionItem(
            file=entry.name,
            where=where,
            source=ClaudeFormat.name,
            source_id=source_id,
            title=record.text("name"),
            messages=tuple(m for each in branch for m in _messages(each)),
            created_at=record.time("created_at"),
            updated_at=record.time("updated_at"),
        )
        yield from json_records.with_branches(one, len(known) - len(branch))


def _branch(messages: Messages, leaf: object) -> Messages:
    """Return the messages up to the current one; all, if they don't name their predecessors."""
    named = {uuid: each for each in messages if (uuid := each.text("uuid"))}
    at = text_of(leaf) or (text_of(messages[-1].get("uuid")) if messages else "")
    if not all("parent_message_uuid" in each for each in messages) or at not in named:
        return messages
    found: dict[str, Record] = {}
    while at in named and at not in found:
        found[at] = named[at]
        at = text_of(named[at].get("parent_message_uuid"))
    first = text_of(messages[0].get("parent_message_uuid"))
    return messages if at in found or at != first else [*reversed(found.values())]


def _messages(record: Record) -> Iterator[MessageFields]:
    role = _ROLES.get(record.text("sender"))
    if role is None:
        return
    content = record.get("content") or record.get("text")
    attached = "\n\n".join(_attachments(record))
    if attached:
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        content = [*blocks, {"type": "text", "text": attached}]
    yield from json_records.anthropic_messages(role, content, record.get("created_at"))


def _attachments(record: Record) -> Iterator[str]:
    for kind in ("attachments", "files"):
        for each in record.objects(kind):
            name = each.text("file_name")
            text = truncate(each.text("extracted_content"), _MOST_OF_AN_ATTACHMENT)
            if name or text:
                yield f"[attached {name or 'a text'}]" + (f"\n{text}" if text else "")
