"""Other places to keep bytes by their hash, each made as durable and as fast as it goes.

All name content by its sha256, but for git and dulwich, which have their own name for it. Nothing
is compressed. A put returns when the bytes would survive a power cut; git and dulwich sync no
directory, which is in their favour.
"""

import importlib
import importlib.util
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha1, sha256
from pathlib import Path
from types import ModuleType
from typing import IO, Protocol

_MAP_BYTES = 4 << 30
_MOST_BUFFERS = 1024


class Peer(Protocol):
    def key(self, data: bytes) -> bytes:
        """Return what `get` finds the data by."""

    def put(self, data: bytes) -> object: ...

    def put_many(self, batch: Sequence[bytes]) -> object:
        """Put all of them; durable together, when this returns."""

    def get(self, key: bytes) -> bytes: ...

    def close(self) -> None: ...


class FlatFile:
    """What the disk and the hash cost, and nothing else: no name leads to the bytes."""

    def __init__(self, folder: Path, size: int) -> None:
        self._descriptor = os.open(folder / "flat", os.O_RDWR | os.O_CREAT)
        self._size = size
        self._at = 0
        zeros = bytes(1 << 20)
        for _ in range(0, size, len(zeros)):
            os.write(self._descriptor, zeros)
        os.fsync(self._descriptor)

    def put(self, data: bytes) -> None:
        self.put_many([data])

    def put_many(self, batch: Sequence[bytes]) -> None:
        for data in batch:
            sha256(data).digest()
        for start in range(0, len(batch), _MOST_BUFFERS):
            self._write(batch[start : start + _MOST_BUFFERS])
        os.fdatasync(self._descriptor)

    def _write(self, buffers: Sequence[bytes]) -> None:
        length = sum(map(len, buffers))
        if self._at + length > self._size:
            self._at = 0  # over what is there: still no block to be found for it
        written = os.pwritev(self._descriptor, buffers, self._at)
        if written != length:
            raise OSError(f"{written} of {length} bytes were written")
        self._at += length

    def close(self) -> None:
        os.close(self._descriptor)


class PlainFiles:
    """A file for each: written aside, synced, renamed, and the directory synced."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def key(self, data: bytes) -> bytes:
        return sha256(data).digest()

    def put(self, data: bytes) -> None:
        self.put_many([data])

    def put_many(self, batch: Sequence[bytes]) -> None:
        for data in batch:
            self._write(self._path(sha256(data).digest()), data)
        os.fsync(self._directory)

    def _path(self, key: bytes) -> str:
        return f"{self._folder}/{key.hex()}"

    def _write(self, path: str, data: bytes) -> None:
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
        os.rename(path + ".new", path)  # noqa: PTH104 - as bare as it gets

    def get(self, key: bytes) -> bytes:
        descriptor = os.open(self._path(key), os.O_RDONLY)
        data = os.read(descriptor, os.fstat(descriptor).st_size)
        os.close(descriptor)
        return data

    def close(self) -> None:
        os.close(self._directory)


class SQLite:
    """A table of blobs, in the write-ahead log, synced with each transaction."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "blobs.sqlite", isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE blobs (key BLOB PRIMARY KEY, data BLOB NOT NULL)")

    def key(self, data: bytes) -> bytes:
        return sha256(data).digest()

    def put(self, data: bytes) -> None:
        row = sha256(data).digest(), data
        self._connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", row)

    def put_many(self, batch: Sequence[bytes]) -> None:
        rows = [(sha256(data).digest(), data) for data in batch]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", rows)
        self._connection.execute("COMMIT")

    def get(self, key: bytes) -> bytes:
        found = self._connection.execute("SELECT data FROM blobs WHERE key = ?", (key,))
        return bytes(found.fetchone()[0])

    def close(self) -> None:
        self._connection.close()


class LMDB:
    def __init__(self, folder: Path) -> None:
        self._environment = _module("lmdb").open(str(folder), map_size=_MAP_BYTES)

    def key(self, data: bytes) -> bytes:
        return sha256(data).digest()

    def put(self, data: bytes) -> None:
        self.put_many([data])

    def put_many(self, batch: Sequence[bytes]) -> None:
        with self._environment.begin(write=True) as transaction:
            for data in batch:
                transaction.put(sha256(data).digest(), data, overwrite=False)

    def get(self, key: bytes) -> bytes:
        with self._environment.begin() as transaction:
            return bytes(transaction.get(key))

    def close(self) -> None:
        self._environment.close()


