"""Which store a folder is: found by the id in its note, wherever the folder and the home go."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import perdure
from perdure.app import find_history, open_recorded
from perdure.errors import (
    AbsentError,
    DamageError,
    StorageError,
    StorageSelectionError,
    StoreIdentityError,
)
from perdure.storage import ABSENT, Locator
from perdure.storage.locator import STORE_NOTE
from perdure.surfaces.cli import cli
from tests.storage.test_folder_faults import mount

pytestmark = pytest.mark.usefixtures("agfs")

TEA = "preference/tea"


class Machine:
    """A home and a store, which may lie anywhere."""

    def __init__(self, home: Path, store: Path) -> None:
        self.home, self.store = home, store

    @property
    def note(self) -> Path:
        return self.store / STORE_NOTE.key

    @property
    def id(self) -> str:
        """Return the id in the note."""
        first, line, *_ = self.note.read_text().splitlines()
        assert first == "---"
        return line.removeprefix("perdure-store: ")

    @property
    def environ(self) -> dict[str, str]:
        mine = {"HOME": str(self.home.parent), "PERDURE_HOME": str(self.home), "USER": "ana"}
        vault = {} if self.home in self.store.parents else {"MEMORY_VAULT_PATH": str(self.store)}
        return {**mine, **vault, "NO_COLOR": "1", "TZ": "UTC"}

    def run(self, *words: str) -> Result:
        return CliRunner(env=self.environ).invoke(cli, words)

    def json(self, *words: str) -> Any:  # noqa: ANN401 - whatever a command answers
        result = self.run(*words, "--json")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert lines, result.exception
        return lines[0] if len(lines) == 1 else lines

    def save(self, text: str = "Green tea, no milk.") -> Result:
        return self.run("save", text, "--category", "preference", "--slug", "tea")

    def doctor(self) -> dict[str, dict[str, str]]:
        return {each["name"]: each for each in self.json("doctor", "--all")["checks"]}

    @property
    def histories(self) -> list[str]:
        folder = self.home / "histories"
        return sorted(each.name for each in folder.iterdir()) if folder.exists() else []

    def contents(self) -> list[str]:
        """Return the log of the memory's text: how each version came to be."""
        key = "accounts/local/users/ana/memories/preference/tea/content.md"
        result = self.run("history", "log", key, "--json")
        return [json.loads(line)["origin"] for line in result.stdout.splitlines()]


