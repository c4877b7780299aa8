"""`perdure forget`: archives by default, erases on request, and reports exactly what it did."""

import json
from pathlib import Path

import pytest

from perdure.errors import (
    AccessDeniedError,
    AccessRefusedError,
    NodeNotFoundError,
    PathIsFileError,
    ProofError,
)
from tests.surfaces.nodes import TABS, one, perdure, refusal, stdout_of

pytestmark = pytest.mark.usefixtures("agfs")

WORD = "marzipan"


@pytest.fixture
def odd(memory: Path) -> Path:
    """Write something that is to go, in two versions; return the folder of all texts."""
    stdout_of("write", "preference/indentation", "Prefers tabs.")
    stdout_of("write", "preference/odd", f"Hides the {WORD} from everybody.")
    stdout_of("write", "preference/odd", f"Hides the {WORD} from nobody.", "--replace")
    return memory


def left(tmp_path: Path) -> list[Path]:
    files = (path for path in tmp_path.rglob("*") if path.is_file())
    return [path for path in files if WORD.encode() in path.read_bytes()]


def test_it_is_archived_and_the_undo_is_shown(odd: Path) -> None:
    done = perdure("forget", "preference/odd")

    assert done.stdout == "ctx://local/users/ana/memories/preference/odd is archived\n"
    assert "perdure unarchive" in done.stderr
    assert "was already archived" in stdout_of("forget", "preference/odd")
    stdout_of("unarchive", "preference/odd")
    assert WORD in stdout_of("read", "preference/odd")
    assert odd.is_dir()


SALARY = "My salary is 900000 kroner."


@pytest.fixture
def printed(memory: Path) -> Path:
    """Keep a message of a session that no memory was made of."""
    message = json.dumps({"role": "user", "content": f"Hello. {SALARY}"})
    perdure("commit", "-", "--session", "s", "--no-extract", typed=message.encode())
    return memory


def test_an_id_that_is_forgotten_twice_was_archived_before(memory: Path) -> None:
    stdout_of("remember", f"Never mention the {WORD}.", "--kind", "rule")
    id_ = stdout_of("briefing").rpartition("~")[2].split()[0]
    assert "is archived" in stdout_of("forget", f"~{id_}")

    assert "was already archived" in stdout_of("forget", f"~{id_}")


def test_forgetting_words_shows_the_undo(printed: Path) -> None:
    done = perdure("forget", SALARY)

    assert done.stdout == "hidden: 1 sentence in 1 message of 1 session\n"
    assert done.stderr == "`perdure remember TEXT` undoes it\n"
    assert "900000" not in stdout_of("read", "sessions/s/messages")
    assert stdout_of("forget", SALARY) == "nothing contains it any more\n"
    assert isinstance(refusal("forget", "The harbour master drinks rum."), NodeNotFoundError)
    assert printed.is_dir()


def test_forgetting_a_message_shows_how_to_erase_it(printed: Path) -> None:
    name = "ctx://local/sessions/s/messages#0"

    done = perdure("forget", name)

    assert done.stdout.startswith("hidden: ")
    assert f"`perdure forget {name} --erase` erases it for good" in done.stderr
    assert "900000" not in stdout_of("read", "sessions/s/messages")
    assert f"{name} is erased: " in stdout_of("forget", name, "--erase", "--yes")
    assert stdout_of("forget", name, "--erase", "--yes") == "nothing is left to erase\n"
    assert printed.is_dir()


def test_nothing_is_erased_without_leave(odd: Path) -> None:
    assert isinstance(refusal("forget", "preference/odd", "--erase"), AccessRefusedError)
    assert WORD in stdout_of("read", "preference/odd")
    assert odd.is_dir()


def test_the_preview_names_versions_and_files(odd: Path) -> None:
    printed = stdout_of("forget", "preference/odd", "--erase", "--dry-run")

    assert "preference/odd/content.md" in printed
    assert "4 versions in history" in printed
    assert "stays: its names, times and digests in the log" in printed
    assert WORD in stdout_of("read", "preference/odd")
    assert odd.is_dir()


def test_what_is_erased_is_gone_and_the_receipt_holds(odd: Path, tmp_path: Path) -> None:
    stdout_of("recall", WORD)
    assert left(tmp_path)
    receipt = tmp_path / "receipt.json"

    printed = stdout_of("forget", "preference/odd", "--erase", "--yes", "--receipt", str(receipt))

    assert "is erased: 4 versions, 4 contents" in printed
    assert left(tmp_path) == []
    assert stdout_of("forget", "--verify", str(receipt)).startswith("signed: ctx://local/users/ana")
    public_key = stdout_of("history", "prove", "--public-key").strip()
    assert one("forget", "--verify", str(receipt), "--key", public_key)["differences"] == []
    assert stdout_of("history", "verify").startswith("ok")
    assert stdout_of("read", "preference/indentation") == "Prefers tabs."
    assert stdout_of("forget", "preference/odd", "--erase", "--yes") == "nothing is left to erase\n"
    assert odd.is_dir()


