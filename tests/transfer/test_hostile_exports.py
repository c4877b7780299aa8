"""A damaged, interrupted or hostile export is refused with an error of ours, and leaves nothing."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from perdure.errors import ArchiveError, PerdureError, StorageUnavailableError
from tests import tiers
from tests.engine.killing import killed
from tests.engine.remembering import ANA, of
from tests.transfer.machines import Machine, files_in, fill, manifest, versions

pytestmark = pytest.mark.usefixtures("agfs")

NOTE = "notes/local/users/ana/memories/preference/coffee.md"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "export"
    machine = Machine(folder.parent / "here", "device-local")
    with machine.opened() as context:
        fill(context)
        context.memory.export(folder, everything=True)
    return folder


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / "export")


def say(folder: Path, **changed: object) -> None:
    (folder / "perdure.json").write_text(json.dumps({**manifest(folder), **changed}))


def _other_archive(folder: Path) -> None:
    """Put the archive of another memory in its place, with a digest that fits."""
    other = Machine(folder.parent / "other", "device-local")
    with other.opened() as context:
        of(context, ANA).save("Something else.", category="event", slug="else")
        context.memory.export(folder.parent / "other-export", everything=True)
    shutil.copy(folder.parent / "other-export" / "history.perdure", folder)
    say(folder, archive=manifest(folder.parent / "other-export")["archive"])


def _cut(folder: Path) -> None:
    archive = folder / "history.perdure"
    archive.write_bytes(archive.read_bytes()[:-100])


def _linked(folder: Path) -> None:
    (folder / NOTE).rename(folder.parent / "outside.md")
    (folder / NOTE).symlink_to(folder.parent / "outside.md")


def _freed(path: Path) -> Path:
    path.unlink()
    return path


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a note was edited": lambda folder: (folder / NOTE).write_text("edited"),
    "a note is missing": lambda folder: (folder / NOTE).unlink(),
    "a note is a link": _linked,
    "a note is a folder": lambda folder: shutil.move(folder / "archived", _freed(folder / NOTE)),
    "the archive is cut": _cut,
    "the archive is missing": lambda folder: (folder / "history.perdure").unlink(),
    "the archive is another": _other_archive,
    "there is no manifest": lambda folder: (folder / "perdure.json").rename(
        folder / ".unfinished.json"
    ),
    "it was interrupted": lambda folder: (folder / ".unfinished.json").write_text("[]"),
    "the manifest is no JSON": lambda folder: (folder / "perdure.json").write_text("{"),
    "the manifest is deep": lambda folder: (folder / "perdure.json").write_text("[" * 100_000),
    "the manifest is of another kind": lambda folder: say(folder, format="perdure export 2"),
    "the manifest says more": lambda folder: say(folder, more=1),
    "a path leads out": lambda folder: say(folder, files={"notes/../../x": "0" * 64}),
    "a path is absolute": lambda folder: say(folder, files={"/etc/passwd": "0" * 64}),
    "a path is of the history": lambda folder: say(folder, files={"history.perdure": "0" * 64}),
    "a digest is none": lambda folder: say(folder, files={NOTE: "x"}),
    "the position is another": lambda folder: say(folder, position=1),
    "the history is another": lambda folder: say(folder, history="0" * 32),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_not_whole_is_refused_and_leaves_nothing(
    what: str, folder: Path, tmp_path: Path
) -> None:
    DAMAGE[what](folder)
    there = Machine(tmp_path / "there", "device-local")

    with pytest.raises(ArchiveError, match="Fix"):
        there.import_folder(folder)

    assert there.is_empty


@pytest.mark.search
def test_whatever_is_changed_is_refused_or_changes_nothing(folder: Path, tmp_path: Path) -> None:
    there = Machine(tmp_path / "there", "device-local")
    dice = Random(tiers.seed(4))
    names = [name for name, data in files_in(folder).items() if data]
    for _ in range(tiers.searched(60)):
        path = folder / dice.choice(names)
        before = path.read_bytes()
        at = dice.randrange(len(before))
        path.write_bytes(
            before[:at] + bytes([before[at] ^ 1 << dice.randrange(8)]) + before[at + 1 :]
        )
        try:
            there.import_folder(folder)
        except PerdureError:
            assert not there.files()
        else:  # something that says nothing, such as a space in the manifest
            assert path.name == "perdure.json"
            shutil.rmtree(there.home)
            there.home.mkdir()
        path.write_bytes(before)


def test_a_memory_that_is_there_is_never_overwritten(folder: Path, tmp_path: Path) -> None:
    there = Machine(tmp_path / "there", "vault")
    with there.opened() as context:
        of(context, ANA).save("Mine.", category="event", slug="mine")
    before = there.files()

    with pytest.raises(ArchiveError, match="not empty"):
        there.import_folder(folder)

    assert there.files() == before
    with there.opened() as context:
        assert len(versions(context)) == 5


def test_a_text_in_the_way_is_reported_before_anything_is_done(
    folder: Path, tmp_path: Path
) -> None:
    there = Machine(tmp_path / "there", "vault")
    (there.texts / "diary.md").write_text("Mine, and in nobody's way.")
    file = there.texts / "accounts/local/users/ana/memories/preference/coffee/content.md"
    file.parent.mkdir(parents=True)
    file.write_text("Mine.")

    with pytest.raises(ArchiveError, match="coffee"):
        there.import_folder(folder)
    assert file.read_text() == "Mine."
    shutil.rmtree(there.texts / "accounts")
    there.import_folder(folder)

    assert (there.texts / "diary.md").read_text() == "Mine, and in nobody's way."
    with there.opened() as context:
        node = of(context, ANA).read("ctx://local/users/ana/memories/preference/coffee")
        assert node.content.startswith("Drinks coffee")


# ---------------------------------------------------------------- kills
@pytest.mark.search
@pytest.mark.timeout(300)
def test_killed_anywhere_while_it_arrives_doing_it_again_ends_it(
    folder: Path, tmp_path: Path
) -> None:
    whole = Machine(tmp_path / "whole", "device-local")
    calls = killed(lambda: whole.import_folder(folder), 0)
    with whole.opened() as context:
        expected = versions(context), whole.files()
    refused = 0
    for after in range(1, calls, max(1, calls // 12)):
        there = Machine(tmp_path / f"{after}", "device-local")
        killed(lambda: there.import_folder(folder), after)  # noqa: B023 - called at once
        try:
            with there.opened():
                pass
        except StorageUnavailableError:
            refused += 1
        if there.home.exists():
            there.import_folder(folder)
        with there.opened() as context:
            assert (versions(context), there.files()) == expected

    assert refused > 3


@pytest.mark.search
@pytest.mark.timeout(300)
def test_killed_anywhere_while_it_is_written_an_export_is_refused_until_it_is_ended(
    exported: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "here", "device-local")
    machine.import_folder(exported)
    target = tmp_path / "target"

    def export() -> None:
        with machine.opened() as context:
            of(context, ANA).export(target)

    calls = killed(export, 0)
    expected = {name: data for name, data in files_in(target).items() if name.startswith("notes")}
    for after in range(1, calls, max(1, calls // 12)):
        shutil.rmtree(target)
        killed(export, after)
        if target.exists() and not (target / "perdure.json").exists():
            there = Machine(tmp_path / f"{after}", "device-local")
            with pytest.raises(ArchiveError):
                there.import_folder(target)
        export()
        found = files_in(target)
        assert {name: data for name, data in found.items() if name.startswith("notes")} == expected
        assert not [name for name in found if name.startswith(".")]


def test_an_export_that_was_interrupted_leaves_no_file_that_is_not_of_it(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path / "here", "device-local")
    machine.import_folder(exported)
    target = tmp_path / "target"
    with machine.opened() as context:
        with monkeypatch.context() as patch:
            patch.setattr("perdure.transfer.export.ExportManifest.write", _fail)
            with pytest.raises(KeyboardInterrupt):
                context.memory.export(target, everything=True)
        assert (target / NOTE).exists()
        context.nodes.delete_node("ctx://local/users/ana/memories/preference/coffee", ANA)
        context.memory.export(target, everything=True)

    assert not (target / NOTE).exists()
    assert not (target / ".unfinished.json").exists()
    Machine(tmp_path / "there", "device-local").import_folder(target)


def _fail(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_folder_and_its_files_are_for_nobody_else(exported: Path) -> None:
    for path in exported.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0
    assert os.access(exported, os.R_OK)