@pytest.fixture(params=["device-local", "vault"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """Return a machine with a memory of which there are two versions."""
    home = tmp_path / "a" / "home"
    root = home / "memory" if request.param == "device-local" else tmp_path / "Notes"
    built = Machine(home, root)
    return with_versions(built)


@pytest.fixture
def vaulted(tmp_path: Path) -> Machine:
    return with_versions(Machine(tmp_path / "home", tmp_path / "Notes"))


def with_versions(machine: Machine) -> Machine:
    if machine.home not in machine.store.parents:
        machine.store.mkdir(parents=True)
    assert machine.save().exit_code == 0
    assert machine.save("Black tea, with milk.").exit_code == 0
    return machine


def answers(machine: Machine) -> list[object]:
    """Return what the memory answers about now and then, at both doors."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in machine.environ.items():
            patch.setenv(name, value)
        with perdure.open() as memory:
            uri = f"ctx://local/users/ana/memories/{TEA}"
            first, *_ = memory.history(uri)
            past = memory.at(first.position)
            python = [
                [(each.number, each.position, str(each.cid)) for each in memory.history(uri)],
                [(each.text, each.version.number) for each in memory.blame(uri)],
                [(hit.uri, hit.snippet) for hit in memory.recall("tea").hits],
                [(hit.uri, hit.snippet) for hit in past.recall("tea").hits],
            ]
    log, blame = (machine.run("history", *words).stdout for words in (("log",), ("blame", KEY)))
    return [*python, log, blame, machine.run("recall", "tea", "--at", str(first.position)).stdout]


KEY = "accounts/local/users/ana/memories/preference/tea/content.md"


# ---------------------------------------------------------------- the note
def test_the_first_save_writes_one_note_that_names_the_store(machine: Machine) -> None:
    text = machine.note.read_text()

    assert machine.histories == [machine.id]
    assert text.startswith(f"---\nperdure-store: {machine.id}\nperdure-layout: agfs\n---\n")
    assert machine.json("status")["storage"]["store"] == machine.id
    assert machine.json("status")["history"]["where"].endswith(machine.id)
    assert f"store {machine.id[:8]}\n" in machine.run("status").stdout


def test_the_note_is_no_text_of_the_memory(machine: Machine) -> None:
    before = machine.json("status")["history"]["position"]
    machine.note.write_text(machine.note.read_text() + "\nMy own remark on tea.\n")

    log = machine.run("history", "log").stdout

    assert "About" not in log
    assert machine.json("status")["history"]["position"] == before


def test_reading_writes_no_note(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", tmp_path / "Notes")
    machine.store.mkdir()
    (machine.store / "mine.md").write_text("I drink tea.")

    for words in (("recall", "tea"), ("status",), ("doctor",), ("history", "log")):
        machine.run(*words)

    assert [each.name for each in machine.store.iterdir()] == ["mine.md"]
    assert machine.doctor()["store"]["level"] == "note"


def test_init_writes_the_note(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", tmp_path / "Notes")
    machine.store.mkdir()

    begun = machine.json("init", "--vault", str(machine.store))

    assert begun["store"] == machine.id
    assert begun["history"].endswith(machine.id)


def test_a_deleted_note_is_written_again_by_a_write_and_not_by_a_read(machine: Machine) -> None:
    before, known = machine.note.read_text(), answers(machine)
    shutil.rmtree(machine.note.parent)

    assert answers(machine) == known
    assert not machine.note.exists()
    machine.save("Water.")

    assert machine.note.read_text() == before
    assert machine.contents() == ["save", "save", "save"]


def test_a_new_store_has_notes_and_one_that_has_nodes_keeps_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = with_versions(Machine(tmp_path / "old", tmp_path / "old" / "memory"))
    old.note.unlink()  # as before there were notes of stores
    monkeypatch.undo()
    new = with_versions(Machine(tmp_path / "new", tmp_path / "new" / "memory"))

    assert "perdure-layout: notes\nperdure-owner: ana\n" in new.note.read_text()
    assert (new.store / "Preferences/Tea.md").exists()
    assert old.save("Water.").exit_code == 0
    assert "perdure-layout: agfs\n" in old.note.read_text()
    assert old.contents() == [*new.contents(), "save"]
    assert (old.store / KEY).read_text().endswith("Water.")


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("My words.\n", "---\nperdure-store: {id}\nperdure-layout: agfs\n---\nMy words.\n"),
        (
            "---\ntags: [a]\n# mine\n---\nMy words.\n",
            "---\nperdure-store: {id}\nperdure-layout: agfs\ntags: [a]\n# mine\n---\nMy words.\n",
        ),
        (
            "---\ntags: x\nperdure-store: 7\n---\n",
            "---\nperdure-store: {id}\nperdure-layout: agfs\ntags: x\n---\n",
        ),
        ("---\nperdure-store: '{id}'\n---\n", "---\nperdure-store: '{id}'\n---\n"),
        ("---\r\nperdure-store: {id}\r\n---\r\n", "---\r\nperdure-store: {id}\r\n---\r\n"),
    ],
)
def test_what_a_person_writes_into_the_note_stays(
    vaulted: Machine, edited: str, expected: str
) -> None:
    name = vaulted.id
    vaulted.note.write_bytes(edited.format(id=name).encode())

    vaulted.save("Water.")

    assert vaulted.note.read_bytes().decode() == expected.format(id=name)
    assert vaulted.contents() == ["save", "save", "save"]


def unended(note: Path) -> None:
    note.write_text("---\nno: end\n")


def binary(note: Path) -> None:
    note.write_bytes(b"\xff\xfe")


def folder(note: Path) -> None:
    note.unlink()
    note.mkdir()


def link(note: Path) -> None:
    note.rename(note.with_name("else.md"))
    note.symlink_to("else.md")


def huge(note: Path) -> None:
    note.write_text("---\n" + "a: 1\n" * 1_000_000)


@pytest.mark.parametrize("spoil", [unended, binary, folder, link, huge])
def test_a_note_that_cannot_be_read_is_left_alone_and_reported(
    vaulted: Machine, spoil: Callable[[Path], None]
) -> None:
    spoil(vaulted.note)
    before = None if vaulted.note.is_dir() else vaulted.note.read_bytes()

    assert vaulted.save("Water.").exit_code == 0

    assert before == (None if vaulted.note.is_dir() else vaulted.note.read_bytes())
    check = vaulted.doctor()["store"]
    assert check["level"] == "warn"
    assert "About this folder.md" in check["message"]
    assert "Fix: " in check["message"]
    assert vaulted.contents() == ["save", "save", "save"]


# ---------------------------------------------------------------- moved
def test_a_moved_vault_keeps_its_history(vaulted: Machine, tmp_path: Path) -> None:
    known, moved = answers(vaulted), Machine(vaulted.home, tmp_path / "Elsewhere")
    vaulted.store.rename(moved.store)

    assert answers(moved) == known
    assert moved.json("doctor")["ok"]
    assert moved.histories == [moved.id]


def test_a_moved_home_keeps_everything(machine: Machine, tmp_path: Path) -> None:
    known, home = answers(machine), tmp_path / "b"
    inside = machine.home in machine.store.parents
    machine.home.parent.rename(home)
    moved = Machine(home / "home", home / "home" / "memory" if inside else machine.store)

    assert answers(moved) == known
    assert moved.json("doctor")["ok"]
    assert moved.histories == [moved.id]


def test_home_and_store_copied_to_another_machine_answer_as_before(
    machine: Machine, tmp_path: Path
) -> None:
    known, there = answers(machine), tmp_path / "there"
    shutil.copytree(machine.home, there / "home")
    inside = machine.home in machine.store.parents
    copied = Machine(there / "home", there / "home" / "memory" if inside else there / "Vault")
    if not inside:
        shutil.copytree(machine.store, copied.store)
    shutil.move(machine.home.parent, tmp_path / "gone")
    shutil.rmtree(machine.store, ignore_errors=True)  # the other machine does not have it

    assert answers(copied) == known
    assert copied.json("doctor")["ok"]
    assert copied.json("history", "verify")["ok"]
    assert copied.save("Water.").exit_code == 0
    assert copied.contents() == ["save", "save", "save"]


def test_a_copied_home_beside_the_first_is_no_conflict(tmp_path: Path) -> None:
    first = with_versions(Machine(tmp_path / "a", tmp_path / "a" / "memory"))
    copied = Machine(tmp_path / "b", tmp_path / "b" / "memory")
    shutil.copytree(first.home, copied.home)

    assert copied.save("Water.").exit_code == 0
    assert copied.contents() == ["save", "save", "save"]
    assert first.contents() == ["save", "save"]


def test_a_vault_that_is_reached_by_another_path_is_no_copy(
    vaulted: Machine, tmp_path: Path
) -> None:
    link = Machine(vaulted.home, tmp_path / "link")
    link.store.symlink_to(vaulted.store)

    assert link.save("Water.").exit_code == 0
    assert vaulted.contents() == ["save", "save", "save"]


# ---------------------------------------------------------------- two live paths
@pytest.fixture
def copied(vaulted: Machine, tmp_path: Path) -> Machine:
    """Return the copy of a vault, with the home of the first."""
    copy = Machine(vaulted.home, tmp_path / "Copy")
    shutil.copytree(vaulted.store, copy.store)
    return copy


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_owner_of_a_copied_vault_is_asked_and_nothing_is_changed(
    vaulted: Machine, copied: Machine
) -> None:
    before = files(copied.store), files(vaulted.store)

    for words in (("init",), ("save", "Water."), ("recall", "tea"), ("watch", "--once")):
        refused = copied.run(*words)
        if words[0] != "watch":
            assert isinstance(refused.exception, StoreIdentityError)
    message = str(copied.save().exception)
    checks = copied.doctor()

    assert f"perdure store adopt '{copied.store}'" in message
    assert f"perdure store separate '{copied.store}'" in message
    assert str(vaulted.store) in message
    assert (checks["store"]["level"], checks["store"]["message"]) == ("fail", message)
    assert copied.run("status").exit_code == 1
    assert copied.json("status")["storage"]["trouble"] == message
    assert (files(copied.store), files(vaulted.store)) == before
    assert vaulted.save("Water.").exit_code == 0
    assert vaulted.contents() == ["save", "save", "save"]


def test_adopt_makes_the_copy_the_store_and_the_first_the_copy(
    vaulted: Machine, copied: Machine
) -> None:
    settled = copied.json("store", "adopt", str(copied.store))

    assert settled == {
        "id": vaulted.id,
        "history": str(vaulted.home / "histories" / vaulted.id),
        "put_aside": None,
    }
    assert copied.save("Water.").exit_code == 0
    assert copied.contents() == ["save", "save", "save"]
    assert isinstance(vaulted.save().exception, StoreIdentityError)


def test_separate_gives_the_copy_an_id_and_a_history_that_goes_on_by_itself(
    vaulted: Machine, copied: Machine
) -> None:
    known = answers(vaulted)

    settled = copied.json("store", "separate", str(copied.store))

    assert settled["id"] == copied.id != vaulted.id
    assert answers(copied) == known
    assert copied.save("Water.").exit_code == 0
    assert copied.contents() == ["save", "save", "save"]
    assert vaulted.contents() == ["save", "save"]
    assert copied.json("history", "verify")["ok"]
    assert copied.json("doctor")["ok"] is vaulted.json("doctor")["ok"] is True


def test_power_that_fails_after_separate_wrote_the_note_loses_no_version(
    vaulted: Machine, copied: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("perdure.app.identity._write_record", fail)
        copied.run("store", "separate", str(copied.store))

    assert copied.id != vaulted.id
    assert copied.save("Water.").exit_code == 0
    assert copied.contents() == ["save", "save", "save"]
    assert vaulted.contents() == ["save", "save"]


def test_what_was_never_a_store_is_neither_adopted_nor_separated(
    vaulted: Machine, tmp_path: Path
) -> None:
    for verb in ("adopt", "separate"):
        refused = vaulted.run("store", verb, str(tmp_path / "typo"))
        assert isinstance(refused.exception, AbsentError)
    assert not (tmp_path / "typo").exists()


def test_a_moved_memory_that_lost_its_id_takes_over_the_history_of_where_it_was(
    vaulted: Machine, tmp_path: Path
) -> None:
    moved = Machine(vaulted.home, tmp_path / "Elsewhere")
    vaulted.store.rename(moved.store)
    shutil.rmtree(moved.note.parent)
    moved.save("Water.")
    begun = moved.id
    assert moved.contents() == ["external", "save"]

    settled = moved.json("store", "adopt", str(moved.store), "--from", str(vaulted.store))

    assert settled["put_aside"] == str(moved.home / "histories" / begun)
    assert moved.contents()[:2] == ["save", "save"]
    again = moved.run("store", "adopt", str(moved.store), "--from", str(vaulted.store))
    assert isinstance(again.exception, AbsentError)


# ---------------------------------------------------------------- not the store
@pytest.mark.parametrize("holds", ["", "lost+found"])
def test_a_mount_point_is_never_taken_for_the_store(
    vaulted: Machine, tmp_path: Path, holds: str
) -> None:
    known = answers(vaulted)
    vaulted.store.rename(tmp_path / "drive")
    (vaulted.store / holds).mkdir(parents=True)
    expected = StoreIdentityError if holds else StorageSelectionError  # empty, it is not opened

    for words in (("save", "Water."), ("recall", "tea"), ("init",), ("index", "rebuild")):
        assert isinstance(vaulted.run(*words).exception, expected), words

    assert [each.name for each in vaulted.store.iterdir()] == ([holds] if holds else [])
    assert not vaulted.json("doctor")["ok"]
    shutil.rmtree(vaulted.store)
    (tmp_path / "drive").rename(vaulted.store)
    assert answers(vaulted) == known


def test_nothing_is_redone_into_a_mount_point(vaulted: Machine, tmp_path: Path) -> None:
    """A commit whose file was never written is settled where the store is, and only there."""
    with open_recorded(vaulted.environ) as recorded:
        mark = find_history(vaulted.environ) / "settled"
        before = mark.read_bytes()
        recorded.write(Locator("a.md"), "one")
        recorded.write(Locator("b.md"), "two")
    mark.write_bytes(before)
    (vaulted.store / "b.md").unlink()
    log = find_history(vaulted.environ) / "segment-00000001"
    logged = log.read_bytes()
    vaulted.store.rename(tmp_path / "drive")
    (vaulted.store / "lost+found").mkdir(parents=True)

    with pytest.raises(StoreIdentityError):
        open_recorded(vaulted.environ)

    assert [each.name for each in vaulted.store.iterdir()] == ["lost+found"]
    assert (log.read_bytes(), mark.read_bytes()) == (logged, before)


def test_a_vault_that_is_unmounted_while_it_is_open_is_not_written(
    vaulted: Machine, tmp_path: Path
) -> None:
    with open_recorded(vaulted.environ) as recorded:
        vaulted.store.rename(tmp_path / "drive")
        vaulted.store.mkdir()
        with pytest.raises(StorageError):
            recorded.write(Locator("a.md"), "one", expect=ABSENT)

    assert not any(vaulted.store.iterdir())


def test_a_memory_folder_that_was_deleted_is_not_begun_again_unasked(tmp_path: Path) -> None:
    machine = with_versions(Machine(tmp_path / "home", tmp_path / "home" / "memory"))
    shutil.rmtree(machine.store)

    assert isinstance(machine.save("Water.").exception, StoreIdentityError)
    assert not machine.store.exists()
    machine.json("store", "adopt", str(machine.store))

    assert machine.run("history", "restore", KEY, "1", "--no-sweep", "--force").exit_code == 0
    assert (machine.store / KEY).exists()


def test_two_drives_at_one_mount_point_keep_a_history_each(
    vaulted: Machine, tmp_path: Path
) -> None:
    first, known = vaulted.id, answers(vaulted)
    other = with_versions(Machine(tmp_path / "other-home", tmp_path / "Other"))
    vaulted.store.rename(tmp_path / "first-drive")
    other.store.rename(vaulted.store)

    assert vaulted.save("Water.").exit_code == 0
    second = vaulted.id
    assert vaulted.contents() == ["external", "save"]
    vaulted.store.rename(tmp_path / "second-drive")
    (tmp_path / "first-drive").rename(vaulted.store)

    assert answers(vaulted) == known
    assert vaulted.histories == sorted([first, second])


def test_a_folder_without_an_id_where_a_store_was_begins_one_if_the_owner_says_so(
    vaulted: Machine, tmp_path: Path
) -> None:
    vaulted.store.rename(tmp_path / "drive")
    vaulted.store.mkdir()
    (vaulted.store / "mine.md").write_text("Mine.")
    assert isinstance(vaulted.save().exception, StoreIdentityError)

    vaulted.json("store", "separate", str(vaulted.store))

    assert vaulted.save("Water.").exit_code == 0
    assert vaulted.contents() == ["save"]


# ---------------------------------------------------------------- read-only
@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Machine]:
    """Return a machine with a vault that can only be read: for root, one that is mounted so."""
    machine = Machine(tmp_path / "home", tmp_path / "Notes")
    is_root = os.geteuid() == 0
    machine.store.mkdir()
    if is_root:
        mount("tmpfs", machine.store, "size=1m")
    other = Machine(tmp_path / "other-home", machine.store)  # whose memory it is
    assert other.save().exit_code == 0
    shutil.rmtree(other.note.parent)
    folders = [machine.store, *(each for each in machine.store.rglob("*") if each.is_dir())]
    for each in folders:
        each.chmod(0o555)
    if is_root:
        mount("tmpfs", machine.store, "", flags=1 | 32)  # read-only, remount
    yield machine
    if is_root:
        ctypes.CDLL(None).umount2(os.fsencode(machine.store), 2)
    else:
        for each in folders:
            each.chmod(0o755)


def test_a_read_only_vault_is_recalled_from_by_its_path(sealed: Machine) -> None:
    found = sealed.json("recall", "tea")

    assert "Green tea" in json.dumps(found)
    assert sealed.run("history", "log", KEY).exit_code == 0
    assert len(sealed.histories) == 1
    assert sealed.doctor()["store"]["level"] == "note"
    assert isinstance(sealed.save("Water.").exception, StorageError)


# ---------------------------------------------------------------- two machines, one vault
@pytest.mark.parametrize("winner", [0, 1])
@pytest.mark.parametrize("keeps_a_copy", [True, False])
def test_two_machines_that_named_one_vault_before_it_was_synced_agree(
    tmp_path: Path, winner: int, *, keeps_a_copy: bool
) -> None:
    ours, theirs = (
        with_versions(Machine(tmp_path / name / "home", tmp_path / name / "Notes")) for name in "ab"
    )
    texts = [ours.note.read_text(), theirs.note.read_text()]
    ids = [ours.id, theirs.id]
    for each in (ours, theirs):  # what a sync client does
        each.note.write_text(texts[winner])
        if keeps_a_copy:
            name = "About this folder (conflicted copy 2026-03-02).md"
            each.note.with_name(name).write_text(texts[1 - winner])

    for machine, own in zip((ours, theirs), ids, strict=True):
        assert machine.save("Water.").exit_code == 0
        assert machine.id == ids[winner]
        assert machine.histories == [own]
        assert machine.contents() == ["save", "save", "save"]
        assert machine.json("status")["storage"]["store"] == ids[winner]
    for machine in (ours, theirs):  # and by either id the history is found wherever it goes
        moved = Machine(machine.home, machine.store.with_name("Moved"))
        machine.store.rename(moved.store)
        assert moved.contents() == ["save", "save", "save"]


def test_a_merged_note_with_two_ids_means_the_same_on_every_machine(
    vaulted: Machine, tmp_path: Path
) -> None:
    other = with_versions(Machine(tmp_path / "b" / "home", tmp_path / "b" / "Notes"))
    ids = sorted([vaulted.id, other.id])
    merged = f"---\nperdure-store: {ids[1]}\nperdure-store: {ids[0]}\n---\nMerged.\n"

    for each in (vaulted, other):
        each.note.write_text(merged)
        assert each.save("Water.").exit_code == 0
        assert each.json("status")["storage"]["store"] == ids[0]
        assert each.contents() == ["save", "save", "save"]


def test_a_note_that_a_sync_client_brings_names_the_store_of_who_had_only_read(
    vaulted: Machine, tmp_path: Path
) -> None:
    other = Machine(tmp_path / "b" / "home", tmp_path / "b" / "Notes")
    shutil.copytree(vaulted.store, other.store, ignore=shutil.ignore_patterns("Perdure"))
    other.run("recall", "tea")
    other.note.parent.mkdir()
    other.note.write_text(vaulted.note.read_text())

    assert other.save("Water.").exit_code == 0

    assert other.id == vaulted.id
    assert len(other.histories) == 1
    assert other.contents() == ["external", "save"]


def test_an_id_of_another_store_that_was_written_by_hand_is_refused(
    vaulted: Machine, tmp_path: Path
) -> None:
    other = with_versions(Machine(vaulted.home, tmp_path / "Other"))
    other.note.write_text(other.note.read_text().replace(other.id, vaulted.id))

    assert isinstance(other.save().exception, StoreIdentityError)


# ---------------------------------------------------------------- at once, and power loss
_INIT = """
import sys
from perdure.surfaces.cli import main
sys.argv = ["perdure", "init"]
main()
"""


@pytest.mark.parametrize("homes", [1, 4])
def test_processes_that_begin_one_vault_at_once_give_it_one_id(tmp_path: Path, homes: int) -> None:
    machines = [Machine(tmp_path / f"home-{n % homes}", tmp_path / "Notes") for n in range(4)]
    machines[0].store.mkdir()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _INIT], env={**os.environ, **each.environ}, cwd=tmp_path
        )
        for each in machines
    ]
    assert [each.wait(60) for each in started] == [0, 0, 0, 0]

    for machine in machines:
        assert machine.save(f"Tea for {machine.home.name}.").exit_code == 0
        assert machine.json("status")["storage"]["store"] == machine.id
        assert len(machine.histories) == 1
        assert machine.json("doctor")["ok"]


@pytest.mark.parametrize("lost", ["stores.json", "histories"])
def test_power_that_fails_once_the_id_is_written_is_settled_by_the_next(
    vaulted: Machine, lost: str
) -> None:
    begun = Machine(vaulted.home, vaulted.store)
    if lost == "stores.json":
        (begun.home / lost).unlink()
        assert begun.contents() == ["save", "save"]
    else:
        shutil.rmtree(begun.home / lost)
        assert begun.save("Water.").exit_code == 0
        assert begun.contents() == ["external", "save"]
    assert begun.histories == [begun.id]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"a": 1}', '{"a": {"ids": [], "path": "", "root": ""}}']
)
def test_what_the_home_remembers_is_not_guessed_if_it_is_damaged(
    vaulted: Machine, content: str
) -> None:
    (vaulted.home / "stores.json").write_text(content)

    assert isinstance(vaulted.save().exception, DamageError)
    assert vaulted.doctor()["store"]["level"] == "fail"
    (vaulted.home / "stores.json").unlink()
    assert vaulted.contents() == ["save", "save"]
