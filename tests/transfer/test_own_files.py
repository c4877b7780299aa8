"""An import never takes the files of a memory for a source, whatever path leads to them."""

import os
import shutil
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context, open_context
from perdure.errors import UnreadableSourceError
from perdure.testing.importer import laid_out
from perdure.transfer.imports import Importer, ImportReport
from perdure.transfer.source import ImportSource
from tests.transfer.import_runs import OWNER, counted, position

NOTES = {"a.md": b"# A\n", "accounts/ledger.md": b"# Ledger\n", "sub/b.md": b"# B\n"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return laid_out(tmp_path / "vault", NOTES)


@pytest.fixture
def context(tmp_path: Path, vault: Path) -> Iterator[Context]:
    environ = {
        "HOME": str(tmp_path),
        "PERDURE_HOME": str(tmp_path / "home"),
        "USER": "ana",
        "MEMORY_VAULT_PATH": str(vault),
    }
    (tmp_path / "home").mkdir()  # layout notes has these notes where they lie
    (tmp_path / "home/config.toml").write_text('[storage]\nbackend = "vault"\nlayout = "agfs"\n')
    with open_context(environ, backend="vault") as context:
        yield context


def imported(context: Context, path: Path) -> ImportReport:
    memory = context.memory.for_caller(OWNER)
    return Importer(memory, context.nodes, context.relations).import_path(path, None)


def size_of(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


def test_a_vault_with_the_store_in_it_does_not_grow_by_being_imported_again(
    context: Context, vault: Path, tmp_path: Path
) -> None:
    assert counted(imported(context, vault)) == {"documents": {"new": 3}}
    files, entries = size_of(vault), position(context)
    segments = {n: s for n, s in size_of(tmp_path / "home").items() if "segment" in n}

    for _ in range(2):
        report = imported(context, vault)
        assert counted(report) == {"documents": {"same": 3}}
        assert [f"files of a memory were left out: {len(files) - 3}"] == [
            each.what for each in report.findings
        ]

    assert position(context) == entries
    assert size_of(vault) == files
    assert {n: s for n, s in size_of(tmp_path / "home").items() if "segment" in n} == segments


def test_the_store_is_known_by_another_path_too(
    context: Context, vault: Path, tmp_path: Path
) -> None:
    imported(context, vault)
    (tmp_path / "alias").symlink_to(vault)

    report = imported(context, tmp_path / "alias")

    assert counted(report) == {"documents": {"same": 3}}


@pytest.mark.parametrize("below", ["", "resources", "resources/vault/a.md/content.md"])
def test_a_source_inside_the_store_is_refused(context: Context, vault: Path, below: str) -> None:
    imported(context, vault)
    before = position(context)

    with pytest.raises(UnreadableSourceError, match=r"inside a memory.* Fix: name the folder"):
        imported(context, vault / "accounts" / "local" / below)
    with pytest.raises(UnreadableSourceError, match="inside a memory"):
        imported(context, context.home)

    assert position(context) == before


def test_the_home_inside_a_source_is_passed_over(
    context: Context, vault: Path, tmp_path: Path
) -> None:
    laid_out(tmp_path / "home", {"stray.md": b"# Stray\n"})

    report = imported(context, tmp_path)

    assert counted(report) == {"documents": {"new": 3}}


def test_a_copy_of_a_store_is_no_source_either(
    context: Context, vault: Path, tmp_path: Path
) -> None:
    imported(context, vault)
    copy = tmp_path / "copy"
    shutil.copytree(vault, copy)
    with zipfile.ZipFile(tmp_path / "copy.zip", "w") as archive:
        for path in sorted(copy.rglob("*")):
            archive.write(path, str(path.relative_to(copy)))

    for source in (ImportSource(copy), ImportSource(tmp_path / "copy.zip")):
        assert [entry.name for entry in source.entries] == sorted(NOTES)
        assert source.memory_files == 16  # the note that names the store, too
        source.close()


def test_links_in_a_circle_and_a_folder_that_is_there_twice_end(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "notes", {"sub/a.md": b"a"})
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "self").symlink_to("self")

    source = ImportSource(folder)

    assert [entry.name for entry in source.entries] == ["sub/a.md"]
    assert sorted(source.links) == ["self", "sub/up"]


def test_names_that_differ_by_case_or_unicode_form_go_in(context: Context, tmp_path: Path) -> None:
    composed, split = (unicodedata.normalize(form, "é.md") for form in ("NFC", "NFD"))
    files = {"N.md": b"1", "n.md": b"2", composed: b"3", split: b"4"}
    folder = laid_out(tmp_path / "notes", files)
    if len(os.listdir(folder)) < len(files):  # noqa: PTH208 - as plain as it can be said
        pytest.skip("this file system keeps no two such names")

    report = imported(context, folder)

    assert counted(report) == {"documents": {"new": 4}}
    assert counted(imported(context, folder)) == {"documents": {"same": 4}}
