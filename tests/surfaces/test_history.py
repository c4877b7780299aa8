"""`perdure history`, on the default and on a vault, with people who edit behind its back."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perdure.app import find_history, open_recorded
from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    ConcurrentModificationError,
    DamageError,
    FuturePositionError,
    NotTextError,
    PathIsDirectoryError,
    PathIsFileError,
    ProofError,
    RetentionError,
    StorageSelectionError,
    StorageUnavailableError,
)
from perdure.proofs.signing_keys import SigningKey
from perdure.storage import Locator
from perdure.surfaces.cli import cli

pytestmark = pytest.mark.usefixtures("agfs")

PLAN = "plan.md"
FIRST = "# Plan\n\nBuy bread.\n"
SECOND = "# Plan\n\nBuy bread.\nCall the bank.\n"


def use_home(home: Path, patch: pytest.MonkeyPatch) -> Path:
    """Become the user of an empty home; return where the default backend keeps its texts."""
    patch.setenv("HOME", str(home))
    for name in ("PERDURE_HOME", "MEMORY_VAULT_PATH", "NO_COLOR"):
        patch.delenv(name, raising=False)
    return home / ".perdure" / "memory"


@pytest.fixture(params=["device-local", "vault"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the texts are, in plain files."""
    texts = use_home(tmp_path / "home", monkeypatch)
    if request.param == "vault":
        texts = tmp_path / "Notes"
        monkeypatch.setenv("MEMORY_VAULT_PATH", str(texts))
    texts.mkdir(parents=True)
    return texts


@pytest.fixture
def plan(folder: Path) -> Path:
    """Return a text of two versions, both written by hand."""
    file = folder / PLAN
    for text in (FIRST, SECOND):
        file.write_text(text)
        history("log")
    return file


def history(*words: str, typed: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["history", *words], input=typed)


def stdout_of(*words: str) -> str:
    done = history(*words)
    assert (done.exception, done.exit_code) == (None, 0), done.stderr
    return done.stdout


def objects(*words: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in stdout_of(*words, "--json").splitlines()]


def refusal(*words: str) -> BaseException | None:
    done = history(*words)
    assert done.exit_code == 1
    assert done.stdout == ""
    return done.exception


def segment() -> Path:
    return find_history(os.environ) / "segment-00000001"


def damage(found: bytes) -> None:
    """Change one bit of what is stored."""
    data = bytearray(segment().read_bytes())
    data[data.index(found)] ^= 1
    segment().write_bytes(data)


class TestLog:
    def test_an_empty_memory_has_none_and_gets_none(self, folder: Path) -> None:
        done = history("log")

        assert (done.stdout, done.stderr) == ("", "nothing is recorded yet\n")
        assert not segment().exists()

    def test_an_edit_by_hand_is_recorded_before_anything_is_shown(self, plan: Path) -> None:
        (plan.parent / "new.md").write_text("new")
        plan.unlink()

        done = history("log")

        assert done.stderr == (
            "recorded 2 edits made outside Perdure: new.md (new), plan.md (removed)\n"
        )
        assert done.stdout.splitlines()[-2].endswith("external  plan.md  removed")
        assert done.stdout.splitlines()[-1].endswith("external  new.md")
        assert history("log").stderr == ""

    def test_it_does_not_look_if_it_must_not(self, plan: Path) -> None:
        before = stdout_of("log")
        plan.write_text("third")

        done = history("log", "--no-sweep")

        assert (done.stdout, done.stderr) == (before, "")

    def test_a_key_has_numbered_versions(self, plan: Path) -> None:
        head, *rows = stdout_of("log", PLAN).splitlines()

        assert head.split() == ["version", "time", "actor", "origin", "name", "reason"]
        assert [row.split()[0] for row in rows] == ["1", "2"]

    def test_it_says_who_did_what_and_why(self, folder: Path) -> None:
        recorded = open_recorded(os.environ).because(actor="ana", reason="two\nlines\x1b[31m")
        recorded.write(Locator(PLAN), FIRST)

        row = stdout_of("log").splitlines()[-1]

        assert row.split(maxsplit=2)[2] == r"ana    save    plan.md  two\nlines\x1b[31m"

    def test_json_is_an_object_per_line(self, plan: Path) -> None:
        first, second = objects("log", PLAN)

        assert first["version"] == 1
        assert second["derived_from"] == [first["cid"]]
        assert str(second["time"]).endswith("Z")
        assert {"actor": "", "origin": "external", "removed": False}.items() <= second.items()
        assert objects("log")[-1] == {k: v for k, v in second.items() if k != "version"}

    def test_the_limit_is_for_the_newest_and_after_a_number_for_the_next(self, plan: Path) -> None:
        (plan.parent / "z.md").write_text("z")
        first, second, third = (each["position"] for each in objects("log"))

        assert [each["position"] for each in objects("log", "--limit", "1")] == [third]
        after = ("log", "--after", str(first), "--limit", "1")
        assert [each["position"] for each in objects(*after)] == [second]
        assert [each["version"] for each in objects("log", PLAN, "--after", "1")] == [2]
        assert (
            history("log", "--after", str(third)).stderr == f"nothing is recorded after {third}\n"
        )

    @pytest.mark.parametrize(
        ("key", "advice"),
        [
            ("plam.md", "Fix: try 'plan.md'."),
            ("report.md", "Fix: try 'work/report.md'."),
            ("work", "Fix: it is a folder; name a text in it."),
            ("zzz", "Fix: run `perdure history log` to see which keys do."),
            ("image.png", "it is not UTF-8 text"),
        ],
    )
    def test_a_key_that_has_none_is_refused_with_advice(
        self, plan: Path, key: str, advice: str
    ) -> None:
        (plan.parent / "work").mkdir()
        (plan.parent / "work" / "report.md").write_text("r")
        (plan.parent / "image.png").write_bytes(b"\x89PNG\xff")

        found = refusal("log", key)

        assert isinstance(found, AbsentError)
        assert advice in str(found)

    def test_a_memory_that_does_not_last_has_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = use_home(tmp_path, monkeypatch).parent / "config.toml"
        config.parent.mkdir()
        config.write_text("[storage]\nbackend = 'memory'\n")

        assert isinstance(refusal("log"), StorageSelectionError)
        assert isinstance(refusal("verify"), StorageSelectionError)


