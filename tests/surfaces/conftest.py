from pathlib import Path

import pytest

from tests.surfaces.nodes import content_of, stdout_of


@pytest.fixture(autouse=True)
def _outside_of_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands where they are in no project, unlike in this checkout."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["device-local", "vault"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Become Ana, who has nothing yet; return the folder that her texts will be in."""
    home = tmp_path / "home"
    for name in ("PERDURE_HOME", "MEMORY_VAULT_PATH", "NO_COLOR", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "ana")
    if request.param == "device-local":
        return home / ".perdure" / "memory"
    vault = tmp_path / "Notes"
    vault.mkdir()
    monkeypatch.setenv("MEMORY_VAULT_PATH", str(vault))
    return vault


@pytest.fixture
def tabs(memory: Path) -> Path:
    """Return the content of a node that is there, as a file."""
    stdout_of("write", "preference/indentation", "Prefers tabs.")
    notes = list(memory.rglob("Indentation.md"))  # in the layout notes it is the whole node
    return notes[0] if notes else content_of(memory, "users/ana/memories/preference/indentation")
