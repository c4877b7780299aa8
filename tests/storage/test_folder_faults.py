"""Disks that fail in every way we could think of: a typed error, the fix, and nothing half-done."""

import ctypes
import errno
import os
import resource
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.errors import (
    AccessRefusedError,
    NotTextError,
    StorageError,
    StorageFaultError,
    StorageFullError,
    StorageUnavailableError,
)
from perdure.storage import ABSENT, FindingKind, Locator, content_hash, openat, walk
from perdure.storage.device_local import DeviceLocalBackend, FolderBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement
from perdure.testing.storage.processes import finish, start
from perdure.testing.storage.storage_suite import tree

NOTE = Locator("notes/today.md")
NEW = Locator("new/folder/note.md")
ROOT = Locator("")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def backend(root: Path, tmp_path: Path) -> DeviceLocalBackend:
    backend = DeviceLocalBackend(str(root), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    return backend


def files_in(root: Path) -> dict[str, str]:
    """Return every file, hidden ones too, as the disk has them."""
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else ""
        for path in sorted(root.rglob("*"))
    }


BEFORE = {"notes": "", "notes/today.md": "before"}


def assert_explained(error: StorageError, *words: str) -> None:
    message = str(error)
    assert "Fix:" in message
    for word in words:
        assert word in message


# ---------------------------------------------------------------- a failing disk


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.EIO, StorageFaultError),
        (errno.EROFS, AccessRefusedError),
        (errno.ESTALE, StorageUnavailableError),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "open"])
def test_a_call_that_fails_leaves_everything_as_it_was(
    backend: DeviceLocalBackend,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    kind: type[StorageError],
) -> None:
    root = Path(backend.whereabouts)
    for locator in (NOTE, NEW):
        with monkeypatch.context() as patch:
            fail_on(patch, call, number)
            with pytest.raises(kind) as caught:
                backend.write(locator, "after")

        assert_explained(caught.value, locator.key, str(root))
        assert files_in(root) == BEFORE
    backend.write(NOTE, "after all")
    assert backend.read(NOTE) == "after all"


def fail_on(patch: pytest.MonkeyPatch, call: str, number: int) -> None:
    """Let the call fail where it touches the temporary file or the root, as a bad disk would."""
    real = getattr(os, call)

    def failing(*args: object, **kwargs: object) -> object:
        is_lock = isinstance(args[0], str) and "/locks/" in args[0]
        is_ours = call in {"write", "fsync"} or kwargs
        if is_lock or not is_ours or (call == "open" and not int(str(args[1])) & os.O_CREAT):
            return real(*args, **kwargs)
        raise OSError(number, os.strerror(number))

    patch.setattr(os, call, failing)