def test_a_receipt_that_was_changed_or_does_not_hold_is_refused(odd: Path, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    stdout_of("forget", "preference/odd", "--erase", "--yes", "--receipt", str(receipt))
    other = tmp_path / "other.json"
    other.write_text(receipt.read_text().replace("odd", "old"))
    nothing = tmp_path / "nothing.json"
    nothing.write_bytes(b"\xff")

    for path in (other, nothing):
        assert isinstance(refusal("forget", "--verify", str(path)), ProofError)
    stdout_of("write", "preference/odd", f"Hides the {WORD} from nobody.", "--replace")
    done = perdure("forget", "--verify", str(receipt))
    assert (done.exit_code, type(done.exception)) == (1, ProofError)
    assert "was saved again" in done.stdout
    assert odd.is_dir()


def test_a_receipt_never_takes_the_place_of_a_file(odd: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")

    done = refusal("forget", "preference/odd", "--erase", "--yes", "--receipt", str(there))

    assert isinstance(done, PathIsFileError)
    assert there.read_text() == "mine"
    assert WORD in stdout_of("read", "preference/odd")
    assert odd.is_dir()


def test_json_has_all_fields(odd: Path) -> None:
    plan = one("forget", "preference/odd", "--erase", "--dry-run")["plan"]
    assert isinstance(plan, dict)
    done = one("forget", "preference/odd", "--erase", "--yes")["erased"]
    assert isinstance(done, dict)

    assert done["contents"] == plan["contents"]
    assert json.loads(Path(str(done["receipt"])).read_text()).keys() == {"said", "note"}
    answer = one("forget", "preference/indentation")
    hidden = answer.pop("hidden")
    assert isinstance(hidden, dict)
    assert hidden["statements"] == 1
    assert answer == {"archived": [TABS], "before": [], "also": [], "left": []}
    assert odd.is_dir()


def test_a_person_is_erased_by_who_may(odd: Path, tmp_path: Path) -> None:
    printed = f'{{"role": "user", "content": "Where is the {WORD}?"}}\n'.encode()
    stdout_of("commit", "-", "--session", "s1", typed=printed)
    assert isinstance(
        refusal("forget", "users/ana", "--erase", "--yes", "--user", "ana"), AccessDeniedError
    )

    stdout_of("forget", "users/ana", "--erase", "--yes")

    assert left(tmp_path) == []
    assert stdout_of("user", "list") == ""
    assert odd.is_dir()


def test_what_is_not_there_and_what_makes_no_sense_is_refused(odd: Path) -> None:
    assert isinstance(refusal("forget", "preference/nothing"), NodeNotFoundError)
    assert isinstance(refusal("forget", "preference/none", "--erase", "-y"), NodeNotFoundError)
    assert perdure("forget").exit_code == 2
    assert perdure("forget", "preference/odd", "--receipt", "x").exit_code == 2
    assert odd.is_dir()


def test_the_preview_names_the_uris_with_words_of_the_text(odd: Path) -> None:
    stdout_of("write", "event/hidden-marzipan", f"The {WORD} was hidden.")

    printed = stdout_of("forget", "event/hidden-marzipan", "--erase", "--dry-run")
    other = stdout_of("forget", "preference/odd", "--erase", "--dry-run")

    name = "ctx://local/users/ana/memories/event/hidden-marzipan"
    assert f"stays: the name {name} in the log, which has words of the text" in printed
    assert "stays: the name" not in other
    assert odd.is_dir()


def test_who_still_has_a_content_is_named_also_once_it_is_erased(odd: Path) -> None:
    stdout_of("write", "preference/even", f"Hides the {WORD} from nobody.")

    printed = stdout_of("forget", "preference/odd", "--erase", "--yes")

    assert (
        "retained, because accounts/local/users/ana/memories/preference/even/content.md" in printed
    )
    assert odd.is_dir()


def test_what_is_all_elsewhere_is_not_called_erased(odd: Path, tmp_path: Path) -> None:
    """Nothing is erased under the old name, and the receipt says who has it."""
    stdout_of("write", "preference/even", f"Hides the {WORD} from nobody.")
    content = odd / "accounts/local/users/ana/memories/preference/even"
    note = content.parent / "note"
    note.mkdir()
    (note / "content.md").write_bytes((content / "content.md").read_bytes())

    printed = stdout_of("forget", "preference/note", "--erase", "--yes")

    assert "is removed, and no content is erased" in printed
    assert "preference/even/content.md has it" in printed
    assert "is erased" not in printed.replace("no content is erased", "")
    assert left(tmp_path)


def test_the_preview_says_where_else_it_was(odd: Path) -> None:
    stdout_of("move", "preference/odd", "preference/even")

    printed = stdout_of("forget", "preference/even", "--erase", "--dry-run")

    assert "former path ctx://local/users/ana/memories/preference/odd" in printed
    assert odd.is_dir()
