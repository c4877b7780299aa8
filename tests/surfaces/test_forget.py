"""`perdure forget`: put away by default, erased if asked to, and told exactly."""

import json
from pathlib import Path

import pytest

from perdure.errors import (
    AccessDeniedError,
    AccessRefusedError,
    FileInTheWayError,
    NodeNotFoundError,
    ProofError,
)
from tests.surfaces.nodes import TABS, one, perdure, refusal, told

pytestmark = pytest.mark.usefixtures("agfs")

WORD = "marzipan"


@pytest.fixture
def odd(memory: Path) -> Path:
    """Write something that is to go, in two versions; return the folder of all texts."""
    told("write", "preference/indentation", "Prefers tabs.")
    told("write", "preference/odd", f"Hides the {WORD} from everybody.")
    told("write", "preference/odd", f"Hides the {WORD} from nobody.", "--replace")
    return memory


def left(tmp_path: Path) -> list[Path]:
    files = (path for path in tmp_path.rglob("*") if path.is_file())
    return [path for path in files if WORD.encode() in path.read_bytes()]


def test_it_is_archived_and_said_how_to_bring_it_back(odd: Path) -> None:
    done = perdure("forget", "preference/odd")

    assert done.stdout == "ctx://local/users/ana/memories/preference/odd is archived\n"
    assert "perdure unarchive" in done.stderr
    assert "was already archived" in told("forget", "preference/odd")
    told("unarchive", "preference/odd")
    assert WORD in told("read", "preference/odd")
    assert odd.is_dir()


SALARY = "My salary is 900000 kroner."


@pytest.fixture
def said(memory: Path) -> Path:
    """Keep a message of a session that no memory was made of."""
    message = json.dumps({"role": "user", "content": f"Hello. {SALARY}"})
    perdure("commit", "-", "--session", "s", "--no-extract", typed=message.encode())
    return memory


def test_an_id_that_is_forgotten_twice_was_archived_before(memory: Path) -> None:
    told("remember", f"Never mention the {WORD}.", "--kind", "rule")
    id_ = told("briefing").rpartition("~")[2].split()[0]
    assert "is archived" in told("forget", f"~{id_}")

    assert "was already archived" in told("forget", f"~{id_}")


def test_words_are_forgotten_and_said_how_to_have_them_back(said: Path) -> None:
    done = perdure("forget", SALARY)

    assert done.stdout == "hidden: 1 sentence in 1 message of 1 session\n"
    assert done.stderr == "`perdure remember TEXT` undoes it\n"
    assert "900000" not in told("read", "sessions/s/messages")
    assert told("forget", SALARY) == "nothing says it any more\n"
    assert isinstance(refusal("forget", "The harbour master drinks rum."), NodeNotFoundError)
    assert said.is_dir()


def test_a_message_is_forgotten_and_said_how_to_erase_it(said: Path) -> None:
    name = "ctx://local/sessions/s/messages#0"

    done = perdure("forget", name)

    assert done.stdout.startswith("hidden: ")
    assert f"`perdure forget {name} --erase` erases it for good" in done.stderr
    assert "900000" not in told("read", "sessions/s/messages")
    assert f"{name} is erased: " in told("forget", name, "--erase", "--yes")
    assert told("forget", name, "--erase", "--yes") == "nothing is left to erase\n"
    assert said.is_dir()


def test_nothing_is_erased_without_leave(odd: Path) -> None:
    assert isinstance(refusal("forget", "preference/odd", "--erase"), AccessRefusedError)
    assert WORD in told("read", "preference/odd")
    assert odd.is_dir()


def test_the_preview_names_versions_and_files(odd: Path) -> None:
    said = told("forget", "preference/odd", "--erase", "--dry-run")

    assert "preference/odd/content.md" in said
    assert "4 versions in history" in said
    assert "stays: its names, times and digests in the log" in said
    assert WORD in told("read", "preference/odd")
    assert odd.is_dir()


def test_what_is_erased_is_gone_and_the_receipt_holds(odd: Path, tmp_path: Path) -> None:
    told("recall", WORD)
    assert left(tmp_path)
    receipt = tmp_path / "receipt.json"

    said = told("forget", "preference/odd", "--erase", "--yes", "--receipt", str(receipt))

    assert "is erased: 4 versions, 4 contents" in said
    assert left(tmp_path) == []
    assert told("forget", "--verify", str(receipt)).startswith("signed: ctx://local/users/ana")
    public_key = told("history", "prove", "--public-key").strip()
    assert one("forget", "--verify", str(receipt), "--key", public_key)["differences"] == []
    assert told("history", "verify").startswith("ok")
    assert told("read", "preference/indentation") == "Prefers tabs."
    assert told("forget", "preference/odd", "--erase", "--yes") == "nothing is left to erase\n"
    assert odd.is_dir()