class TestShow:
    @pytest.mark.parametrize("text", ["no end", "crlf\r\n", "", "café\n\n", "\x1b[31mred\n"])
    def test_a_text_comes_out_byte_for_byte(self, folder: Path, text: str) -> None:
        (folder / PLAN).write_bytes(text.encode())

        assert history("show", PLAN).stdout_bytes == text.encode()

    def test_a_version_is_named_by_number_content_or_moment(self, plan: Path) -> None:
        first, _ = objects("log", PLAN)

        for options in (
            ("--version", "1"),
            ("--cid", str(first["cid"])),
            ("--at", str(first["position"])),
            ("--at", str(first["time"])),
        ):
            assert stdout_of("show", PLAN, *options) == FIRST
        assert stdout_of("show", PLAN, "--at", "9999-12-31") == SECOND

    def test_a_time_that_was_shown_can_be_asked_for(self, plan: Path) -> None:
        shown = stdout_of("log", PLAN).splitlines()[-1].split()[1]

        assert stdout_of("show", PLAN, "--at", shown) == SECOND

    def test_before_the_first_version_there_is_nothing(self, plan: Path) -> None:
        assert isinstance(refusal("show", PLAN, "--at", "1999-01-01"), AbsentError)
        assert isinstance(refusal("show", PLAN, "--at", "999"), FuturePositionError)
        assert isinstance(refusal("show", PLAN, "--version", "3"), AbsentError)

    @pytest.mark.parametrize(
        "wrong",
        [
            ("--at", "yesterday"),
            ("--at", "-1"),
            ("--version", "0"),
            ("--cid", "bafk"),
            ("--version", "1", "--at", "1"),
        ],
    )
    def test_what_can_not_be_meant_is_wrong_usage(self, plan: Path, wrong: tuple[str, ...]) -> None:
        done = history("show", PLAN, *wrong)

        assert done.exit_code == 2
        assert done.stdout == ""

    def test_json_has_the_text_and_its_circumstances(self, plan: Path) -> None:
        (shown,) = objects("show", PLAN, "--version", "1")

        assert (shown["text"], shown["version"], shown["key"]) == (FIRST, 1, PLAN)


