"""Where the state of a project is stored, and that every reader and writer agrees on it."""

from pathlib import Path

import pytest

import perdure
from perdure.app.migration import change_layout
from perdure.app.open import open_recorded
from perdure.app.project_state import edit_state
from perdure.context.notefile import compose
from perdure.errors import (
    ConcurrentModificationError,
    InvalidValueError,
    LinkRefusedError,
    NotTextError,
    StateUnavailableError,
)
from perdure.harness import state_writer
from perdure.harness.project import Project, resolve_project
from perdure.harness.state_files import (
    Device,
    harness_state_dir,
    names_in,
    path_in,
    read_in,
    read_state_file,
)
from perdure.harness.state_writer import write_state_file
from perdure.storage import (
    ABSENT,
    Capabilities,
    Expectation,
    Locator,
    StorageBackend,
    content_hash,
)
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement
from tests.harness.conftest import Machine

DIFFERENT = "# Another plan\n"
TEXT = "# Plan\r\n- [ ] é\n"
FILE = "PLAN.md"


class Synced(MemoryBackend):
    """A backend of a stranger that is replicated; it is no vault."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(sync=True)


class Speechless(MemoryBackend):
    """A backend that can't tell what it promises."""

    @property
    def capabilities(self) -> Capabilities:
        raise NotImplementedError


class Unbuilt(MemoryBackend):
    @property
    def capabilities(self) -> Capabilities:
        raise StateUnavailableError("it is not there")


def project_of(root: Path, backend: StorageBackend | None) -> Project:
    return resolve_project(str(root), backend)


def device(machine: Machine, mode: str | None = None) -> Device:
    return Device(str(machine.home), mode)


class TestPlace:
    @requirement("001-state-synced-backend", "001-state-unsynced-backend-local")
    def test_a_synced_backend_keeps_it_and_any_other_leaves_it_in_the_project(
        self, machine: Machine
    ) -> None:
        opened = machine.opened()

        write_state_file(opened.project, opened.device, FILE, TEXT)

        assert (machine.state / FILE).read_bytes() == TEXT.encode()
        assert opened.place.shown == str(machine.state)
        assert opened.place.is_local is (machine.protocol != "vault")

    @requirement("001-state-without-backend-local")
    def test_without_a_backend_it_stays_in_the_project(self, machine: Machine) -> None:
        project = project_of(machine.root, None)

        write_state_file(project, device(machine), FILE, TEXT)

        assert (machine.root / ".harness" / FILE).read_bytes() == TEXT.encode()

    @requirement("001-state-missing-root-local")
    def test_without_a_locator_it_stays_in_the_project(self, machine: Machine) -> None:
        project = machine.project()._replace(project_locator=None)

        assert harness_state_dir(project, device(machine)).is_local

    @requirement("001-state-opt-out-local", "001-state-opt-out-first")
    def test_the_marker_local_wins_over_every_backend(self, machine: Machine) -> None:
        machine.mark(".project-mode", "local\n")

        opened = machine.opened()
        write_state_file(opened.project, opened.device, FILE, TEXT)

        assert opened.place.is_local
        assert harness_state_dir(machine.project(), device(machine)).is_local
        assert (machine.root / ".harness" / FILE).is_file()
        assert not (machine.vault / "projects").exists()

    @requirement("001-state-by-capability")
    def test_it_goes_by_what_a_backend_says_and_not_by_what_it_is(self, machine: Machine) -> None:
        class Unsynced(VaultBackend):
            @property
            def capabilities(self) -> Capabilities:
                return Capabilities()

        synced = project_of(machine.root, Synced())
        unsynced = project_of(machine.root, Unsynced(str(machine.vault), str(machine.home)))

        assert harness_state_dir(synced, device(machine)).locator == Locator(
            "projects/my-project/_harness"
        )
        assert harness_state_dir(unsynced, device(machine)).is_local

    @requirement("001-state-unanswered-capability-local")
    @pytest.mark.parametrize("silent", [Speechless, Unbuilt])
    def test_a_backend_that_can_not_say_gets_local_state(
        self, machine: Machine, silent: type[StorageBackend]
    ) -> None:
        assert harness_state_dir(project_of(machine.root, silent()), device(machine)).is_local

    @requirement("001-state-not-by-vault-path")
    def test_a_vault_path_alone_moves_no_state(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "device-local")
        for folder in (machine.home, machine.vault, machine.root):
            folder.mkdir()
        (machine.home / "config.toml").write_text(f'[storage.vault]\npath = "{machine.vault}"\n')

        assert machine.opened().place.is_local

    @requirement("001-state-degrades-by-rule")
    def test_a_machine_without_a_vault_has_local_state_by_the_same_rule(
        self, tmp_path: Path
    ) -> None:
        machine = Machine(tmp_path, "device-local")
        machine.root.mkdir()

        place = machine.opened().place

        assert place == harness_state_dir(project_of(machine.root, None), device(machine))
        assert place == harness_state_dir(machine.project(), device(machine))


