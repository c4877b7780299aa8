"""Edits made outside Perdure are found by the next recall, or a hint says that they may not be."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.app import Context
from perdure.engine import change_watcher, edits
from perdure.engine.edits import look_for_edits
from perdure.engine.recall.result import HintKind, RecallResult
from perdure.errors import TextsGoneError
from perdure.storage.stamps import ScanResult
from tests.engine.remembering import of, opened, save_all

pytestmark = pytest.mark.usefixtures("agfs")

TABS = "ctx://local/users/ana/memories/preference/indentation"
KINDS = {HintKind.EDITS_UNCHECKED, HintKind.TEXTS_GONE, HintKind.EDIT_NOT_RECORDED}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        save_all(of(context))
        yield context


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    return tmp_path / ".perdure" / "memory" / "accounts" / "local" / "users" / "ana" / "memories"


def found(context: Context, words: str) -> list[str]:
    result = of(context).recall(words)
    assert result.index_lag == 0
    assert doubts(result) == set()
    return [hit.uri for hit in result.hits]


def doubts(result: RecallResult) -> set[HintKind]:
    return {hint.kind for hint in result.hints} & KINDS


def test_words_that_only_an_edit_brought_are_found(context: Context, memories: Path) -> None:
    file = memories / "preference" / "indentation" / "content.md"
    file.write_text(file.read_text() + "\nZebras are allowed.\n")

    assert found(context, "zebras") == [TABS]
    assert [version.origin for version in of(context).history(TABS)] == ["save", "external"]


def test_a_node_that_a_sync_client_brought_is_found(context: Context, memories: Path) -> None:
    folder = memories / "preference" / "indentation"
    shutil.copytree(folder, memories / "preference" / "synced")
    (memories / "preference" / "synced" / "content.md").write_text("Zebras from elsewhere.\n")

    assert found(context, "zebras")[0].endswith("/synced")


def test_a_content_without_a_meta_becomes_a_node(context: Context, memories: Path) -> None:
    folder = memories / "preference" / "stripes"
    folder.mkdir()
    (folder / "content.md").write_text("Zebras have stripes.\n")

    assert found(context, "zebras")[0].endswith("/stripes")
    assert (folder / ".meta.json").is_file()


def test_an_empty_content_is_left_alone_until_it_says_something(
    context: Context, memories: Path
) -> None:
    folder = memories / "preference" / "stripes"
    folder.mkdir()
    (folder / "content.md").write_text("\n")
    assert found(context, "zebras") == []
    assert [each.name for each in folder.iterdir()] == ["content.md"]

    (folder / "content.md").write_text("Zebras have stripes.\n")
    assert found(context, "zebras")[0].endswith("/stripes")


def test_what_is_removed_or_renamed_is_found_no_more_or_there(
    context: Context, memories: Path
) -> None:
    assert TABS in found(context, "tabs")
    (memories / "preference" / "indentation").rename(memories / "preference" / "tabulators")

    assert TABS not in found(context, "tabs")
    assert found(context, "tabs")[0].endswith("/tabulators")
    assert of(context).history(TABS)[-1].unbound

    shutil.rmtree(memories / "preference" / "tabulators")
    assert not any(uri.endswith("/tabulators") for uri in found(context, "tabs"))


def test_another_process_finds_it_too(context: Context, memories: Path, tmp_path: Path) -> None:
    found(context, "tabs")
    file = memories / "preference" / "indentation" / "content.md"
    file.write_text(file.read_text() + "\nZebras are allowed.\n")

    with opened(tmp_path, semantic=False) as other:
        assert found(other, "zebras") == [TABS]
    assert found(context, "zebras") == [TABS]
    assert len(of(context).history(TABS)) == 2


def test_saves_are_not_taken_for_edits(context: Context) -> None:
    memory = of(context)
    memory.recall("tabs")
    memory.save("Prefers zebras.", category="preference", slug="animals")
    memory.save("Prefers tapirs.", category="preference", slug="animals")
    before = context.recorded.history.position()

    assert found(context, "tapirs")
    assert context.recorded.history.position() == before
    memory.delete("preference/animals")
    for number in range(12):
        memory.save(f"Note {number}.", category="case", slug=f"n{number}")
    found(context, "note")
    for number in range(12):
        memory.delete(f"case/n{number}")
    assert found(context, "note") == []


def test_many_that_are_gone_are_asked_about(context: Context, memories: Path) -> None:
    memory = of(context)
    for number in range(40):
        memory.save(f"Case {number}.", category="case", slug=f"n{number}")
    found(context, "case")
    shutil.move(memories / "case", memories.parent.parent.parent.parent.parent.parent / "away")
    before = context.recorded.history.position()

    result = memory.recall("tabs")
    assert doubts(result) == {HintKind.TEXTS_GONE}
    assert result.index_lag > 0
    with pytest.raises(TextsGoneError):
        memory.repair(apply=True)
    assert context.recorded.history.position() == before

    memory.repair(apply=True, accept_removals=True)
    assert found(context, "case") == []


def test_out_of_time_the_answer_says_so_and_a_later_one_finds_it(
    context: Context, memories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(context, "tabs")
    file = memories / "preference" / "indentation" / "content.md"
    file.write_text(file.read_text() + "\nZebras are allowed.\n")
    monkeypatch.setattr(type(context), "check_seconds", -1.0)

    results = [of(context).recall("zebras") for _ in range(30)]

    assert doubts(results[0]) == {HintKind.EDITS_UNCHECKED}
    assert all(result.index_lag > 0 for result in results)
    assert [hit.uri for hit in results[-1].hits] == [TABS]


def test_a_check_that_is_switched_off_gives_a_hint(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(context), "check_seconds", 0.0)

    result = of(context).recall("tabs")

    assert doubts(result) == {HintKind.EDITS_UNCHECKED}
    assert result.index_lag > 0


def test_a_table_that_is_gone_forgets_no_removal(
    context: Context, memories: Path, tmp_path: Path
) -> None:
    found(context, "tabs")
    shutil.rmtree(memories / "preference" / "indentation")
    for file in tmp_path.rglob("seen.sqlite*"):
        file.unlink()

    assert TABS not in found(context, "tabs")
    assert of(context).history(TABS)[-1].unbound


def test_a_briefing_knows_of_edits(context: Context, memories: Path) -> None:
    file = memories / "preference" / "indentation" / "content.md"
    file.write_text(file.read_text().replace("tabs over spaces", "zebras over tapirs"))

    assert "zebras over tapirs" in of(context).briefing().text


def test_status_doctor_and_index_count_what_is_not_recorded(
    context: Context, memories: Path
) -> None:
    memory = context.memory
    memory.recall("tabs")
    sections = {section.name: section for section in memory.status()}
    assert sections["edits"].facts == {"unrecorded": 0, "unchecked": 0, "unit": "text"}
    file = memories / "preference" / "indentation" / "content.md"
    file.write_text(file.read_text() + "\nZebras are allowed.\n")

    sections = {section.name: section for section in memory.status()}
    assert sections["edits"].facts["unrecorded"] == 1
    assert memory.index.status().unrecorded == 1
    (check,) = (check for check in memory.doctor().checks if check.name == "edits")
    assert check.message.startswith("1 text")

    memory.recall("tabs")
    assert memory.index.status().unrecorded == 0


def test_erasing_leaves_nothing_in_the_table(context: Context, tmp_path: Path) -> None:
    memory = context.memory
    memory.recall("tabs")
    memory.forget(TABS, erase=True)

    table = next(tmp_path.rglob("seen.sqlite*"), None)
    assert table is None or b"indentation" not in table.read_bytes()
    assert TABS not in found(context, "tabs")
    found_now = look_for_edits(context.recorded.inner, context.recorded.history, context.seen)
    assert found_now.found == ()


class TestWatcher:
    @pytest.fixture
    def watched(self, context: Context) -> Context:
        for _ in range(2):
            context.start_watcher(lambda: edits.checked_folders(context.recorded.inner))
        assert context.watcher is not None
        return context

    def test_it_misses_nothing_and_lets_recalls_look_at_nothing(
        self, watched: Context, memories: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[int] = []
        look = edits.look_for_edits

        def counted(*given: Any) -> ScanResult:  # noqa: ANN401 - passed on
            looks.append(1)
            return look(*given)

        monkeypatch.setattr(edits, "look_for_edits", counted)
        found(watched, "tabs")
        before = len(looks)
        for _ in range(5):
            found(watched, "tabs")
        assert len(looks) - before <= 1  # young files and those of the first scan are checked

        file = memories / "preference" / "indentation" / "content.md"
        for number in range(5):
            file.write_text(f"A zebra{number} is here.\n")
            assert found(watched, f"zebra{number}") == [TABS]
        folder = memories / "preference" / "deep"
        shutil.copytree(file.parent, folder)
        (folder / "content.md").write_text("A tapir.\n")
        assert found(watched, "tapir")[0].endswith("/deep")
        (folder / "content.md").write_text("An okapi.\n")
        assert found(watched, "okapi")[0].endswith("/deep")

    def test_one_that_is_dead_is_not_believed(self, watched: Context, memories: Path) -> None:
        found(watched, "tabs")
        telling = watched.watcher
        assert telling is not None
        telling.close()
        file = memories / "preference" / "indentation" / "content.md"
        file.write_text("A zebra is here.\n")

        assert telling.changes() is None
        assert found(watched, "zebra") == [TABS]

    def test_a_disk_that_others_write_to_is_not_watched(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(change_watcher, "_disk_of", lambda _: "nfs4")

        assert change_watcher.change_watcher(str(tmp_path), lambda: [""]) is None

    def test_it_starts_where_looking_takes_long(
        self, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(edits, "WORTH_WATCHING", 1e9)
        found(context, "tabs")
        found(context, "tabs")
        assert context.watcher is None
        monkeypatch.setattr(edits, "WORTH_WATCHING", 0.0)
        found(context, "tabs")
        assert context.watcher is None
        found(context, "tabs")
        assert context.watcher is not None

    def test_a_child_process_does_not_read_its_parents_events(self, watched: Context) -> None:
        telling = watched.watcher
        assert telling is not None
        telling._pid += 1

        assert telling.changes() is None

    def test_it_is_not_believed_for_long(
        self, watched: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(change_watcher, "_TRUSTED_SECONDS", 0.0)
        telling = watched.watcher
        assert telling is not None
        changes = telling.changes()
        assert changes is not None
        telling.settle(changes)

        assert not telling.is_settled(changes)

    def test_too_many_folders_are_not_watched(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(change_watcher, "MAX_FOLDERS", 1)

        assert change_watcher.change_watcher(str(tmp_path), lambda: ["", ""]) is None
