"""A memory that goes to another backend and back is the same, killed or not; its source stays."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.app.migration import MigrationTarget, open_migrating, roll_back, switch_backend
from perdure.errors import (
    AbsentError,
    ArchiveError,
    ConcurrentModificationError,
    ConfigError,
    StorageFaultError,
)
from perdure.transfer.migrate import ArchiveImport, Migration, MigrationReport
from tests.engine.killing import killed
from tests.engine.remembering import of
from tests.transfer.machines import ROOT, Machine, answers, files_in, fill, versions

pytestmark = pytest.mark.usefixtures("agfs")


@pytest.fixture
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", "device-local")
    with machine.opened() as context:
        fill(context)
    return machine


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "Notes"
    folder.mkdir()
    return folder


def to(vault: Path) -> MigrationTarget:
    return MigrationTarget("vault", str(vault))


BACK = MigrationTarget("device-local")


def migrate(machine: Machine, target: MigrationTarget) -> MigrationReport:
    with open_migrating(machine.environ, target) as migrating:
        return migrating.apply()


def test_there_and_back_every_byte_and_version_is_the_same(machine: Machine, vault: Path) -> None:
    before = machine.files()
    with machine.opened() as context:
        expected = versions(context), answers(context)

    done = migrate(machine, to(vault))
    switch_backend(machine.environ, to(vault), done)

    assert files_in(vault) == before == machine.files()
    with machine.opened() as context:
        assert context.recorded.whereabouts == str(vault)
        assert (versions(context), answers(context)) == expected
        of(context, ROOT).save("Drinks tea.", category="preference", slug="coffee")
        later = versions(context)
    done = migrate(machine, BACK)
    switch_backend(machine.environ, BACK, done)
    assert machine.files() == files_in(vault) != before
    with machine.opened() as context:
        assert versions(context) == later
        assert of(context, ROOT).recall("tea").hits[0].snippet == "Drinks tea."


@pytest.mark.usefixtures("no_syncs")
def test_the_preview_lists_and_changes_nothing(machine: Machine, vault: Path) -> None:
    with open_migrating(machine.environ, to(vault)) as migrating:
        plan = migrating.plan()

    assert plan.texts == len(machine.files())
    assert plan.size == sum(map(len, machine.files().values()))
    assert (plan.known, plan.conflicts) == (0, ())
    assert files_in(vault) == {}
    migrate(machine, to(vault))
    with open_migrating(machine.environ, to(vault)) as migrating:
        assert migrating.plan().known == plan.position


@pytest.mark.usefixtures("no_syncs")
def test_twice_is_once_and_what_is_new_goes_on(machine: Machine, vault: Path) -> None:
    first = migrate(machine, to(vault))
    stats = {path: path.stat().st_mtime_ns for path in vault.rglob("*.md")}

    assert first.written == first.texts == len(files_in(vault))
    assert migrate(machine, to(vault)).written == 0
    with machine.opened() as context:
        of(context, ROOT).save("Drinks tea.", category="preference", slug="coffee")
    assert 0 < migrate(machine, to(vault)).written < 5
    assert files_in(vault) == machine.files()
    unchanged = [path for path, time in stats.items() if path.stat().st_mtime_ns == time]
    assert len(unchanged) > len(stats) / 2


@pytest.mark.usefixtures("no_syncs")
def test_other_notes_in_a_vault_stay(machine: Machine, vault: Path) -> None:
    (vault / "diary.md").write_text("Mine.")

    migrate(machine, to(vault))

    assert (vault / "diary.md").read_text() == "Mine."
    assert files_in(vault).keys() - {"diary.md"} == machine.files().keys()


@pytest.mark.usefixtures("no_syncs")
def test_another_memory_is_in_the_way(machine: Machine, vault: Path) -> None:
    other = {**machine.environ, "MEMORY_VAULT_PATH": str(vault)}
    theirs = Machine.__new__(Machine)
    theirs.home, theirs.environ, theirs.texts = machine.home, other, vault
    with theirs.opened() as context:
        of(context, ROOT).save("Another.", category="event", slug="another")
    before = files_in(vault)

    with open_migrating(machine.environ, to(vault)) as migrating:
        assert migrating.plan().conflicts == ("the memory here has a history of its own",)
        with pytest.raises(ArchiveError, match="history of its own"):
            migrating.apply()

    assert files_in(vault) == before


@pytest.mark.usefixtures("no_syncs")
def test_a_text_in_the_way_and_itself_are_conflicts(machine: Machine, vault: Path) -> None:
    file = vault / "accounts/local/users/ana/memories/preference/coffee/content.md"
    file.parent.mkdir(parents=True)
    file.write_text("Mine.")

    with open_migrating(machine.environ, to(vault)) as migrating:
        assert len(migrating.plan().conflicts) == 1
        with pytest.raises(ArchiveError, match="coffee"):
            migrating.apply()
    assert files_in(vault) == {str(file.relative_to(vault)): b"Mine."}
    with open_migrating(machine.environ, BACK) as migrating:
        assert migrating.plan().conflicts == ("it is the same memory",)
        with pytest.raises(ArchiveError):
            migrating.apply()


@pytest.mark.usefixtures("no_syncs")
def test_a_copy_that_went_on_by_itself_is_not_overwritten(machine: Machine, vault: Path) -> None:
    done = migrate(machine, to(vault))
    before = (machine.home / ".perdure" / "config.toml").exists()
    switch_backend(machine.environ, to(vault), done)
    with machine.opened() as context:
        of(context, ROOT).save("There.", category="event", slug="there")
    with pytest.raises(ConcurrentModificationError, match="leave the new entries behind"):
        roll_back(machine.environ)
    (machine.home / ".perdure" / "config.toml").unlink()
    with machine.opened() as context:
        of(context, ROOT).save("Here.", category="event", slug="here")

    with open_migrating(machine.environ, to(vault)) as migrating:
        assert "was changed since it was copied" in migrating.plan().conflicts[0]
        with pytest.raises(ArchiveError, match="was changed since it was copied"):
            migrating.apply()
    assert not before


@pytest.mark.usefixtures("no_syncs")
def test_a_difference_on_one_side_is_an_error(machine: Machine, vault: Path) -> None:
    migrate(machine, to(vault))
    (file,) = vault.rglob("coffee/content.md")
    file.write_text("changed")

    with (
        open_migrating(machine.environ, to(vault)) as migrating,
        pytest.raises(StorageFaultError, match="coffee"),
    ):
        migrating.verify()
    with machine.opened() as context:
        of(context, ROOT).save("Drinks tea.", category="preference", slug="tea")
    with (
        open_migrating(machine.environ, to(vault)) as migrating,
        pytest.raises(StorageFaultError, match="histories differ"),
    ):
        migrating.verify()


@pytest.mark.usefixtures("no_syncs")
def test_the_plan_of_an_erasure_lists_a_copy(machine: Machine, vault: Path) -> None:
    migrate(machine, to(vault))
    uri = "ctx://local/users/ana/memories/preference/indentation"

    with machine.opened() as context:
        plan = of(context, ROOT).forget(uri, erase=True, dry_run=True).plan
        assert plan is not None
        assert len(plan.elsewhere) == 1
        assert "of another memory has" in plan.elsewhere[0]
        of(context, ROOT).forget(uri, erase=True)
    assert any(b"Prefers tabs" in data for data in files_in(vault).values())
    migrate(machine, to(vault))

    every = {**files_in(vault), **files_in(machine.home)}
    assert not any(b"Prefers tabs" in data for data in every.values())


# ---------------------------------------------------------------- writers and kills
@pytest.mark.usefixtures("no_syncs")
def test_writes_during_a_migration_are_copied(
    machine: Machine, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = iter(range(3))
    run = ArchiveImport.run

    def interrupted(self: ArchiveImport, *args: object) -> object:
        report = run(self, *args)  # type: ignore[arg-type] # as given
        with machine.opened() as context:
            for number in saved:
                of(context, ROOT).save(f"Meanwhile {number}.", category="event", slug="while")
                break
        return report

    monkeypatch.setattr(ArchiveImport, "run", interrupted)
    migrate(machine, to(vault))

    assert files_in(vault) == machine.files()
    (file,) = vault.rglob("while/content.md")
    assert "Meanwhile 2." in file.read_text()


@pytest.mark.usefixtures("no_syncs")
def test_constant_writes_stop_a_migration(
    machine: Machine, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(100))
    copy = Migration._copy

    def interrupted(self: Migration, progress: None) -> int:
        written = copy(self, progress)
        with machine.opened() as context:
            of(context, ROOT).save(f"Again {next(numbers)}.", category="event", slug="while")
        return written

    monkeypatch.setattr(Migration, "_copy", interrupted)
    with pytest.raises(ConcurrentModificationError, match="changed while it is copied"):
        migrate(machine, to(vault))


@pytest.mark.search
@pytest.mark.timeout(300)
def test_killed_anywhere_doing_it_again_gives_the_same(machine: Machine, vault: Path) -> None:
    before, whole = machine.files(), vault.parent / "saved"
    shutil.copytree(machine.home, whole)
    calls = killed(lambda: migrate(machine, to(vault)), 0)
    with machine.opened() as context:
        expected = versions(context)
    for after in range(1, calls, max(1, calls // 12)):
        for folder in (machine.home, vault):
            shutil.rmtree(folder)
        shutil.copytree(whole, machine.home)
        vault.mkdir()
        killed(lambda: migrate(machine, to(vault)), after)
        assert machine.files() == before

        migrate(machine, to(vault))

        assert files_in(vault) == before == machine.files()
        assert not list(machine.home.rglob(".migrating-*"))
        with using(machine, vault) as there:
            assert versions(there) == expected


@contextmanager
def using(machine: Machine, vault: Path) -> Iterator[Context]:
    theirs = Machine.__new__(Machine)
    theirs.home, theirs.texts = machine.home, vault
    theirs.environ = {**machine.environ, "MEMORY_VAULT_PATH": str(vault)}
    with theirs.opened() as context:
        yield context


def test_two_who_migrate_at_once_come_one_after_the_other(machine: Machine, vault: Path) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            migrate(machine, to(vault))
        except TimeoutError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(errors) < 3
    assert files_in(vault) == machine.files()


# ---------------------------------------------------------------- the config
CONFIGS: dict[str, str | None] = {
    "nothing": None,
    "other tables": '# mine\n[embedding]\nprovider = "none"  # so\n',
    "another backend": '[storage]\nbackend = "device-local" # here\n\n[llm]\nprovider = "none"\n',
    "a vault": '[storage]\nbackend = "device-local"\n[storage.vault]\npath = "/elsewhere"\n',
}


@pytest.mark.usefixtures("no_syncs")
@pytest.mark.parametrize("what", CONFIGS)
def test_a_switch_changes_the_config_and_can_be_undone(
    what: str, machine: Machine, vault: Path
) -> None:
    path, before = machine.home / ".perdure" / "config.toml", CONFIGS[what]
    if before is not None:
        path.write_text(before)
    done = migrate(machine, to(vault))

    switch_backend(machine.environ, to(vault), done)

    with machine.opened() as context:
        assert context.recorded.whereabouts == str(vault)
    for line in (before or "").splitlines():
        assert line in path.read_text() or "backend" in line or "path" in line
    roll_back(machine.environ)
    assert (path.read_text() if path.exists() else None) == before
    with pytest.raises(AbsentError):
        roll_back(machine.environ)


@pytest.mark.usefixtures("no_syncs")
def test_a_config_that_can_not_be_changed_is_left_as_it_is(machine: Machine, vault: Path) -> None:
    path = machine.home / ".perdure" / "config.toml"
    done = migrate(machine, to(vault))
    path.write_text('storage = {backend = "device-local"}\n')

    with pytest.raises(ConfigError, match="Fix: set path = "):
        switch_backend(machine.environ, to(vault), done)

    assert path.read_text() == 'storage = {backend = "device-local"}\n'
