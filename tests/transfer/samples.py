"""Files such as other programs write, made up for these tests."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Files = Mapping[str, bytes]


def as_json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


def as_lines(values: Sequence[object]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


# ---------------------------------------------------------------- ChatGPT
def chatgpt_node(
    name: str, parent: str | None, role: str, *parts: object, **more: object
) -> dict[str, Any]:
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_772_445_600.0,
        "content": {"content_type": "text", "parts": list(parts)},
        "recipient": "all",
        "metadata": {},
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def chatgpt(source_id: str, *nodes: dict[str, Any], current: str, **more: object) -> dict[str, Any]:
    root: dict[str, Any] = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {node["id"]: {**node, "children": []} for node in (root, *nodes)}
    for node in nodes:
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    return {
        "conversation_id": source_id,
        "title": "A boat",
        "create_time": 1_772_445_600.5,
        "update_time": 1_772_445_900.5,
        "current_node": current,
        "mapping": mapping,
        **more,
    }


ASKED = chatgpt_node("a", "root", "user", "How long is a dinghy?")
ANSWERED = chatgpt_node("b", "a", "assistant", "About four metres.")
OTHERWISE = chatgpt_node("b2", "a", "assistant", "It depends.")
THANKED = chatgpt_node("c", "b", "user", "Thanks!")
BOAT = chatgpt("boat", ASKED, ANSWERED, current="b")
BOAT_AFTER = chatgpt("boat", ASKED, ANSWERED, THANKED, current="c")
WIND = chatgpt_node("s", "i", "user", "Which sail for wind?")
SAIL = chatgpt("sail", chatgpt_node("s", "root", "user", "Which sail for wind?"), current="s")


# ---------------------------------------------------------------- Claude
def claude_message(name: str, sender: str, text: str, **more: object) -> dict[str, Any]:
    return {
        "uuid": name,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "sender": sender,
        "created_at": "2026-03-02T10:00:00.000000Z",
        "attachments": [],
        "files": [],
        **more,
    }


def claude(source_id: str, *messages: dict[str, Any], **more: object) -> dict[str, Any]:
    return {
        "uuid": source_id,
        "name": "Bread",
        "created_at": "2026-03-02T09:59:00Z",
        "updated_at": "2026-03-02T10:05:00Z",
        "account": {"uuid": "me"},
        "chat_messages": list(messages),
        **more,
    }


FLOUR = claude_message("m1", "human", "How much flour?")
HALF_A_KILO = claude_message("m2", "assistant", "Half a kilo.")
BREAD = claude("bread", FLOUR, HALF_A_KILO)
BREAD_AFTER = claude("bread", FLOUR, HALF_A_KILO, claude_message("m3", "human", "And water?"))
CAKE = claude("cake", claude_message("k1", "human", "A cake without eggs?"))


# ---------------------------------------------------------------- Claude Code
def code_line(
    name: str, parent: str | None, kind: str, content: object, **more: object
) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": name,
        "parentUuid": parent,
        "sessionId": "3f",
        "isSidechain": False,
        "timestamp": "2026-03-02T10:00:00.000Z",
        "cwd": "/srv/app",
        "message": {"role": kind, "content": content},
        **more,
    }


def used(name: str, given: object, tool_id: str = "t1") -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": tool_id, "name": name, "input": given}]


def result(content: object, tool_id: str = "t1") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": tool_id, "content": content}]


CODE = (
    {"type": "summary", "summary": "Mend the tests", "leafUuid": "l4"},
    code_line("l1", None, "user", "Why do the tests fail?"),
    code_line("l2", "l1", "assistant", used("Bash", {"command": "make test"})),
    code_line("l3", "l2", "user", result("1 failed")),
    code_line("l4", "l3", "assistant", [{"type": "text", "text": "A fixture is missing."}]),
)
CODE_AFTER = (*CODE, code_line("l5", "l4", "user", "Add it."))
OTHER_CODE = (code_line("o1", None, "user", "Rename the module.", sessionId="4a"),)


# ---------------------------------------------------------------- Codex
def codex_line(kind: str, payload: object) -> dict[str, Any]:
    return {"timestamp": "2026-03-02T10:00:00.000Z", "type": kind, "payload": payload}


def codex_message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return codex_line("response_item", {"type": "message", "role": role, "content": content})


def codex_meta(source_id: str) -> dict[str, Any]:
    return codex_line("session_meta", {"id": source_id, "timestamp": "2026-03-02T09:59:59Z"})


ROLLOUT = (
    codex_meta("01-a"),
    codex_message("user", "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>"),
    codex_message("user", "Add a test."),
    codex_line("event_msg", {"type": "user_message", "message": "Add a test."}),
    codex_line(
        "response_item",
        {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command":["ls"]}',
            "call_id": "1",
        },
    ),
    codex_line("response_item", {"type": "function_call_output", "call_id": "1", "output": "a.py"}),
    codex_message("assistant", "Done."),
)
OTHER_ROLLOUT = (codex_meta("02-b"), codex_message("user", "Which Python is this?"))


# ---------------------------------------------------------------- Gemini CLI
def gemini(name: str, kind: str, content: object, **more: object) -> dict[str, Any]:
    time = "2026-03-02T10:00:00.000Z"
    return {"id": name, "timestamp": time, "type": kind, "content": content, **more}


_READ = {"name": "read_file", "args": {"path": "a.toml"}, "status": "error"}
CHAT = (
    {"sessionId": "9c", "projectHash": "ab", "startTime": "2026-03-02T10:00:00Z"},
    gemini("1", "user", [{"text": "Which port?"}]),
    gemini("2", "gemini", "I look."),
    gemini("2", "gemini", "I look.", toolCalls=[{**_READ, "resultDisplay": "no such file"}]),
    gemini("3", "user", "Use 80."),
    {"$rewindTo": "3"},
    {"$set": {"lastUpdated": "2026-03-02T10:01:00Z", "directories": ["/srv/app"]}},
    gemini("4", "user", "Then use 8080."),
)
OTHER_CHAT = ({**CHAT[0], "sessionId": "9d"}, gemini("1", "user", "Which Python is this?"))


# ---------------------------------------------------------------- opencode
_TIME = {"time": {"created": 1_772_445_600_000}}
_SESSION = {"id": "ses_1", "directory": "/srv/app", "title": "Rename", **_TIME}
_MESSAGES: dict[str, dict[str, Any]] = {
    "msg_1": {"id": "msg_1", "role": "user", **_TIME},
    "msg_2": {"id": "msg_2", "role": "assistant", **_TIME},
    "msg_3": {"id": "msg_3", "role": "assistant", "summary": True, **_TIME},
}
_FAILED = {"status": "error", "input": {"command": "make"}, "error": "no rule"}
_PARTS: dict[str, list[dict[str, Any]]] = {
    "msg_1": [
        {"type": "text", "text": "Rename it."},
        {"type": "text", "text": "Called the Read tool.", "synthetic": True},
    ],
    "msg_2": [
        {"type": "reasoning", "text": "Hm."},
        {"type": "tool", "tool": "bash", "state": _FAILED},
        {"type": "text", "text": "Renamed."},
    ],
    "msg_3": [{"type": "text", "text": "It was renamed."}],
}
OPENCODE: Files = {
    "storage/session/p/ses_1.json": as_json(_SESSION),
    "storage/session/p/ses_2.json": as_json({**_SESSION, "id": "ses_2", "parentID": "ses_1"}),
    **{f"storage/message/ses_1/{name}.json": as_json(one) for name, one in _MESSAGES.items()},
    **{
        f"storage/part/{name}/prt_{at}.json": as_json(part)
        for name, parts in _PARTS.items()
        for at, part in enumerate(parts)
    },
}


def opencode_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "create table session (id, parent_id, directory, title, time_created, time_updated);"
            "create table message (id, session_id, time_created, data);"
            "create table part (id, message_id, data);"
        )
        time = _TIME["time"]["created"]
        row = ("ses_1", None, "/srv/app", "Rename", time, time)
        database.execute("insert into session values (?, ?, ?, ?, ?, ?)", row)
        database.execute("insert into message values ('msg_0', 'ses_1', 0, 'no JSON')")
        for name, one in _MESSAGES.items():
            values = (name, "ses_1", time, json.dumps(one))
            database.execute("insert into message values (?, ?, ?, ?)", values)
            for at, part in enumerate(_PARTS[name]):
                data = json.dumps(part)
                database.execute(
                    "insert into part values (?, ?, ?)", (f"prt_{name}_{at}", name, data)
                )
        database.commit()


# ---------------------------------------------------------------- mem0
def mem0(source_id: str, text: str, **more: object) -> dict[str, Any]:
    return {
        "id": source_id,
        "memory": text,
        "user_id": "ana",
        "hash": "h",
        "metadata": None,
        "created_at": "2025-11-05T08:00:00-08:00",
        "updated_at": None,
        **more,
    }


TEA = mem0("1", "Prefers tea to coffee", categories=["food"], metadata={"confidence": 0.5})
MOVED = mem0("2", "Moved to Lisbon", categories=["milestones"])
DRINKS = {"source": "ana", "relationship": "drinks", "target": "tea"}
DOG = mem0("3", "Has a dog called Rex", user_id="bob")

# ---------------------------------------------------------------- MCP
REX = {"type": "entity", "name": "Rex", "entityType": "dog", "observations": ["likes\nwater"]}
ANA = {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["lives in Porto"]}
OWNS = {"type": "relation", "from": "Ana", "to": "Rex", "relationType": "takes care of"}

# ---------------------------------------------------------------- Markdown
GUIDE = "# Guide\n\nHow to set it up.\n\n## Install\n\n```sh\n# no heading\n```\n\n### On a Mac\n"
NOTES: Files = {
    "guide.md": GUIDE.encode(),
    "sub/more.md": b"---\ntags: [a]\n---\nJust text,\r\nin two lines.\r\n",
}

# ---------------------------------------------------------------- what ChatGPT remembers
NOTED = chatgpt_node("n", "b", "assistant", "Sails a dinghy.\nLives in Faro.", recipient="bio")
INSTRUCTED = chatgpt_node("i", "root", "user")
INSTRUCTED["message"]["content"] = {
    "content_type": "user_editable_context",
    "user_profile": "The user says:\n```A sailor from Faro.```",
    "user_instructions": "Answer in metres.",
}
LISTED = chatgpt_node("l", "n", "assistant")
LISTED["message"]["content"] = {
    "content_type": "model_editable_context",
    "model_set_context": "1. [2026-01-02]. Lives in Faro.\n2. [2026-01-03]. Has a blue sail.",
}

# ---------------------------------------------------------------- beside Claude's conversations
BAKERY = {
    "uuid": "p1",
    "name": "The Bakery",
    "description": "Recipes for sale.",
    "prompt_template": "Always weigh in grams.",
    "updated_at": "2026-03-02T10:00:00Z",
    "docs": [
        {"uuid": "d1", "filename": "oven.md", "content": "# Oven\n\nHeat it first."},
        {"uuid": "d2", "filename": "empty.md", "content": ""},
    ],
}
CLAUDE_MEMORY = {
    "conversations_memory": "Bakes rye bread on Sundays.",
    "project_memories": {"p1": "The bakery opens at six."},
    "account_uuid": "me",
}

# ---------------------------------------------------------------- SpecStory
STORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# Sort the harbours (2026-03-02 10:00Z)

<!-- Claude Code Session 11aa-22bb (2026-03-02 10:00:00Z) -->

_**User (2026-03-02 10:00:00Z)**_

Sort the harbours by name.

```text
_**User**_
```

---

_**Agent (some-model 2026-03-02 10:00:05Z)**_

<think><details><summary>Thought Process</summary>
Hm.
</details></think>

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>
 `ls harbours`

```text
faro
```
</details></tool-use>

They are sorted.

---

_**Agent - sidechain (some-model 2026-03-02 10:00:06Z)**_

I looked aside.
"""
STORY_AFTER = f"{STORY}\n---\n\n_**User (2026-03-02 10:01:00Z)**_\n\nNow by size.\n"
OLD_STORY = """<!-- Generated by SpecStory -->

# Rename the pier (2025-03-02 10:00Z)

_**User**_

Rename the pier.

---

_**Assistant**_

Done.

---
"""