class TestAgreement:
    @requirement("001-state-three-functions-agree")
    @pytest.mark.parametrize("mode", [None, "local", "backend"])
    def test_what_is_written_is_read_and_lies_where_it_is_expected(
        self, machine: Machine, mode: str | None
    ) -> None:
        project, ours = machine.project(), device(machine, mode)

        write_state_file(project, ours, FILE, TEXT)

        assert read_state_file(project, ours, FILE) == TEXT
        path = Path(path_in(harness_state_dir(project, ours), FILE))
        assert path.read_bytes() == TEXT.encode()
        assert list(machine.place.rglob(FILE)) == [path]

    def test_what_is_not_there_is_none(self, machine: Machine) -> None:
        opened = machine.opened()

        assert read_state_file(opened.project, opened.device, FILE) is None

    @pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x\0", "é.md", "x" * 151, ".."])
    def test_no_name_leads_anywhere_else(self, machine: Machine, name: str) -> None:
        opened = machine.opened()

        with pytest.raises(InvalidValueError, match="not valid for a state file"):
            read_state_file(opened.project, opened.device, name)
        with pytest.raises(InvalidValueError, match="not valid for a state file"):
            write_state_file(opened.project, opened.device, name, TEXT)
        with pytest.raises(InvalidValueError, match="not valid for a state file"):
            path_in(opened.place, name)

    def test_where_no_file_has_a_path_it_is_refused(self, machine: Machine) -> None:
        place = harness_state_dir(project_of(machine.root, Synced()), device(machine))

        with pytest.raises(StateUnavailableError, match="files have no path"):
            path_in(place, FILE)


