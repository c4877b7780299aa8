"""A model on this machine: which files it is made of, and whether they are what they were."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from perdure.errors import ModelDamagedError, ModelNotInstalledError
from perdure.index.models.published import NAME, TOKENIZER, Pin

BUILD = 1
"""Raised whenever the same weights become another graph, since then every vector is another."""
GRAPH = "model.onnx"
MANIFEST = "manifest.json"
_FOLDER = f"{NAME}-build-{BUILD}"
_MAX_MANIFEST = 100_000


@dataclass(frozen=True)
class InstalledModel:
    folder: Path
    files: Mapping[str, Pin]

    @property
    def name(self) -> str:
        return NAME

    @property
    def digest(self) -> str:
        """Return the sha256 of the graph."""
        return self.files[GRAPH].sha256

    @property
    def size(self) -> int:
        return sum(pin.size for pin in self.files.values())

    def read(self, name: str) -> bytes:
        """Return a file whose bytes are those that were installed; else `ModelDamagedError`."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError as error:
            raise self.damaged(name, str(error.strerror)) from error
        if pin_of(content) != self.files[name]:
            raise self.damaged(name, "its content has changed")
        return content

    def verify(self) -> None:
        """Read every file and compare it with its digest; `ModelDamagedError` if one differs."""
        for name in self.files:
            self.read(name)

    def damaged(self, name: str, what: str) -> ModelDamagedError:
        return ModelDamagedError(
            f"{name} of the model in {str(self.folder)!a}: {what}. "
            "Fix: run `perdure models install`, which puts it right."
        )


def place_in(models: Path) -> Path:
    """Return the folder below `models` where the model is, or is to be."""
    return models / _FOLDER


def find(models: Path) -> InstalledModel | None:
    """Return the model that is installed below a folder; None if there is none, or not all of it.

    Only the sizes of its files are looked at; `verify` reads them.
    """
    folder = place_in(models)
    files = _manifest(folder / MANIFEST)
    if files is None or not all(_has_size(folder / name, pin) for name, pin in files.items()):
        return None
    return InstalledModel(folder, files)


def demand(models: Path) -> InstalledModel:
    """Return the model that is installed below a folder; `ModelNotInstalledError` without one.

    `ModelDamagedError` if a file has another size than it had, or is gone.
    """
    folder = place_in(models)
    files = _manifest(folder / MANIFEST)
    if files is None:
        raise ModelNotInstalledError(
            f"the embedding model is not installed in {str(models)!a}. "
            "Fix: run `perdure models install`."
        )
    installed = InstalledModel(folder, files)
    for name, pin in files.items():
        if not _has_size(folder / name, pin):
            raise installed.damaged(name, "it is not all there")
    return installed


def pin_of(content: bytes) -> Pin:
    return Pin(len(content), hashlib.sha256(content).hexdigest())


def manifest_of(files: Mapping[str, Pin]) -> bytes:
    told = {
        "model": NAME,
        "build": BUILD,
        "files": {name: asdict(pin) for name, pin in files.items()},
    }
    return f"{json.dumps(told, indent=2)}\n".encode()


def _manifest(path: Path) -> Mapping[str, Pin] | None:
    """Return the files that a manifest names; None if it is not one of ours."""
    try:
        with path.open("rb") as file:
            told = json.loads(file.read(_MAX_MANIFEST))["files"]
        files = {name: Pin(int(pin["size"]), str(pin["sha256"])) for name, pin in told.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return files if set(files) == {GRAPH, TOKENIZER} else None


def _has_size(path: Path, pin: Pin) -> bool:
    try:
        return path.stat().st_size == pin.size
    except OSError:
        return False
