"""Links that leave the root are never followed, also when they appear in mid-operation."""

import ctypes
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.errors import LinkRefusedError, StorageError
from perdure.storage import FindingKind, Locator, openat, walk
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.mutex import HeldLock
from perdure.testing.requirement import requirement

ROOT = Locator("")


@pytest.fixture(params=["at once", "by steps"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open in both ways: the kernel's own, and the one for systems without it."""
    at_once = request.param == "at once"
    monkeypatch.setattr(openat, "_kernel_can_refuse_links", lambda: at_once)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_text("secret")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "real").mkdir(parents=True)
    (folder / "real" / "note.md").write_text("mine")
    return folder


@pytest.fixture
def backend(opener: None, root: Path, tmp_path: Path) -> DeviceLocalBackend:
    return DeviceLocalBackend(str(root), str(tmp_path / "home"))


def everything_done_to(backend: DeviceLocalBackend, key: str) -> list[Callable[[], object]]:
    locator = Locator(key)
    return [
        lambda: backend.read(locator),
        lambda: backend.write(locator, "overwritten"),
        lambda: backend.remove(locator),
        lambda: backend.list(locator),
        lambda: backend.mkdir(locator),
    ]


@requirement("000-key-never-leaves-root", "001-personal-unreachable-by-verbs")
@pytest.mark.parametrize("key", ["link", "link/secret.md", "link/new.md", "link/a/b.md"])
def test_a_link_to_a_folder_outside_is_refused(
    backend: DeviceLocalBackend, root: Path, outside: Path, key: str
) -> None:
    (root / "link").symlink_to(outside)
    for action in everything_done_to(backend, key):
        with pytest.raises(LinkRefusedError, match="never followed"):
            action()

    assert not backend.exists(Locator(key))
    with pytest.raises(FileNotFoundError):
        backend.info(Locator(key))
    assert [(p.name, p.read_text()) for p in outside.iterdir()] == [("secret.md", "secret")]


@pytest.mark.parametrize("target", ["secret.md", "absent.md"])
def test_a_link_to_a_file_outside_is_refused(
    backend: DeviceLocalBackend, root: Path, outside: Path, target: str
) -> None:
    (root / "link.md").symlink_to(outside / target)
    locator = Locator("link.md")
    for action in (
        lambda: backend.read(locator),
        lambda: backend.write(locator, "overwritten"),
        lambda: backend.remove(locator),
    ):
        with pytest.raises(LinkRefusedError):
            action()

    assert not backend.exists(locator)
    assert [(p.name, p.read_text()) for p in outside.iterdir()] == [("secret.md", "secret")]
    assert (root / "link.md").is_symlink()


def test_reading_all_follows_no_link(
    backend: DeviceLocalBackend, root: Path, outside: Path
) -> None:
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "pipe.md")
    (root / "binary.md").write_bytes(b"\xff")
    (root / "real.md").write_text("real")

    names = ["link.md", "pipe.md", "binary.md", "real.md"]
    assert backend.read_all(Locator(""), names) == {"real.md": "real"}
    assert backend.read_all(Locator("link"), ["secret.md"]) == {}


def test_links_are_reported_but_neither_listed_nor_walked(
    backend: DeviceLocalBackend, root: Path, outside: Path
) -> None:
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "loop").symlink_to(root / "loop")
    (root / "up").symlink_to("..")

    assert backend.list(ROOT) == [Locator("real")]
    assert list(walk(backend, ROOT)) == [Locator("real/note.md")]
    found = backend.findings(ROOT)
    assert [(f.kind, f.name) for f in found] == [
        (FindingKind.LINK, "link.md"),
        (FindingKind.LINK, "loop"),
        (FindingKind.LINK, "up"),
    ]


def test_pipes_and_sockets_are_refused_without_waiting(
    backend: DeviceLocalBackend, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("pipe", "socket"):
            with pytest.raises(StorageError):
                backend.read(Locator(name))
            with pytest.raises(LinkRefusedError):
                backend.write(Locator(name), "text")
            assert not backend.exists(Locator(name))

        assert backend.list(ROOT) == [Locator("real")]


def test_a_pipe_with_something_in_it_is_not_read(backend: DeviceLocalBackend, root: Path) -> None:
    os.mkfifo(root / "pipe")
    pipe = os.open(root / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, b"in the pipe")
        with pytest.raises(LinkRefusedError):
            backend.read(Locator("pipe"))
    finally:
        os.close(pipe)


def test_a_folder_swapped_for_a_link_before_the_commit_changes_nothing_outside(
    backend: DeviceLocalBackend, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = HeldLock.verify

    def swap_and_verify(held: HeldLock) -> None:
        (root / "real").rename(root / "moved")
        (root / "real").symlink_to(outside)
        monkeypatch.setattr(HeldLock, "verify", verify)
        verify(held)

    monkeypatch.setattr(HeldLock, "verify", swap_and_verify)
    backend.write(Locator("real/secret.md"), "went to the folder that was there")

    assert [(p.name, p.read_text()) for p in outside.iterdir()] == [("secret.md", "secret")]
    assert (root / "moved" / "secret.md").read_text() == "went to the folder that was there"


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one step."""
    at_cwd, rename_exchange = -100, 2
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), rename_exchange) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def test_a_link_flickering_beside_us_never_leads_out(
    backend: DeviceLocalBackend, root: Path, outside: Path
) -> None:
    (outside / "note.md").write_text("secret")
    (root / "link").symlink_to(outside)
    stop = threading.Event()

    def flicker() -> None:
        while not stop.is_set():
            exchange(root / "real", root / "link")

    thread = threading.Thread(target=flicker)
    thread.start()
    seen: set[object] = set()
    try:
        for index in range(100):
            for action in (
                lambda: backend.read(Locator("real/note.md")),
                lambda: tuple(backend.list(Locator("real"))),
                lambda index=index: backend.write(Locator("real/new.md"), str(index)),
                lambda: backend.remove(Locator("real/new.md")),
            ):
                try:
                    seen.add(action())
                except StorageError as error:
                    seen.add(type(error))
    finally:
        stop.set()
        thread.join()

    assert "secret" not in seen
    assert {p.name: p.read_text() for p in outside.iterdir()} == {
        "secret.md": "secret",
        "note.md": "secret",
    }
    assert (Locator("real/secret.md"),) not in seen
    assert LinkRefusedError in seen
    assert "mine" in seen
