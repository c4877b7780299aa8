"""`export`, `import` of an export, and `migrate`: what they print, and what they refuse."""

import json
from pathlib import Path

import pytest

from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    ArchiveError,
    PathIsFileError,
    StorageUnavailableError,
)
from tests.surfaces.nodes import TABS, one, perdure, refusal, stdout_of


@pytest.fixture
def filled(memory: Path) -> Path:
    stdout_of("write", "preference/indentation", "Prefers tabs.")
    stdout_of("write", "preference/indentation", "Prefers tabs, always.", "--replace")
    stdout_of("write", "resources/map", "A map of acme.", "--account", "acme")
    return memory


def go(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Be on a machine with no memory from now on."""
    environment.setenv("PERDURE_HOME", str(tmp_path / "there"))
    environment.delenv("MEMORY_VAULT_PATH", raising=False)


def test_an_export_is_the_memory_elsewhere(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "export"
    assert "3 files written, 0 removed" in stdout_of("export", str(folder))
    assert one("export", str(folder))["written"] == 0
    log = stdout_of("history", "log")
    go(monkeypatch, tmp_path)

    assert stdout_of("import", str(folder), "--dry-run").startswith("complete: 3 files")
    assert stdout_of("import", str(folder)).startswith(
        "this memory is now the same as the exported one"
    )

    assert stdout_of("history", "log") == log
    key = "accounts/local/users/ana/memories/preference/indentation/content.md"
    assert "Prefers tabs.\n" in stdout_of("history", "show", key, "--version", "1") + "\n"
    assert one("import", str(folder), "--format", "perdure")["how"] == "known"
    assert filled.is_dir()


def test_one_account_or_user_goes_alone(filled: Path, tmp_path: Path) -> None:
    for number, (asked, accounts) in enumerate(
        [(("--account", "acme"), ["acme"]), (("--user", "ana"), ["local"]), ((), ["acme", "local"])]
    ):
        assert one("export", str(tmp_path / f"{number}"), *asked)["accounts"] == accounts
    found = [path.read_bytes() for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert not any(b"A map of acme" in data for data in found)
    assert filled.is_dir()


def test_what_is_no_export_and_what_is_damaged_is_refused(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "diary.txt").write_text("mine")
    assert isinstance(refusal("export", str(mine)), PathIsFileError)
    folder = tmp_path / "export"
    stdout_of("export", str(folder))
    go(monkeypatch, tmp_path)
    (folder / "history.perdure").write_bytes(b"PDarchiv")
    for words in (("import", str(folder)), ("import", str(folder), "--dry-run")):
        assert isinstance(refusal(*words), ArchiveError)
    assert stdout_of("list") == ""
    assert filled.is_dir()


def test_a_memory_that_is_not_whole_yet_says_how_to_go_on(filled: Path, tmp_path: Path) -> None:
    (folder,) = (tmp_path / "home" / ".perdure" / "histories").iterdir()
    note = folder.with_name(f"{folder.name}.arriving.json")
    note.write_text(json.dumps({"from": "/media/stick"}))

    done = refusal("read", "preference/indentation")

    assert isinstance(done, StorageUnavailableError)
    assert "/media/stick" in str(done)
    note.unlink()
    assert stdout_of("read", "preference/indentation")
    assert filled.is_dir()


# ---------------------------------------------------------------- migrating
@pytest.fixture
def device(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a memory in the private folder, whatever the others have."""
    monkeypatch.delenv("MEMORY_VAULT_PATH", raising=False)
    stdout_of("write", "preference/indentation", "Prefers tabs.")
    return memory


@pytest.mark.usefixtures("device")
def test_there_and_back(tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    there = ("migrate", "--to", "vault", "--vault", str(vault))

    assert "2 texts of" in stdout_of(*there, "--dry-run")
    assert list(vault.iterdir()) == []
    assert isinstance(refusal(*there), AccessRefusedError)
    assert one(*there, "--yes")["written"] == 2
    assert stdout_of("doctor").startswith("ok   storage   device-local")
    assert "to use it, add --switch" in perdure(*there, "--yes").stderr
    assert "the new backend" in stdout_of(*there, "--yes", "--switch")
    assert stdout_of("doctor").startswith(f"ok   storage   vault at {vault}")
    assert stdout_of("read", "preference/indentation") == "Prefers tabs."
    assert stdout_of("migrate", "--rollback") == "the config is as it was before\n"
    assert isinstance(refusal("migrate", "--rollback"), AbsentError)
    assert one(*there, "--verify")["texts"] == 2


@pytest.mark.usefixtures("device")
def test_conflicts_are_reported(tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    (vault / "Perdure" / "Preferences").mkdir(parents=True)
    (vault / "Perdure" / "Preferences" / "Indentation.md").write_text("mine")
    (vault / "Mine.md").write_text("not in the way")
    key = "accounts/local/users/ana/memories/preference/indentation"
    there = ("migrate", "--to", "vault", "--vault", str(vault))

    assert f"conflict: '{key}/.meta.json' exists" in stdout_of(*there, "--dry-run")
    assert one(*there, "--dry-run")["conflicts"] == [
        f"'{key}/{name}' exists" for name in (".meta.json", "content.md")
    ]
    assert isinstance(refusal(*there, "--yes"), ArchiveError)


@pytest.mark.parametrize(
    "words", [(), ("--to", "nowhere"), ("--to", "device-local", "--vault", "x")]
)
@pytest.mark.usefixtures("device")
def test_what_makes_no_sense_is_refused(words: tuple[str, ...]) -> None:
    assert perdure("migrate", *words).exit_code == 2
    assert stdout_of("read", TABS) == "Prefers tabs."


@pytest.mark.parametrize("option", ["--dry-run", "--verify", "--switch"])
def test_an_option_that_a_change_of_layout_does_not_have_is_refused(
    filled: Path, option: str
) -> None:
    def files() -> list[Path]:
        return sorted(path for path in filled.rglob("*") if path.is_file())

    before = files()
    done = perdure("migrate", "--layout", "agfs", option)

    assert done.exit_code == 2
    assert f"--layout has no {option}" in done.stderr
    assert files() == before
