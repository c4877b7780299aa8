"""`init`: a config file that is never overwritten, and a store that was really written."""

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.app import setup
from perdure.app.setup import PROBE_TEXT, TEMPLATE
from perdure.config import ConfigFile, load_config
from perdure.errors import (
    ConcurrentModificationError,
    ConfigError,
    StorageSelectionError,
)
from perdure.storage.locator import STORE_NOTE
from tests.surfaces.nodes import one, perdure, refusal, stdout_of
from tests.surfaces.terminals import PERDURE, environment


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Become Ana, who has nothing yet; return where her config file will be."""
    for name in ("PERDURE_HOME", "MEMORY_VAULT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "ana")
    return tmp_path / ".perdure" / "config.toml"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "Notes").mkdir()
    return tmp_path / "Notes"


def given(config: Path, text: str) -> None:
    config.parent.mkdir(exist_ok=True)
    config.write_bytes(text.encode())


def test_a_first_init_writes_a_config_that_changes_nothing(config: Path) -> None:
    before = load_config(os.environ)

    done = one("init")

    assert config.read_text() == TEMPLATE
    assert tomllib.loads(TEMPLATE) == {}
    after = load_config(os.environ)
    assert (after.storage.protocol, after.embedding) == (before.storage.protocol, before.embedding)
    assert (done["written"], done["was_there"], done["changed"]) == (True, False, [])
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700


def test_what_the_template_shows_is_what_can_be_set(config: Path, vault: Path) -> None:
    shown = "\n".join(
        line.removeprefix("# ")
        for line in TEMPLATE.splitlines()
        if line.startswith("# [") or " = " in line
    )
    given(config, shown)

    assert load_config(os.environ).storage.protocol == "vault"
    assert load_config(os.environ).embedding.provider == "auto"


def test_the_next_three_commands_work_as_printed(config: Path) -> None:
    lines = stdout_of("init").splitlines()

    commands = [line.strip() for line in lines[lines.index("Next:") + 1 :]]
    assert len(commands) == 3
    for command in commands:
        name, *words = command.removeprefix("perdure ").split('"')
        stdout_of(*name.split(), *(word for word in words if word))


def test_init_again_changes_no_byte(config: Path, vault: Path) -> None:
    stdout_of("init", "--vault", str(vault))
    first = config.read_bytes(), config.stat().st_mtime_ns

    again = one("init", "--vault", str(vault))

    assert (config.read_bytes(), config.stat().st_mtime_ns) == first
    assert (again["written"], again["was_there"]) == (False, True)
    assert "existed; not changed" in stdout_of("init")
    assert (config.read_bytes(), config.stat().st_mtime_ns) == first


def texts_in(vault: Path) -> list[str]:
    return [str(each.relative_to(vault)) for each in vault.rglob("*") if each.is_file()]


def test_a_vault_is_chosen_and_gets_nothing_but_its_id(config: Path, vault: Path) -> None:
    done = one("init", "--vault", str(vault))

    assert done["protocol"] == "vault"
    assert done["storage"] == str(vault)
    assert texts_in(vault) == [STORE_NOTE.key]
    stdout_of("save", "Tea, no milk.")
    assert not (vault / "accounts").exists()


def test_a_new_vault_has_notes_and_its_own_are_memory(config: Path, vault: Path) -> None:
    (vault / "Oven.md").write_text("Heat it to 240 degrees.\n")

    assert one("init", "--vault", str(vault))["notes"] == 1

    assert "layout" not in tomllib.loads(config.read_text())["storage"]
    assert "resources/Oven lines 1-1" in stdout_of("recall", "heat degrees")


def test_a_layout_that_was_chosen_or_is_there_stays(
    config: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(config, '[storage]\nlayout = "agfs"\n')
    stdout_of("init", "--vault", str(vault))
    assert tomllib.loads(config.read_text())["storage"]["layout"] == "agfs"
    stdout_of("save", "Tea, no milk.")
    config.unlink()

    stdout_of("init", "--vault", str(vault))
    assert "layout" not in tomllib.loads(config.read_text())["storage"]
    assert "Tea" in stdout_of("recall", "tea milk")

    config.unlink()
    other = vault.with_name("Other")
    other.mkdir()
    monkeypatch.setenv("PERDURE_LAYOUT", "agfs")
    stdout_of("init", "--vault", str(other))
    assert "layout" not in tomllib.loads(config.read_text())["storage"]


def test_a_vault_may_be_named_from_here(
    config: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault.parent)

    assert one("init", "--vault", "Notes")["storage"] == str(vault)


def test_what_a_crash_left_is_cleared(config: Path, vault: Path) -> None:
    (vault / ".perdure-init.md").write_text(PROBE_TEXT)

    stdout_of("init", "--vault", str(vault))

    assert texts_in(vault) == [STORE_NOTE.key]


def test_what_is_not_ours_is_never_removed(config: Path, vault: Path) -> None:
    mine = vault / ".perdure-init.md"
    mine.write_text("mine")

    assert "Fix: " in str(refusal("init", "--vault", str(vault)))
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("make", [Path.touch, lambda path: None])
def test_a_path_that_is_not_a_vault_is_refused_and_nothing_created(
    config: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    place = tmp_path / "Other"
    make(place)

    error = refusal("init", "--vault", str(place))

    assert isinstance(error, StorageSelectionError)
    assert "Fix: " in str(error)
    assert not config.parent.exists()


def test_a_store_that_cant_be_written_is_not_configured(config: Path, vault: Path) -> None:
    (vault / ".perdure-init.md").mkdir()

    error = refusal("init", "--vault", str(vault))

    assert "Fix: " in str(error)
    assert (vault / ".perdure-init.md").is_dir()
    assert not config.exists()


def test_comments_and_all_else_survive(config: Path, vault: Path) -> None:
    mine = '# mine\n[embedding] # vectors\nprovider = "none"  # words\n\n[storage] # where\n# end'
    given(config, mine)

    done = one("init", "--vault", str(vault))

    assert done["changed"] == ["storage.backend", "storage.vault.path"]
    text = config.read_text()
    assert [line for line in mine.splitlines() if line not in text.splitlines()] == []
    assert tomllib.loads(text) == {
        "embedding": {"provider": "none"},
        "storage": {"backend": "vault", "vault": {"path": str(vault)}},
    }


def test_a_different_value_is_changed_by_force_only(config: Path, vault: Path) -> None:
    mine = "[storage]\r\nbackend = 'device-local' # for now\r\n"
    given(config, mine)

    error = refusal("init", "--vault", str(vault))
    assert "line 2: backend in [storage] has another value" in str(error)
    assert config.read_bytes() == mine.encode()

    stdout_of("init", "--vault", str(vault), "--force")
    assert b'backend = "vault" # for now\r\n' in config.read_bytes()
    assert b"\n" not in config.read_bytes().replace(b"\r\n", b"")


@pytest.mark.parametrize(
    "mine",
    [
        "storage = {backend = 'device-local', device-local = {}}\n",
        "storage.backend = 'device-local'\n",
        "[storage]\nbackend = '''device-local'''\n",
        "['storage']\n'backend' = \"device\\u002dlocal\"\n",
        '[storage]\nbackend = "device-local"\n[storage.vault]\npersonal = """\n[storage]\n"""\n',
    ],
)
def test_however_it_is_written_it_is_changed_rightly_or_refused(
    config: Path, vault: Path, mine: str
) -> None:
    given(config, mine)
    wanted = tomllib.loads(mine)
    wanted["storage"]["backend"] = "vault"
    wanted["storage"].setdefault("vault", {})["path"] = str(vault)

    done = perdure("init", "--vault", str(vault), "--force")

    if done.exit_code:
        assert isinstance(done.exception, StorageSelectionError)
        assert "Fix: " in str(done.exception)
        assert config.read_text() == mine
    else:
        assert tomllib.loads(config.read_text()) == wanted


def test_a_wrong_config_is_left_alone_and_reported(config: Path) -> None:
    given(config, "[storage\n")

    assert "config.toml, line 1" in str(refusal("init"))
    assert config.read_text() == "[storage\n"


def test_a_linked_config_stays_a_link(config: Path, vault: Path, tmp_path: Path) -> None:
    stored = tmp_path / "dotfiles.toml"
    stored.write_text("# mine\n")
    config.parent.mkdir()
    config.symlink_to(stored)

    stdout_of("init", "--vault", str(vault))

    assert config.is_symlink()
    assert stored.read_text().startswith("# mine\n")
    assert "[storage.vault]" in stored.read_text()


def test_a_path_can_say_nothing_but_itself(config: Path, tmp_path: Path) -> None:
    strange = tmp_path / 'a"]\n[llm]\nprovider = "openai"\x7f # é'
    strange.mkdir()

    stdout_of("init", "--vault", str(strange))

    printed = tomllib.loads(config.read_text())
    assert printed["storage"]["vault"]["path"] == str(strange)
    assert "llm" not in printed


@pytest.mark.parametrize("step", ["link", "replace", "fsync", "fchmod"])
def test_a_crash_leaves_the_old_config_or_the_new(
    config: Path, vault: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    for old in ("", "# mine\n"):
        with monkeypatch.context() as patch:
            file = ConfigFile(config, old)
            if old:
                given(config, old)
            owner = Path if step == "replace" else os

            def crash(*_: object, **__: object) -> None:
                raise KeyboardInterrupt

            patch.setattr(owner, step, crash)
            config.parent.mkdir(exist_ok=True)
            reached = (step, bool(old)) not in {("link", True), ("replace", False)}
            if reached:
                with pytest.raises(KeyboardInterrupt):
                    setup.write_config(file, "# new\n")
                assert not config.exists() or config.read_text() in {old, "# new\n"}
        assert [path.name for path in config.parent.iterdir() if path != config] == []


def test_an_edit_that_came_meanwhile_is_not_overwritten(config: Path) -> None:
    given(config, "# mine, and newer\n")

    with pytest.raises(ConcurrentModificationError, match=r"left unchanged.*Fix: "):
        setup.write_config(ConfigFile(config, "# mine\n"), "# new\n")
    with pytest.raises(ConcurrentModificationError):
        setup.write_config(ConfigFile(config, ""), "# new\n")
    assert config.read_text() == "# mine, and newer\n"


def test_obsidian_is_asked_only_with_find_vault(config: Path, vault: Path, tmp_path: Path) -> None:
    list_ = tmp_path / ".config" / "obsidian" / "obsidian.json"
    list_.parent.mkdir(parents=True)
    gone = {"path": str(tmp_path / "gone")}
    list_.write_text(json.dumps({"vaults": {"a": {"path": str(vault)}, "b": gone, "c": 3}}))

    assert one("init")["protocol"] == "device-local"
    assert one("init", "--find-vault")["storage"] == str(vault)


@pytest.mark.parametrize("listed", ["", "[]", '{"vaults": {"a": {"path": 3}}}'])
def test_without_an_obsidian_vault_the_fix_is_shown(
    config: Path, tmp_path: Path, listed: str
) -> None:
    (tmp_path / ".config" / "obsidian").mkdir(parents=True)
    (tmp_path / ".config" / "obsidian" / "obsidian.json").write_text(listed)

    assert "Fix: name the folder with --vault" in str(refusal("init", "--find-vault"))


@pytest.mark.parametrize(
    "words",
    [
        ("--vault", "/x", "--backend", "device-local"),
        ("--vault", ""),
        ("--vault", "/x", "--find-vault"),
        ("--backend", "nobody"),
    ],
)
def test_options_that_make_no_sense_are_refused(config: Path, words: tuple[str, ...]) -> None:
    done = perdure("init", *words)

    assert done.exit_code == 2
    assert "Fix: " in done.stderr
    assert not config.parent.exists()


def test_a_backend_that_keeps_nothing_is_refused(config: Path) -> None:
    assert isinstance(refusal("init", "--backend", "memory"), StorageSelectionError)
    assert not config.exists()


def test_what_nobody_can_splice_is_refused_by_name(config: Path) -> None:
    file = ConfigFile(config, "storage = {backend = 'device-local'}\n")

    with pytest.raises(ConfigError, match=r"Fix: set path = \"/x\" in \[storage.vault\] yourself"):
        setup.edit_config(file, {("storage", "vault", "path"): "/x"})


def test_several_who_set_up_at_once_agree(config: Path, vault: Path, tmp_path: Path) -> None:
    """As processes, each of which would write the config file."""
    running = [
        subprocess.Popen(
            [PERDURE, "init", "--vault", str(vault), "--json"],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    ended = [(process.communicate(timeout=60), process.returncode) for process in running]

    assert [code for _, code in ended] == [0] * 4, ended
    assert sum(json.loads(out)["written"] for (out, _), _ in ended) == 1
    assert tomllib.loads(config.read_text())["storage"]["vault"]["path"] == str(vault)
    assert texts_in(vault) == [STORE_NOTE.key]
