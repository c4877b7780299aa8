"""`perdure install`: entries in the config files of agents, and their removal."""

import json
import os
import re
import stat
from pathlib import Path

import pytest

from perdure.agents.clients import AGENTS, AGENTS_MD, COMMANDS, files_for, program
from perdure.agents.hooks import EVENTS
from perdure.agents.installation import FileContent
from perdure.errors import (
    AccessRefusedError,
    ConcurrentModificationError,
    ConfigError,
    NotTextError,
)
from tests.support.validate.tokens import token
from tests.surfaces.nodes import perdure, refusal
from tests.surfaces.nodes import stdout_of as told

FILES = {
    "claude-code": {
        ".claude/settings.json": '{\n    "model": "opus",\n    "hooks": {"Stop": []}\n}',
        ".claude.json": '{"numStartups": 7, "projects": {"/x": {"mcpServers": {}}}}',
    },
    "codex": {
        ".codex/config.toml": '# mine\nmodel = "o3"\n\n[mcp_servers.a]\ncommand = "a"\n',
        ".codex/hooks.json": '{\r\n\t"hooks": {}\r\n}\r\n',
    },
    "gemini-cli": {
        ".gemini/settings.json": '{\n  "theme": "x",\n  "hooks": {"BeforeTool": []}\n}\n',
    },
    "opencode": {
        ".config/opencode/opencode.jsonc": '{\n  // mine\n  "model": "a/b",\n  "mcp": {},\n}\n',
    },
    "agents-md": {"AGENTS.md": "# Mine\r\n\r\nUse tabs."},
    "cursor": {
        ".cursor/mcp.json": '\ufeff{\n  // mine\n  "mcpServers": {\n    "a": {"b": 1},\n  },\n}\n',
        ".cursor/hooks.json": "",
    },
}

