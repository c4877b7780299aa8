"""An export imported on another machine is the same memory, and holds nothing else."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perdure.artifacts import IndexState
from perdure.artifacts.archive_transfer import ImportOutcome
from perdure.errors import AccessDeniedError, NodeNotFoundError, PathIsFileError
from perdure.model import RequestContext
from tests.engine.remembering import ANA, BOB, of
from tests.transfer.machines import ACME, ROOT, Machine, answers, files_in, fill, manifest, versions

pytestmark = pytest.mark.usefixtures("agfs")


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", getattr(request, "param", "device-local"))
    with machine.opened() as context:
        fill(context)
    return machine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "export"


def export_all(machine: Machine, folder: Path) -> None:
    with machine.opened() as context:
        context.memory.export(folder, everything=True)


@pytest.mark.parametrize("backend", ["device-local", "vault"])
@pytest.mark.parametrize("machine", ["device-local", "vault"], indirect=True)
def test_every_file_version_and_answer_is_the_same_elsewhere(
    machine: Machine, folder: Path, tmp_path: Path, backend: str
) -> None:
    export_all(machine, folder)
    there = Machine(tmp_path / "there", backend)

    done = there.import_folder(folder)

    assert done.how is ImportOutcome.RESTORED
    assert there.files() == machine.files()
    with machine.opened() as ours, there.opened() as theirs:
        assert versions(theirs) == versions(ours)
        assert theirs.recorded.history.store.history == ours.recorded.history.store.history
        assert answers(theirs) == answers(ours)
        assert theirs.recorded.history.store.verify().ok
        assert there.files() == machine.files()
    assert there.import_folder(folder).how is ImportOutcome.KNOWN


def test_people_can_read_it(machine: Machine, folder: Path) -> None:
    export_all(machine, folder)

    found = files_in(folder)
    memories = "local/users/ana/memories"
    assert b"Prefers tabs, always." in found[f"notes/{memories}/preference/indentation.md"]
    assert b"night train" in found[f"archived/{memories}/event/gone.md"]
    assert b"I prefer trains" in found["notes/local/sessions/s1/messages.md"]
    assert b"Acme keeps" in found["notes/acme/users/eve/memories/profile.md"]
    assert f"notes/{memories}/event/plan.md" not in found
    assert b"perdure import" in found["README.md"]
    assert manifest(folder)["accounts"] == ["acme", "local"]


def test_to_export_again_writes_only_what_changed(machine: Machine, folder: Path) -> None:
    export_all(machine, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    with machine.opened() as context:
        assert context.memory.export(folder, everything=True).written == 0
        unchanged = {p: p.stat().st_mtime_ns for p in before if p.name != "perdure.json"}
        assert unchanged == {p: before[p] for p in unchanged}
        of(context, ROOT).save("Drinks tea.", category="preference", slug="coffee")
        context.nodes.delete_node("ctx://acme/users/eve/memories/profile", ACME)
        done = context.memory.export(folder, everything=True)

    assert (done.written, done.removed) == (1, 1)
    assert not (folder / "notes" / "acme").exists()


def test_a_copy_goes_on_with_a_later_export(machine: Machine, folder: Path, tmp_path: Path) -> None:
    export_all(machine, folder)
    there = Machine(tmp_path / "there", "device-local")
    there.import_folder(folder)
    with there.opened() as context:
        answers(context)
    with machine.opened() as context:
        of(context, ROOT).save("Drinks tea.", category="preference", slug="coffee")
        of(context, ROOT).forget(
            "ctx://local/users/ana/memories/preference/indentation", erase=True
        )
        context.memory.export(folder, everything=True)

    assert there.import_folder(folder).how is ImportOutcome.CONTINUED
    assert there.files() == machine.files()
    assert not any(b"Prefers tabs" in data for data in files_in(there.home).values())
    with machine.opened() as ours, there.opened() as theirs:
        assert answers(theirs) == answers(ours)


@pytest.mark.parametrize("machine", ["vault"], indirect=True)
def test_edits_by_hand_are_exported_too(machine: Machine, folder: Path, tmp_path: Path) -> None:
    (file,) = machine.texts.rglob("coffee/content.md")
    file.write_text(file.read_text() + "\nBy hand.\n")

    export_all(machine, folder)

    assert (
        b"By hand." in (folder / "notes/local/users/ana/memories/preference/coffee.md").read_bytes()
    )
    there = Machine(tmp_path / "there", "device-local")
    there.import_folder(folder)
    assert there.files() == machine.files()


# ---------------------------------------------------------------- tenants
SECRETS = {
    "ana": (b"Prefers tabs", b"coffee black", b"I prefer trains"),
    "bob": (b"Bob likes soup", b"My soup is cold"),
    "eve": (b"Acme keeps",),
}


@pytest.mark.parametrize(
    ("who", "whose"),
    [
        (ROOT, {"ana", "bob"}),
        (ACME, {"eve"}),
        (ANA, {"ana"}),
        (BOB, {"bob"}),
        (replace(ANA, visible_owner_spaces=frozenset({"user:bob"})), {"ana", "bob"}),
        (replace(ACME, account_id="local", role=ANA.role), set()),
    ],
)
def test_nothing_is_exported_that_is_out_of_reach(
    machine: Machine, folder: Path, who: RequestContext, whose: set[str]
) -> None:
    with machine.opened() as context:
        try:
            of(context, who).export(folder)
        except NodeNotFoundError:
            assert not whose

    found = b"".join(files_in(folder).values())
    names = {name for name, secrets in SECRETS.items() if any(each in found for each in secrets)}
    assert names == whose
    if whose and who is not ROOT and not who.visible_owner_spaces:
        others = {"ana", "bob", "eve"} - {who.user_id}
        assert not any(f"users/{other}".encode() in found for other in others)
    assert not list(folder.glob(".selected*"))


def test_an_imported_part_has_the_same_versions_and_answers(
    machine: Machine, folder: Path, tmp_path: Path
) -> None:
    with machine.opened() as context:
        of(context, ANA).export(folder)
        uri = "ctx://local/users/ana/memories/preference/indentation"
        expected = [(v.cid, v.time, v.circumstances) for v in of(context, ANA).history(uri)]
        hits = [(h.uri, h.cid) for h in of(context, ANA).recall("tabs spaces").hits]
    there = Machine(tmp_path / "there", "device-local")

    there.import_folder(folder)

    ours = {k: v for k, v in machine.files().items() if k in there.files()}
    assert there.files() == ours
    with there.opened() as context:
        history = of(context, ANA).history(uri)
        assert [(v.cid, v.time, v.circumstances) for v in history] == expected
        assert [(h.uri, h.cid) for h in of(context, ANA).recall("tabs spaces").hits] == hits
        first = IndexState(0, history[0].commit)
        assert of(context, ANA).at(first).read(uri).content == "Prefers tabs."
        assert context.recorded.history.store.verify().ok


def test_of_a_session_that_was_another_s_only_ones_own_part_is_exported(
    machine: Machine, folder: Path
) -> None:
    with machine.opened() as context:
        context.namespaces.delete_user("local", "bob", ROOT)
        talk = [{"role": "user", "content": "Now it is Ana's."}]
        of(context, ANA).commit_session(talk, session_id="s2", extract=False)
        of(context, ANA).export(folder)

    found = b"".join(files_in(folder).values())
    assert b"Now it is Ana" in found
    assert b"soup is cold" not in found


# ---------------------------------------------------------------- folders
def test_a_folder_with_something_else_in_it_is_left_as_it_is(
    machine: Machine, folder: Path
) -> None:
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")

    with machine.opened() as context:
        everything = partial(context.memory.export, everything=True)
        for exporting in (everything, of(context, ANA).export):
            with pytest.raises(PathIsFileError):
                exporting(folder)

    assert files_in(folder) == {"mine.txt": b"mine"}


def test_an_edited_file_of_an_export_is_not_overwritten(machine: Machine, folder: Path) -> None:
    export_all(machine, folder)
    note = folder / "notes/local/users/ana/memories/preference/coffee.md"
    note.write_text("edited")
    before = files_in(folder)

    with machine.opened() as context:
        of(context, ROOT).save("Drinks tea.", category="preference", slug="coffee")
        with pytest.raises(PathIsFileError, match=r"coffee\.md"):
            context.memory.export(folder, everything=True)

    assert files_in(folder) == before


def test_a_link_in_an_export_is_not_followed(
    machine: Machine, folder: Path, tmp_path: Path
) -> None:
    export_all(machine, folder)
    outside = tmp_path / "outside"
    (folder / "notes").rename(outside)
    (folder / "notes").symlink_to(outside)
    before = files_in(outside)

    with machine.opened() as context:
        of(context, ROOT).save("Drinks tea.", category="preference", slug="coffee")
        with pytest.raises(PathIsFileError):
            context.memory.export(folder, everything=True)

    assert files_in(outside) == before


def test_only_the_owner_of_all_accounts_exports_everything(machine: Machine, folder: Path) -> None:
    with machine.opened() as context, pytest.raises(AccessDeniedError):
        of(context, ANA).export(folder, everything=True)
    assert not folder.exists()


def test_what_was_forgotten_is_forgotten_elsewhere(
    machine: Machine, folder: Path, tmp_path: Path
) -> None:
    messages = [
        {"role": "user", "content": "Please note that the kumquat hides under the veranda."}
    ]
    with machine.opened() as context:
        memory = of(context, ROOT)
        uri = memory.save("The kumquat hides under the veranda.", category="note", slug="fruit")
        memory.forget(uri)
        memory.export(folder)
    other = Machine(tmp_path / "other", "device-local")
    other.import_folder(folder)
    with other.opened() as context:
        memory = of(context, ROOT)
        assert memory.commit_session(messages, session_id="s9").hidden == 1
        assert memory.recall("Where is the kumquat?").withheld == 0
        assert memory.recall("Is the kumquat under the veranda?").withheld == 1
