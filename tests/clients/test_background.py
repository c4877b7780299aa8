"""The user's real Claude Code and Codex as a background model: what they do, and leave."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.app import open_context
from tests.clients.clients import Client
from tests.clients.models import Model, serving

pytestmark = pytest.mark.clients

RUNS = int(os.environ.get("BACKGROUND_RUNS", "50"))
SENTENCE = "Deploys usually go out on Thursdays after the standup."
WORDED = "Deploys go out on Thursdays after the standup."
ITEM = {"candidate": 0, "kind": "fact", "text": WORDED, "replaces": []}
ANSWER = json.dumps({"items": [ITEM]})
USERS_OWN = {
    ".claude/CLAUDE.md": "OWN-INSTRUCTIONS",
    ".claude/skills/own/SKILL.md": "---\nname: own\ndescription: OWN-SKILL\n---\n",
    ".codex/AGENTS.md": "OWN-INSTRUCTIONS",
    ".agents/skills/own/SKILL.md": "---\nname: own\ndescription: OWN-SKILL\n---\n",
}
both = pytest.mark.parametrize("client", ["claude-code", "codex"], indirect=True)


@pytest.fixture
def client(client: Client) -> Client:
    """Return an agent whose user has instructions, skills, MCP servers and hooks of their own."""
    client.trace()
    for name, text in USERS_OWN.items():
        path = client.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return client


def configure(client: Client, port: int = 0) -> None:
    """Let the agent itself be the background model; with a port, it asks the model there."""
    name = client.kind.name
    url = f"http://127.0.0.1:{port}" + ("/v1" if name == "codex" else "")
    lines = ["[llm]", f'provider = "{name}"', "background = true", "runs_per_day = 1000"]
    if port:
        lines += [f'base_url = "{url}"', 'api_key_variable = "MADE_UP"', 'model = "gpt-5.5"']
    lines += ["[agents]", "headless = true"]  # as all clients are started here
    (client.home / ".perdure").mkdir(exist_ok=True)
    (client.home / ".perdure" / "config.toml").write_text("\n".join(lines), encoding="utf-8")


def environ_of(client: Client) -> Mapping[str, str]:
    return {**client._environ({}), "MADE_UP": "made-up"}


def files_of(client: Client) -> dict[str, bytes]:
    """Return all files of the user that are not of memory."""
    return {
        str(path.relative_to(client.home)): path.read_bytes()
        for path in sorted(client.home.rglob("*"))
        if path.is_file() and ".perdure" not in path.relative_to(client.home).parts
    }


def processes_of(client: Client) -> list[str]:
    """Return the processes that have a folder of this user in their environment."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(client.home).encode() in file.read_bytes() and file.parent.name != str(
                os.getpid()
            ):
                found.append(file.with_name("cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


def background(model: Model) -> list[str]:
    """Return what was asked in the background."""
    return [each.text for each in model.requests if "worth remembering" in each.text]


@pytest.mark.parametrize("client", ["claude-code"], indirect=True)
def test_when_a_session_ends_its_candidates_become_statements(client: Client) -> None:
    configure(client)  # it is reached as the agent reaches its own model

    ran = client.run(f"Look at the tides. {SENTENCE}", "Done.", aside=ANSWER)

    assert len(background(ran.model)) == 1, ran.output
    assert SENTENCE in client.perdure("why", "entity/deploys-go-out-thursdays-after-standup")
    assert len([each for each in client.traced if each == "session-start"]) == 1


@both
def test_candidates_become_statements_with_their_evidence(client: Client) -> None:
    client.run(f"Look at the tides. {SENTENCE}", "Done.")
    with serving((), ANSWER) as (model, port):
        configure(client, port)
        with open_context(environ_of(client)) as context:
            (stored,) = context.memory.judge_candidates().remembered
            (evidence,) = context.memory.why(stored.uri).statements[0].evidence

    assert stored.text == WORDED
    assert [each.text for each in evidence.quotes] == [SENTENCE]
    (asked,) = background(model)
    assert "OWN-" not in asked


@both
def test_many_runs_leave_no_session_hook_process_or_file_behind(client: Client) -> None:
    client.run("Hello.", "Hello.")
    before, hooks = files_of(client), client.traced
    with serving((), ANSWER) as (model, port):
        configure(client, port)
        with open_context(environ_of(client)) as context:
            memory = context.memory
            sessions = {each.id for each in memory.sessions()}
            for number in range(RUNS):
                text = f"{SENTENCE[:-1]} in room {number}."
                memory.commit_session([{"role": "user", "content": text}], session_id=f"s{number}")
                assert len(memory.judge_candidates().remembered) == 1
            ours = {f"s{number}" for number in range(RUNS)}
            assert {each.id for each in memory.sessions()} == sessions | ours

    assert len(background(model)) == len(model.requests) == RUNS
    assert all(len(each.tools) <= 2 and "OWN-" not in each.text for each in model.requests)
    assert files_of(client) == before
    assert client.traced == hooks
    assert processes_of(client) == []
    left = {path.name for path in (client.home / ".perdure" / "llm").iterdir()}
    assert left <= {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "lease", "run.lock"}
