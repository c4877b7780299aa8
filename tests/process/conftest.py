"""A machine whose memory has notes, for each backend that ships; this process works on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import perdure
from perdure.model.values import JSON
from tests.harness.conftest import BACKENDS, Machine, make_machine

Told = tuple[str, str, dict[str, JSON]]
"""A text, its category, and other fields."""


class Here:
    """A machine, and a memory that is saved to by others than the process seam."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.context = {"cwd": str(machine.root)}

    def save(self, text: str, category: str = "decision", slug: str = "", **output: JSON) -> str:
        with perdure.open(home=self.machine.home) as memory:
            return memory.save(text, category=category, slug=slug, metadata=output)

    def save_all(self, *notes: Told) -> None:
        with perdure.open(home=self.machine.home) as memory:
            for text, category, output in notes:
                memory.save(text, category=category, metadata=output)

    def file(self, uri: str) -> Path:
        """Return the content of a node, as its owner would open it."""
        name = "/".join(uri.rsplit("/", 2)[1:])
        files = self.machine.store.rglob("*.md")
        return next(file for file in files if f"\nid: {name}\n" in file.read_text())

    def run(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None
    ) -> tuple[int, str, str]:
        """Run the shim as a shell would: exit code, stdout, stderr."""
        counted = {name: os.environ[name] for name in os.environ if name.startswith("COVERAGE_")}
        environ = {**self.machine.environ, **counted, "PATH": os.environ["PATH"]}
        command = (sys.executable, "-m", "perdure.process", *arguments)
        done = subprocess.run(
            command,
            env=environ,
            cwd=cwd or self.machine.root,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    def take_away(self) -> None:
        """Let the memory be one that can't be had."""
        if self.machine.protocol == "vault":
            self.machine.vault.rename(self.machine.place / "unmounted")
            return
        (self.machine.place / "file").touch()
        content = '[storage]\nbackend = "device-local"\n[storage.device-local]\nroot = "{}"\n'
        config = content.format(self.machine.place / "file")
        (self.machine.home / "config.toml").write_text(config)


@pytest.fixture(params=BACKENDS)
def here(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    machine = make_machine(tmp_path, request.param)
    for name in ("MEMORY_VAULT_PATH", "LOGNAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    return Here(machine)


PROJECT = "my-project"
