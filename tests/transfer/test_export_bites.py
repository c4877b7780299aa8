"""Each promise of exports and migrations that is broken is noticed by a test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.artifacts.entry import Bind, LogEntry
from perdure.errors import PerdureError
from perdure.storage import reconciliation
from perdure.transfer import export, migrate
from perdure.transfer.export import ExportScope, read_manifest
from perdure.transfer.migrate import ArchiveImport, Migration
from tests.bites import FAILED
from tests.engine.remembering import ANA
from tests.transfer import test_export, test_hostile_exports, test_migrate
from tests.transfer.machines import Machine, fill

pytestmark = [pytest.mark.search, pytest.mark.usefixtures("agfs")]


def _everything(_self: ExportScope, _logged: LogEntry, bind: Bind) -> Bind:
    return bind


def _nothing(*_args: object, **_kwargs: object) -> None:
    return None


def _no_conflict(*_args: object) -> list[str]:
    return []


def _reach(tmp_path: Path) -> None:
    test_export.test_nothing_is_exported_that_is_out_of_reach(
        _machine(tmp_path), tmp_path / "export", ANA, {"ana"}
    )


def _copies(tmp_path: Path) -> None:
    test_export.test_a_copy_goes_on_with_a_later_export(
        _machine(tmp_path), tmp_path / "export", tmp_path
    )


def _edits(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    test_export.test_an_edited_file_of_an_export_is_not_overwritten(_machine(tmp_path), folder)


def _interrupted(tmp_path: Path) -> None:
    machine, folder = _machine(tmp_path), tmp_path / "export"
    with machine.opened() as context:
        context.memory.export(folder, everything=True)
    test_hostile_exports.test_killed_anywhere_while_it_arrives_doing_it_again_ends_it(
        folder, tmp_path / "killed"
    )


def _damaged(tmp_path: Path) -> None:
    machine, folder = _machine(tmp_path), tmp_path / "export"
    with machine.opened() as context:
        context.memory.export(folder, everything=True)
    test_hostile_exports.test_what_is_not_whole_is_refused_and_leaves_nothing(
        "a note was edited", folder, tmp_path
    )


def _migrating(test: Callable[[Machine, Path], None]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        (tmp_path / "Notes").mkdir()
        test(_machine(tmp_path), tmp_path / "Notes")

    return run


def _machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", "device-local")
    with machine.opened() as context:
        fill(context)
    return machine


BITES: dict[str, tuple[object, str, object, Callable[[Path], None]]] = {
    "everybody's versions are exported": (ExportScope, "select", _everything, _reach),
    "empty folders stay": (reconciliation, "remove_empty_directories", _nothing, _copies),
    "what was derived stays after an erasure": (
        ArchiveImport,
        "_remove_derived",
        _nothing,
        _copies,
    ),
    "edits are overwritten": (export, "_refuse_edited", _nothing, _edits),
    "no note is left": (migrate, "write_whole", _nothing, _interrupted),
    "damage is passed over": (migrate, "verify_export", read_manifest, _damaged),
    "another memory is overwritten": (
        Migration,
        "_conflicts",
        _no_conflict,
        _migrating(test_migrate.test_a_text_in_the_way_and_itself_are_conflicts),
    ),
    "texts are not compared": (
        migrate,
        "verify_texts",
        lambda *_: 0,
        _migrating(test_migrate.test_a_difference_on_one_side_is_an_error),
    ),
}


@pytest.mark.parametrize("what", BITES)
def test_a_promise_that_is_broken_is_noticed(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, name, broken, test = BITES[what]
    monkeypatch.setattr(target, name, broken)

    with pytest.raises((*_failed(), PerdureError)):
        test(tmp_path)


def _failed() -> tuple[type[BaseException], ...]:
    return FAILED if isinstance(FAILED, tuple) else (FAILED,)


def test_who_does_not_look_for_writers_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "Notes"
    vault.mkdir()
    monkeypatch.setattr(Migration, "_changed", lambda *_: "")

    with pytest.raises((*_failed(), PerdureError)):
        test_migrate.test_writes_during_a_migration_are_copied(
            _machine(tmp_path), vault, monkeypatch
        )


@pytest.mark.parametrize("what", BITES)
def test_nothing_is_noticed_where_nothing_is_broken(what: str, tmp_path: Path) -> None:
    BITES[what][-1](tmp_path)
