"""`perdure watch`: records edits as soon as they are saved."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from perdure import WatchKind, WatchReport
from perdure.app import open_context
from perdure.engine import file_watch
from perdure.errors import AccessDeniedError, StorageSelectionError
from tests.surfaces.nodes import one, refusal, stdout_of
from tests.surfaces.processes import Running, running, until

pytestmark = [
    pytest.mark.usefixtures("agfs"),
    pytest.mark.parametrize("memory", ["vault"], indirect=True),
]

MEMORIES = "ctx://local/users/ana/memories"
AT_ONCE_SECONDS = 1.0
IN_TIME_SECONDS = 20.0
"""For a machine that has much else to do."""


@pytest.fixture
def watching(tabs: Path) -> Iterator[Running]:
    stdout_of("recall", "tabs")
    with running("watch") as process:
        assert process.line() == f"watching {tabs.parents[7]}"
        yield process


def found(question: str) -> list[str]:
    """Return what the index has as it is, without bringing it up to date."""
    with open_context(os.environ) as context:
        index = context.indexes.current("local").follower.index
        whose = {"account_id": "local", "owner_space": "user:ana"}
        return [hit.text for hit in index.search_by_text([question], {**whose, "level": 2}, 9)]


def origins(place: str) -> list[str]:
    """Return whose each version of a node is."""
    with open_context(os.environ) as context:
        uri = f"ctx://local/users/ana/memories/{place}"
        return [version.origin for version in context.memory.history(uri)]


def test_an_edit_is_a_version_and_found_at_once(tabs: Path, watching: Running) -> None:
    tabs.write_text(tabs.read_text().replace("tabs", "giraffes"))

    assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"
    assert found("giraffes") == ["Prefers giraffes."]
    assert found("tabs") == []
    assert origins("preference/indentation")[1:] == ["external"]


def test_edits_are_taken_in_within_a_second(tabs: Path, watching: Running) -> None:
    took = []
    for word in ("one", "two", "three", "four"):
        saved = time.monotonic()
        tabs.write_text(f"Prefers {word}.")

        assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"
        took.append(time.monotonic() - saved)
        assert found(word) == [f"Prefers {word}."]

    assert min(took) < AT_ONCE_SECONDS


def test_an_editor_that_saves_by_renaming_is_followed(tabs: Path, watching: Running) -> None:
    other = tabs.with_name("content.md~")
    other.write_text("Prefers zebras.")
    other.rename(tabs)

    assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"
    assert found("zebras") == ["Prefers zebras."]


def test_what_is_no_file_of_a_node_is_none_of_its_concern(tabs: Path, watching: Running) -> None:
    tabs.with_name("notes.txt").write_text("hello")
    (tabs.parents[7] / "elsewhere.md").write_text("hello")
    tabs.write_text("Prefers soup.")

    assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"


def test_what_others_write_with_perdure_is_no_edit(tabs: Path, watching: Running) -> None:
    stdout_of("write", "preference/coffee", "Drinks coffee black.")
    tabs.write_text("Prefers soup.")

    assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"
    watching.tell()
    assert watching.end()[:2] == (0, "")


# ---------------------------------------------------------------- notes made by hand
def test_a_new_note_becomes_a_node_and_is_found(tabs: Path, watching: Running) -> None:
    tea = tabs.parents[1] / "tea"
    tea.mkdir()
    (tea / "content.md").write_text("Likes green tea.")

    assert watching.line(IN_TIME_SECONDS) == "1 new memory: preference/tea"
    assert found("green") == ["Likes green tea."]
    assert one("read", "preference/tea")["version"] == 1


def test_an_empty_note_waits_until_it_says_something(tabs: Path, watching: Running) -> None:
    tea = tabs.parents[1] / "tea" / "content.md"
    tea.parent.mkdir()
    tea.touch()
    tabs.write_text("Prefers soup.")
    assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"

    tea.write_text("Likes green tea.")

    assert watching.line(IN_TIME_SECONDS) == "1 new memory: preference/tea"


def test_a_note_that_was_there_before_becomes_a_node_too(tabs: Path) -> None:
    stdout_of("recall", "tabs")
    tea = tabs.parents[1] / "tea" / "content.md"
    tea.parent.mkdir()
    tea.write_text("Likes green tea.")

    with running("watch") as process:
        assert process.line().startswith("watching ")
        assert process.line(IN_TIME_SECONDS) == "1 new memory: preference/tea"
        assert found("green") == ["Likes green tea."]


def test_a_folder_that_was_renamed_is_found_under_its_new_name(
    tabs: Path, watching: Running
) -> None:
    tabs.parent.rename(tabs.parents[1] / "spaces")

    said = {watching.line(IN_TIME_SECONDS), watching.line(IN_TIME_SECONDS)}

    assert said == {"1 new memory: preference/spaces", "1 removed memory: preference/indentation"}
    assert one("recall", "tabs")["hits"][0]["uri"].endswith("/preference/spaces")  # type: ignore[index] # of a hit
    assert one("index", "verify")["ok"] is True


def test_what_is_left_alone_is_reported_once_with_its_fix(tabs: Path, watching: Running) -> None:
    bad = tabs.parents[1] / "bad" / "content.md"
    bad.parent.mkdir()
    for text in ("Prefers soup.", "Prefers bread."):
        bad.write_text("x" * 100_001 + text)
        tabs.write_text(text)
        assert watching.line(IN_TIME_SECONDS) == "1 edit: preference/indentation"

    watching.tell()
    code, printed, complained = watching.end()

    assert (code, printed) == (0, "")
    (line,) = complained.splitlines()
    assert "/preference/bad: content.md: it has 100,0" in line


def test_where_the_system_does_not_tell_all_files_are_looked_at(
    tabs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdout_of("recall", "tabs")
    monkeypatch.setattr(file_watch, "change_watcher", lambda *_: None)
    monkeypatch.setattr(file_watch, "_POLL_SECONDS", 0.05)
    ending = Event()
    with open_context(os.environ) as context:
        reports = context.memory.watch(ending)
        assert next(reports).kind is WatchKind.WATCHING
        tabs.write_text("Prefers giraffes.")

        edit = next(reports)
        ending.set()
        assert list(reports) == []

    assert edit == WatchReport(WatchKind.EDIT, (f"{MEMORIES}/preference/indentation",))


def test_an_edit_that_breaks_a_note_is_reported(tabs: Path, watching: Running) -> None:
    tabs.write_text("x" * 100_001)
    until(lambda: len(origins("preference/indentation")) > 1)

    watching.tell()

    message = "preference/indentation can't be read as it is, so what was there before counts: "
    assert message in watching.end()[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_success(
    tabs: Path, watching: Running, number: signal.Signals
) -> None:
    tabs.write_text("Prefers soup.")
    watching.line(IN_TIME_SECONDS)

    watching.tell(number)

    assert watching.end() == (0, "", "")
    assert one("index", "verify")["ok"] is True


def test_what_was_edited_before_is_recorded_when_it_begins(tabs: Path) -> None:
    stdout_of("recall", "tabs")
    tabs.write_text("Prefers soup.")

    with running("watch") as process:
        process.line()
        process.tell()
        code, printed, complained = process.end()

    assert (code, printed) == (0, "")
    assert complained.startswith("recorded 1 edit made outside Perdure: ")


def test_before_anything_is_there_it_says_what_to_do(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORY_VAULT_PATH")

    refused = refusal("watch")

    assert isinstance(refused, StorageSelectionError)
    assert "Fix: write something first" in str(refused)


def test_it_is_for_those_who_govern(tabs: Path) -> None:
    assert isinstance(refusal("watch", "--as-role", "member"), AccessDeniedError)
