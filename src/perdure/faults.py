"""What an operating system's error means to those who read and write."""

import errno

from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    DirectoryInTheWayError,
    DirectoryNotEmptyError,
    FileAboveError,
    FileInTheWayError,
    InvalidLocatorError,
    LinkRefusedError,
    StorageError,
    StorageFaultError,
    StorageFullError,
    StorageUnavailableError,
)

_UNAVAILABLE = (
    "the storage went away",
    "mount the drive or start the sync client again, then try again",
)
_READ_ONLY = ("it can't be changed", "make the folder and its files writable for this user")
_TOO_MANY_OPEN = ("too many files are open", "close some, or raise the limit with ulimit -n")
_FULL = ("the disk or the quota is full, and nothing was changed", "free some space")

_MEANINGS: dict[int, tuple[type[StorageError], str, str]] = {
    errno.ENOENT: (AbsentError, "nothing is there", "list the place above to see what is"),
    errno.EISDIR: (DirectoryInTheWayError, "a directory is there", "name a text below it"),
    errno.ENOTDIR: (FileAboveError, "a text stands above it", "choose a place outside of it"),
    errno.EEXIST: (FileInTheWayError, "a text is there", "choose another name or remove it"),
    errno.ENOTEMPTY: (DirectoryNotEmptyError, "it is not empty", "remove what it holds first"),
    errno.ELOOP: (
        LinkRefusedError,
        "a link or a device is there, and those are never followed",
        "put a real file or folder in its place",
    ),
    errno.ENAMETOOLONG: (InvalidLocatorError, "this disk takes no such long name", "shorten it"),
    errno.ENOSPC: (StorageFullError, *_FULL),
    errno.EDQUOT: (StorageFullError, *_FULL),
    errno.EFBIG: (StorageFullError, *_FULL),
    errno.EACCES: (AccessRefusedError, *_READ_ONLY),
    errno.EPERM: (AccessRefusedError, *_READ_ONLY),
    errno.EROFS: (AccessRefusedError, *_READ_ONLY),
    errno.EMFILE: (StorageFaultError, *_TOO_MANY_OPEN),
    errno.ENFILE: (StorageFaultError, *_TOO_MANY_OPEN),
    errno.ESTALE: (StorageUnavailableError, *_UNAVAILABLE),
    errno.ENOTCONN: (StorageUnavailableError, *_UNAVAILABLE),
    errno.ENODEV: (StorageUnavailableError, *_UNAVAILABLE),
    errno.ENXIO: (StorageUnavailableError, *_UNAVAILABLE),
}


_UNREADABLE = (
    AccessRefusedError,
    "it may not be read",
    "make the folder and its files readable for this user",
)


def explain_reading(error: OSError, root: str, key: str) -> StorageError:
    """Return the error to raise for an `error` that came up while only reading."""
    if error.errno in {errno.EACCES, errno.EPERM}:
        return _told(_UNREADABLE, root, key)
    return explain(error, root, key)


def explain(error: OSError, root: str, key: str) -> StorageError:
    """Return the error to raise for `error` at the place `key` of the folder `root`."""
    unknown = (
        StorageFaultError,
        f"the disk said {error.strerror!a}",
        "check the disk, then try again",
    )
    return _told(_MEANINGS.get(error.errno or 0, unknown), root, key)


def _told(meaning: tuple[type[StorageError], str, str], root: str, key: str) -> StorageError:
    kind, what, fix = meaning
    return kind(f"{key!a} in {root!a}: {what}. Fix: {fix}.")


def absent(root: str, key: str) -> StorageError:
    return explain(FileNotFoundError(errno.ENOENT, ""), root, key)
