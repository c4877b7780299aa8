"""Agents that call hooks, as processes of their own."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import perdure
from perdure.agents.pending_sessions import PendingSessions
from tests.surfaces.processes import PERDURE

SESSION = "3f0c"


SWITCHES = ("CI", "CLAUDE_CODE_ENTRYPOINT")
"""Variables in the environment of the tests that would switch contributing off."""


def environment(home: Path, **more: str) -> dict[str, str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if name not in SWITCHES and not name.startswith("PERDURE_")
    }
    return {**ours, "HOME": str(home), "USER": "ana", **more}


def start(
    home: Path, *words: str, payload: bytes | None = None, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a hook; its input is written at once, or by the caller."""
    with TemporaryFile() as given:
        given.write(payload or b"")
        given.seek(0)
        return subprocess.Popen(
            [PERDURE, "hook", *words],
            env=environment(home, **(environ or {})),
            stdin=subprocess.PIPE if payload is None else given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def call(
    home: Path,
    *words: str,
    payload: Mapping[str, object] | bytes | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[int, bytes, str]:
    """Return the exit code of a hook, and all that it printed."""
    given = payload if isinstance(payload, bytes) else json.dumps(payload or {}).encode()
    process = start(home, *words, environ=environ)
    printed, complained = process.communicate(given, timeout=60)
    return process.returncode, printed, complained.decode()


def heard(
    home: Path,
    *words: str,
    payload: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the answer of a hook; an empty object for none."""
    code, printed, complained = call(
        home, *words, "--seconds", "60", payload=payload, environ=environ
    )
    assert (code, complained) == (0, "")
    output: dict[str, Any] = json.loads(printed or b"{}")
    return output


def line(name: str, parent: str | None, kind: str, content: str, session: str) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": name,
        "parentUuid": parent,
        "sessionId": session,
        "isSidechain": False,
        "timestamp": "2026-03-02T10:00:00.000Z",
        "cwd": "/srv/app",
        "message": {"role": kind, "content": content},
    }


def transcript(folder: Path, *payload: str, session: str = SESSION) -> Path:
    """Write a session of Claude Code in which the two take turns."""
    path = folder / f"{session}.jsonl"
    kinds = ("user", "assistant")
    lines = [
        line(f"u{n}", f"u{n - 1}" if n else None, kinds[n % 2], text, session)
        for n, text in enumerate(payload)
    ]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return path


def ending(path: Path) -> dict[str, object]:
    """Return what an agent says when a session ends."""
    return {"session_id": path.stem, "transcript_path": str(path), "cwd": "/srv/app"}


def log(home: Path) -> str:
    path = home / ".perdure" / "hooks" / "log"
    return path.read_text() if path.exists() else ""


def waiting(home: Path) -> int:
    return len(list(PendingSessions(home / ".perdure")))


def stored(home: Path) -> Iterator[tuple[str, str]]:
    """Yield the stored sessions, each with its text."""
    with perdure.open(home=home / ".perdure") as memory:
        nodes, request = memory._services.nodes, memory.caller
        for uri in nodes.list_children(f"ctx://{request.account_id}/sessions", request):
            yield uri.rpartition("/")[2], memory.read(f"{uri}/messages").content
