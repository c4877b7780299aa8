"""Many texts at once, on disks that fail and among processes that die or stall."""

import errno
import os
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from perdure.errors import (
    ConcurrentModificationError,
    LinkRefusedError,
    LockLostError,
    StorageError,
    StorageFaultError,
    StorageFullError,
)
from perdure.storage import ABSENT, Expectation, Locator, LockTiming, batch, content_hash, openat
from perdure.storage.device_local import DeviceLocalBackend, FolderBackend
from perdure.storage.mutex import HeldLock
from perdure.storage.vault import VaultBackend
from perdure.testing.storage.processes import finish, start
from perdure.testing.storage.storage_suite import tree
from tests.storage.test_folder_faults import fail_on_directories, files_in, spy

NOTE, GONE, LAST = Locator("notes/today.md"), Locator("notes/gone.md"), Locator("last.md")
CHANGES = {
    Locator("new/folder/b.md"): "b",
    NOTE: "after",
    Locator("new/folder/a.md"): "a",
    GONE: None,
    Locator("notes/absent.md"): None,
    LAST: "last",
}
EXPECT: dict[Locator, Expectation] = {
    Locator("new/folder/b.md"): ABSENT,
    NOTE: content_hash("before"),
    GONE: content_hash("gone"),
    LAST: ABSENT,
}
BEFORE = {NOTE.key: "before", GONE.key: "gone"}


def prefixes() -> list[dict[str, str]]:
    """Return the texts after none, one, two and so on of the changes."""
    texts: dict[str, str | None] = dict(BEFORE)
    states = [dict(BEFORE)]
    for locator, content in CHANGES.items():
        texts[locator.key] = content
        states.append({key: text for key, text in texts.items() if text is not None})
    return states


AFTER = prefixes()[-1]


def texts_in(backend: FolderBackend) -> dict[str, str]:
    return {key: text for key, text in tree(backend).items() if text is not None}


def opened(place: Path, timing: LockTiming | None = None) -> DeviceLocalBackend:
    return DeviceLocalBackend(str(place / "root"), str(place / "home"), timing)


def prepared(place: Path) -> DeviceLocalBackend:
    backend = opened(place)
    backend.write(NOTE, "before")
    backend.write(GONE, "gone")
    return backend


def leftovers(backend: FolderBackend) -> list[str]:
    return [name for name in files_in(Path(backend.whereabouts)) if "perdure-tmp" in name]


