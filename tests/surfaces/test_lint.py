"""`lint`: each thing that can be wrong with notes is found where it is, and nothing else."""

import json
import shutil
from pathlib import Path

import pytest

from perdure.testing.requirement import requirement
from tests.storage.test_conflict_copies import MARKED
from tests.surfaces.nodes import MEMORIES, content_of, one, perdure, stdout_of

pytestmark = pytest.mark.usefixtures("agfs")

TEA = "users/ana/memories/preference/tea"

Problem = dict[str, object]


@pytest.fixture
def tea(memory: Path) -> Path:
    """Return the content of a note with which all is well, as a file."""
    stdout_of("write", "preference/tea", "Tea, no milk. See [[milk]].")
    stdout_of("write", "preference/milk", "Goes into [[preference/tea|tea]], not.")
    return content_of(memory, TEA)


def lint(*words: str) -> tuple[int, list[Problem]]:
    done = perdure("lint", "--json", *words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]


def found(code: int = 1) -> Problem:
    ended, (problem,) = lint()
    assert ended == code
    assert problem["fix"]
    return problem


def where(problem: Problem) -> tuple[object, object, object]:
    return problem["code"], str(problem["file"]).rpartition("/")[2], problem["line"]


def set_meta(tea: Path, **values: object) -> None:
    meta = tea.with_name(".meta.json")
    text = json.loads(meta.read_text())
    text["metadata"] |= values
    meta.write_text(json.dumps(text, indent=2))


def edges(tea: Path, *targets: str, kind: str = "superseded_by") -> None:
    time = "2026-03-02T10:00:00Z"
    text = [{"to": to, "type": kind, "weight": 1.0, "created_at": time} for to in targets]
    tea.with_name(".relations.json").write_text(json.dumps(text, indent=2))


# ---------------------------------------------------------------- all is well
def test_nothing_is_found_where_nothing_is_wrong(tea: Path) -> None:
    stdout_of(
        "write", "profile", "Ana. Likes [[tea]], [[preference/milk]] and herself: [[profile]]."
    )
    stdout_of("write", "preference/code", "Not a link: `[[x]]`\n\n```\n[[y]]\n```\n")
    stdout_of("write", "sessions/monday/notes", "It rained.")
    stdout_of("relate", "preference/tea", "preference/milk", "--type", "depends_on")
    stdout_of("write", "habit/old", "Gone.")
    stdout_of("archive", "habit/old")

    assert lint() == (0, [])
    assert perdure("lint").stderr.endswith("5 notes: 0 errors, 0 warnings\n")


def test_lint_of_nothing_makes_nothing(memory: Path) -> None:
    assert lint() == (0, [])


def test_lint_changes_nothing(tea: Path, memory: Path) -> None:
    tea.write_text("[[nowhere]]")
    before = {path: path.read_bytes() for path in memory.rglob("*") if path.is_file()}

    lint()

    assert {path: path.read_bytes() for path in memory.rglob("*") if path.is_file()} == before


# ---------------------------------------------------------------- fields and names
def test_a_note_that_says_nothing(tea: Path) -> None:
    tea.write_text("---\ntitle: Tea\n---\n \n")

    assert where(found()) == ("content-empty", "content.md", 1)


def test_a_frontmatter_needs_no_title(tea: Path) -> None:
    tea.write_text("---\ntags: [tea]\n---\nTea.\n")

    assert lint() == (0, [])


@pytest.mark.parametrize("key", ["slug", "name", "id"])
def test_a_note_with_another_id_in_its_frontmatter(tea: Path, key: str) -> None:
    tea.write_text(f"---\ntitle: Tea\n{key}: coffee\n---\nTea.\n")
    assert where(found(0)) == ("name-differs", "content.md", 3)

    tea.write_text(f"---\ntitle: Tea\n{key}: tea\n---\nTea.\n")
    assert lint() == (0, [])