class TestWriting:
    @requirement("001-state-writes-through-seam")
    def test_a_synced_backend_compares_and_replaces_by_itself(self, machine: Machine) -> None:
        opened = machine.opened()
        project, ours = opened.project, opened.device
        write_state_file(project, ours, FILE, TEXT, expect=ABSENT)

        with pytest.raises(ConcurrentModificationError):
            write_state_file(project, ours, FILE, DIFFERENT, expect=ABSENT)
        with pytest.raises(ConcurrentModificationError):
            write_state_file(project, ours, FILE, DIFFERENT, expect=content_hash(b"else"))
        assert read_state_file(project, ours, FILE) == TEXT

        write_state_file(project, ours, FILE, DIFFERENT, expect=content_hash(TEXT.encode()))
        assert read_state_file(project, ours, FILE) == DIFFERENT

    @requirement("001-state-never-raw-path", "001-state-writes-through-seam")
    def test_nothing_is_written_behind_the_back_of_a_synced_backend(self, machine: Machine) -> None:
        written: list[tuple[Locator, str]] = []

        class Watched(Synced):
            def write(
                self, locator: Locator, content: str, *, expect: Expectation = None
            ) -> Locator:
                written.append((locator, content))
                return locator

        before = machine.everything()
        write_state_file(project_of(machine.root, Watched()), device(machine), FILE, TEXT)

        assert written == [(Locator("projects/my-project/_harness/PLAN.md"), TEXT)]
        assert machine.everything() == before

    @requirement("001-state-local-atomic")
    def test_local_state_is_written_by_atomic_write(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = project_of(machine.root, MemoryBackend())
        write_state_file(project, device(machine), FILE, TEXT)

        def fails(*_: object) -> None:
            raise OSError(28, "no space")

        monkeypatch.setattr(state_writer, "atomic_write", fails)
        with pytest.raises(OSError, match="the disk or the quota is full"):
            write_state_file(project, device(machine), FILE, DIFFERENT)
        left = {path.name for path in (machine.root / ".harness").iterdir()}
        assert left == {FILE, "project.json"}
        assert read_state_file(project, device(machine), FILE) == TEXT

    @pytest.mark.parametrize("link", [".harness", ".harness/PLAN.md"])
    def test_a_link_that_a_repository_brings_is_not_followed(
        self, tmp_path: Path, link: str
    ) -> None:
        machine = Machine(tmp_path, "device-local")
        (tmp_path / "private").mkdir()
        (tmp_path / "private" / FILE).write_text("private")
        if link != ".harness":
            (machine.root / ".harness").mkdir(parents=True)
        machine.root.mkdir(exist_ok=True)
        target = tmp_path / "private" / (FILE if link != ".harness" else "")
        (machine.root / link).symlink_to(target)
        project = project_of(machine.root, None)

        with pytest.raises(LinkRefusedError):
            write_state_file(project, device(machine), FILE, TEXT)
        with pytest.raises(LinkRefusedError):
            read_state_file(project, device(machine), FILE)
        assert (tmp_path / "private" / FILE).read_text() == "private"

    def test_what_is_no_text_is_reported(self, machine: Machine) -> None:
        machine.mark(FILE, "").write_bytes(b"\xff")

        with pytest.raises(NotTextError, match="not UTF-8"):
            read_state_file(project_of(machine.root, None), device(machine), FILE)


class TestLayouts:
    @pytest.mark.parametrize("name", [FILE, "notes.json"])
    def test_what_another_program_writes_is_read_at_once(self, vaulted: Machine, name: str) -> None:
        opened = vaulted.opened()
        assert read_in(opened.place, name) is None
        file = Path(path_in(opened.place, name))
        file.parent.mkdir(parents=True)
        file.write_text(TEXT, encoding="utf-8", newline="")

        assert read_in(opened.place, name) == TEXT
        assert names_in(opened.place) == [name]
        with pytest.raises(ConcurrentModificationError):
            write_state_file(opened.project, opened.device, name, DIFFERENT, expect=ABSENT)
        write_state_file(opened.project, opened.device, name, DIFFERENT)
        assert file.read_text(encoding="utf-8") == DIFFERENT

    def test_what_lies_among_notes_is_still_read(self, vaulted: Machine) -> None:
        key = f"projects/my-project/_harness/{FILE}"
        file = vaulted.vault / "Perdure" / "System" / f"{FILE} (_harness).md"
        file.parent.mkdir(parents=True)
        file.write_text(compose({"": TEXT}, key, None), encoding="utf-8", newline="")
        opened = vaulted.opened()

        assert names_in(opened.place) == [FILE]
        assert read_in(opened.place, FILE) == TEXT
        write_state_file(opened.project, opened.device, FILE, DIFFERENT)
        assert read_in(vaulted.opened().place, FILE) == DIFFERENT
        file.unlink()
        assert names_in(opened.place) == []

    def test_it_is_no_memory_and_stays_where_it_is_in_each_layout(self, vaulted: Machine) -> None:
        with perdure.open(home=vaulted.home) as memory:
            memory.save("Prefers tabs.", category="preference", slug="tabs")
        with edit_state(vaulted.environ, str(vaulted.root)) as opened:
            write_state_file(opened.project, opened.device, FILE, TEXT)
            file = Path(path_in(opened.place, FILE))
        with perdure.open(home=vaulted.home) as memory:
            assert memory.edits() == ()
            assert not any("PLAN" in hit.uri for hit in memory.recall("plan").hits)

        for layout in ("agfs", "notes"):
            change_layout(vaulted.environ, layout)
            assert file.read_bytes() == TEXT.encode()
            assert read_in(vaulted.opened().place, FILE) == TEXT
            assert list(vaulted.vault.rglob("*PLAN*")) == [file]
        with open_recorded(vaulted.environ) as recorded:
            versions = recorded.history.versions(Locator("projects/my-project/_harness/PLAN.md"))
            assert [recorded.history.text(each) for each in versions] == [TEXT]