class TestDiff:
    def test_it_is_between_the_last_two(self, plan: Path) -> None:
        assert stdout_of("diff", PLAN) == (
            "--- plan.md\tversion 1\n+++ plan.md\tversion 2\n"
            "@@ -1,3 +1,4 @@\n # Plan\n \n Buy bread.\n+Call the bank.\n"
        )

    def test_it_is_between_those_that_are_named(self, plan: Path) -> None:
        plan.write_text("third\n")

        assert "+++ plan.md\tversion 3" in stdout_of("diff", PLAN, "1")
        assert "-Call the bank." in stdout_of("diff", PLAN, "2", "1")

    def test_a_single_version_is_all_new(self, folder: Path) -> None:
        (folder / PLAN).write_text(FIRST)

        assert stdout_of("diff", PLAN).startswith("--- /dev/null\n+++ plan.md\tversion 1\n@@ -0,0")

    def test_a_removal_takes_all_lines_away(self, plan: Path) -> None:
        plan.unlink()

        assert "-Call the bank." in stdout_of("diff", PLAN)

    def test_no_difference_is_reported(self, plan: Path) -> None:
        done = history("diff", PLAN, "1", "1")

        assert (done.stdout, done.stderr) == ("", "no difference\n")

    def test_json_names_both_versions(self, plan: Path) -> None:
        (found,) = objects("diff", PLAN)

        assert (found["from"], found["to"]) == (1, 2)
        assert str(found["diff"]).endswith("+Call the bank.\n")


class TestBlame:
    def test_each_line_has_its_version(self, plan: Path) -> None:
        _, *rows = stdout_of("blame", PLAN).splitlines()

        assert [row.split()[0] for row in rows] == ["1", "1", "1", "2"]
        assert rows[-1].endswith("-      external  Call the bank.")

    def test_json_is_an_object_per_line(self, plan: Path) -> None:
        lines = objects("blame", PLAN)

        assert "".join(str(line["text"]) for line in lines) == SECOND
        assert [line["line"] for line in lines] == [1, 2, 3, 4]

    def test_what_was_removed_has_no_lines(self, plan: Path) -> None:
        plan.unlink()

        assert "`perdure history restore plan.md 2`" in str(refusal("blame", PLAN))


class TestRestore:
    def test_the_text_is_written_as_a_new_version(self, plan: Path) -> None:
        assert stdout_of("restore", PLAN, "1", "--reason", "too much to do") == (
            "plan.md: wrote version 3, the text of version 1\n"
        )
        assert plan.read_text() == FIRST
        last = objects("log", PLAN)[-1]
        assert (last["origin"], last["reason"]) == ("restore", "too much to do")
        assert last["actor"] != ""

    def test_a_text_that_was_removed_comes_back(self, plan: Path) -> None:
        plan.unlink()

        (written,) = objects("restore", PLAN, "2")

        assert plan.read_text() == SECOND
        assert (written["version"], written["restored"], written["written"]) == (4, 2, True)
        assert written["reason"] == "as in version 2"

    def test_what_is_there_already_is_not_written_again(self, plan: Path) -> None:
        assert "already has that text" in stdout_of("restore", PLAN, "2")
        assert len(objects("log", PLAN)) == 2

    def test_an_edit_that_was_not_seen_is_not_overwritten(self, plan: Path) -> None:
        plan.write_text("by hand\n")

        found = refusal("restore", PLAN, "1", "--no-sweep")

        assert isinstance(found, ConcurrentModificationError)
        assert plan.read_text() == "by hand\n"

    def test_it_works_from_a_text_that_was_withdrawn(self, plan: Path) -> None:
        with open_recorded(os.environ).history as past:
            secret = past.versions(Locator(PLAN))[-1].cid
            assert secret is not None
            past.store.tombstone(secret, "a secret")

        stdout_of("restore", PLAN, "1")

        assert plan.read_text() == FIRST

    def test_an_edit_is_recorded_as_a_version(self, plan: Path) -> None:
        plan.write_text("by hand\n")
        stdout_of("restore", PLAN, "1")

        assert stdout_of("show", PLAN, "--version", "3") == "by hand\n"


