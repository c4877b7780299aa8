"""Who still has what is erased: those who live and were not erased, and nobody else."""

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from perdure.app import Context
from perdure.engine.erasure_plan import ErasureReport
from perdure.model import RequestContext, Role, Uri
from tests.engine.erase.homes import FOLDER, check_receipt, leaks, now, receipts, root
from tests.engine.remembering import of, opened

pytestmark = pytest.mark.usefixtures("agfs")

TOM = RequestContext("local", "tom", role=Role.ROOT)
OLD, NEW = "The kumquat hides under the veranda.", "A xylophone vexes the wizard."
WORDS = ("kumquat", "ylophone")
A, B = f"{FOLDER}/a", f"{FOLDER}/b"


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        yield context


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def save(context: Context, slug: str, text: str = OLD) -> str:
    return root(context).save(text, category="preference", slug=slug)


def erase(context: Context, uri: str) -> ErasureReport:
    done = root(context).forget(uri, erase=True).erased
    assert done is not None
    assert check_receipt(context, done.path) == []
    return done


def folder(home: Path, slug: str) -> Path:
    (file,) = home.rglob(f"{slug}/content.md")
    return file.parent


# ---------------------------------------------------------------- the same text twice
def test_people_who_had_the_same_go_one_after_the_other(context: Context, home: Path) -> None:
    save(context, "a")
    of(context, TOM).save(OLD, category="preference", slug="a")
    save(context, "z", "Prefers tabs.")

    (shared,) = erase(context, "ctx://local/users/tom").shared
    assert shared.key == f"{Uri.parse(A).key}/content.md"
    assert leaks(home, WORDS)
    assert erase(context, "ctx://local/users/ana").shared == ()

    assert leaks(home, WORDS) == {}


def test_nodes_that_had_the_same_go_one_after_the_other(context: Context, home: Path) -> None:
    for slug in ("a", "b"):
        save(context, slug)

    assert [shared.key for shared in erase(context, A).shared] == [f"{Uri.parse(B).key}/content.md"]
    assert leaks(home, WORDS)
    assert erase(context, B).shared == ()

    assert leaks(home, WORDS) == {}


def test_who_was_deleted_before_it_was_erased_counts_no_more(context: Context, home: Path) -> None:
    """No removal tells of that erasure; its receipt does."""
    for slug in ("a", "b"):
        save(context, slug)
        context.nodes.delete_node(f"{FOLDER}/{slug}", RequestContext("local", "ana"))

    assert len(erase(context, A).shared) == 1
    assert erase(context, B).shared == ()

    assert leaks(home, WORDS) == {}


def test_what_came_back_after_it_was_erased_counts_again(context: Context, home: Path) -> None:
    for slug in ("a", "b"):
        save(context, slug)
    erase(context, A)
    save(context, "a")

    assert [shared.key for shared in erase(context, B).shared] == [f"{Uri.parse(A).key}/content.md"]

    assert leaks(home, WORDS)


def test_a_file_that_is_not_a_receipt_is_ignored(context: Context, home: Path) -> None:
    for slug in ("a", "b"):
        save(context, slug)
        context.nodes.delete_node(f"{FOLDER}/{slug}", RequestContext("local", "ana"))
    erase(context, A)
    for path in receipts(home):
        path.write_text('{"said": "[]", "note": ""}')

    assert [shared.key for shared in erase(context, B).shared] == [f"{Uri.parse(A).key}/content.md"]


# ---------------------------------------------------------------- moves and rewinds
def test_an_edit_by_hand_before_a_move_hides_no_version(context: Context, home: Path) -> None:
    save(context, "a")
    (folder(home, "a") / "content.md").write_text(NEW)
    context.nodes.move_node(A, B, RequestContext("local", "ana"))

    assert erase(context, B).moved == ()

    assert leaks(home, WORDS) == {}


def test_what_a_rewind_removed_lives_nowhere(context: Context, home: Path) -> None:
    save(context, "a")
    then = now(context)
    context.nodes.move_node(A, B, RequestContext("local", "ana"))
    save(context, "b", NEW)
    root(context).rewind(then)

    assert erase(context, A).moved == ()

    assert leaks(home, WORDS) == {}


# ---------------------------------------------------------------- by hand
def test_a_folder_that_was_renamed_by_hand_goes_under_its_new_name(
    context: Context, home: Path
) -> None:
    save(context, "a", NEW)
    save(context, "a")
    assert root(context).recall("kumquat").hits
    was = folder(home, "a")
    was.rename(was.parent / "b")

    assert erase(context, B).contents

    assert leaks(home, WORDS) == {}


def test_a_folder_that_was_renamed_and_edited_by_hand_is_the_same_node(
    context: Context, home: Path
) -> None:
    save(context, "a")
    was = folder(home, "a")
    was.rename(was.parent / "b")
    (was.parent / "b" / "content.md").write_text(NEW)

    erase(context, B)

    assert leaks(home, WORDS) == {}


def test_what_came_to_the_old_name_of_a_folder_is_another_text(
    context: Context, home: Path
) -> None:
    save(context, "a")
    was = folder(home, "a")
    was.rename(was.parent / "b")
    save(context, "a", NEW)
    context.nodes.delete_node(A, RequestContext("local", "ana"))

    assert {new.split("/")[-2] for _, new in erase(context, A).moved} == {"b"}

    assert leaks(home, WORDS[1:]) == {}
    assert OLD in root(context).read(B).content


def test_content_that_came_back_does_not_belong_to_an_erased_version(
    context: Context, home: Path
) -> None:
    save(context, "a")
    context.nodes.delete_node(A, RequestContext("local", "ana"))
    erase(context, A)
    assert leaks(home, WORDS) == {}
    save(context, "b")

    assert erase(context, B).shared == ()

    assert leaks(home, WORDS) == {}


def test_a_folder_that_was_removed_by_hand_leaves_no_records(context: Context, home: Path) -> None:
    save(context, "a")
    save(context, "z", "Prefers tabs.")
    assert root(context).recall("kumquat").hits
    rmtree(folder(home, "a"))

    erase(context, A)

    assert leaks(home, WORDS) == {}
