"""Whoever keeps what is private, or takes others' words for the user's, fails the tests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.engine.session_notes import SessionNotes
from perdure.model.privacy import PrivacyFilter, _PrivateWords
from perdure.model.trust import AgentSettings
from perdure.surfaces.mcp import tools
from perdure.transfer import items, json_records
from tests.bites import FAILED
from tests.surfaces.hooks import test_origins, test_switches
from tests.surfaces.hooks.calling import SESSION, environment

pytestmark = pytest.mark.search

Break = Callable[[pytest.MonkeyPatch], None]


def keeps_all_words(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PrivacyFilter, "public", lambda _self, _role, content, _time=None: content)


def never_switches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("perdure.model.privacy.switch_in", lambda _content: None)


def does_not_know_slash_commands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_records, "switch_in", lambda _content: None)


def keeps_what_is_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_PrivateWords, "masked", lambda _self, text: text)


def keeps_titles(patch: pytest.MonkeyPatch) -> None:
    admit = items.Admission.admit

    def with_title(self: items.Admission, item, session_id=""):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        found = admit(self, item, session_id)
        if not isinstance(found, items.AdmittedSession):
            return found
        return replace(found, item=replace(found.item, title=item.title))

    patch.setattr(items.Admission, "admit", with_title)


def ignores_what_hooks_noted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionNotes, "switches", lambda _self, *_ids: ())


IN_FILES = (
    (keeps_all_words, "test_nothing_between_is_in_any_file"),
    (never_switches, "test_nothing_between_is_in_any_file"),
    (does_not_know_slash_commands, "test_nothing_between_is_in_any_file"),
    (keeps_what_is_repeated, "test_it_holds_when_a_transcript_is_read_in_parts"),
    (ignores_what_hooks_noted, "test_a_switch_that_no_transcript_shows_counts"),
)


@pytest.mark.parametrize(("breaks", "test"), IN_FILES)
def test_what_is_private_and_stored_is_seen(
    breaks: Break, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    words = {"on": test_switches.ON, "off": test_switches.OFF} if "between" in test else {}
    path = tmp_path / f"{SESSION}.jsonl"
    with open_context(environment(tmp_path)) as context, pytest.raises(FAILED):
        getattr(test_switches.TestPrivateMode(), test)(tmp_path, path, context, **words)


def test_a_title_that_tells_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_titles(monkeypatch)
    test, path = test_switches.TestPrivateWords(), tmp_path / f"{SESSION}.jsonl"
    with open_context(environment(tmp_path)) as context, pytest.raises(FAILED):
        test.test_a_title_or_a_summary_that_tells_of_them_is_not_stored(tmp_path, path, context)


def test_a_headless_session_that_is_stored_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AgentSettings, "refusal", lambda *_, **__: None)
    test = test_switches.TestHeadless()
    with open_context(environment(tmp_path)) as context, pytest.raises(FAILED):
        test.test_the_reader_knows_a_headless_transcript(tmp_path, tmp_path, context, "codex")


# ---------------------------------------------------------------- origins
def compares_with_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(items, "_contains", lambda _text, _key: False)


def compares_with_what_comes_later(patch: pytest.MonkeyPatch) -> None:
    found = items._origins
    patch.setattr(
        items,
        "_origins",
        lambda messages, outputs: found(
            messages, [replace(each, messages_before=0) for each in outputs]
        ),
    )


def reads_on_where_a_rule_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(items.AdmittedSession, "states_anything", False)


@pytest.mark.parametrize(
    ("breaks", "test"),
    [
        (compares_with_nothing, "test_a_rule_does_not_write_what_a_page_stated_before"),
        (compares_with_what_comes_later, "test_what_the_user_stated_first_is_their_own"),
        (reads_on_where_a_rule_writes, "test_a_page_of_an_earlier_part_is_remembered"),
    ],
)
def test_words_of_others_that_are_learned_are_seen(
    breaks: Break, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    with open_context(environment(tmp_path)) as context, pytest.raises(FAILED):
        getattr(test_origins.TestWordsOfOthers(), test)(context, tmp_path)


def test_an_order_of_a_page_that_is_stored_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".perdure").mkdir()
    test = test_origins.TestRemembering()
    test.hook(tmp_path, "session-start", source="startup")
    test.hook(tmp_path, "post-tool-use", tool_name="WebFetch", tool_input={"url": "x"})
    test.test_an_order_of_a_page_waits_for_the_user(tmp_path)
    monkeypatch.setattr(tools, "foreign_origins", lambda *_, **__: ())
    with pytest.raises(FAILED):
        test.test_an_order_of_a_page_waits_for_the_user(tmp_path)