class RocksDB:
    def __init__(self, folder: Path) -> None:
        self._rocks = _module("rocksdict")
        options = self._rocks.Options(raw_mode=True)
        options.set_compression_type(self._rocks.DBCompressionType.none())
        self._database = self._rocks.Rdict(str(folder), options)
        synced = self._rocks.WriteOptions()
        synced.sync = True
        self._database.set_write_options(synced)
        self._synced = synced

    def key(self, data: bytes) -> bytes:
        return sha256(data).digest()

    def put(self, data: bytes) -> None:
        self._database[sha256(data).digest()] = data

    def put_many(self, batch: Sequence[bytes]) -> None:
        writes = self._rocks.WriteBatch(raw_mode=True)
        for data in batch:
            writes.put(sha256(data).digest(), data)
        self._database.write(writes, self._synced)

    def get(self, key: bytes) -> bytes:
        return bytes(self._database[key])

    def close(self) -> None:
        self._database.close()


class Git:
    """A fast-import that ends its pack with each commit, and a cat-file that reads."""

    _CONFIG = ("core.fsync=all", "core.compression=0", "fastimport.unpackLimit=0", "gc.auto=0")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._git("init", "--quiet", "--bare", ".").wait()
        self._importer = self._git("fast-import", "--quiet", "--force", "--depth=0")
        self._reader: subprocess.Popen[bytes] | None = None

    def _git(self, *arguments: str) -> subprocess.Popen[bytes]:
        config = (word for setting in self._CONFIG for word in ("-c", setting))
        return subprocess.Popen(  # noqa: S603 - our own words
            ["git", "-C", str(self._folder), *config, *arguments],  # noqa: S607 - whichever it is
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def key(self, data: bytes) -> bytes:
        return sha1(b"blob %d\0" % len(data) + data).hexdigest().encode()  # noqa: S324 - git's name

    def put(self, data: bytes) -> None:
        self.put_many([data])

    def put_many(self, batch: Sequence[bytes]) -> None:
        said = [part for data in batch for part in (b"blob\ndata %d\n" % len(data), data, b"\n")]
        stdin, stdout = _pipes(self._importer)
        stdin.write(b"".join([*said, b"checkpoint\nprogress synced\n"]))
        stdin.flush()
        if stdout.readline() != b"progress synced\n":
            raise OSError("git fast-import ended too early")

    def get(self, key: bytes) -> bytes:
        self._reader = self._reader or self._git("cat-file", "--batch")
        stdin, stdout = _pipes(self._reader)
        stdin.write(key + b"\n")
        stdin.flush()
        length = int(stdout.readline().split()[2])
        return stdout.read(length + 1)[:length]

    def verify(self) -> None:
        checker = self._git("fsck", "--full", "--no-dangling", "--no-progress")
        checker.communicate()
        if checker.returncode:
            raise OSError("git fsck found damage")

    def close(self) -> None:
        for process in filter(None, (self._importer, self._reader)):
            process.communicate()


class Dulwich:
    def __init__(self, folder: Path) -> None:
        self._objects = _module("dulwich.objects")
        (folder / "pack").mkdir()
        self._store = _module("dulwich.object_store").DiskObjectStore(
            str(folder),
            loose_compression_level=0,
            pack_compression_level=0,
            pack_delta_window_size=0,
            fsync_object_files=True,
        )

    def key(self, data: bytes) -> bytes:
        return bytes(self._objects.Blob.from_string(data).id)

    def put(self, data: bytes) -> None:
        self._store.add_object(self._objects.Blob.from_string(data))

    def put_many(self, batch: Sequence[bytes]) -> None:
        blobs = [(self._objects.Blob.from_string(data), None) for data in batch]
        self._store.add_objects(blobs)

    def get(self, key: bytes) -> bytes:
        return bytes(self._store.get_raw(key)[1])

    def close(self) -> None:
        self._store.close()


PEERS: dict[str, Callable[[Path], Peer]] = {
    "SQLite": SQLite,
    "RocksDB": RocksDB,
    "LMDB": LMDB,
    "files": PlainFiles,
    "git": Git,
    "dulwich": Dulwich,
}


def absent() -> list[str]:
    """Return the modules of peers that are not installed."""
    needed = ("dulwich", "lmdb", "rocksdict")
    return [name for name in needed if importlib.util.find_spec(name) is None]


@contextmanager
def opened(folder: Path) -> Iterator[dict[str, Peer]]:
    """Open each peer in a folder of its own."""
    peers: dict[str, Peer] = {}
    try:
        for name, open_peer in PEERS.items():
            (folder / name).mkdir(parents=True)
            peers[name] = open_peer(folder / name)
        yield peers
    finally:
        for peer in peers.values():
            peer.close()


def _module(name: str) -> ModuleType:
    """Import what only the benchmarks need, and the type checker may never see."""
    return importlib.import_module(name)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise OSError("git was started without pipes")
    return process.stdin, process.stdout