BROKEN = {"agents-md": b"\xff\xfe"}
"""What can't be changed; there is no Markdown that is broken."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    chosen = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")
    for name in ("PERDURE_HOME", *chosen):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(home: Path, agent: str) -> dict[Path, bytes]:
    """Write the config of an agent as a user may have it; return the contents of its files."""
    for name, text in FILES[agent].items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return contents(home)


def contents(home: Path) -> dict[Path, bytes]:
    """Return all files but our own."""
    every = (path for path in home.rglob("*") if path.is_file() and ".perdure" not in path.parts)
    return {path: path.read_bytes() for path in every}


@pytest.mark.parametrize("agent", AGENTS)
class TestEachAgent:
    def test_it_is_taken_back_to_the_letter(self, home: Path, agent: str) -> None:
        before = write(home, agent)
        told("install", agent, "--yes")
        between = contents(home)
        assert between.keys() >= before.keys()
        assert all(between[path] != before[path] for path in before)
        told("install", agent, "--yes", "--uninstall")

        assert contents(home) == before

    def test_where_nothing_was_nothing_is_left(self, home: Path, agent: str) -> None:
        told("install", agent, "--yes")
        assert contents(home)
        told("install", agent, "--yes", "--uninstall")

        assert contents(home) == {}

    def test_twice_is_once(self, home: Path, agent: str) -> None:
        write(home, agent)
        told("install", agent, "--yes")
        once = contents(home)
        again = perdure("install", agent, "--yes")

        assert (again.exit_code, again.stdout) == (0, "")
        assert "nothing was changed" in again.stderr
        assert contents(home) == once
        told("install", agent, "--yes", "--uninstall")
        assert "nothing was changed" in perdure("install", agent, "--yes", "--uninstall").stderr

    def test_a_dry_run_shows_it_and_does_nothing(self, home: Path, agent: str) -> None:
        before = write(home, agent)
        shown = told("install", agent, "--dry-run")

        assert "perdure" in "".join(line for line in shown.splitlines() if line[:1] == "+")
        assert contents(home) == before
        assert not (home / ".perdure").exists()

    def test_what_its_owner_changed_since_stays(self, home: Path, agent: str) -> None:
        write(home, agent)
        told("install", agent, "--yes")
        for path in contents(home):
            if path.suffix in {".toml", ".md"}:
                path.write_text(f'{path.read_text()}\n[after]\nx = "mine"\n')
            elif path.suffix != ".js":  # which is all ours
                path.write_text(path.read_text().replace("{", '{ "mine": [1], ', 1))
        told("install", agent, "--yes", "--uninstall")
        after = contents(home)

        assert all(b"mine" in content for content in after.values())
        assert not any(b"perdure hook" in content for content in after.values())
        assert not any(b"perdure" in content for content in after.values())
        assert "nothing was changed" in perdure("install", agent, "--yes", "--uninstall").stderr

    def test_permissions_and_links_stay(self, home: Path, agent: str) -> None:
        write(home, agent)
        (home / "dotfiles").mkdir()
        for number, name in enumerate(FILES[agent]):
            real = home / "dotfiles" / f"{number}{Path(name).suffix}"
            (home / name).rename(real)
            real.chmod(0o640)
            (home / name).symlink_to(os.path.relpath(real, (home / name).parent))
        told("install", agent, "--yes")

        for number, name in enumerate(FILES[agent]):
            real = home / "dotfiles" / f"{number}{Path(name).suffix}"
            assert (home / name).is_symlink()
            assert b"perdure" in real.read_bytes()
            assert stat.S_IMODE(real.stat().st_mode) == 0o640

    def test_a_broken_file_is_refused_and_no_other_is_changed(self, home: Path, agent: str) -> None:
        write(home, agent)
        for name in FILES[agent]:
            before = write(home, agent)
            (home / name).write_bytes(BROKEN.get(agent, b'{"a": \n  ['))
            broken = contents(home)
            error = refusal("install", agent, "--yes")

            assert isinstance(error, ConfigError | NotTextError)
            assert "othing was written" in str(error)
            assert str(home / name) in str(error)
            assert contents(home) == broken
            assert broken.keys() == before.keys()

    def test_killed_anywhere_each_file_is_whole_and_it_is_finished_by_doing_it_again(
        self, home: Path, agent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = write(home, agent)
        told("install", agent, "--yes")
        after = contents(home)
        told("install", agent, "--yes", "--uninstall")
        replace, steps = Path.replace, 0
        for stop in range(20):
            steps = 0

            def dying(self: Path, target: Path, stop: int = stop) -> Path:
                nonlocal steps
                steps += 1
                if steps > stop:
                    raise KeyboardInterrupt
                return replace(self, target)

            monkeypatch.setattr(Path, "replace", dying)
            killed = perdure("install", agent, "--yes").exit_code != 0
            monkeypatch.setattr(Path, "replace", replace)
            found = contents(home)
            assert all(found[path] in {before.get(path), after[path]} for path in found)
            told("install", agent, "--yes")
            assert contents(home) == after
            told("install", agent, "--yes", "--uninstall")
            assert contents(home) == before
            if not killed:
                return
        raise AssertionError("it never came to an end")


def test_the_program_is_named_so_that_any_path_finds_it(home: Path) -> None:
    told("install", "claude-code", "--yes")
    payload = json.loads((home / ".claude.json").read_text())
    command = payload["mcpServers"]["perdure"]["command"]

    assert os.access(command, os.X_OK)
    assert Path(command).is_absolute()


def test_a_folder_of_ones_own_is_heeded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home / "gemini"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    for agent in ("claude-code", "codex", "gemini-cli", "opencode"):
        told("install", agent, "--yes")

    assert {str(path.relative_to(home)) for path in contents(home)} == {
        "elsewhere/settings.json",
        "elsewhere/.claude.json",
        "codex/config.toml",
        "codex/hooks.json",
        "gemini/.gemini/settings.json",
        "xdg/opencode/opencode.json",
        "xdg/opencode/plugins/perdure.js",
        *(f"elsewhere/commands/{name}.md" for name in COMMANDS),
        *(f"gemini/.gemini/commands/{name}.toml" for name in COMMANDS),
        *(f"xdg/opencode/commands/{name}.md" for name in COMMANDS),
    }


def test_a_plugin_of_another_author_is_not_overwritten(home: Path) -> None:
    path = home / ".config" / "opencode" / "plugins" / "perdure.js"
    path.parent.mkdir(parents=True)
    path.write_text("// mine")

    assert "starts something else" in str(refusal("install", "opencode", "--yes"))
    told("install", "opencode", "--yes", "--uninstall")
    assert contents(home) == {path: b"// mine"}


def test_each_project_has_a_section_that_is_taken_back_to_the_letter(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"one": "# One\n", "two": "# Two", "three": "\n\n", "four": "a\r\nb"}
    for name, text in texts.items():
        (home / name).mkdir()
        (home / name / "AGENTS.md").write_bytes(text.encode())
        monkeypatch.chdir(home / name)
        told("install", "agents-md", "--yes")
    for name, text in texts.items():
        monkeypatch.chdir(home / name)
        assert b"recall" in (home / name / "AGENTS.md").read_bytes()
        told("install", "agents-md", "--yes", "--uninstall")
        assert (home / name / "AGENTS.md").read_bytes() == text.encode()


def test_a_section_of_another_version_is_brought_up_to_date(home: Path) -> None:
    path = home / "AGENTS.md"
    old = "<!-- perdure: begin -->\nold\n<!-- perdure: end -->\n"
    path.write_text(f"# Mine\n\n{old}\n# After\n")
    told("install", "agents-md", "--yes")

    assert "old" not in path.read_text()
    assert "recall" in path.read_text()
    told("install", "agents-md", "--yes", "--uninstall")
    assert path.read_text() == "# Mine\n\n# After\n"


def test_secrets_of_others_are_not_shown(home: Path) -> None:
    secret = token("github")
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"a": {"env": {"TOKEN": secret}}}}))
    done = perdure("install", "cursor", "--yes")

    assert secret not in done.output
    assert secret in path.read_text()
    backup = home / ".perdure" / "installed" / "cursor" / "mcp.json.before"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_what_is_no_text_is_left_alone(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe{}")

    assert isinstance(refusal("install", "claude-code", "--yes"), NotTextError)
    assert path.read_bytes() == b"\xff\xfe{}"


def test_what_another_process_writes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    found = FileContent.at(path)
    path.write_text('{"new": 1}')
    with pytest.raises(ConcurrentModificationError, match="left unchanged"):
        found.replace(b"{}")

    assert path.read_text() == '{"new": 1}'
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_installed_is_what_is_called(home: Path) -> None:
    """Each hook that an agent is given is one that `perdure hook` knows."""
    for agent in AGENTS:
        for file in files_for(agent, {"HOME": str(home)}, "perdure"):
            for hook in getattr(file, "hooks", ()):
                payload = json.dumps(hook.entry)
                assert any(f"perdure hook {event}" in payload for event in EVENTS)
                assert agent == "claude-code" or f"--agent {agent}" in payload


def test_the_plugin_calls_what_there_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_HOME", "/srv/my memory")
    told("install", "opencode", "--yes")
    plugin = (home / ".config" / "opencode" / "plugins" / "perdure.js").read_text()

    assert set(re.findall(r'hook\("([a-z-]+)"', plugin)) <= set(EVENTS)
    assert f'const PROGRAM = "{program()}"' in plugin
    assert 'const CHOSEN = {"PERDURE_HOME": "/srv/my memory"}' in plugin
    assert "@" not in plugin


# ---------------------------------------------------------------- what is not up to date
STARTED = [agent for agent in AGENTS if agent != AGENTS_MD]
"""Agents that start our program themselves."""


@pytest.mark.parametrize("agent", STARTED)
def test_another_memory_is_brought_up_to_date(
    home: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, agent)
    first, second = (home / ".perdure" / name for name in ("first", "second"))
    monkeypatch.setenv("PERDURE_HOME", str(first))
    told("install", agent, "--yes")
    monkeypatch.setenv("PERDURE_HOME", str(second))

    assert str(second) in told("install", agent, "--yes")

    payload = b"".join(contents(home).values()).decode()
    assert str(first) not in payload
    assert str(second) in payload
    assert "nothing was changed" in perdure("install", agent, "--yes").stderr
    told("install", agent, "--uninstall", "--yes")
    assert b"perdure" not in b"".join(contents(home).values())


@pytest.mark.parametrize("agent", STARTED)
def test_a_program_that_was_moved_is_brought_up_to_date(home: Path, agent: str) -> None:
    before = write(home, agent)
    told("install", agent, "--yes")
    installed = contents(home)
    for path, content in installed.items():
        path.write_bytes(content.replace(program().encode(), b"/old/gone/bin/perdure"))

    told("install", agent, "--yes")

    assert b"/old/gone" not in b"".join(contents(home).values())
    told("install", agent, "--uninstall", "--yes")
    assert {path for path, content in contents(home).items() if b"perdure" in content} == set()
    assert contents(home).keys() == before.keys()


def test_where_nobody_can_be_asked_nothing_is_written(home: Path) -> None:
    done = perdure("install", "claude-code")

    assert done.exit_code == 1
    assert isinstance(done.exception, AccessRefusedError)
    assert not (home / ".claude.json").exists()
