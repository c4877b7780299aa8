"""`perdure import`: what other programs remember, on the default and on a vault."""

import json
from pathlib import Path

import pytest

from perdure.errors import AbsentError, InvalidValueError, UnreadableSourceError
from perdure.testing.importer import laid_out
from tests.surfaces.nodes import lines, one, perdure, position, refusal, stdout_of
from tests.transfer import samples
from tests.transfer.import_runs import EVERYTHING
from tests.transfer.samples import as_json


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


def test_it_says_what_went_in_by_kind(memory: Path, source: Path) -> None:
    laid_out(source, EVERYTHING["mcp-memory"])

    assert lines(stdout_of("import", str(source))) == [
        ["mcp-memory", "new", "changed", "same", "refused"],
        ["entities", "2", "0", "0", "0"],
        ["relations", "1", "0", "0", "0"],
    ]
    assert lines(stdout_of("import", str(source)))[1:] == [
        ["entities", "0", "0", "2", "0"],
        ["relations", "0", "0", "1", "0"],
    ]


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_format_is_recognised(memory: Path, source: Path, name: str) -> None:
    laid_out(source, EVERYTHING[name])

    answer = one("import", str(source))

    assert answer["format"] == name
    assert answer["refused"] == 0


def test_a_dry_run_writes_nothing(memory: Path, source: Path) -> None:
    laid_out(source, EVERYTHING["chatgpt"])
    before = position()

    answer = one("import", str(source), "--dry-run")

    assert json.loads(json.dumps(answer["counts"]))["sessions"] == {
        "new": 2,
        "changed": 0,
        "same": 0,
        "refused": 0,
    }
    assert answer["dry_run"] is True
    assert position() == before
    done = perdure("import", str(source), "--dry-run")
    assert "nothing was written" in done.stderr


def test_what_is_refused_is_reported_and_sets_the_exit_code(memory: Path, source: Path) -> None:
    laid_out(source, {"a.json": as_json([samples.TEA, {"id": "\x1b[31m"}, samples.MOVED])})

    done = perdure("import", str(source), "--format", "mem0")

    assert done.exit_code == 1
    assert isinstance(done.exception, InvalidValueError)
    assert str(done.exception).startswith("1 item refused; the others were imported.")
    assert lines(done.stdout)[1] == ["memories", "2", "0", "0", "1"]
    assert (
        "refused: a.json, memory 2: it has no id, or no text in memory. "
        "Fix: correct it, or leave it out.\n" in done.stderr
    )
    again = perdure("import", str(source), "--format", "mem0", "--json")
    assert again.exit_code == 1
    (finding,) = json.loads(again.stdout)["findings"]
    assert (finding["where"], finding["refused"]) == ("memory 2", True)


def test_a_path_that_is_not_there_or_nothing_known_is_refused(memory: Path, source: Path) -> None:
    assert isinstance(refusal("import", str(source)), AbsentError)
    laid_out(source, {"a.txt": b"x"})
    assert isinstance(refusal("import", str(source)), UnreadableSourceError)


def test_a_user_imports_memories_of_their_own(memory: Path, source: Path) -> None:
    laid_out(source, {"a.json": as_json([samples.TEA, samples.DOG])})

    stdout_of("import", str(source), "--user", "bob", "--of", "bob")

    assert one("read", "entity/mem0-3", "--user", "bob")["content"] == "Has a dog called Rex"


def test_documents_whose_files_are_gone_are_archived_on_request(memory: Path, source: Path) -> None:
    laid_out(source, samples.NOTES)
    stdout_of("import", str(source), "--into", "handbook")
    (source / "guide.md").unlink()

    done = perdure("import", str(source), "--into", "handbook")
    assert "note: guide.md: its file is gone" in done.stderr
    assert done.exit_code == 0
    answer = stdout_of("import", str(source), "--into", "handbook", "--archive-gone")
    assert "1 document without a file archived\n" in answer
    assert "guide.md" not in stdout_of("tree", "resources")


def test_nothing_to_import_is_reported(memory: Path, source: Path) -> None:
    laid_out(source, {"a.txt": b"x"})

    assert (
        stdout_of("import", str(source), "--format", "markdown") == "there is nothing to import\n"
    )


def test_it_says_how_much_was_masked(memory: Path, source: Path) -> None:
    laid_out(source, samples.NAMED["chatgpt"])

    done = perdure("import", str(source))

    assert done.stderr == (
        "1 secret was masked\nto learn from 1 session: import again with --learn\n"
    )
    assert one("import", str(source))["masked"] == 0