def test_a_frontmatter_that_is_broken(tea: Path) -> None:
    tea.write_text("---\ntitle: [\n---\nTea.\n")

    assert where(found(0)) == ("frontmatter-unreadable", "content.md", 3)


def test_a_meta_that_is_broken(tea: Path) -> None:
    tea.with_name(".meta.json").write_text("{")

    code, problems = lint()

    assert code == 1
    assert ("node-unreadable", ".meta.json", None) in map(where, problems)


def test_a_folder_that_is_called_as_no_node_can_be(tea: Path) -> None:
    odd = tea.parent.with_name("My Tea!")
    odd.mkdir()
    (odd / "content.md").write_text("Tea.")

    problem = found()

    assert where(problem) == ("name-unusable", "content.md", None)
    assert "my-tea" in str(problem["fix"])


def test_a_text_that_is_no_node_yet(tea: Path) -> None:
    new = tea.parent.with_name("coffee")
    new.mkdir()
    (new / "content.md").write_text("Coffee.")
    assert where(found(0)) == ("no-node", "content.md", None)

    shutil.rmtree(new)
    tea.parent.with_name("idea.md").write_text("An idea.")
    assert where(found(0)) == ("no-node", "idea.md", None)


# ---------------------------------------------------------------- dates
@pytest.mark.parametrize(
    ("text", "code", "name", "ends"),
    [
        ({"date": "someday"}, "date-unreadable", "date", 1),
        ({"valid_from": 3}, "date-unreadable", "valid_from", 1),
        (
            {"valid_from": "2026-03-02", "valid_until": "2026-03-01"},
            "date-order",
            "valid_until",
            1,
        ),
        ({"valid_until": "2926-03-01"}, "date-future", "valid_until", 0),
    ],
)
def test_dates_that_cant_be(
    tea: Path, text: dict[str, object], code: str, name: str, ends: int
) -> None:
    set_meta(tea, **text)

    problem = found(ends)

    assert where(problem)[:2] == (code, ".meta.json")
    lines = tea.with_name(".meta.json").read_text().splitlines()
    assert f'"{name}"' in lines[int(str(problem["line"])) - 1]


def test_dates_that_can_be(tea: Path) -> None:
    set_meta(tea, date="2026-03-02", valid_from="2026-03-02", valid_until="2026-03-02")

    assert lint() == (0, [])


def test_a_note_that_was_written_tomorrow(tea: Path) -> None:
    meta = tea.with_name(".meta.json")
    text = json.loads(meta.read_text())
    text["updated_at"] = "2101-01-01T00:00:00Z"
    meta.write_text(json.dumps(text, indent=2))

    assert where(found(0))[:2] == ("date-future", ".meta.json")


# ---------------------------------------------------------------- links and relations
def test_a_link_that_leads_nowhere_is_found_on_its_line(tea: Path) -> None:
    tea.write_text("---\ntitle: Tea\n---\nFirst.\n\nSee [[milk]] and\n[[oat milk|oats]].\n")

    problem = found()

    assert where(problem) == ("link-broken", "content.md", 7)
    assert problem["uri"] == f"{MEMORIES}/preference/tea"
    assert "[[oat milk]]" in str(problem["what"])


@pytest.mark.parametrize("gone", ["delete", "archive"])
def test_a_link_to_what_is_gone(tea: Path, gone: str) -> None:
    stdout_of(gone, "preference/milk", *(["--yes"] if gone == "delete" else []))

    assert where(found())[0] == "link-broken"


def test_a_link_into_what_one_may_not_see_is_not_shown(tea: Path) -> None:
    stdout_of("user", "create", "ben")
    hidden = "ctx://local/users/ben/memories/preference/secret"
    tea.write_text(f"See [[{hidden}]].")

    assert where(found())[0] == "link-broken"
    assert lint("--user", "ana") == (0, [])