class TestVerify:
    def test_it_says_that_all_is_well(self, plan: Path) -> None:
        assert stdout_of("verify").startswith("ok: 2 commits, 4 entries, 2 contents")
        (found,) = objects("verify")
        assert (found["ok"], found["opens"], found["faults"]) == (True, True, [])

    def test_an_empty_memory_is_well(self, folder: Path) -> None:
        assert stdout_of("verify") == "ok: nothing is recorded yet\n"

    def test_damaged_content_is_named_with_its_version(self, plan: Path) -> None:
        cid = objects("log", PLAN)[1]["cid"]
        damage(b"Call the bank.")

        done = history("verify")

        assert done.exit_code == 1
        assert f"damaged: {cid}\n" in done.stdout
        assert "    it is version 2 of plan.md\n" in done.stdout
        found = json.loads(history("verify", "--json").stdout)
        (fault,) = found["faults"]
        assert (found["ok"], fault["cid"]) == (False, cid)
        assert [(hurt["key"], hurt["version"]) for hurt in fault["versions"]] == [(PLAN, 2)]

    def test_it_works_where_the_history_does_not_open(self, plan: Path) -> None:
        cid = objects("log", PLAN)[1]["cid"]
        damage(b"plan.md")
        damage(b"Call the bank.")
        assert isinstance(refusal("log"), DamageError)

        done = history("verify")

        assert done.exit_code == 1
        assert "damaged: after entry 0\n" in done.stdout
        assert f"damaged: {cid}\n" in done.stdout
        assert "    it is version 2 of plan.md\n" in done.stdout
        assert "the history can't be opened: " in done.stdout

    def test_without_a_catalogue_it_still_names_the_content(self, plan: Path) -> None:
        damage(b"plan.md")
        damage(b"Call the bank.")
        (segment().parent / "catalogue.sqlite").write_bytes(b"no database")

        (_, fault) = json.loads(history("verify", "--json").stdout)["faults"]

        assert fault["cid"].startswith("bafkrei")
        assert fault["versions"] == []