@pytest.fixture(params=[1, 1000], ids=["threads", "one thread"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even a few files be worth threads, and not."""
    monkeypatch.setattr(batch, "_WORTH_THREADS", request.param)


CALLS = ("open", "write", "pwrite", "fsync", "rename", "mkdir", "rmdir", "unlink", "posix_fadvise")


def at_call(number: int, do: Callable[[], None], calls: tuple[str, ...] = CALLS) -> None:
    """Do something at the n-th call of the system from now on, the lock's own left out."""
    counter = count(1)

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            if "/locks/" not in str(args[0]) and next(counter) == number:
                do()
            return real(*args, **kwargs)

        return call

    for name in calls:
        setattr(os, name, counted(getattr(os, name)))
    if "rename" in calls:
        setattr(openat, "rename", counted(openat.rename))  # noqa: B010 - mypy knows no other way


# ---------------------------------------------------------------- at every step


@pytest.mark.usefixtures("threads")
def test_a_crash_at_any_call_leaves_the_first_few_and_the_next_writer_clears_up(
    tmp_path: Path,
) -> None:
    seen = []
    for step in count(1):
        backend = prepared(tmp_path / str(step))

        def crash(step: int = step, backend: FolderBackend = backend) -> None:
            at_call(step, lambda: os._exit(9))
            backend.write_all(CHANGES, expect=EXPECT)
            os._exit(0)

        process = start(crash)
        process.join()
        held = tree(backend)
        backend.write(Locator("other.md"), "other")

        assert tree(backend) == {**held, "other.md": "other"}
        assert leftovers(backend) == []
        assert {key for key, text in held.items() if text is None} <= {"notes", "new", "new/folder"}
        seen.append({key: text for key, text in held.items() if text is not None})
        if process.exitcode == 0:
            break
        assert process.exitcode == 9

    order = [prefixes().index(texts) for texts in seen]  # raises for what is no prefix
    assert order == sorted(order)
    assert set(order) == {0, 1, 2, 3, 4, 6}  # the fifth removes nothing
    assert seen[-1] == AFTER


@pytest.mark.usefixtures("threads")
def test_an_error_at_any_call_leaves_the_first_few_and_nothing_unfinished(tmp_path: Path) -> None:
    calls = ("open", "write", "fsync", "rename", "mkdir")
    seen = set()
    for step in count(1):
        backend = prepared(tmp_path / str(step))
        failures: list[OSError] = []
        with pytest.MonkeyPatch.context() as patch:
            for name in calls:
                patch.setattr(os, name, getattr(os, name))
            patch.setattr(openat, "rename", openat.rename)
            at_call(step, partial(fail, failures), calls)
            caught = error_of(partial(backend.write_all, CHANGES, expect=EXPECT))

        done = prefixes().index(texts_in(backend))
        seen.add(done)
        if caught is None:
            assert texts_in(backend) == AFTER
            if not failures:
                break
            continue  # a text that is removed was not cleared away; a finding tells of it
        assert leftovers(backend) == []
        assert ("new" in tree(backend)) == (done > 0)
        assert isinstance(caught, StorageFaultError)
        assert "Fix:" in str(caught)
        assert ("before it are made" in str(caught)) == (0 < done < len(CHANGES))
        backend.write_all(CHANGES)
        assert texts_in(backend) == AFTER

    assert seen == {0, 1, 2, 3, 4, 6}


def error_of(action: Callable[[], object]) -> StorageError | None:
    try:
        action()
    except StorageError as error:
        return error
    return None


def fail(failures: list[OSError]) -> None:
    failures.append(OSError(errno.EIO, os.strerror(errno.EIO)))
    raise failures[-1]


@pytest.mark.usefixtures("threads")
def test_a_full_disk_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = prepared(tmp_path)
    before = files_in(tmp_path / "root")
    for call in ("write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(StorageFullError, match="full"):
                backend.write_all(CHANGES)

        assert files_in(tmp_path / "root") == before


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fails_after_the_changes_is_not_called_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = prepared(tmp_path)
    with monkeypatch.context() as patch:
        fail_on_directories(patch, errno.EIO)
        with pytest.raises(StorageFaultError, match="are made and visible"):
            backend.write_all(CHANGES)

    assert texts_in(backend) == AFTER


def test_a_file_system_without_directory_syncs_takes_many_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = prepared(tmp_path)
    fail_on_directories(monkeypatch, errno.EINVAL)
    backend.write_all(CHANGES)

    assert texts_in(backend) == AFTER


def test_a_system_without_advice_takes_many_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = prepared(tmp_path)
    monkeypatch.delattr(os, "posix_fadvise")
    backend.write_all(CHANGES)

    assert texts_in(backend) == AFTER


def test_a_process_that_may_have_no_more_threads_takes_many_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = prepared(tmp_path)
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(batch, "_WORTH_THREADS", 1)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse_thread)

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    backend.write_all(CHANGES)

    assert texts_in(backend) == AFTER
    assert len(synced) == 4 + 4  # the files, and the directories


def refuse_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_few_descriptors_are_enough_for_many_texts(tmp_path: Path) -> None:
    backend = prepared(tmp_path)
    changes = {Locator(f"{n % 200}/{n}.md"): str(n) for n in range(600)}

    def write_with_few_descriptors() -> None:
        open_now = len(list(Path("/proc/self/fd").iterdir()))  # others may have left some
        most = 240 + open_now
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        backend.write_all(changes)
        backend.write_all(dict.fromkeys(changes))

    finish([start(write_with_few_descriptors)])

    assert texts_in(backend) == BEFORE


# ---------------------------------------------------------------- a lock that is taken over


def take_over_at(attempt: int, patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another process come in when we looked for the n-th time whether the lock is ours."""
    real = HeldLock.verify
    attempts = count(1)

    def verify_and_stall(held: HeldLock) -> None:
        real(held)
        if next(attempts) == attempt:
            act()

    patch.setattr(HeldLock, "verify", verify_and_stall)


@pytest.mark.parametrize("attempt", range(1, 6))
def test_who_lost_the_lock_goes_on_where_it_was(tmp_path: Path, attempt: int) -> None:
    backend = prepared(tmp_path)
    other = opened(tmp_path, LockTiming(stale_after=0.0001))
    met = []

    def write_too() -> None:
        met.append(texts_in(other))
        other.write(Locator("other.md"), "theirs")

    with pytest.MonkeyPatch.context() as patch:
        take_over_at(attempt, patch, write_too)
        backend.write_all(CHANGES, expect=EXPECT)

    assert met == [prefixes()[[0, 1, 2, 3, 5][attempt - 1]]]
    assert texts_in(backend) == {**AFTER, "other.md": "theirs"}
    assert leftovers(backend) == []


def test_what_another_writer_did_meanwhile_to_a_text_that_is_done_stays(tmp_path: Path) -> None:
    backend = prepared(tmp_path)
    other = opened(tmp_path, LockTiming(stale_after=0.0001))
    with pytest.MonkeyPatch.context() as patch:
        take_over_at(3, patch, lambda: other.write(NOTE, "theirs"))
        backend.write_all(CHANGES, expect=EXPECT)

    assert texts_in(backend) == {**AFTER, NOTE.key: "theirs"}


@pytest.mark.parametrize("attempt", range(1, 6))
def test_a_condition_that_fails_after_a_stall_tells_what_is_done(
    tmp_path: Path, attempt: int
) -> None:
    backend = prepared(tmp_path)
    other = opened(tmp_path, LockTiming(stale_after=0.0001))
    done = [0, 1, 2, 3, 5][attempt - 1]
    kind: type[StorageError] = LockLostError if done else ConcurrentModificationError
    with pytest.MonkeyPatch.context() as patch:
        take_over_at(attempt, patch, lambda: other.write(LAST, "theirs"))
        with pytest.raises(kind) as caught:
            backend.write_all(CHANGES, expect=EXPECT)

    assert (f"the {done} before it are made" in str(caught.value)) == (done > 0)
    assert texts_in(backend) == {**prefixes()[done], LAST.key: "theirs"}
    assert leftovers(backend) == []


# ---------------------------------------------------------------- many processes


def test_processes_that_die_among_others_leave_whole_batches_or_first_parts(
    tmp_path: Path,
) -> None:
    places = [Locator(f"{name}/n.md") for name in "zyx"]

    def write_for_ever(number: int) -> None:
        mine = opened(tmp_path)
        for attempt in count():
            mine.write_all(dict.fromkeys(places, f"{number}.{attempt} " * 1000))

    backend = opened(tmp_path)
    for attempt in range(5):
        writers = [start(partial(write_for_ever, number)) for number in range(3)]
        while any(w.is_alive() for w in writers) and not backend.exists(places[-1]):
            continue
        for writer in writers:
            writer.join(0.01 * attempt)
            writer.kill()
            writer.join()
        backend.write(Locator("after.md"), str(attempt))

        found = [backend.read(place) for place in places]
        assert leftovers(backend) == []
        assert {len(set(text.split())) for text in found} == {1}  # each is whole
        changed = [text == found[0] for text in found]
        assert changed == sorted(changed, reverse=True)
        backend.write_all(dict.fromkeys(places))


def test_all_that_a_large_batch_left_unfinished_is_cleared_away(tmp_path: Path) -> None:
    backend = prepared(tmp_path)
    changes = {Locator(f"{'long' * 20}/{n % 7}/{n}.md"): "text" for n in range(1200)}

    def die_before_the_first_rename() -> None:
        setattr(HeldLock, "verify", lambda held: os._exit(9))  # noqa: B010 - mypy knows no other way
        backend.write_all(changes)

    process = start(die_before_the_first_rename)
    process.join()
    unfinished = len(leftovers(backend))
    backend.write(LAST, "last")

    assert (process.exitcode, unfinished) == (9, len(changes))
    assert leftovers(backend) == []


def test_a_record_that_was_half_written_stops_nobody(tmp_path: Path) -> None:
    backend = prepared(tmp_path)

    def die_while_recording() -> None:
        real = os.pwrite

        def write_half(descriptor: int, data: bytes, offset: int) -> int:
            real(descriptor, "é".encode() * 50_000 + b"\n/x\n", offset)
            real(descriptor, data[: len(data) // 2 - 1], offset)
            os._exit(9)

        setattr(os, "pwrite", write_half)  # noqa: B010 - mypy knows no other way
        backend.write_all({Locator(f"{n}/é.md"): "text" for n in range(50)})

    process = start(die_while_recording)
    process.join()
    backend.write_all({LAST: "last"})

    assert process.exitcode == 9
    assert texts_in(backend) == {**BEFORE, LAST.key: "last"}


# ---------------------------------------------------------------- the order of the steps


@pytest.mark.parametrize("kind", [DeviceLocalBackend, VaultBackend])
def test_many_are_locked_compared_and_synced_once_then_renamed_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[FolderBackend]
) -> None:
    (tmp_path / "root").mkdir()
    backend = kind(str(tmp_path / "root"), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    steps: list[str] = []
    for name in ("rename", "fsync", "write", "pread"):
        monkeypatch.setattr(os, name, spy(steps, name, getattr(os, name)))
    monkeypatch.setattr(openat, "rename", spy(steps, "rename", openat.rename))
    backend.write_all(
        {NOTE: "after", Locator("notes/b.md"): "b", Locator("new/a.md"): "a"},
        expect={NOTE: content_hash("before")},
    )

    assert steps == [
        "lock",
        *["pread file"] * 2,  # the comparison
        *["write file"] * 3,
        *["fsync file"] * 3,
        "rename",
        *["pread file"] * 2,  # what was there is compared once more
        *["rename"] * 2,
        *["fsync directory"] * 3,  # the root, which got a directory, and the two
        "unlock",
    ]


# ---------------------------------------------------------------- what others put there


def test_many_texts_find_names_that_another_system_spelled_decomposed(tmp_path: Path) -> None:
    backend = prepared(tmp_path)
    decomposed = tmp_path / "root" / "cafe\u0301"
    decomposed.mkdir()
    for name in ("re\u0301sume\u0301.md", "ol\u0301d.md"):
        (decomposed / name).write_text("theirs")
    cafe = Locator("caf\u00e9")
    backend.write_all(
        {
            cafe.child("r\u00e9sum\u00e9.md"): "mine",
            cafe.child("ol\u0301d.md"): None,
            cafe.child("n\u00e9w.md"): "new",
            cafe.child("d\u00e9\u00e9per/still.md"): "deep",
        },
        expect={cafe.child("r\u00e9sum\u00e9.md"): content_hash("theirs")},
    )

    assert files_in(decomposed) == {
        "n\u00e9w.md": "new",
        "re\u0301sume\u0301.md": "mine",
        "d\u00e9\u00e9per": "",
        "d\u00e9\u00e9per/still.md": "deep",
    }


def test_many_texts_keep_their_permissions(tmp_path: Path) -> None:
    backend = prepared(tmp_path)
    path = tmp_path / "root" / NOTE.key
    path.chmod(0o640)
    backend.write_all(CHANGES)

    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_among_many_places_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    backend = prepared(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "text.md").write_text("theirs")
    (tmp_path / "root" / "folder").symlink_to(outside)
    (tmp_path / "root" / "link.md").symlink_to(outside / "text.md")
    for place in ("folder/text.md", "folder/new.md", "folder/new/deep.md", "link.md"):
        for content in ("mine", None):
            with pytest.raises(LinkRefusedError):
                backend.write_all({LAST: "last", Locator(place): content})

    assert files_in(outside) == {"text.md": "theirs"}
    assert texts_in(backend) == BEFORE


def test_a_vault_that_many_removals_emptied_opens_again(tmp_path: Path) -> None:
    root, home = tmp_path / "vault", str(tmp_path / "home")
    root.mkdir()
    vault = VaultBackend(str(root), home)
    vault.write_all({LAST: "text", Locator("other.md"): "text"})
    marked = list((tmp_path / "home" / "vaults").iterdir())
    vault.write_all({LAST: None, Locator("other.md"): None})

    assert len(marked) == 1
    VaultBackend(str(root), home).write_all({LAST: "again"})


# ---------------------------------------------------------------- an editor in between
def overwrite(file: Path) -> None:
    file.write_text("theirs")


def replace(file: Path) -> None:
    new = file.with_name("editor")
    new.write_text("theirs")
    new.replace(file)


@pytest.mark.parametrize("edit", [overwrite, replace])
@pytest.mark.parametrize("content", ["ours", None])
def test_what_an_editor_writes_before_the_rename_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[[Path], None],
    content: str | None,
) -> None:
    backend = DeviceLocalBackend(str(tmp_path / "root"), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    file = tmp_path / "root" / NOTE.key
    verify = HeldLock.verify

    def edited(held: HeldLock) -> None:  # the last thing before a rename
        edit(file)
        verify(held)

    with monkeypatch.context() as patch:
        patch.setattr(HeldLock, "verify", edited)
        with pytest.raises(ConcurrentModificationError):
            backend.write_all({NOTE: content}, expect={NOTE: content_hash("before")})

    assert file.read_text() == "theirs"
    backend.write_all({NOTE: "again"}, expect={NOTE: content_hash("theirs")})
    assert texts_in(backend) == {NOTE.key: "again"}
    assert leftovers(backend) == []


def test_what_an_editor_makes_before_the_rename_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = DeviceLocalBackend(str(tmp_path / "root"), str(tmp_path / "home"))
    backend.write(LAST, "last")
    file = (tmp_path / "root" / LAST.key).with_name("new.md")
    new, verify = LAST.parent.child("new.md"), HeldLock.verify

    def edited(held: HeldLock) -> None:
        overwrite(file)
        verify(held)

    with monkeypatch.context() as patch:
        patch.setattr(HeldLock, "verify", edited)
        with pytest.raises(ConcurrentModificationError):
            backend.write_all({new: "ours"}, expect={new: ABSENT})

    assert texts_in(backend) == {LAST.key: "last", new.key: "theirs"}
    assert leftovers(backend) == []


def test_where_files_can_not_be_exchanged_they_are_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = DeviceLocalBackend(str(tmp_path / "root"), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    monkeypatch.setattr(openat, "rename", lambda *_: False)

    backend.write_all({NOTE: "after"}, expect={NOTE: content_hash("before")})

    assert texts_in(backend) == {NOTE.key: "after"}


def test_an_editor_that_writes_again_while_its_text_is_given_back_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = DeviceLocalBackend(str(tmp_path / "root"), str(tmp_path / "home"))
    backend.write(NOTE, "before")
    file, verify, rename = tmp_path / "root" / NOTE.key, HeldLock.verify, openat.rename

    def edited(held: HeldLock) -> None:
        overwrite(file)
        verify(held)

    def written_again(*given: object) -> bool:
        file.write_text("newer")
        return rename(*given)  # type: ignore[arg-type] # as it was called

    with monkeypatch.context() as patch:
        patch.setattr(HeldLock, "verify", edited)
        patch.setattr(openat, "rename", written_again)
        with pytest.raises(ConcurrentModificationError):
            backend.write_all({NOTE: None}, expect={NOTE: content_hash("before")})

    assert texts_in(backend) == {NOTE.key: "newer"}
    assert leftovers(backend) == []
