"""What each format takes from its files, and what it leaves."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure.engine.tool_calls import outcome_in, signature
from perdure.errors import UnreadableSourceError
from perdure.model.speech import marked
from perdure.testing.importer import found_in, items_of, laid_out, refused_in
from perdure.testing.importer import read as in_path
from perdure.transfer.contract import (
    EntityItem,
    ImportFinding,
    ImportItem,
    Selective,
    SessionItem,
    StatementItem,
)
from perdure.transfer.imports import FORMATS, detect_format
from perdure.transfer.json_records import MOST_OF_A_FAILURE, call_line
from perdure.transfer.source import ImportSource
from tests.gates.test_imports import PACKAGE, imports_of, modules_of
from tests.transfer import samples
from tests.transfer.samples import as_json, as_lines, chatgpt, chatgpt_node, code_line


def read(name: str, file: str, data: bytes) -> list[ImportItem | ImportFinding]:
    return found_in(FORMATS[name], {file: data})


def conversation(name: str, file: str, data: bytes) -> SessionItem:
    (one,) = items_of(read(name, file, data))
    assert isinstance(one, SessionItem)
    return one


def messages_of(one: SessionItem) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in one.messages]


def notes(found: list[ImportItem | ImportFinding]) -> list[str]:
    return [each.what for each in found if isinstance(each, ImportFinding) and not each.refused]


# ---------------------------------------------------------------- choosing
@pytest.mark.parametrize(
    ("name", "file", "data"),
    [
        ("chatgpt", "conversations.json", as_json([samples.BOAT])),
        ("claude", "conversations.json", as_json([samples.BREAD])),
        ("claude-code", "3f.jsonl", as_lines(samples.CODE)),
        ("codex", "rollout-a.jsonl", as_lines(samples.ROLLOUT)),
        (
            "codex",
            "old.jsonl",
            b'{"id":"1","timestamp":"2025-05-01T00:00:00Z","instructions":null}',
        ),
        ("gemini-cli", "session-1.jsonl", as_lines(samples.CHAT)),
        ("opencode", "session/p/ses_1.json", as_json({"id": "ses_1"})),
        ("mem0", "memories.json", as_json([samples.TEA])),
        ("mcp-memory", "memory.json", as_lines([samples.ANA])),
        ("markdown", "a.md", b"# A"),
        ("claude", "projects.json", as_json([samples.BAKERY])),
        ("claude", "memories.json", as_json([samples.CLAUDE_MEMORY])),
        ("specstory", ".specstory/history/a.md", samples.STORY.encode()),
        ("basic-memory", "coffee.md", samples.COFFEE.encode()),
        ("letta", "pilot.af", as_json(samples.PILOT)),
        ("letta", "archive.json", as_json([samples.PASSAGE])),
        ("rules", "AGENTS.md", samples.AGENT_RULES.encode()),
        ("rules", ".cursor/rules/ports.mdc", samples.CURSOR_RULE.encode()),
    ],
)
def test_a_format_is_seen_by_its_files(tmp_path: Path, name: str, file: str, data: bytes) -> None:
    assert detect_format(ImportSource(laid_out(tmp_path, {file: data}))).name == name


def test_what_looks_like_nothing_or_like_several_is_refused(tmp_path: Path) -> None:
    nothing = laid_out(tmp_path / "a", {"a.txt": b""})
    both = laid_out(tmp_path / "b", {**samples.NOTES, "3f.jsonl": as_lines(samples.CODE)})

    with pytest.raises(UnreadableSourceError, match="no format that can be imported"):
        detect_format(ImportSource(nothing))
    with pytest.raises(UnreadableSourceError, match=r"several formats.*claude-code, markdown"):
        detect_format(ImportSource(both))


def test_a_file_that_was_named_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    laid_out(tmp_path, {"export.bak": as_json([samples.BREAD])})

    assert len(items_of(in_path(FORMATS["claude"], tmp_path / "export.bak"))) == 1
    assert items_of(in_path(FORMATS["claude"], tmp_path)) == []


def test_formats_never_import_each_other() -> None:
    modules = modules_of(PACKAGE / "transfer" / "importers")
    inside = "perdure.transfer.importers."

    assert len(modules) > len(FORMATS)
    for source in modules.values():
        assert [name for name in imports_of(source) if name.startswith(inside)] == []


# ---------------------------------------------------------------- ChatGPT
def test_chatgpt_has_title_times_and_messages_in_order() -> None:
    one = conversation("chatgpt", "conversations.json", as_json([samples.BOAT_AFTER]))

    assert (one.source_id, one.title) == ("boat", "A boat")
    assert one.created_at == "2026-03-02T10:00:00.500000+00:00"
    assert messages_of(one) == [
        ("user", "How long is a dinghy?"),
        ("assistant", "About four metres."),
        ("user", "Thanks!"),
    ]
    assert one.messages[0]["time"] == "2026-03-02T10:00:00+00:00"


def test_chatgpt_s_other_branches_are_counted_and_left_out() -> None:
    branched = chatgpt("boat", samples.ASKED, samples.OTHERWISE, samples.ANSWERED, current="b")
    found = read("chatgpt", "conversations.json", as_json([branched]))

    (one,) = items_of(found)
    assert isinstance(one, SessionItem)
    assert messages_of(one)[-1] == ("assistant", "About four metres.")
    assert notes(found) == ["messages of other branches were left out: 1"]


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ({"metadata": {"is_visually_hidden_from_conversation": True}}, []),
        ({"content": {"content_type": "thoughts", "thoughts": [], "parts": ["hm"]}}, []),
        ({"content": {"content_type": "code", "text": "print(1)"}}, [("assistant", "print(1)")]),
        (
            {"content": {"content_type": "code", "text": "1+1"}, "recipient": "python"},
            [("assistant", "[called python: 1+1]")],
        ),
        (
            {
                "content": {
                    "content_type": "multimodal_text",
                    "parts": [{"content_type": "image_asset_pointer"}, "Look!"],
                }
            },
            [("assistant", "[image]\n\nLook!")],
        ),
        ({"author": {"role": "narrator"}}, []),
        ({"content": None}, []),
        ({"create_time": "never"}, [("assistant", "x")]),
    ],
)
def test_of_chatgpt_the_shown_messages_are_imported(
    more: dict[str, Any], left: list[tuple[str, str]]
) -> None:
    node = chatgpt_node("n", "root", "assistant", "x", **more)
    one = conversation("chatgpt", "conversations.json", as_json([chatgpt("c", node, current="n")]))

    assert messages_of(one) == left


@pytest.mark.parametrize("role", ["tool", "system"])
def test_messages_of_tools_and_programs_of_chatgpt_are_not_imported(role: str) -> None:
    node = chatgpt_node("n", "root", role, "x" * 5_000, author={"role": role, "name": "web"})
    one = conversation("chatgpt", "conversations.json", as_json([chatgpt("c", node, current="n")]))

    assert one.messages == ()


@pytest.mark.parametrize(
    ("nodes", "current", "what"),
    [
        ([chatgpt_node("a", "b", "user", "x"), chatgpt_node("b", "a", "user", "y")], "a", "cycle"),
        ([chatgpt_node("a", "lost", "user", "x")], "a", "lack one"),
    ],
)
def test_a_broken_thread_of_chatgpt_s_is_refused(
    nodes: list[dict[str, Any]], current: str, what: str
) -> None:
    found = read("chatgpt", "conversations.json", as_json([chatgpt("c", *nodes, current=current)]))

    assert items_of(found) == []
    assert what in refused_in(found)[0].what


def test_without_a_current_node_the_last_leaf_is_used() -> None:
    one = conversation(
        "chatgpt", "conversations.json", as_json([{**samples.BOAT, "current_node": "gone"}])
    )

    assert len(one.messages) == 2


# ---------------------------------------------------------------- Claude
def test_claude_s_blocks_attachments_and_files_are_texts() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "search", "input": {"q": "rye"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "found"}, {"type": "image"}]},
    ]
    attached = [{"file_name": "a.txt", "extracted_content": "flour: 500 g"}]
    one = conversation(
        "claude",
        "conversations.json",
        as_json(
            [
                samples.claude(
                    "c",
                    samples.claude_message(
                        "1", "human", "Hi", attachments=attached, files=[{"file_name": "b.png"}]
                    ),
                    samples.claude_message("2", "assistant", "", content=blocks),
                    samples.claude_message("3", "ghost", "boo"),
                )
            ]
        ),
    )

    assert messages_of(one) == [
        ("user", "Hi\n\n[attached a.txt]\nflour: 500 g\n\n[attached b.png]"),
        ("assistant", "Let me look.\n\n[called search: rye]"),
    ]
    assert one.messages[0]["time"] == "2026-03-02T10:00:00+00:00"


def test_claude_s_current_branch_is_imported_if_messages_name_predecessors() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    every = [
        samples.claude_message("1", "human", "Hi", parent_message_uuid=root),
        samples.claude_message("2", "assistant", "old", parent_message_uuid="1"),
        samples.claude_message("3", "assistant", "new", parent_message_uuid="1"),
    ]
    found = read("claude", "conversations.json", as_json([samples.claude("c", *every)]))

    (one,) = items_of(found)
    assert isinstance(one, SessionItem)
    assert messages_of(one) == [("user", "Hi"), ("assistant", "new")]
    assert notes(found) == ["messages of other branches were left out: 1"]


# ---------------------------------------------------------------- Claude Code
def test_claude_code_has_calls_in_one_line_and_no_results() -> None:
    one = conversation("claude-code", "3f.jsonl", as_lines(samples.CODE))

    assert (one.source_id, one.title) == ("3f", "Mend the tests")
    assert messages_of(one) == [
        ("user", "Why do the tests fail?"),
        ("assistant", "[called Bash: make test]"),
        ("assistant", "A fixture is missing."),
    ]
    assert (one.cwd, one.branch) == ("/srv/app", "")


def test_of_claude_code_a_part_of_a_failure_is_imported() -> None:
    failed = [{**samples.result("Exit code 1\n" + "x" * 900)[0], "is_error": True}]
    ours = [{**samples.result(marked("No memory is there."))[0], "is_error": True}]
    lines = [
        code_line("1", None, "user", "Go.", gitBranch="main"),
        code_line("2", "1", "assistant", samples.used("Bash", {"command": "make\ntest"})),
        code_line("3", "2", "user", failed),
        code_line("4", "3", "user", ours),
        code_line("5", "4", "assistant", "Rate limit", isApiErrorMessage=True),
    ]
    one = conversation("claude-code", "3f.jsonl", as_lines(lines))

    (_, (_, call), (role, evidence)) = messages_of(one)
    assert call == "[called Bash: make test]"
    assert role == "tool"
    assert evidence.startswith("[failed] Exit code 1\nxxx")
    assert len(evidence) <= MOST_OF_A_FAILURE + len("[failed] ")
    assert one.branch == "main"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"file_path": "/srv/a.py", "content": "x\ny"}, "[called T: /srv/a.py]"),
        ({"command": ["bash", "-lc", "ls -la"]}, "[called T: ls -la]"),
        ('{"cmd": "ls"}', "[called T: ls]"),
        ('{"cmd": ', '[called T: {"cmd":]'),
        ({"n": 1}, '[called T: {"n": 1}]'),
        ({}, "[called T]"),
        (None, "[called T]"),
        ("a" * 400, f"[called T: {'a' * 159}…]"),
    ],
)
def test_a_call_is_one_short_line(given: object, line: str) -> None:
    assert call_line("T", given) == line


def test_of_claude_code_the_last_branch_is_imported_with_all_results() -> None:
    lines = [
        code_line("1", None, "user", "Go."),
        code_line("2", "1", "assistant", samples.used("A", {}, "a")),
        code_line("3", "2", "assistant", samples.used("B", {}, "b")),
        code_line("4", "2", "user", samples.result("from A", "a")),
        code_line("5", "3", "user", samples.result("from B", "b")),
        code_line("6", "5", "user", "No, stop."),
        {"type": "progress", "uuid": "p", "parentUuid": "5", "sessionId": "3f"},
        code_line("7", "p", "user", "Go on."),
    ]
    found = read("claude-code", "3f.jsonl", as_lines(lines))

    (one,) = items_of(found)
    assert isinstance(one, SessionItem)
    assert [text for _, text in messages_of(one)] == [
        *("Go.", "[called A]", "[called B]", "Go on.")
    ]
    assert notes(found) == ["messages of other branches were left out: 1"]


def test_what_claude_code_notes_for_itself_is_left_out() -> None:
    lines = [
        code_line("1", None, "user", "Caveat: do not answer", isMeta=True),
        code_line("2", "1", "user", "What was before", isCompactSummary=True),
        code_line("3", "2", "user", "Hello."),
        code_line("4", None, "user", "Aside.", isSidechain=True),
    ]
    found = read("claude-code", "3f.jsonl", as_lines(lines))

    (one,) = items_of(found)
    assert isinstance(one, SessionItem)
    assert messages_of(one) == [("system", "[summary]\nWhat was before"), ("user", "Hello.")]
    assert notes(found) == ["lines of other agents, which worked aside, were left out: 1"]


def test_a_session_of_claude_code_goes_on_past_a_summary_and_a_lost_line() -> None:
    lines = [
        code_line("1", None, "user", "One."),
        code_line("3", "lost", "user", "Three."),
        {"type": "system", "uuid": "b", "parentUuid": None, "logicalParentUuid": "3"},
        code_line("4", "b", "user", "Four."),
    ]

    one = conversation("claude-code", "renamed.jsonl", as_lines(lines))

    assert [text for _, text in messages_of(one)] == ["One.", "Three.", "Four."]
    assert one.source_id == "3f"


# ---------------------------------------------------------------- Codex
def test_codex_has_each_message_once() -> None:
    one = conversation("codex", "rollout-a.jsonl", as_lines(samples.ROLLOUT))

    assert one.source_id == "01-a"
    assert messages_of(one) == [
        ("user", "Add a test."),
        ("assistant", "[called shell: ls]"),
        ("assistant", "Done."),
    ]


@pytest.mark.parametrize(
    "output",
    [
        "Exit code: 2\nWall time: 1 s\nOutput:\nno rule",
        '{"output": "no rule", "metadata": {"exit_code": 2}}',
        {"content": "no rule", "success": False},
        {"content": [{"type": "input_text", "text": "Process exited with code 2: no rule"}]},
    ],
)
def test_of_codex_a_part_of_a_failure_is_imported(output: object) -> None:
    result = {"type": "function_call_output", "call_id": "1", "output": output}
    lines = [*samples.ROLLOUT, samples.codex_line("response_item", result)]
    one = conversation("codex", "rollout-a.jsonl", as_lines(lines))

    last = one.messages[-1]
    assert (last["role"], last["name"]) == ("tool", "shell")
    assert last["content"].startswith("[failed")
    assert last["content"].endswith("no rule")


def test_codex_says_where_it_worked() -> None:
    meta = samples.codex_meta("01-a")
    meta["payload"] |= {"cwd": "/srv/app", "git": {"branch": "main"}}
    one = conversation("codex", "rollout-a.jsonl", as_lines([meta, *samples.ROLLOUT[1:]]))

    assert (one.cwd, one.branch) == ("/srv/app", "main")


def test_what_codex_injects_is_not_imported() -> None:
    lines = [*samples.ROLLOUT, samples.codex_message("developer", "Always use tabs.")]

    assert len(conversation("codex", "rollout-a.jsonl", as_lines(lines)).messages) == 3


def test_a_summary_of_codex_is_stored_as_one() -> None:
    lines = [*samples.ROLLOUT, samples.codex_line("compacted", {"message": "A test was added."})]
    one = conversation("codex", "rollout-a.jsonl", as_lines(lines))

    assert messages_of(one)[-1] == ("system", "[summary]\nA test was added.")


# ---------------------------------------------------------------- Gemini CLI
def test_gemini_cli_has_the_messages_after_a_rewind_of_all() -> None:
    one = conversation("gemini-cli", "session-1.jsonl", as_lines(samples.CHAT))

    assert (one.source_id, one.cwd) == ("9c", "/srv/app")
    assert messages_of(one) == [
        ("user", "Which port?"),
        ("assistant", "I look."),
        ("assistant", "[called read_file: a.toml]"),
        ("tool", "[failed] no such file"),
        ("user", "Then use 8080."),
    ]


def test_older_files_of_gemini_cli_are_one_object() -> None:
    meta, asked = samples.CHAT[0], {"type": "user", "content": "Which port?"}
    data = as_json({**meta, "messages": [asked, {"type": "info", "content": "x"}]})

    assert messages_of(conversation("gemini-cli", "session-1.json", data)) == [
        ("user", "Which port?")
    ]


def test_gemini_cli_names_its_working_directory() -> None:
    context = "<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n"
    context += "  - /srv/app\n  - /srv/lib\n- **Directory Structure:**\n</session_context>"
    begun = {"$set": {"messages": [samples.gemini("0", "user", [{"text": context}])]}}
    asked = samples.gemini("1", "user", f"Which port? {context}")
    lines = (samples.CHAT[0], begun, asked)
    one = conversation("gemini-cli", "session-1.jsonl", as_lines(lines))
    pasted = conversation("gemini-cli", "session-1.jsonl", as_lines((samples.CHAT[0], asked)))

    assert (one.cwd, pasted.cwd) == ("/srv/app", "")


# ---------------------------------------------------------------- failed, then worked
BROKEN = "error: the lockfile is frozen"
COMMANDS = (("bun i", 1), ("ls", 0), ("bun i -f", 0))


def claude_code_ran() -> tuple[str, bytes]:
    lines = [code_line("0", None, "user", "Go.")]
    for at, (command, status) in enumerate(COMMANDS):
        output = f"Exit code {status}\n{BROKEN}" if status else "ok"
        (failed,) = samples.result(output, str(at))
        called = samples.used("Bash", {"command": command}, str(at))
        lines.append(code_line(f"a{at}", lines[-1]["uuid"], "assistant", called))
        ended = [{**failed, "is_error": bool(status)}]
        lines.append(code_line(f"b{at}", f"a{at}", "user", ended))
    return "3f.jsonl", as_lines(lines)


def codex_ran() -> tuple[str, bytes]:
    lines = [samples.codex_meta("01-a"), samples.codex_message("user", "Go.")]
    for at, (command, status) in enumerate(COMMANDS):
        called = {"type": "function_call", "name": "exec_command", "call_id": str(at)}
        asked = {**called, "arguments": f'{{"cmd": "{command}"}}'}
        output = f"Wall time: 1 s\nProcess exited with code {status}\nOutput:\n{BROKEN}"
        ended = {"type": "function_call_output", "call_id": str(at), "output": output}
        lines += [samples.codex_line("response_item", each) for each in (asked, ended)]
    return "rollout-a.jsonl", as_lines(lines)


def gemini_cli_ran() -> tuple[str, bytes]:
    calls = [
        {
            "name": "run_shell_command",
            "args": {"command": command},
            "status": "success",
            "result": [{"text": f"Output: {BROKEN}\nExit Code: {status}" if status else "ok"}],
        }
        for command, status in COMMANDS
    ]
    lines = (samples.CHAT[0], samples.gemini("1", "gemini", "", toolCalls=calls))
    return "session-1.jsonl", as_lines(lines)


@pytest.mark.parametrize(
    ("name", "ran"),
    [("claude-code", claude_code_ran), ("codex", codex_ran), ("gemini-cli", gemini_cli_ran)],
)
def test_a_failure_is_noted_with_its_signature_and_what_worked_after_it(
    name: str, ran: Callable[[], tuple[str, bytes]]
) -> None:
    notes = [text for role, text in messages_of(conversation(name, *ran())) if role == "tool"]

    failed, worked = notes
    assert outcome_in(failed) == (signature(BROKEN), "bun i")
    assert BROKEN in failed
    assert worked == "[worked] $ bun i -f"


def test_opencode_has_the_status_of_a_command_beside_its_output() -> None:
    parts = {
        f"storage/part/msg_2/prt_{at}.json": as_json(
            {
                "type": "tool",
                "tool": "bash",
                "state": {
                    "status": "completed",
                    "input": {"command": command},
                    "output": BROKEN,
                    "metadata": {"exit": status},
                },
            }
        )
        for at, (command, status) in enumerate(COMMANDS)
    }
    (one,) = items_of(found_in(FORMATS["opencode"], {**samples.OPENCODE, **parts}))
    assert isinstance(one, SessionItem)
    failed, worked = (text for role, text in messages_of(one) if role == "tool")

    assert outcome_in(failed) == (signature(BROKEN), "bun i")
    assert worked == "[worked] $ bun i -f"


@pytest.mark.parametrize(
    "output",
    [
        "The user doesn't want to proceed with this tool use.",
        "Exit code 130\nerror: the command was interrupted",
        "PreToolUse:Bash hook error: no such command is allowed",
    ],
)
def test_what_was_refused_or_interrupted_has_no_signature(output: str) -> None:
    (failed,) = samples.result(output)
    lines = [
        code_line("1", None, "user", "Go."),
        code_line("2", "1", "assistant", samples.used("Bash", {"command": "bun i"})),
        code_line("3", "2", "user", [{**failed, "is_error": True}]),
        code_line("4", "3", "assistant", samples.used("Bash", {"command": "bun i -f"}, "t2")),
        code_line("5", "4", "user", samples.result("ok", "t2")),
    ]
    notes = [
        text for _, text in messages_of(conversation("claude-code", "3f.jsonl", as_lines(lines)))
    ]

    assert [each for each in notes if "[worked]" in each or "sig=" in each] == []


# ---------------------------------------------------------------- opencode
OPENCODE_MESSAGES = [
    ("user", "Rename it."),
    ("assistant", "[called bash: make]"),
    ("tool", "[failed] no rule"),
    ("assistant", "Renamed."),
    ("system", "[summary]\nIt was renamed."),
]


def test_opencode_is_read_from_its_files() -> None:
    (one,) = items_of(found_in(FORMATS["opencode"], samples.OPENCODE))

    assert isinstance(one, SessionItem)
    assert (one.source_id, one.title, one.cwd) == ("ses_1", "Rename", "/srv/app")
    assert messages_of(one) == OPENCODE_MESSAGES
    assert one.messages[0]["time"] == "2026-03-02T10:00:00+00:00"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('"Never push \\"main\\" again."', 'Never push "main" again.'),
        ('"Yes" or "no" to that?', '"Yes" or "no" to that?'),
        ('"Both" and "all"', '"Both" and "all"'),
        ('"Rename"', '"Rename"'),
    ],
)
def test_a_prompt_of_opencode_run_is_without_its_quotes(text: str, meant: str) -> None:
    part = as_json({"type": "text", "text": text})
    files = {**samples.OPENCODE, "storage/part/msg_1/prt_0.json": part}
    (one,) = items_of(found_in(FORMATS["opencode"], files))

    assert isinstance(one, SessionItem)
    assert messages_of(one)[0] == ("user", meant)


def test_opencode_is_read_from_its_database(tmp_path: Path) -> None:
    samples.opencode_database(tmp_path / "opencode.db")

    assert detect_format(ImportSource(tmp_path)).name == "opencode"
    for path in (tmp_path, tmp_path / "opencode.db"):
        (one,) = items_of(in_path(FORMATS["opencode"], path))
        assert isinstance(one, SessionItem)
        assert messages_of(one) == OPENCODE_MESSAGES


def test_one_session_of_a_database_is_read_alone(tmp_path: Path) -> None:
    samples.opencode_database(tmp_path / "opencode.db")
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database:
        database.execute("insert into session values ('ses_9', null, '/srv', 'Other', 0, 0)")
        database.commit()
    format_ = FORMATS["opencode"]
    assert isinstance(format_, Selective)

    with closing(ImportSource(tmp_path / "opencode.db")) as source:
        found = [list(format_.session(source, name)) for name in ("ses_1", "ses_9", "ses_0", None)]

    names = [[each.source_id for each in items_of(each)] for each in found]
    assert names == [["ses_1"], ["ses_9"], [], ["ses_1", "ses_9"]]


def test_a_database_of_another_program_is_a_finding(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "other.db").execute("create table x (y)").connection.close()

    assert "database of opencode" in refused_in(in_path(FORMATS["opencode"], tmp_path))[0].what


def test_a_session_of_codex_that_went_on_from_another_keeps_its_own_id() -> None:
    lines = [samples.codex_meta("new"), samples.codex_meta("old"), *samples.ROLLOUT[1:]]

    assert conversation("codex", "a.jsonl", as_lines(lines)).source_id == "new"


def test_older_files_of_codex_have_the_payloads_alone() -> None:
    lines = [
        {"id": "old", "timestamp": "2025-05-01T10:00:00.000Z", "instructions": "x"},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "summary": []},
    ]
    one = conversation("codex", "rollout-old.jsonl", as_lines(lines))

    assert (one.source_id, messages_of(one)) == ("old", [("user", "Hi")])


def test_messages_of_codex_without_a_session_are_refused() -> None:
    found = read("codex", "rollout.jsonl", as_lines(samples.ROLLOUT[1:]))

    assert items_of(found) == []
    assert "no session id" in refused_in(found)[0].what


# ---------------------------------------------------------------- memories
@pytest.mark.parametrize(
    ("more", "category"),
    [
        ({}, "entity"),
        ({"categories": ["misc", "music"]}, "preference"),
        ({"categories": ["travel"]}, "event"),
        ({"categories": ["food"], "metadata": {"category": "event"}}, "event"),
        ({"categories": "food", "metadata": [1]}, "entity"),
    ],
)
def test_mem0_s_categories_are_ours(more: dict[str, Any], category: str) -> None:
    (one,) = items_of(read("mem0", "a.json", as_json([samples.mem0("1", "x", **more)])))

    assert isinstance(one, StatementItem)
    assert one.category == category


def test_mem0_keeps_whose_it_was_and_when() -> None:
    (one,) = items_of(read("mem0", "a.json", as_json([samples.TEA])))

    assert isinstance(one, StatementItem)
    assert (one.source_id, one.owner) == ("1", "ana")
    assert one.metadata == {
        "date": "2025-11-05T16:00:00+00:00",
        "source_created_at": "2025-11-05T16:00:00+00:00",
        "source_user": "ana",
        "source_categories": "food",
        "source_hash": "h",
        "mem0_confidence": 0.5,
    }


def test_a_graph_may_also_be_one_object() -> None:
    graph = {"entities": [samples.ANA, samples.REX, 7], "relations": [samples.OWNS]}
    found = read("mcp-memory", "memory.json", as_lines([graph]))

    assert [item.source_id for item in items_of(found)] == ["Ana", "Rex", "Ana takes care of Rex"]
    assert len(refused_in(found)) == 1


def test_an_entity_has_its_observations() -> None:
    odd = {**samples.REX, "observations": ["a", 7, " ", "b"]}
    (one,) = items_of(read("mcp-memory", "memory.json", as_lines([odd])))

    assert isinstance(one, EntityItem)
    assert (one.kind, one.observations) == ("dog", ("a", "b"))
