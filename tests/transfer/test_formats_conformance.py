"""Every format that ships passes the whole contract."""

from typing import ClassVar

from perdure.testing.importer import JSON_FILES, FormatSuite
from perdure.transfer.contract import Format
from perdure.transfer.importers.agent_rules import RulesFormat
from perdure.transfer.importers.basic_memory import BasicMemoryFormat
from perdure.transfer.importers.chatgpt import ChatGptFormat
from perdure.transfer.importers.claude import ClaudeFormat
from perdure.transfer.importers.claude_code import ClaudeCodeFormat
from perdure.transfer.importers.codex import CodexFormat
from perdure.transfer.importers.gemini_cli import GeminiCliFormat
from perdure.transfer.importers.letta import LettaFormat
from perdure.transfer.importers.markdown_folder import MarkdownFormat
from perdure.transfer.importers.mcp_memory import McpMemoryFormat
from perdure.transfer.importers.mem0 import Mem0Format
from perdure.transfer.importers.specstory import SpecStoryFormat
from tests.transfer import samples
from tests.transfer.samples import Files, as_json, as_lines


class TestChatGpt(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {"conversations.json": as_json([samples.BOAT, samples.SAIL])}
    more: ClassVar[Files] = {"conversations.json": as_json([samples.BOAT_AFTER, samples.SAIL])}
    spoiled: ClassVar[Files] = {
        "conversations.json": as_json([samples.BOAT, {"title": "?"}, 7, samples.SAIL])
    }

    @staticmethod
    def open_format() -> Format:
        return ChatGptFormat()


class TestClaude(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {"conversations.json": as_json([samples.BREAD, samples.CAKE])}
    more: ClassVar[Files] = {"conversations.json": as_json([samples.BREAD_AFTER, samples.CAKE])}
    spoiled: ClassVar[Files] = {
        "conversations.json": as_json([samples.BREAD, {"name": "?"}, samples.CAKE])
    }

    @staticmethod
    def open_format() -> Format:
        return ClaudeFormat()


class TestClaudeCode(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {
        "-srv-app/3f.jsonl": as_lines(samples.CODE),
        "-srv-app/4a.jsonl": as_lines(samples.OTHER_CODE),
    }
    more: ClassVar[Files] = {**files, "-srv-app/3f.jsonl": as_lines(samples.CODE_AFTER)}
    spoiled: ClassVar[Files] = {
        **files,
        "-srv-app/3f.jsonl": as_lines(samples.CODE[:2]) + b"{\n" + as_lines(samples.CODE[2:]),
    }

    @staticmethod
    def open_format() -> Format:
        return ClaudeCodeFormat()


class TestCodex(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {
        "2026/03/rollout-a.jsonl": as_lines(samples.ROLLOUT),
        "2026/03/rollout-b.jsonl": as_lines(samples.OTHER_ROLLOUT),
    }
    more: ClassVar[Files] = {
        **files,
        "2026/03/rollout-a.jsonl": as_lines(
            [*samples.ROLLOUT, samples.codex_message("user", "Thanks.")]
        ),
    }
    spoiled: ClassVar[Files] = {
        **files,
        "2026/03/rollout-a.jsonl": as_lines([{"type": "response_item"}, *samples.ROLLOUT]),
    }

    @staticmethod
    def open_format() -> Format:
        return CodexFormat()


class TestGeminiCli(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {
        "ab/chats/session-1.jsonl": as_lines(samples.CHAT),
        "ab/chats/session-2.jsonl": as_lines(samples.OTHER_CHAT),
    }
    more: ClassVar[Files] = {
        **files,
        "ab/chats/session-1.jsonl": as_lines(
            [*samples.CHAT, samples.gemini("5", "gemini", "Done.")]
        ),
    }
    spoiled: ClassVar[Files] = {
        **files,
        "ab/chats/session-1.jsonl": as_lines(samples.CHAT[:2])
        + b"{\n"
        + as_lines(samples.CHAT[2:]),
    }

    @staticmethod
    def open_format() -> Format:
        return GeminiCliFormat()


class TestMem0(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {"mem0.json": as_json({"results": [samples.TEA, samples.MOVED]})}
    more: ClassVar[Files] = {
        "mem0.json": as_json({"results": [samples.TEA, samples.MOVED, samples.DOG]})
    }
    spoiled: ClassVar[Files] = {"mem0.json": as_json([samples.TEA, {"id": "x"}, samples.MOVED])}

    @staticmethod
    def open_format() -> Format:
        return Mem0Format()


class TestMcpMemory(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {
        "memory.json": as_lines([samples.ANA, samples.REX, samples.OWNS]),
    }
    more: ClassVar[Files] = {
        "memory.json": as_lines(
            [samples.ANA, samples.REX, samples.OWNS, {**samples.REX, "name": "Bello"}]
        ),
    }
    spoiled: ClassVar[Files] = {
        "memory.json": as_lines([samples.ANA, {"type": "entity"}, samples.REX, samples.OWNS]),
    }

    @staticmethod
    def open_format() -> Format:
        return McpMemoryFormat()


class TestMarkdown(FormatSuite):
    promises = frozenset()
    files: ClassVar[Files] = samples.NOTES
    more: ClassVar[Files] = {**samples.NOTES, "later.md": b"Something new."}
    spoiled: ClassVar[Files] = {**samples.NOTES, "hello.md": b"\xff\xfe\x00\xd8"}

    @staticmethod
    def open_format() -> Format:
        return MarkdownFormat()


class TestWhatClaudeHasBesideConversations(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {
        "projects.json": as_json([samples.BAKERY]),
        "memories.json": as_json([samples.CLAUDE_MEMORY]),
    }
    more: ClassVar[Files] = {**files, "conversations.json": as_json([samples.BREAD])}
    spoiled: ClassVar[Files] = {**files, "projects.json": as_json([{"docs": 1}, samples.BAKERY])}

    @staticmethod
    def open_format() -> Format:
        return ClaudeFormat()


class TestSpecStory(FormatSuite):
    promises = frozenset()
    files: ClassVar[Files] = {
        ".specstory/history/2026-03-02_10-00Z-sort.md": samples.STORY.encode(),
        ".specstory/history/2025-03-02_10-00Z-pier.md": samples.OLD_STORY.encode(),
    }
    more: ClassVar[Files] = {
        **files,
        ".specstory/history/2026-03-02_10-00Z-sort.md": samples.STORY_AFTER.encode(),
    }
    spoiled: ClassVar[Files] = {**files, ".specstory/history/a.md": b"# Notes of another kind"}

    @staticmethod
    def open_format() -> Format:
        return SpecStoryFormat()


class TestBasicMemory(FormatSuite):
    promises = frozenset()
    files: ClassVar[Files] = samples.BASIC
    more: ClassVar[Files] = {**samples.BASIC, "later.md": samples.RYE.replace("ye", "ice").encode()}
    spoiled: ClassVar[Files] = {**samples.BASIC, "a.md": b"---\npermalink: [\n---\n"}

    @staticmethod
    def open_format() -> Format:
        return BasicMemoryFormat()


class TestLetta(FormatSuite):
    promises = frozenset({JSON_FILES})
    files: ClassVar[Files] = {
        "pilot.af": as_json(samples.PILOT),
        "archive.json": as_json([samples.PASSAGE]),
    }
    more: ClassVar[Files] = {
        **files,
        "archive.json": as_json([samples.PASSAGE, {**samples.PASSAGE, "id": "passage-2"}]),
    }
    spoiled: ClassVar[Files] = {**files, "archive.json": as_json([{"id": "x"}, samples.PASSAGE])}

    @staticmethod
    def open_format() -> Format:
        return LettaFormat()


class TestRules(FormatSuite):
    promises = frozenset()
    files: ClassVar[Files] = samples.RULES
    more: ClassVar[Files] = {**samples.RULES, "sub/AGENTS.md": b"- Ask first.\n"}
    spoiled: ClassVar[Files] = {**samples.RULES, "AGENTS.md": b"\xff\xfe\x00\xd8"}

    @staticmethod
    def open_format() -> Format:
        return RulesFormat()
