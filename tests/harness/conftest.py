"""A machine with a home, a vault and a project, for each backend that ships."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.app.project_state import ProjectState, open_project, open_state
from perdure.config import load_config
from perdure.harness.project import Project
from perdure.storage import StorageBackend, select_backend

BACKENDS = ("device-local", "vault")


@dataclass(frozen=True)
class Machine:
    place: Path
    protocol: str

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def vault(self) -> Path:
        return self.place / "vault"

    @property
    def root(self) -> Path:
        """The folder of the project."""
        return self.place / "my-project"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.place), "PERDURE_HOME": str(self.home), "USER": "ana"}

    @property
    def store(self) -> Path:
        """Where the backend keeps its files."""
        return self.vault if self.protocol == "vault" else self.home / "memory"

    @property
    def state(self) -> Path:
        """Where the state of the project must be, as the rule says."""
        if self.protocol == "vault":
            return self.vault / "projects" / "my-project" / "_harness"
        return self.root / ".harness"

    def configure(self, *before: str, path: Path | None = None) -> None:
        options = f'[storage.vault]\npath = "{path or self.vault}"\n'
        table = f'[storage]\nbackend = "{self.protocol}"\n'
        if self.protocol == "vault":
            table += options
        content = "\n".join((*before, table, '[embedding]\nprovider = "none"\n'))
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(content, encoding="utf-8")

    def backend(self) -> StorageBackend:
        return select_backend(load_config(self.environ).storage)

    def project(self, cwd: Path | None = None) -> Project:
        return open_project(self.environ, str(cwd or self.root))

    def opened(self, cwd: Path | None = None) -> ProjectState:
        return open_state(self.environ, str(cwd or self.root))

    def mark(self, name: str, text: str) -> Path:
        """Write a file into the `.harness` folder of the project."""
        file = self.root / ".harness" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def everything(self) -> dict[str, bytes | None]:
        """Return all files and folders, but for locks."""
        found = (path for path in self.place.rglob("*") if "locks" not in path.parts)
        return {
            path.relative_to(self.place).as_posix(): path.read_bytes() if path.is_file() else None
            for path in found
        }


def named_project(folder: Path, slug: str) -> Path:
    """Make a folder that says which project it is."""
    (folder / ".harness").mkdir(parents=True)
    (folder / ".harness" / "project.json").write_text(f'{{"slug": "{slug}"}}', encoding="utf-8")
    return folder


def make_machine(place: Path, protocol: str) -> Machine:
    machine = Machine(place, protocol)
    machine.vault.mkdir()
    machine.root.mkdir()
    machine.mark("project.json", '{"slug": "my-project"}')
    machine.configure()
    return machine


@pytest.fixture(params=BACKENDS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return make_machine(tmp_path, request.param)


@pytest.fixture
def vaulted(tmp_path: Path) -> Machine:
    return make_machine(tmp_path, "vault")


def git(folder: Path, *arguments: str) -> str:
    """Run the real git, as nobody in particular; return what it prints."""
    ours = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com")
    command = ("git", *who, *arguments)
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, env=os.environ | ours, text=True
    )
    return done.stdout.strip()
