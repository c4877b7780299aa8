"""Packages that are installed for the length of a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest


class Install(Protocol):
    def __call__(
        self, name: str, offers: dict[str, str], group: str = "perdure.backends", **modules: str
    ) -> None:
        """Install a package with entry points and modules, as an installer would."""


@contextmanager
def installing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Give a function that installs packages; their modules are unloaded at the end."""
    site = folder / "site-packages"
    site.mkdir()

    def install(
        name: str, offers: dict[str, str], group: str = "perdure.backends", **modules: str
    ) -> None:
        about = site / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = (f"{offer} = {value}\n" for offer, value in offers.items())
        (about / "entry_points.txt").write_text(f"[{group}]\n" + "".join(lines))
        for module, source in modules.items():
            (site / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(site)

    yield install
    for module in [m for m in sys.modules if (site / f"{m}.py").exists()]:
        del sys.modules[module]