class TestProve:
    def test_a_proof_needs_only_itself_and_the_key(
        self, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = stdout_of("prove", "--public-key").strip()
        proof = tmp_path / "proof.json"
        assert history("prove", PLAN, "--version", "1", "-o", str(proof)).exit_code == 0
        position = objects("log", PLAN)[0]["position"]
        use_home(tmp_path / "somebody", monkeypatch)

        (shown,) = objects("prove", "--check", str(proof), "--key", key)

        assert (shown["key"], shown["position"]) == (PLAN, position)
        assert "proven: 'plan.md' had" in stdout_of(
            "prove", "--check", str(proof), "--key", key, PLAN
        )
        assert not (tmp_path / "somebody").exists()

    def test_content_can_be_proved_by_its_cid(self, plan: Path, tmp_path: Path) -> None:
        cid = str(objects("log", PLAN)[0]["cid"])
        key = str(objects("prove", "--public-key")[0]["public_key"])
        (written,) = objects("prove", cid)
        proof = tmp_path / "proof.json"
        proof.write_text(str(written["proof"]))

        assert f"the content {cid} was stored" in stdout_of(
            "prove", "--check", str(proof), "--key", key
        )

    def test_it_can_be_proved_by_the_log_as_it_was(self, plan: Path) -> None:
        first, second = objects("log", PLAN)
        (then,) = objects("prove", PLAN, "--at", str(first["position"]))
        (now,) = objects("prove", PLAN)

        assert (then["cid"], now["cid"]) == (first["cid"], second["cid"])
        assert then["entries"] == first["commit"]

    def test_what_is_not_proved_fails(self, plan: Path, tmp_path: Path) -> None:
        key = stdout_of("prove", "--public-key").strip()
        proof = tmp_path / "proof.json"
        history("prove", PLAN, "-o", str(proof))
        check = ("prove", "--check", str(proof), "--key")
        other = str(SigningKey.generate("ben").public)

        assert "not 'other.md'" in str(refusal(*check, key, "other.md"))
        assert "not signed by 'ben'" in str(refusal(*check, other))
        assert isinstance(
            refusal("prove", "--check", str(tmp_path / "no"), "--key", key), AbsentError
        )
        proof.write_bytes(proof.read_bytes().replace(b'"position": ', b'"position": 1'))
        assert isinstance(refusal(*check, key), ProofError)
        proof.write_bytes(b"\xff")
        assert isinstance(refusal(*check, key), ProofError)

    def test_a_file_that_is_there_is_not_overwritten(self, plan: Path, tmp_path: Path) -> None:
        proof = tmp_path / "proof.json"
        proof.write_text("mine")

        assert isinstance(refusal("prove", PLAN, "-o", str(proof)), PathIsFileError)
        assert proof.read_text() == "mine"
        assert history("prove", PLAN, "-o", str(proof), "--force").exit_code == 0
        assert proof.read_text().startswith("{")
        assert proof.stat().st_mode & 0o777 == 0o600

    def test_what_can_be_no_file_is_refused_and_nothing_is_left(
        self, plan: Path, tmp_path: Path
    ) -> None:
        place = tmp_path / "proofs"
        place.mkdir()
        key = stdout_of("prove", "--public-key").strip()

        assert isinstance(refusal("prove", PLAN, "-o", ""), AbsentError)
        assert isinstance(refusal("prove", PLAN, "-o", str(place / "no" / "more")), AbsentError)
        given = ("prove", PLAN, "-o", str(place), "--force")
        assert isinstance(refusal(*given), PathIsDirectoryError)
        given = ("prove", "--check", str(place), "--key", key)
        assert isinstance(refusal(*given), PathIsDirectoryError)
        assert list(place.iterdir()) == []

    @pytest.mark.parametrize(
        "wrong",
        [
            (),
            ("--check", "proof.json"),
            (PLAN, "--key", "k"),
            ("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku", "--version", "1"),
        ],
    )
    def test_what_does_not_fit_together_is_wrong_usage(
        self, plan: Path, wrong: tuple[str, ...]
    ) -> None:
        assert history("prove", *wrong).exit_code == 2

    def test_an_unknown_key_is_refused(self, plan: Path) -> None:
        assert isinstance(refusal("prove", "zzz"), AbsentError)


class TestGc:
    @pytest.fixture
    def withdrawn(self, folder: Path) -> int:
        """Return since which position a text of 1,000 bytes is withdrawn."""
        recorded = open_recorded(os.environ)
        recorded.write(Locator(PLAN), "x" * 1000)
        (version,) = recorded.history.versions(Locator(PLAN))
        recorded.write(Locator(PLAN), FIRST)
        assert version.cid is not None
        state = recorded.history.store.tombstone(version.cid, "a secret")
        recorded.history.close()
        return state.position

    def test_it_retains_everything_by_default(self, withdrawn: int) -> None:
        assert stdout_of("gc") == "nothing to erase; every state since position 0 is retained\n"

    def test_a_dry_run_says_what_would_go_and_changes_nothing(self, withdrawn: int) -> None:
        before = segment().read_bytes()

        assert stdout_of("gc", "--before", str(withdrawn), "--dry-run").startswith(
            f"would erase 1 content, 1.0 kB; states before position {withdrawn} ("
        )
        assert segment().read_bytes() == before

    def test_what_is_erased_is_what_the_dry_run_listed(self, withdrawn: int) -> None:
        (planned,) = objects("gc", "--before", "9999-12-31", "--dry-run")
        (done,) = objects("gc", "--before", "9999-12-31", "--yes")

        assert planned == {**done, "done": False}
        assert (done["contents"], done["bytes"]) == (1, 1000)
        assert b"x" * 1000 not in segment().read_bytes()
        assert stdout_of("show", PLAN) == FIRST
        assert isinstance(refusal("show", PLAN, "--at", str(withdrawn - 1)), RetentionError)
        assert isinstance(refusal("gc", "--before", "1", "--yes"), RetentionError)

    def test_it_does_nothing_where_nobody_can_be_asked(self, withdrawn: int) -> None:
        before = segment().read_bytes()

        assert isinstance(refusal("gc", "--before", str(withdrawn)), AccessRefusedError)
        assert segment().read_bytes() == before


class TestMishaps:
    def test_a_note_that_is_not_text_any_more_is_reported_and_replaced_only_by_force(
        self, plan: Path
    ) -> None:
        plan.write_bytes(b"\xff\xfe")
        assert "no longer valid text, and left alone: plan.md" in history("log").stderr
        before = len(history("log", "--json").stdout.splitlines())

        refused = history("restore", PLAN, "1")
        assert isinstance(refused.exception, NotTextError)
        assert len(history("log", "--json").stdout.splitlines()) == before

        history("restore", PLAN, "1", "--force")
        assert plan.read_text() == FIRST

    def test_a_tree_that_is_empty_all_at_once_is_not_recorded(
        self, plan: Path, folder: Path
    ) -> None:
        (folder / "other.md").write_text("other")
        history("log")
        folder.rename(folder.with_name("real"))
        folder.mkdir()

        refused = history("log")

        assert isinstance(refused.exception, StorageUnavailableError)
        assert history("show", PLAN, "--no-sweep").stdout == SECOND

    def test_history_can_be_read_while_the_vault_is_gone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        use_home(tmp_path / "home", monkeypatch)
        vault = tmp_path / "Notes"
        vault.mkdir()
        monkeypatch.setenv("MEMORY_VAULT_PATH", str(vault))
        (vault / PLAN).write_text(FIRST)
        history("log")
        vault.rename(tmp_path / "gone")

        shown = history("show", PLAN, "--no-sweep")

        assert shown.stdout == FIRST
        assert "the texts can't be opened" in shown.stderr
        refused = history("restore", PLAN, "1", "--no-sweep")
        assert isinstance(refused.exception, StorageUnavailableError)