# ---------------------------------------------------------------- basic-memory
COFFEE = """---
title: Coffee Roasts
type: note
permalink: drinks/coffee-roasts
tags: [coffee]
---

# Coffee Roasts

How roasts differ.

- [fact] Light roasts keep more acid #taste (from a tasting)
- [ ] buy beans
- pairs_with [[Rye Bread]]
- needs [[A Grinder]]
"""
RYE = "---\ntitle: Rye Bread\npermalink: food/rye-bread\n---\n\n- [method] Bake it long\n"
BASIC: Files = {"drinks/coffee.md": COFFEE.encode(), "food/rye.md": RYE.encode()}


# ---------------------------------------------------------------- Letta
def letta_message(role: str, content: object, **more: object) -> dict[str, Any]:
    return {"role": role, "content": content, "created_at": "2026-03-02T10:00:00Z", **more}


PILOT: dict[str, Any] = {
    "agents": [
        {
            "name": "pilot",
            "block_ids": ["block-0", "block-1"],
            "system": "You are a pilot.",
            "messages": [
                letta_message("system", [{"type": "text", "text": "You are a pilot."}]),
                letta_message("user", '{"type": "user_message", "message": "Where is the buoy?"}'),
                letta_message("user", '{"type": "heartbeat"}'),
                letta_message(
                    "assistant",
                    [{"type": "text", "text": "I think."}],
                    tool_calls=[
                        {"function": {"name": "send_message", "arguments": '{"message": "East."}'}}
                    ],
                ),
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Steers a ferry in Lagos."},
        {"id": "block-1", "label": "persona", "value": "I am calm."},
    ],
    "files": [{"file_name": "chart.md", "content": "# Chart"}, {"file_name": "x", "content": None}],
    "tools": [{"name": "send_message"}],
}
PASSAGE = {
    "id": "passage-1",
    "text": "The ferry leaves at nine.",
    "created_at": "2026-03-02T10:00:00Z",
    "tags": ["timetable"],
    "embedding_config": None,
}

# ---------------------------------------------------------------- rules for agents
AGENT_RULES = """# Harbour

This is the harbour's code.

## Style

- Use tabs.
- Name tests as sentences,
  never as numbers.

Never:

- commit to main
- skip `make check`

```sh
make check
```

## Don't

1. Print secrets.
"""
CURSOR_RULE = "---\ndescription: Ports\nglobs: *.py\nalwaysApply: true\n---\n- Ports are even.\n"
RULES: Files = {"CLAUDE.md": AGENT_RULES.encode(), ".cursor/rules/ports.mdc": CURSOR_RULE.encode()}

# ---------------------------------------------------------------- names that are secrets
BODY = "a1b2c3d4e5" * 3 + "f6a7b8"
SECRET = f"ghp_{BODY}"
NAMED: Mapping[str, Files] = {
    "chatgpt": {"conversations.json": as_json([{**BOAT, "title": f"My {SECRET}"}])},
    "claude": {"conversations.json": as_json([{**BREAD, "name": f"My {SECRET}"}])},
    "claude-code": {
        "3f.jsonl": as_lines([{**CODE[0], "summary": f"My {SECRET}"}, *CODE[1:]]),
    },
    "codex": {"rollout-a.jsonl": as_lines([codex_meta(SECRET), *ROLLOUT[1:]])},
    "gemini-cli": {"session-1.jsonl": as_lines([{**CHAT[0], "sessionId": SECRET}, *CHAT[1:]])},
    "opencode": {
        **OPENCODE,
        "storage/session/p/ses_1.json": as_json({**_SESSION, "title": f"My {SECRET}"}),
    },
    "mem0": {
        "mem0.json": as_json([mem0(SECRET, "Has a boat"), mem0("5", "Tea", metadata={"a": SECRET})])
    },
    "mcp-memory": {
        "memory.json": as_lines(
            [
                *(REX, ANA, {**REX, "name": SECRET}, {**ANA, "name": "Bo", "entityType": SECRET}),
                {**OWNS, "relationType": f"pays with {SECRET}"},
            ]
        )
    },
    "markdown": {f"{SECRET}.md": b"# Guide\n", f"{SECRET}/more.md": b"# More\n"},
    "specstory": {"a.md": STORY.replace("Sort the harbours (", f"My {SECRET} (").encode()},
    "basic-memory": {
        "a.md": COFFEE.encode(),
        "b.md": RYE.replace("Rye Bread", f"My {SECRET}").encode(),
        "c.md": RYE.replace("food/rye-bread", SECRET).encode(),
    },
    "letta": {
        "pilot.af": as_json(
            {**PILOT, "agents": [{**PILOT["agents"][0], "name": SECRET}], "files": []}
        )
    },
    "rules": {"CLAUDE.md": f"- Use {SECRET}.\n".encode(), f"{SECRET}.mdc": b"- Use tabs.\n"},
}
