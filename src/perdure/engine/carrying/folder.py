"""The folder of an export: what is in it, and whether all of it is there as it was written.

    perdure.json       what is here, with the digest of each file; written last
    history.perdure    every version of every text, as one archive
    notes/ archived/    the nodes as Markdown, by their names; those that were put away apart
    files/              texts that are no nodes
    README.md           how to take it in

While it is written, `.unfinished.json` says which files may be there already.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from perdure.engine.whole_file import write_whole
from perdure.errors import ArchiveError, FileInTheWayError
from perdure.faults import explain_reading

FORMAT = "perdure export 1"
MANIFEST = "perdure.json"
ARCHIVE = "history.perdure"
README = "README.md"
UNFINISHED = ".unfinished.json"

_TOPS = ("notes", "archived", "files")
_LONGEST = 1 << 28
_SLICE = 1 << 20
_LEFT = re.compile(r"\..+\.[0-9a-f]{8}")
"""So is a file called while it is written."""
_DIGEST = re.compile("[0-9a-f]{64}")
_HISTORY = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds."""

    format: str
    history: str
    """The id of the history in the archive."""
    position: int
    """Its last one."""
    archive: str
    """The digest of the archive's file."""
    source: str
    """Of which history, up to where, and who asked: the same gives the same export."""
    accounts: list[str]
    files: dict[str, str]
    """The digest of each, by its path."""

    def write(self, folder: Path) -> None:
        content = json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        write_whole(folder / MANIFEST, content.encode())


def is_export(folder: Path) -> bool:
    """Whether a folder is an export, or was to become one."""
    return folder.is_dir() and any(
        os.path.lexists(folder / name) for name in (MANIFEST, UNFINISHED)
    )


def read_manifest(folder: Path) -> Manifest | None:
    """Return what an export says of itself; None if it says nothing yet."""
    data = _content(folder / MANIFEST)
    if data is None:
        return None
    try:
        manifest = Manifest(**json.loads(data))
        _check(manifest)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"{MANIFEST} is not of the kind {FORMAT!a}") from error
    return manifest


def _check(manifest: Manifest) -> None:
    """Refuse what no export says."""
    texts = (manifest.source, *manifest.accounts)
    if manifest.format != FORMAT:
        raise ValueError(manifest.format)
    digests = (manifest.archive, *manifest.files.values())
    if not all(isinstance(text, str) for text in texts) or type(manifest.position) is not int:
        raise TypeError(manifest.source)
    if not _HISTORY.fullmatch(manifest.history) or not all(map(_DIGEST.fullmatch, digests)):
        raise ValueError(manifest.history)
    for path in manifest.files:
        check_path(path)


def check_path(path: str) -> str:
    """Return the path of a file in an export; `ValueError` if it could lead anywhere else."""
    parts = path.split("/")
    plain = all(part not in {"", ".", ".."} and "\0" not in part for part in parts)
    if not plain or (path != README and parts[0] not in _TOPS):
        raise ValueError(path)
    return path


def begun(folder: Path) -> list[str]:
    """Return the paths that an export which was interrupted may have written."""
    data = _content(folder / UNFINISHED)
    if data is None:
        return []
    try:
        return [check_path(path) for path in json.loads(data)]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"{UNFINISHED} can't be understood") from error


def begin(folder: Path, paths: Iterable[str]) -> None:
    write_whole(folder / UNFINISHED, json.dumps(sorted(paths)).encode())


def demand_ours(folder: Path) -> None:
    """Refuse a folder with something in it that is no export."""
    if not folder.is_dir() or is_export(folder):
        return
    if not all(_LEFT.fullmatch(path.name) for path in folder.iterdir()):
        raise FileInTheWayError(
            f"{str(folder)!a} has something in it and is no export, so it was left as it is. "
            "Fix: name an empty folder, or one that was exported to before."
        )


def clear(folder: Path) -> None:
    """Remove what an export that was interrupted had not given its name yet."""
    for path in folder.rglob(".*") if folder.is_dir() else ():
        if _LEFT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink()


def demand_whole(folder: Path) -> Manifest:
    """Return what an export holds, once every byte of it was compared; `ArchiveError` if not."""
    if os.path.lexists(folder / UNFINISHED):
        raise _damaged(folder, "it was not written to its end")
    manifest = read_manifest(folder)
    if manifest is None:
        raise _damaged(folder, f"it has no {MANIFEST}")
    expected: Mapping[str, str] = {**manifest.files, ARCHIVE: manifest.archive}
    for path, digest in expected.items():
        if digest_of(folder / path, folder) != digest:
            raise _damaged(folder, f"{path!a} is missing, or not as it was written")
    return manifest


def digest_of(path: Path, top: Path) -> str | None:
    """Return the digest of a plain file; None if there is none. No link is followed."""
    try:
        for above in path.parents:
            if above == top:
                break
            if above.is_symlink():
                return ""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if path.is_symlink():
            return ""
        raise explain_reading(error, str(path.parent), path.name) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return ""
    hasher = sha256()
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(_SLICE):
            hasher.update(data)
    return hasher.hexdigest()


def _content(path: Path) -> bytes | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _LONGEST:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise explain_reading(error, str(path.parent), path.name) from error


def _damaged(folder: Path, what: str) -> ArchiveError:
    return ArchiveError(
        f"the export in {str(folder)!a} can't be taken in: {what}. Nothing was changed. "
        "Fix: export again, or copy the folder again, whole."
    )
