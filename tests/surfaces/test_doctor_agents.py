"""`doctor --agents`: what keeps an agent from its memory is named, with its fix."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from perdure.agents.checkup import trusted_hash
from perdure.agents.hook_log import CAPTURED, HookRun, log_error, record_run
from tests.surfaces.nodes import perdure, stdout_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    chosen = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")
    for name in ("PERDURE_HOME", *chosen):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "ana")
    (tmp_path / ".perdure").mkdir()
    return tmp_path


def found(agent: str = "claude-code") -> dict[str, tuple[str, str]]:
    """Return what is found about an agent: the level and the message of each check."""
    done: dict[str, Any] = json.loads(perdure("doctor", "--agents", "--json").stdout)
    checks = done["agents"].get(agent, [])
    return {each["name"]: (each["level"], each["message"]) for each in checks}


def edited(path: Path, change: Any) -> None:  # noqa: ANN401 - a function of what JSON holds
    text = json.loads(path.read_text())
    change(text)
    path.write_text(json.dumps(text))


def test_an_agent_that_has_nothing_of_ours_is_not_listed(home: Path) -> None:
    assert found() == {}
    assert perdure("doctor", "--agents").exit_code == 0


@pytest.mark.parametrize("agent", ["claude-code", "gemini-cli", "opencode", "cursor"])
def test_all_is_well_after_an_installation(home: Path, agent: str) -> None:
    stdout_of("install", agent, "--yes")

    assert {name: level for name, (level, _) in found(agent).items()} == {
        "hooks": "ok",
        "server": "ok",
    }
    assert perdure("doctor", "--agents").exit_code == 0


def test_a_hook_that_was_removed_is_named(home: Path) -> None:
    stdout_of("install", "claude-code", "--yes")
    edited(home / ".claude" / "settings.json", lambda text: text["hooks"].pop("Stop"))

    level, message = found()["hooks"]
    assert (level, "has none for Stop. Fix: `perdure install claude-code`." in message) == (
        "fail",
        True,
    )
    assert perdure("doctor", "--agents").exit_code == 1


def test_hooks_that_a_plug_in_runs_are_not_missing(home: Path) -> None:
    stdout_of("install", "claude-code", "--yes")
    edited(home / ".claude" / "settings.json", lambda text: text["hooks"].pop("Stop"))
    record_run(home / ".perdure", "claude-code", "stop", HookRun("s"))

    assert found()["hooks"][0] == "ok"


def test_a_program_that_is_gone_or_another_is_named(home: Path) -> None:
    stdout_of("install", "claude-code", "--yes")
    other = home / "bin" / "perdure"
    edited(
        home / ".claude.json",
        lambda text: text["mcpServers"]["perdure"].update(command=str(other)),
    )
    assert found()["server"][0] == "fail"

    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho something else\n")
    other.chmod(0o755)
    level, message = found()["server"]
    assert (level, "is another program" in message) == ("fail", True)


def test_a_config_that_is_broken_is_named(home: Path) -> None:
    stdout_of("install", "claude-code", "--yes")
    (home / ".claude" / "settings.json").write_text('{"hooks": ')

    assert found()["entries"][0] == "fail"


class TestTrust:
    def trust(self, home: Path, **changed: object) -> None:
        """Let Codex trust all hooks, as its user does with `/hooks`."""
        hooks = json.loads((home / ".codex" / "hooks.json").read_text())["hooks"]
        lines = []
        for event, (group,) in sorted(hooks.items(), key=lambda each: each[0] == "Stop"):
            name = re.sub("(?<!^)(?=[A-Z])", "_", event).lower()
            hash_ = trusted_hash(name, {**group["hooks"][0], **changed}, group.get("matcher"))
            key = f"{home / '.codex' / 'hooks.json'}:{name}:0:0"
            lines += [f'[hooks.state."{key}"]', f'trusted_hash = "{hash_}"']
        path = home / ".codex" / "config.toml"
        path.write_text("\n".join([path.read_text(), *lines, ""]))

    def test_hooks_that_codex_does_not_trust_are_named(self, home: Path) -> None:
        stdout_of("install", "codex", "--yes")
        level, message = found("codex")["trust"]
        assert (level, "SessionStart" in message, "`/hooks`" in message) == ("fail", True, True)

        self.trust(home)
        assert found("codex")["trust"][0] == "ok"

    def test_another_command_is_not_what_was_trusted(self, home: Path) -> None:
        stdout_of("install", "codex", "--yes")
        self.trust(home, command="perdure hook other")

        assert found("codex")["trust"][0] == "fail"

    def test_a_hook_that_was_switched_off_is_named(self, home: Path) -> None:
        stdout_of("install", "codex", "--yes")
        self.trust(home)
        path = home / ".codex" / "config.toml"
        path.write_text(f"{path.read_text()}enabled = false\n")

        level, message = found("codex")["trust"]
        assert (level, "does not run Stop:" in message) == ("fail", True)

    def test_the_matcher_of_a_stop_hook_is_not_part_of_what_is_trusted(self) -> None:
        hook = {"type": "command", "command": "perdure hook stop", "timeout": 10}

        assert trusted_hash("stop", hook, "x") == trusted_hash("stop", hook)
        assert trusted_hash("session_start", hook, "x") != trusted_hash("session_start", hook)


class TestRuns:
    def test_it_says_how_hooks_ran(self, home: Path) -> None:
        for number in range(100):
            run = HookRun("s", float(number), number * 2.0, number * 10)
            record_run(home / ".perdure", "claude-code", "session-start", run)

        level, message = found()["session-start"]
        assert level == "ok"
        assert "last just now; runs 100: CPU p50 49 ms, p95 94 ms; wall p50 98 ms" in message
        assert "at most 990 bytes of 9,000, cap 10,000 characters" in message

    def test_a_hook_that_was_ended_for_lateness_is_named(self, home: Path) -> None:
        record_run(home / ".perdure", "claude-code", "stop", HookRun("s", late=True))

        level, message = found()["stop"]
        assert (level, "1 exceeded the limit. Fix:" in message) == ("warn", True)

    def test_sessions_that_are_not_stored_are_named(self, home: Path) -> None:
        then = time.time() - 7_200
        for session in ("a", "b"):
            run = HookRun(session, time=then)
            record_run(home / ".perdure", "claude-code", "user-prompt-submit", run)
        level, message = found()["capture"]
        assert (level, "its stop hook did not run. Fix:" in message) == ("fail", True)

        record_run(home / ".perdure", "claude-code", CAPTURED, HookRun("a"))
        assert found()["capture"] == ("ok", "a session was last captured just now")

    def test_errors_since_then_are_named(self, home: Path) -> None:
        record_run(home / ".perdure", "claude-code", CAPTURED, HookRun("a", time=time.time() - 60))
        record_run(home / ".perdure", "claude-code", "stop", HookRun("a"))
        assert "errors" not in found()
        log_error(home / ".perdure", "claude-code stop: OSError: no space")
        log_error(home / ".perdure", "codex stop: OSError: other")

        level, message = found()["errors"]
        assert (level, "1 since, the last: " in message, "no space" in message) == (
            "warn",
            True,
            True,
        )


def test_every_line_that_is_not_well_has_a_fix(home: Path) -> None:
    stdout_of("install", "codex", "--yes")
    edited(home / ".codex" / "hooks.json", lambda text: text["hooks"].pop("Stop"))
    lines = perdure("doctor", "--agents").stdout.splitlines()

    assert len([line for line in lines if line.startswith(("FAIL", "warn", "note"))]) == 2
    assert all("Fix: " in line for line in lines if line.startswith(("FAIL", "warn", "note")))