def test_a_relation_that_leads_nowhere(tea: Path) -> None:
    edges(tea, f"{MEMORIES}/preference/gone", kind="depends_on")

    assert where(found()) == ("relation-broken", ".relations.json", 3)


def test_what_superseded_itself_in_the_end(tea: Path) -> None:
    milk = tea.parent.with_name("milk") / "content.md"
    edges(tea, f"{MEMORIES}/preference/milk")
    assert lint() == (0, [])

    edges(milk, f"{MEMORIES}/preference/tea")

    problem = found()
    assert where(problem)[:2] == ("supersession-cycle", ".relations.json")
    assert str(problem["what"]).count("milk") == 2


def test_what_several_superseded(tea: Path) -> None:
    stdout_of("write", "preference/coffee", "Coffee.")
    edges(tea, f"{MEMORIES}/preference/milk", f"{MEMORIES}/preference/coffee")

    assert where(found(0))[0] == "supersession-fork"


# ---------------------------------------------------------------- conflict copies
@requirement("001-conflict-janitor")
def test_conflict_copies_of_every_client_are_found_in_a_vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("MEMORY_VAULT_PATH", str(tmp_path / "Notes"))
    (tmp_path / "Notes" / "mine").mkdir(parents=True)
    copies = {tmp_path / "Notes" / "mine" / name: name for name in MARKED}
    for copy, name in copies.items():
        copy.write_text(name)

    code, problems = lint()

    assert code == 1
    assert {problem["file"] for problem in problems} == {f"mine/{name}" for name in MARKED}
    for problem in problems:
        assert problem["code"] == "conflict-copy"
        assert "merge them and remove the copy" in str(problem["fix"])
    assert all(copy.read_text() == name for copy, name in copies.items())


@requirement("001-conflict-janitor")
def test_a_conflict_copy_of_a_note_is_found_beside_it(tea: Path, memory: Path) -> None:
    tea.with_name("content (Ana's conflicted copy 2026-03-02).md").write_text("Tea.")

    code, problems = lint()

    text = [problem["code"] for problem in problems]
    assert (code, text) == ((1, ["conflict-copy"]) if memory.name == "Notes" else (0, ["no-node"]))


def test_ones_own_notes_in_a_vault_are_none_of_its_business(tea: Path, memory: Path) -> None:
    (memory / "Diary.md").write_text("[[nowhere]]")
    (memory / ".obsidian").mkdir()
    (memory / ".obsidian" / "x (conflicted copy 2026-03-02).md").write_text("x")

    assert lint() == (0, [])


# ---------------------------------------------------------------- bounds
def test_only_the_folder_that_is_named_is_looked_at(tea: Path) -> None:
    tea.write_text("[[nowhere]]")

    assert lint("habit") == (0, [])
    assert lint("preference")[0] == 1
    assert lint("preference/tea")[0] == 1


def test_other_accounts_are_not_looked_at(tea: Path, memory: Path) -> None:
    stdout_of("account", "create", "work")
    stdout_of("write", "ctx://work/users/ana/memories/note/x", "[[nowhere]]", "--account", "work")

    other = memory / "accounts" / "work" / "users"
    (other / "x (conflicted copy 2026-03-02).md").write_text("x")

    assert lint() == (0, [])
    assert lint("--account", "work")[0] == 1


def test_what_others_have_is_not_shown(tea: Path) -> None:
    stdout_of("write", "ctx://local/users/ben/memories/note/x", "[[nowhere]]")

    assert lint("--user", "ana") == (0, [])
    assert lint()[0] == 1


def test_people_read_file_line_code_and_fix(tea: Path) -> None:
    tea.write_text("See [[no\x07where]]")

    done = perdure("lint")

    assert done.exit_code == 1
    file = f"accounts/local/{TEA}/content.md"
    assert done.stdout.startswith(f"{file}:1: error link-broken: [[no")
    assert ". Fix: " in done.stdout
    assert "\x07" not in done.stdout
    assert one("status")["ok"] is True
