"""Every verb works in each layout on each backend, and means the same."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

import perdure
from perdure import Memory, WatchKind
from perdure.app import import_memory
from perdure.app.migration import change_layout
from perdure.artifacts import CID
from perdure.errors import NodeNotFoundError, StorageFaultError
from perdure.storage.changes import TextChange
from perdure.storage.device_local import FolderBackend

MESSAGES = [
    {"role": "user", "content": "I prefer pnpm over npm. Always use ruff, never black."},
    {"role": "assistant", "content": "ok"},
    {"role": "user", "content": "We decided to use Postgres because JSONB. I live in Graz."},
]
RULE = "pattern/always-use-ruff-never-black"


@pytest.fixture(params=["agfs", "notes"])
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["device-local", "vault"])
def place(request: pytest.FixtureRequest, tmp_path: Path, layout: str) -> Path:
    """Make a home whose config names a layout and a backend; return where its texts are."""
    home, texts = tmp_path / "home", tmp_path / "texts"
    home.mkdir()
    texts.mkdir()
    name = "path" if request.param == "vault" else "root"
    (home / "config.toml").write_text(
        f'[storage]\nbackend = "{request.param}"\nlayout = "{layout}"\n'
        f'[storage.{request.param}]\n{name} = "{texts}"\n'
    )
    return texts


@pytest.fixture
def environ(place: Path) -> dict[str, str]:
    return {"PERDURE_HOME": str(place.parent / "home"), "HOME": str(place.parent), "USER": "ana"}


@pytest.fixture
def memory(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with perdure.open() as opened:
        opened.save("Prefers tabs over spaces.", category="preference", slug="indentation")
        opened.commit_session(MESSAGES, session_id="2026-03-02-a", extract=True)
        yield opened


def uris(memory: Memory, query: str) -> set[str]:
    return {memory.name(hit.uri) for hit in memory.recall(query).hits}


def first_cid(memory: Memory, uri: str) -> CID:
    cid = memory.history(uri)[0].cid
    assert cid is not None
    return cid


def test_what_is_saved_is_read_listed_and_found(memory: Memory, place: Path, layout: str) -> None:
    node = memory.read("preference/indentation")

    assert (node.content, node.version) == ("Prefers tabs over spaces.", 1)
    assert {entry.name for entry in memory.list()} == {"pattern", "preference", "profile"}
    assert RULE in uris(memory, "ruff")
    assert len(memory.sessions()) == 1
    assert memory.edits() == ()
    files = sorted(path.relative_to(place).as_posix() for path in place.rglob("*.md"))
    if layout == "notes":
        assert not [path for path in place.rglob(".*") if path.is_file()]
        assert any(name.endswith("Preferences/Indentation.md") for name in files)
        assert all(path.read_text().endswith("\n") for path in place.rglob("*.md"))


def test_a_node_changes_by_every_verb(memory: Memory) -> None:
    memory.save("Prefers tabs of width four.", category="preference", slug="indentation")
    memory.write("preference/tea", "Green tea.", metadata={"cup": "blue", "size": 2})
    memory.relate("preference/tea", "preference/indentation", "depends_on", reason="taste")
    memory.move("preference/indentation", "preference/tabs")

    assert "width four" in memory.read("preference/tabs").content
    (edge,) = memory.read("preference/tea").relations
    assert edge.to_uri.endswith("/preference/tabs")
    assert dict(memory.read("preference/tea").metadata) == {"cup": "blue", "size": 2}
    memory.unrelate("preference/tea", "preference/tabs", "depends_on")
    assert memory.read("preference/tea").relations == ()
    assert len(memory.history("preference/tea")) >= 1
    assert memory.blame("preference/tea")
    assert memory.lint().errors == 0
    assert not memory.repair().findings


def test_archived_nodes_are_neither_listed_nor_found(memory: Memory) -> None:
    memory.archive(RULE)

    with pytest.raises(NodeNotFoundError):
        memory.read(RULE)
    assert RULE not in uris(memory, "ruff")
    assert RULE not in {each.name for entry in memory.list() for each in entry.below}
    memory.unarchive(RULE)
    assert RULE in uris(memory, "ruff")
    assert memory.read(RULE).version == 3


def test_a_node_comes_back_from_history(memory: Memory) -> None:
    first = memory.position
    memory.write("preference/indentation", "Prefers spaces.", replace=True)
    memory.delete("profile")

    assert memory.at(first).read("preference/indentation").content == "Prefers tabs over spaces."
    memory.restore("preference/indentation", first_cid(memory, "preference/indentation"))
    assert memory.read("preference/indentation").content == "Prefers tabs over spaces."
    memory.rewind(first)
    assert "Graz" in memory.read("profile").content


def test_the_evidence_of_a_statement_is_stored(memory: Memory) -> None:
    (claim,) = memory.why(RULE).statements

    assert "Always use ruff, never black." in repr(claim)


def test_what_is_forgotten_is_gone(memory: Memory, place: Path) -> None:
    memory.forget(RULE)

    assert "never black" not in memory.recall("ruff").context
    with pytest.raises(NodeNotFoundError):
        memory.read(RULE)
    memory.commit_session(MESSAGES, session_id="2026-03-02-b", extract=True)
    with pytest.raises(NodeNotFoundError):
        memory.read(RULE)


def test_what_is_erased_is_in_no_file(memory: Memory, place: Path) -> None:
    memory.forget("preference/indentation", erase=True)

    found = b"".join(path.read_bytes() for path in place.parent.rglob("*") if path.is_file())
    assert b"Prefers tabs" not in found


def test_an_export_is_taken_in_by_another_layout(
    memory: Memory, environ: dict[str, str], tmp_path: Path, layout: str
) -> None:
    memory.export(tmp_path / "export")
    other = {**environ, "PERDURE_HOME": str(tmp_path / "other")}
    other["PERDURE_LAYOUT"] = "agfs" if layout == "notes" else "notes"

    import_memory(other, tmp_path / "export")

    with perdure.open(home=tmp_path / "other") as there:
        assert there.read(RULE).content == memory.read(RULE).content
        assert not there.repair().findings
        assert there.edits() == ()


def test_a_lost_index_is_rebuilt(memory: Memory) -> None:
    before = [hit.uri for hit in memory.recall("ruff tabs postgres").hits]
    memory.index.rebuild()

    assert [hit.uri for hit in memory.recall("ruff tabs postgres").hits] == before
    assert [each for each in memory.doctor().checks if each.level.name == "FAIL"] == []
    assert not [part for part in memory.status() if part.trouble]


class TestByHand:
    """What a person does to the notes of a memory in an editor or a file manager."""

    @pytest.fixture
    def layout(self) -> str:
        return "notes"

    @pytest.fixture
    def note(self, memory: Memory, place: Path) -> Path:
        (note,) = place.rglob("Indentation.md")
        return note

    def test_an_edit_is_the_content(self, memory: Memory, note: Path) -> None:
        note.write_text(note.read_text().replace("tabs over", "very wide tabs over"))

        assert (
            memory.read("preference/indentation").content == "Prefers very wide tabs over spaces."
        )
        assert memory.record_edits().recorded
        assert "preference/indentation" in uris(memory, "wide")
        assert not memory.repair().findings

    def test_notes_are_followed_while_they_are_watched(self, memory: Memory, note: Path) -> None:
        ending, new = Event(), note.with_name("Tea.md")
        found = []
        for report in memory.watch(ending):
            found.append((report.kind.value, report.names))
            if report.kind is WatchKind.WATCHING:
                note.write_text(note.read_text().replace("tabs", "zebras"))
            elif report.kind is WatchKind.EDIT:
                new.write_text("Likes green tea.")
            elif report.kind is WatchKind.NEW:
                new.unlink()
            else:
                ending.set()

        assert [(kind, *map(memory.name, names)) for kind, names in found[1:]] == [
            ("edit", "preference/indentation"),
            ("new memory", "preference/tea"),
            ("removed memory", "preference/tea"),
        ]

    def test_a_property_that_a_person_adds_stays(self, memory: Memory, note: Path) -> None:
        note.write_text(note.read_text().replace("---\n", "---\ntags: [ a,b ] # mine\n", 1))
        memory.record_edits()
        memory.save("Prefers tabs of width 4.", category="preference", slug="indentation")

        assert "tags: [ a,b ] # mine\n" in note.read_text()
        assert "width 4" in note.read_text()

    def test_a_renamed_note_is_the_same_node(self, memory: Memory, note: Path) -> None:
        note.rename(note.with_name("Tabs or spaces.md"))
        memory.record_edits()

        assert memory.read("preference/indentation").content == "Prefers tabs over spaces."
        memory.save("Prefers tabs of width 4.", category="preference", slug="indentation")
        assert "width 4" in note.with_name("Tabs or spaces.md").read_text()
        assert not note.exists()
        assert len(memory.history("preference/indentation")) == 2

    @pytest.mark.parametrize("folder", ["Rules", "Cars/Old", "Resources", "Sessions", "."])
    def test_a_note_in_another_folder_is_the_same_node(
        self, memory: Memory, note: Path, folder: str
    ) -> None:
        there = note.parent.parent / folder / "Moved.md"
        there.parent.mkdir(parents=True, exist_ok=True)
        note.rename(there)
        memory.record_edits()

        assert memory.read("preference/indentation").content == "Prefers tabs over spaces."
        memory.save("Prefers tabs of width 4.", category="preference", slug="indentation")
        assert "width 4" in there.read_text()
        assert len(memory.history("preference/indentation")) == 2

    def test_a_session_in_another_folder_is_the_same_session(
        self, memory: Memory, note: Path
    ) -> None:
        memory.commit_session([{"role": "user", "content": "Zebras are striped."}], session_id="s1")
        sessions = (note.parent.parent / "Sessions").iterdir()
        (session,) = [each for each in sessions if "Zebras" in each.read_text()]
        session.rename(note.with_name("Zebras.md"))
        memory.record_edits()

        assert "striped" in memory.read("ctx://local/sessions/s1/messages").content
        assert "ctx://local/sessions/s1/messages" in [h.uri for h in memory.recall("zebras").hits]

    @pytest.mark.parametrize("verb", ["save", "write", "read", "history", "archive", "delete"])
    def test_a_renamed_note_is_found_before_anything_looked_for_edits(
        self, memory: Memory, note: Path, verb: str
    ) -> None:
        memory.recall("tabs")
        there = note.parent.parent / "Tabs or spaces.md"
        note.rename(there)

        if verb == "save":
            memory.save("Prefers tabs of width 4.", category="preference", slug="indentation")
            assert "width 4" in there.read_text()
        elif verb == "write":
            node = memory.read("preference/indentation")
            memory.write("preference/indentation", "Width 4.", version=node.version)
            assert "Width 4" in there.read_text()
        else:
            getattr(memory, verb)("preference/indentation")
            assert there.exists() == (verb != "delete")
        assert not note.exists()
        assert verb == "delete" or len(memory.history("preference/indentation")) <= 2

    def test_a_new_note_with_the_name_of_a_renamed_one_is_another_node(
        self, memory: Memory, note: Path
    ) -> None:
        memory.recall("tabs")
        note.rename(note.with_name("Tabs or spaces.md"))
        note.write_text("---\nid: preference/quotes\n---\nPrefers single quotes.\n")

        memory.save("Prefers tabs of width 4.", category="preference", slug="indentation")

        assert "width 4" in note.with_name("Tabs or spaces.md").read_text()
        assert "single quotes" in note.read_text()
        memory.recall("quotes")
        assert memory.read("preference/quotes").content == "Prefers single quotes."

    def test_a_copy_with_the_same_id_is_a_conflict_copy(self, memory: Memory, note: Path) -> None:
        note.with_name("Aaa.md").write_text(note.read_text().replace("tabs", "nothing"))
        memory.record_edits()

        assert memory.read("preference/indentation").content == "Prefers tabs over spaces."
        assert [Path(each.path).name for each in memory.conflicts()] == ["Aaa.md"]

    def test_a_new_note_is_a_memory(self, memory: Memory, note: Path) -> None:
        note.with_name("Über Tee.md").write_text("I drink green tea.")
        memory.record_edits()

        (found,) = [hit for hit in memory.recall("green tea").hits if "preference" in hit.uri]
        assert memory.read(found.uri).content == "I drink green tea."
        assert note.with_name("Über Tee.md").read_text() == "I drink green tea."

    def test_a_deleted_note_is_gone(self, memory: Memory, note: Path) -> None:
        note.unlink()
        memory.record_edits()

        with pytest.raises(NodeNotFoundError):
            memory.read("preference/indentation")
        assert "preference/indentation" not in uris(memory, "tabs")
        memory.restore("preference/indentation", first_cid(memory, "preference/indentation"))
        assert note.read_text().endswith("Prefers tabs over spaces.\n")

    def test_without_its_table_every_note_is_found(self, memory: Memory, note: Path) -> None:
        note.rename(note.with_name("Tabs or spaces.md"))
        (table,) = (memory.home / "histories").rglob("places.sqlite")
        memory.close()
        table.unlink()

        with perdure.open() as again:
            assert again.read("preference/indentation").content == "Prefers tabs over spaces."
            assert not again.record_edits().recorded

    def test_frontmatter_that_is_broken_loses_nothing(self, memory: Memory, note: Path) -> None:
        (note,) = note.parent.parent.rglob("Always use ruff*.md")
        note.write_text(note.read_text().replace("---\n", "---\nbad: [\n", 1))
        memory.record_edits()

        node = memory.read(RULE)
        assert node.content == "- Always use ruff, never black.\n"
        assert "statements" in node.metadata


def snapshot(memory: Memory) -> dict[str, object]:
    names = [each.name for entry in memory.list() for each in (entry, *entry.below) if each.node]
    return {name: (memory.read(name), memory.history(name)) for name in names}


def test_a_store_changes_its_layout_and_back(
    memory: Memory, place: Path, environ: dict[str, str], layout: str
) -> None:
    memory.archive(RULE)
    memory.relate("preference/indentation", "profile", "supports")
    before = snapshot(memory)
    memory.close()
    with perdure.open() as again:
        again.recall("tabs")  # an index logs what it was made of
        versions = [each.cid for each in again.history("preference/indentation")]
    config = place.parent / "home" / "config.toml"
    config.write_text(config.read_text().replace(f'layout = "{layout}"\n', ""))
    files = {path for path in place.rglob("*") if path.is_file()}
    other = "agfs" if layout == "notes" else "notes"

    for wanted in (other, other, layout):
        change_layout(environ, wanted)
        with perdure.open() as again:
            assert snapshot(again) == before
            position = again.position
            assert [each.cid for each in again.history("preference/indentation")] == versions
            assert not again.repair().findings
            assert again.edits() == ()
            assert again.position == position
            assert again.recall("tabs").hits

    assert {path for path in place.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("writes", range(6))
def test_an_interrupted_change_of_layout_is_done_again(
    memory: Memory, place: Path, environ: dict[str, str], layout: str, writes: int
) -> None:
    before = snapshot(memory)
    memory.close()
    config = place.parent / "home" / "config.toml"
    config.write_text(config.read_text().replace(f'layout = "{layout}"\n', ""))
    other = "agfs" if layout == "notes" else "notes"
    real, left = FolderBackend._land, writes

    def land(backend: FolderBackend, changes: Sequence[TextChange]) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise StorageFaultError("killed")
        return real(backend, changes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FolderBackend, "_land", land)
        with suppress(StorageFaultError):
            change_layout(environ, other)
    change_layout(environ, other)

    with perdure.open() as again:
        assert snapshot(again) == before
        assert not again.repair().findings