def test_a_receipt_that_was_changed_or_does_not_hold_is_refused(odd: Path, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    told("forget", "preference/odd", "--erase", "--yes", "--receipt", str(receipt))
    other = tmp_path / "other.json"
    other.write_text(receipt.read_text().replace("odd", "old"))
    nothing = tmp_path / "nothing.json"
    nothing.write_bytes(b"\xff")

    for path in (other, nothing):
        assert isinstance(refusal("forget", "--verify", str(path)), ProofError)
    told("write", "preference/odd", f"Hides the {WORD} from nobody.", "--replace")
    done = perdure("forget", "--verify", str(receipt))
    assert (done.exit_code, type(done.exception)) == (1, ProofError)
    assert "was saved again" in done.stdout
    assert odd.is_dir()


def test_a_receipt_never_takes_the_place_of_a_file(odd: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")

    done = refusal("forget", "preference/odd", "--erase", "--yes", "--receipt", str(there))

    assert isinstance(done, FileInTheWayError)
    assert there.read_text() == "mine"
    assert WORD in told("read", "preference/odd")
    assert odd.is_dir()


def test_as_json_all_is_told(odd: Path) -> None:
    plan = one("forget", "preference/odd", "--erase", "--dry-run")["plan"]
    assert isinstance(plan, dict)
    done = one("forget", "preference/odd", "--erase", "--yes")["erased"]
    assert isinstance(done, dict)

    assert done["contents"] == plan["contents"]
    assert json.loads(Path(str(done["receipt"])).read_text()).keys() == {"said", "note"}
    told_of = one("forget", "preference/indentation")
    hidden = told_of.pop("hidden")
    assert isinstance(hidden, dict)
    assert hidden["statements"] == 1
    assert told_of == {"archived": [TABS], "before": [], "also": [], "left": []}
    assert odd.is_dir()


def test_a_person_is_erased_by_who_may(odd: Path, tmp_path: Path) -> None:
    said = f'{{"role": "user", "content": "Where is the {WORD}?"}}\n'.encode()
    told("commit", "-", "--session", "s1", typed=said)
    assert isinstance(
        refusal("forget", "users/ana", "--erase", "--yes", "--user", "ana"), AccessDeniedError
    )

    told("forget", "users/ana", "--erase", "--yes")

    assert left(tmp_path) == []
    assert told("user", "list") == ""
    assert odd.is_dir()


def test_what_is_not_there_and_what_makes_no_sense_is_refused(odd: Path) -> None:
    assert isinstance(refusal("forget", "preference/nothing"), NodeNotFoundError)
    assert isinstance(refusal("forget", "preference/none", "--erase", "-y"), NodeNotFoundError)
    assert perdure("forget").exit_code == 2
    assert perdure("forget", "preference/odd", "--receipt", "x").exit_code == 2
    assert odd.is_dir()


def test_the_preview_says_which_names_are_made_of_the_words(odd: Path) -> None:
    told("write", "event/hidden-marzipan", f"The {WORD} was hidden.")

    said = told("forget", "event/hidden-marzipan", "--erase", "--dry-run")
    other = told("forget", "preference/odd", "--erase", "--dry-run")

    name = "ctx://local/users/ana/memories/event/hidden-marzipan"
    assert f"stays: the name {name} in the log, which has words of the text" in said
    assert "stays: the name" not in other
    assert odd.is_dir()


def test_who_still_has_a_content_is_named_also_once_it_is_erased(odd: Path) -> None:
    told("write", "preference/even", f"Hides the {WORD} from nobody.")

    said = told("forget", "preference/odd", "--erase", "--yes")

    assert "retained, because accounts/local/users/ana/memories/preference/even/content.md" in said
    assert odd.is_dir()


def test_what_is_all_elsewhere_is_not_called_erased(odd: Path, tmp_path: Path) -> None:
    """Nothing is erased under the old name, and the receipt says who has it."""
    told("write", "preference/even", f"Hides the {WORD} from nobody.")
    content = odd / "accounts/local/users/ana/memories/preference/even"
    note = content.parent / "note"
    note.mkdir()
    (note / "content.md").write_bytes((content / "content.md").read_bytes())

    said = told("forget", "preference/note", "--erase", "--yes")

    assert "is removed, and no content is erased" in said
    assert "preference/even/content.md has it" in said
    assert "is erased" not in said.replace("no content is erased", "")
    assert left(tmp_path)


def test_the_preview_says_where_else_it_was(odd: Path) -> None:
    told("move", "preference/odd", "preference/even")

    said = told("forget", "preference/even", "--erase", "--dry-run")

    assert "former path ctx://local/users/ana/memories/preference/odd" in said
    assert odd.is_dir()