def test_a_disk_that_fails_after_the_commit_is_not_called_unchanged(
    backend: DeviceLocalBackend, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_on_directories(patch, errno.EIO)
        with pytest.raises(StorageFaultError, match="are made and visible"):
            backend.write(NOTE, "after")

    assert files_in(root) == {**BEFORE, NOTE.key: "after"}


def test_a_file_system_without_directory_syncs_can_be_written(
    backend: DeviceLocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_on_directories(patch, errno.EINVAL)
        backend.write(NOTE, "after")
        backend.write(NEW, "new")

    assert backend.read(NOTE) == "after"
    assert backend.read(NEW) == "new"


def fail_on_directories(patch: pytest.MonkeyPatch, number: int) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    patch.setattr(os, "fsync", fsync)


def test_a_failing_removal_leaves_the_text(
    backend: DeviceLocalBackend, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_on(patch, "rename", errno.EIO)
        with pytest.raises(StorageFaultError):
            backend.remove(NOTE)

    assert files_in(root) == BEFORE


def test_a_file_too_large_for_the_limit_is_refused_whole(
    backend: DeviceLocalBackend, root: Path
) -> None:
    def write_too_much() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with pytest.raises(StorageFullError):
            backend.write(NOTE, "x" * 200_000)

    finish([start(write_too_much)])

    assert files_in(root) == BEFORE


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of its own, as only root may."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("CI must run the tests on a small disk, which takes root")
        pytest.skip("a small disk takes root to mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("tmpfs", disk, "size=256k")
    try:
        yield disk
    finally:
        ctypes.CDLL(None).umount2(os.fsencode(disk), 2)


def mount(kind: str, place: Path, options: str, flags: int = 0) -> None:
    done = ctypes.CDLL(None, use_errno=True).mount(
        kind.encode(), os.fsencode(place), kind.encode(), flags, options.encode()
    )
    if done != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(place))


def test_a_full_disk_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    root = small_disk / "root"
    backend = DeviceLocalBackend(str(root), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    for locator in (NOTE, NEW):
        with pytest.raises(StorageFullError) as caught:
            backend.write(locator, "x" * 400_000)

        assert_explained(caught.value, "full", locator.key)
        assert files_in(root) == BEFORE
    backend.write(NOTE, "after")
    assert backend.read(NOTE) == "after"


def test_a_read_only_disk_says_so(small_disk: Path, tmp_path: Path) -> None:
    root = small_disk / "root"
    backend = DeviceLocalBackend(str(root), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    mount("tmpfs", small_disk, "", flags=1 | 32)  # read-only, remount
    for action in (
        lambda: backend.write(NOTE, "after"),
        lambda: backend.write(NEW, "after"),
        lambda: backend.remove(NOTE),
        lambda: backend.mkdir(Locator("new")),
    ):
        with pytest.raises(AccessRefusedError) as caught:
            action()
        assert_explained(caught.value, "writable", str(root))

    assert backend.read(NOTE) == "before"
    assert files_in(root) == BEFORE


def test_a_folder_without_write_permission_is_reported(
    backend: DeviceLocalBackend, root: Path
) -> None:
    def write_without_rights() -> None:
        for folder in (root, root / "notes"):
            folder.chmod(0o555)
        if os.geteuid() == 0:
            for parent in root.parents:
                if parent.stat().st_uid == 0 and str(parent).startswith("/tmp/"):  # noqa: S108
                    parent.chmod(0o755)
            home = root.parent / "home"
            for path in (home, *home.rglob("*")):
                os.chown(path, 65534, 65534)
            os.setuid(65534)
        assert backend.read(NOTE) == "before"
        for action in (
            lambda: backend.write(NOTE, "after"),
            lambda: backend.write(NEW, "after"),
            lambda: backend.remove(NOTE),
        ):
            with pytest.raises(AccessRefusedError):
                action()

    finish([start(write_without_rights)])

    for folder in (root, root / "notes"):
        folder.chmod(0o755)
    assert files_in(root) == BEFORE


# ---------------------------------------------------------------- a root that goes away


def every_verb(backend: FolderBackend) -> list[Callable[[], object]]:
    return [
        lambda: backend.read(NOTE),
        lambda: backend.write(NOTE, "after"),
        lambda: backend.write(NOTE, "after", expect=ABSENT),
        lambda: backend.remove(NOTE),
        lambda: backend.remove(NOTE, expect=content_hash("before")),
        lambda: backend.write_all({NEW: "after", NOTE: None}),
        lambda: backend.list(ROOT),
        lambda: backend.list(Locator("notes")),
        lambda: backend.exists(NOTE),
        lambda: backend.info(NOTE),
        lambda: backend.mkdir(Locator("new")),
        lambda: list(walk(backend, ROOT)),
        lambda: backend.findings(ROOT),
    ]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_root_that_went_away_is_no_empty_memory(
    backend: DeviceLocalBackend, root: Path, *, replaced: bool
) -> None:
    root.rename(root.with_name("elsewhere"))
    if replaced:
        root.mkdir()  # as the empty folder under a lost mount
    for action in every_verb(backend):
        with pytest.raises(StorageUnavailableError) as caught:
            action()
        assert_explained(caught.value, str(root), "mount")

    assert root.exists() == replaced
    if replaced:
        root.rmdir()  # which it could not be if anything had been written
    root.with_name("elsewhere").rename(root)
    assert backend.read(NOTE) == "before"


def test_a_root_created_again_is_another_one_though_it_has_the_same_inode(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for _ in range(10):
        backend = DeviceLocalBackend(str(root), str(tmp_path / "home"))
        backend.write(Locator("note.md"), "text")
        (root / "note.md").unlink()
        root.rmdir()
        root.mkdir()  # often with the inode of the one that is gone

        with pytest.raises(StorageUnavailableError):
            backend.list(ROOT)
        with pytest.raises(StorageUnavailableError):
            backend.write(Locator("note.md"), "lost")


def test_a_root_that_became_a_file_is_reported(backend: DeviceLocalBackend, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    root.write_text("a file")
    for action in every_verb(backend):
        with pytest.raises(StorageUnavailableError):
            action()

    assert root.read_text() == "a file"


def test_a_vault_that_is_not_mounted_yet_is_refused_and_not_created(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailableError) as caught:
        VaultBackend(str(tmp_path / "absent"), str(tmp_path / "home"))

    assert_explained(caught.value, "mount", str(tmp_path / "absent"))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_where_a_vault_was_in_use_is_refused(tmp_path: Path) -> None:
    root, home = tmp_path / "vault", str(tmp_path / "home")
    root.mkdir()
    VaultBackend(str(root), home)
    VaultBackend(str(root), home).write(NOTE, "text")
    root.rename(tmp_path / "unmounted")
    root.mkdir()
    with pytest.raises(StorageUnavailableError) as caught:
        VaultBackend(str(root), home)
    assert_explained(caught.value, "empty", "mount")

    root.rmdir()
    (tmp_path / "unmounted").rename(root)
    assert VaultBackend(str(root), home).read(NOTE) == "text"


def test_a_vault_that_was_emptied_through_the_seam_opens_again(tmp_path: Path) -> None:
    root, home = tmp_path / "vault", str(tmp_path / "home")
    root.mkdir()
    vault = VaultBackend(str(root), home)
    vault.write(Locator("note.md"), "text")
    vault.remove(Locator("note.md"))

    VaultBackend(str(root), home).write(Locator("note.md"), "again")


def test_a_first_write_that_failed_does_not_count_as_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = tmp_path / "vault", str(tmp_path / "home")
    root.mkdir()
    with monkeypatch.context() as patch:
        fail_on(patch, "fsync", errno.ENOSPC)
        with pytest.raises(StorageFullError):
            VaultBackend(str(root), home).write(NOTE, "text")

    VaultBackend(str(root), home).write(NOTE, "text")


def test_a_home_inside_the_vault_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="PERDURE_HOME"):
        VaultBackend(str(tmp_path), str(tmp_path / "home"))


# ---------------------------------------------------------------- what others put there


def test_a_file_that_is_no_text_is_named(backend: DeviceLocalBackend, root: Path) -> None:
    (root / "notes" / "today.md").write_bytes(b"caf\xe9")
    with pytest.raises(NotTextError) as caught:
        backend.read(NOTE)

    assert_explained(caught.value, NOTE.key, "0xe9")
    assert backend.info(NOTE).size == 4


def test_names_that_no_key_can_say_are_reported_and_passed_over(
    backend: DeviceLocalBackend, root: Path
) -> None:
    odd = [b"back\\slash.md", b"not-utf8-\xff.md", b"bell\x07.md", b"old.perdure-tmp"]
    for name in odd:
        (root / os.fsdecode(name)).write_text("odd")

    assert backend.list(ROOT) == [Locator("notes")]
    assert list(walk(backend, ROOT)) == [NOTE]
    found = {os.fsencode(f.name): f.kind for f in backend.findings(ROOT)}
    assert found == {
        b"back\\slash.md": FindingKind.UNUSABLE_NAME,
        b"not-utf8-\xff.md": FindingKind.UNUSABLE_NAME,
        b"bell\x07.md": FindingKind.UNUSABLE_NAME,
        b"old.perdure-tmp": FindingKind.LEFTOVER,
    }


def test_names_that_another_system_spelled_decomposed_are_found(
    backend: DeviceLocalBackend, root: Path
) -> None:
    decomposed = root / "cafe\u0301"
    decomposed.mkdir()
    (decomposed / "re\u0301sume\u0301.md").write_text("theirs")
    locator = Locator("caf\u00e9/r\u00e9sum\u00e9.md")

    assert backend.list(Locator("caf\u00e9")) == [locator]
    assert backend.read(locator) == "theirs"
    backend.write(locator, "mine", expect=content_hash("theirs"))
    backend.write(Locator("caf\u00e9/new.md"), "new")
    backend.mkdir(Locator("caf\u00e9/deeper/still"))

    assert sorted(p.name for p in decomposed.iterdir()) == [
        "deeper",
        "new.md",
        "re\u0301sume\u0301.md",
    ]
    assert (decomposed / "re\u0301sume\u0301.md").read_text() == "mine"
    backend.remove(locator)
    assert not backend.exists(locator)


def test_a_twin_in_another_spelling_is_reported(backend: DeviceLocalBackend, root: Path) -> None:
    (root / "caf\u00e9.md").write_text("composed")
    (root / "cafe\u0301.md").write_text("decomposed")

    assert backend.read(Locator("caf\u00e9.md")) == "composed"
    (finding,) = backend.findings(ROOT)
    assert finding.name == "cafe\u0301.md"
    assert "another Unicode form" in finding.advice


def test_a_walk_passes_over_what_is_removed_meanwhile(backend: DeviceLocalBackend) -> None:
    for number in range(5):
        backend.write(Locator(f"{number}.md"), "text")
    seen = []
    for text in walk(backend, ROOT):
        seen.append(text.key)
        if text.key == "0.md":
            backend.remove(Locator("3.md"))

    assert seen == ["0.md", "1.md", "2.md", "4.md", NOTE.key]


def test_folders_of_tools_are_not_walked(backend: DeviceLocalBackend, root: Path) -> None:
    for key in (".obsidian/workspace.json", ".git/HEAD", "notes/.trash/old.md", "notes/.meta.json"):
        (root / key).parent.mkdir(exist_ok=True)
        (root / key).write_text("text")

    assert list(walk(backend, ROOT)) == [Locator("notes/.meta.json"), NOTE]


def test_too_many_open_files_are_not_blamed_on_the_disk(backend: DeviceLocalBackend) -> None:
    def read_without_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        with pytest.raises(StorageFaultError, match="ulimit"):
            backend.read(NOTE)

    finish([start(read_without_descriptors)])


def test_a_replaced_file_keeps_its_permissions(backend: DeviceLocalBackend, root: Path) -> None:
    path = root / "notes" / "today.md"
    path.chmod(0o640)
    backend.write(NOTE, "after")

    assert path.stat().st_mode & 0o777 == 0o640


@requirement("001-compare-ignores-mtime")
def test_only_content_counts_never_the_time(backend: DeviceLocalBackend, root: Path) -> None:
    path = root / "notes" / "today.md"
    os.utime(path, (0, 0))
    backend.write(NOTE, "second", expect=content_hash("before"))
    stamp = path.stat()
    path.write_text("edited")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(RuntimeError, match="expected"):
        backend.write(NOTE, "third", expect=content_hash("second"))

    assert backend.read(NOTE) == "edited"


# ---------------------------------------------------------------- a crash at every step


@requirement("000-write-atomic", "000-write-durable")
@pytest.mark.parametrize("verb", ["replace", "create", "remove"])
def test_a_crash_at_any_call_leaves_old_or_new_and_the_next_writer_clears_up(
    tmp_path: Path, verb: str
) -> None:
    outcomes = set()
    for step in range(1, 40):
        root = tmp_path / str(step)
        backend = DeviceLocalBackend(str(root), str(tmp_path / "home"))
        backend.write(NOTE, "before")
        survived = run_and_crash(backend, verb, step)

        held = tree(backend)
        outcomes.add(tuple(sorted(held.items())))
        backend.write(Locator("after.md"), "after")
        assert tree(backend) == {**held, "after.md": "after"}
        assert [name for name in files_in(root) if "perdure-tmp" in name] == []
        if survived:
            break
    else:
        pytest.fail("the verb never came to its end")

    assert outcomes <= ALLOWED[verb]
    assert step > 5


def entries(held: dict[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(held.items()))


_OLD = {"notes": None, NOTE.key: "before"}
_CREATED = [{"new": None}, {"new": None, "new/folder": None}]
ALLOWED = {
    "replace": {entries(_OLD), entries({**_OLD, NOTE.key: "after"})},
    "create": {
        entries(_OLD),
        *(entries({**_OLD, **created}) for created in _CREATED),
        entries({**_OLD, **_CREATED[1], NEW.key: "after"}),
    },
    "remove": {entries(_OLD), entries({"notes": None})},
}


def run_and_crash(backend: DeviceLocalBackend, verb: str, step: int) -> bool:
    """Do it in a process that dies at its n-th system call; say whether it came to its end."""
    actions: dict[str, Callable[[], object]] = {
        "replace": lambda: backend.write(NOTE, "after"),
        "create": lambda: backend.write(NEW, "after"),
        "remove": lambda: backend.remove(NOTE),
    }

    def crash_at_step() -> None:
        calls = 0

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal calls
                calls += 1
                if calls == step:
                    os._exit(9)
                return real(*args, **kwargs)

            return call

        for name in ("open", "write", "pwrite", "fsync", "rename", "mkdir", "rmdir", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        actions[verb]()
        os._exit(0)

    process = start(crash_at_step)
    process.join()
    assert process.exitcode in {0, 9}
    return process.exitcode == 0


# ---------------------------------------------------------------- the order of the steps


@requirement(
    "001-atomic-write-fsync-before-rename",
    "000-write-durable",
    "001-plain-fsync",
    "000-write-composes-protocol",
    "001-vault-write-protocol",
    "001-vault-write-holds-mutex",
    "001-one-write-library",
)
@pytest.mark.parametrize("kind", [DeviceLocalBackend, VaultBackend])
def test_a_write_locks_compares_syncs_renames_syncs_and_unlocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[FolderBackend]
) -> None:
    (tmp_path / "root").mkdir()
    backend = kind(str(tmp_path / "root"), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    steps: list[str] = []
    for name in ("rename", "fsync", "write", "pread"):
        monkeypatch.setattr(os, name, spy(steps, name, getattr(os, name)))
    monkeypatch.setattr(openat, "rename", spy(steps, "rename", openat.rename))
    backend.write(NOTE, "after", expect=content_hash("before"))

    assert steps == [
        "lock",
        "pread file",  # the comparison
        "pread file",
        "write file",
        "fsync file",
        "rename",
        "pread file",  # what was there is compared once more
        "pread file",
        "fsync directory",
        "unlock",
    ]


def spy(steps: list[str], name: str, real: Callable[..., object]) -> Callable[..., object]:
    def spied(*args: object, **kwargs: object) -> object:
        if name == "rename":
            old, new = str(args[0]), str(args[1])
            steps.append("lock" if "/held." in new else "unlock" if "/held." in old else "rename")
        else:
            mode = os.fstat(int(str(args[0]))).st_mode
            steps.append(f"{name} {'directory' if mode & 0o040000 else 'file'}")
        return real(*args, **kwargs)

    return spied
