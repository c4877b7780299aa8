"""A vault full of bad input, and a disk that misbehaves: nothing is lost, nothing rewritten."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import perdure
from perdure.errors import PerdureError
from perdure.surfaces.cli import cli
from tests.storage.test_folder_faults import mount
from tests.tiers import searched
from tests.vault.hostile import NOT_TEXT, HostileVault

NOTE = "accounts/local/resources/%50lants/1/%4eote%201/content.md"
START = b'{"session_id": "s", "cwd": "/", "hook_event_name": "SessionStart", "source": "startup"}'


class Home:
    """A home whose memory is a vault with notes in place."""

    def __init__(self, folder: Path, vault: Path) -> None:
        self.vault = vault
        self.environ = {"HOME": str(folder), "PERDURE_HOME": str(folder / ".perdure")}
        self.environ |= {"USER": "ana", "NO_COLOR": "1", "MEMORY_VAULT_PATH": ""}
        folder.mkdir(exist_ok=True)

    def run(self, *words: str, typed: bytes | None = None) -> Result:
        """Run a command: it ends well, or refuses and names the fix."""
        done = CliRunner(env=self.environ).invoke(cli, words, input=typed)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            assert isinstance(done.exception, PerdureError), (words, done.exc_info)
            assert "Fix:" in str(done.exception), (words, done.exception)
        return done

    def output(self, *words: str) -> str:
        done = self.run(*words)
        assert done.exit_code == 0, (words, done.exception, done.stderr)
        return done.stdout

    def found(self, word: str) -> int:
        """Return how many hits have a word; the answer claims to be current."""
        answer = json.loads(self.output("recall", word, "--json"))
        assert answer["index_lag"] == 0, answer
        return sum(word in hit["snippet"] for hit in answer["hits"])

    def position(self) -> int:
        *_, last = self.output("history", "log", "--json").splitlines()
        return int(json.loads(last)["position"])

    def removed(self) -> list[str]:
        """Return what history has as deleted by others."""
        lines = map(json.loads, self.output("history", "log", "--json").splitlines())
        return [e["key"] for e in lines if e["removed"] and e["origin"] == "external"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileVault:
    folder = tmp_path_factory.mktemp("hostile")
    is_whole = searched(10_000) == 10_000
    return HostileVault(folder / "vault", 10_000 if is_whole else 300, searched(50))


@pytest.fixture(scope="module")
def home(hostile: HostileVault) -> Home:
    created = Home(hostile.folder.parent / "home", hostile.folder)
    created.output("init", "--vault", str(hostile.folder))
    return created


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("recall", "quillwort0"),
    ("list", "resources"),
    ("tree",),
    ("lint",),
    ("doctor",),
    ("doctor", "--all"),
    ("status",),
    ("history", "log"),
    ("history", "log", NOTE),
    ("history", "log", NOTE, "--git"),
    ("history", "blame", NOTE),
    ("history", "restore", NOTE, "1"),
    ("recall", "quillwort0", "--at", "2030-01-01"),
    ("hook", "session-start", "--agent", "claude-code"),
    ("conflicts", "list"),
    ("repair",),
    ("briefing",),
    ("export", "FOLDER"),
)


def test_every_command_answers_in_time_and_rewrites_nothing(
    hostile: HostileVault, home: Home, tmp_path: Path
) -> None:
    before = hostile.snapshot()
    for words in COMMANDS:
        given = [str(tmp_path / "out") if word == "FOLDER" else word for word in words]
        began = time.process_time()

        home.run(*given, typed=START)

        assert time.process_time() - began < 10 + 0.02 * len(hostile.words), words
        assert hostile.snapshot() == before, words


def test_what_can_be_read_is_found_and_nothing_outside(hostile: HostileVault, home: Home) -> None:
    step = max(1, len(hostile.words) // 25)
    missing = [word for word in hostile.words[::step] if not home.found(word)]

    assert missing == []
    assert home.found("ragwort") == 0


def test_a_vault_at_rest_gets_no_new_versions(home: Home) -> None:
    home.output("recall", "quillwort0")

    before = home.position()

    assert home.position() == before
    assert home.removed() == []


def test_what_is_not_memory_is_counted(home: Home, hostile: HostileVault) -> None:
    others = json.loads(home.output("init", "--vault", str(hostile.folder), "--json"))["others"]
    doctor = home.output("doctor")

    assert others["not UTF-8"] == NOT_TEXT
    assert others["too long"] == 1
    assert others["link"] == 8
    assert f"{NOT_TEXT} not UTF-8" in doctor
    assert "names that can't be used" in doctor


def test_broken_frontmatter_is_a_finding_with_its_file(home: Home) -> None:
    found = home.run("lint").stdout

    assert "Broken/Frontmatter 0.md:5: warning frontmatter-unreadable" in found
    assert "Broken/No end.md:1: warning frontmatter-unreadable" in found
    assert "Latin.md: error node-unreadable" in found
    assert "Perdure/Facts/Pipe.md: warning file-link" in found
    assert "its path has more than 1024 bytes" in found


def test_names_that_differ_by_case_are_notes_of_their_own(home: Home) -> None:
    listed = home.output("list", "resources")

    if (
        len(
            {
                name
                for name in (each.name for each in home.vault.iterdir())
                if name.lower() == "case.md"
            }
        )
        < 3
    ):
        pytest.skip("this disk ignores case")
    assert {"resources/Case", "resources/case", "resources/CASE"} <= set(listed.split())


# ---------------------------------------------------------------- a disk that misbehaves
@pytest.fixture
def quiet(tmp_path: Path) -> Home:
    """Return a home with twenty good notes, all of them indexed."""
    vault = tmp_path / "vault"
    vault.mkdir()
    return _with_notes(tmp_path, vault)


def _with_notes(tmp_path: Path, vault: Path) -> Home:
    (vault / "Sub").mkdir()
    for number in range(20):
        folder = vault / "Sub" if number % 2 else vault
        (folder / f"Note {number}.md").write_text(f"# Note\n\nIt has fernword{number}.\n")
    created = Home(tmp_path / "home", vault)
    created.output("init", "--vault", str(vault))
    created.output("save", "I like mossword tea.")
    assert [created.found(f"fernword{number}") for number in range(20)] == [1] * 20
    return created


def _swap(one: Path, other: Path) -> None:
    beside = one.with_name("beside")
    one.rename(beside)
    other.rename(one)
    beside.rename(other)


def test_a_vault_replaced_by_an_empty_folder_loses_nothing(quiet: Home, tmp_path: Path) -> None:
    before, empty = quiet.position(), tmp_path / "empty"
    empty.mkdir()
    _swap(quiet.vault, empty)

    for command in ("recall fernword3", "save another", "lint", "repair --apply", "list"):
        assert quiet.run(*command.split()).exit_code != 0, command
    for command in ("doctor", "status", "history log"):
        quiet.run(*command.split())
    assert list(quiet.vault.iterdir()) == []
    _swap(quiet.vault, empty)

    assert quiet.position() == before
    assert (quiet.found("fernword3"), quiet.found("mossword"), quiet.removed()) == (1, 1, [])


@pytest.mark.parametrize("swaps", [False, True])
def test_a_vault_that_goes_away_while_it_is_open_is_not_deleted(
    quiet: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, swaps: bool
) -> None:
    monkeypatch.setenv("USER", "ana")
    away = tmp_path / "away"
    with perdure.open(home=tmp_path / "home" / ".perdure") as memory:
        assert memory.recall("fernword3").hits
        quiet.vault.rename(away)
        if swaps:
            quiet.vault.mkdir()
        for verb in (
            lambda: memory.recall("fernword3"),
            lambda: memory.save("Another thing.", category="preference"),
            memory.list,
        ):
            _refused_or_behind(verb)
    if swaps:
        assert list(quiet.vault.iterdir()) == []
        quiet.vault.rmdir()
    away.rename(quiet.vault)

    assert (quiet.found("fernword3"), quiet.removed()) == (1, [])


def _refused_or_behind(verb: Callable[[], object]) -> None:
    try:
        found = verb()
    except PerdureError as error:
        assert "Fix:" in str(error)  # noqa: PT017 - or it answers, and says that it may be behind
    else:
        assert isinstance(found, perdure.RecallResult)
        assert found.index_lag
        assert found.hints


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("to mount takes root")
    vault = tmp_path / "vault"
    vault.mkdir()
    mount("tmpfs", vault, "size=4m")
    yield vault
    ctypes.CDLL(None).umount2(os.fsencode(vault), 2)


def test_an_unmounted_vault_is_refused_and_comes_back_whole(mounted: Path, tmp_path: Path) -> None:
    home = _with_notes(tmp_path, mounted)
    before, aside = home.position(), tmp_path / "aside"
    shutil.copytree(mounted, aside)
    ctypes.CDLL(None).umount2(os.fsencode(mounted), 2)

    assert home.run("recall", "fernword3").exit_code != 0
    assert home.run("save", "Another thing.").exit_code != 0
    assert list(mounted.iterdir()) == []
    mount("tmpfs", mounted, "size=4m")
    shutil.copytree(aside, mounted, dirs_exist_ok=True)
    home.run("store", "adopt", str(mounted))  # the folder of another mount is another folder

    assert (home.position(), home.removed()) == (before, [])
    assert home.found("fernword3") == 1


def test_a_vault_that_becomes_read_only_is_recalled_from(mounted: Path, tmp_path: Path) -> None:
    home = _with_notes(tmp_path, mounted)
    (mounted / "Late.md").write_text("It has lateword.\n")
    mount("tmpfs", mounted, "", flags=1 | 32)  # read-only, remount

    assert home.found("lateword") == 1
    assert home.run("save", "Another thing.").exit_code != 0
    for words in (("list",), ("status",), ("lint",), ("history", "log")):
        home.output(*words)
    assert "can't be written" in home.run("doctor").stdout


def test_a_sync_client_that_rewrites_every_time_changes_nothing(quiet: Home) -> None:
    before = quiet.position()
    for number, path in enumerate(sorted(quiet.vault.rglob("*.md"))):
        os.utime(path, (number, number))

    assert quiet.found("fernword3") == 1
    assert (quiet.position(), quiet.removed()) == (before, [])


def _drop_privileges() -> None:
    """Give up what lets root read all files; a program that starts then has no more of it."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_folder_that_may_not_be_read_is_a_finding_and_no_deletion(quiet: Home) -> None:
    before = quiet.position()
    (quiet.vault / "Sub").chmod(0)

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from perdure.surfaces.start import main; main()", *words],
            env={**os.environ, **quiet.environ},
            cwd=quiet.vault.parent,
            preexec_fn=_drop_privileges,
            capture_output=True,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr
        return done.stdout.decode()

    try:
        assert "fernword2" in run("recall", "fernword2")
        assert "may not be read" in run("lint")
        assert "may not read" in run("doctor")
        for words in (("list",), ("tree",), ("status",), ("conflicts", "list"), ("repair",)):
            run(*words)
        assert "Sub" in run("recall", "fernword3", "--json")  # named in a hint
        assert "external" in run("history", "log")
        run("repair", "--apply")
    finally:
        (quiet.vault / "Sub").chmod(0o755)
    assert (quiet.position(), quiet.removed()) == (before, [])
    assert quiet.found("fernword3") == 1
