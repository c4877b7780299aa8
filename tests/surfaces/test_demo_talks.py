"""The conversations of the demo: believable, harmless, and with that in them which it shows."""

import re
from datetime import UTC, date, datetime
from itertools import pairwise

import pytest

from perdure.engine.extract.rules.extractors import extractors
from perdure.engine.validate.secrets import secrets_in
from perdure.model import RequestContext
from perdure.model.transcript import Message
from perdure.surfaces.demo.saving import CHATTER
from perdure.surfaces.demo.talks import OWNER, SECRET, Talk, made_up_key, talks

TALKS = talks()
NAMES = {"Mara", "Jonas", "Pilar"}
KEY = made_up_key()
TABLES = "In this project we always keep the computed tide tables of our harbours in"
RELEASE = "Every release of the phone app goes out to sailors on a"
LOCKED = (
    "Problem: sqlite3.OperationalError: database is locked. "
    "What helped: Try `PRAGMA journal_mode=WAL` on the file."
)
LEARNED = {
    "2026-01-05-kick-off": {"Mara lives in Kiel.", "Jonas lives in Bergen."},
    "2026-01-07-which-database": {
        f"{TABLES} SQLite.",
        "Mara and others decided to use SQLite until it hurts.",
    },
    "2026-01-08-indentation": {"Mara prefers tabs over spaces."},
    "2026-01-12-who-is-who": {"Jonas is allergic to shrimp."},
    "2026-01-14-release-day": {f"{RELEASE} Thursday."},
    "2026-01-26-database-locked": {LOCKED},
    "2026-02-03-colours": {"Mara likes dark mode."},
    "2026-03-13-after-the-yacht-club": {
        "Mara and others opened the beta to everybody on 2026-03-12."
    },
    "2026-04-14-to-postgres": {f"{TABLES} Postgres."},
    "2026-04-21-boxes": {"Mara lives in Porto."},
    "2026-05-11-formatter": {"Mara prefers spaces over tabs."},
    "2026-05-12-release-day-again": {f"{RELEASE} Tuesday."},
    "2026-06-16-summer-plans": {"Jonas lives in Tromsø."},
    CHATTER: set(),
    "2026-04-29-small-talk-on-fish": set(),
}


def named(name: str) -> Talk:
    (talk,) = [each for each in TALKS if each.name == name]
    return talk


def said(talk: Talk) -> list[Message]:
    return [Message.from_mapping(each) for each in talk.messages(KEY)]


def learned(talk: Talk) -> set[str]:
    ctx = RequestContext(account_id="local", user_id=OWNER, session_id=talk.name)
    found = (each.extract(talk.messages(KEY), ctx) for each in extractors())
    return {candidate.content for some in found for candidate in some}


def test_there_are_about_fifty_over_half_a_year() -> None:
    assert 45 <= len(TALKS) <= 60
    assert {talk.month for talk in TALKS} == {f"2026-0{month}" for month in range(1, 7)}


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)
class TestTalk:
    def test_is_of_6_to_25_messages_that_can_be_committed(self, talk: Talk) -> None:
        assert 6 <= len(said(talk)) <= 25

    def test_takes_place_on_its_day_one_message_after_the_other(self, talk: Talk) -> None:
        times = [each.time or datetime.min.replace(tzinfo=UTC) for each in said(talk)]

        assert {time.date() for time in times} == {date.fromisoformat(talk.name[:10])}
        assert all(one < other for one, other in pairwise(times))

    def test_is_among_people_who_were_made_up_and_the_owner_is_one(self, talk: Talk) -> None:
        names = {each.name for each in said(talk) if each.role == "user"}

        assert "Mara" in names <= NAMES
        assert {each.role for each in said(talk)} <= {"user", "assistant"}

    def test_has_no_address_number_link_or_secret(self, talk: Talk) -> None:
        assert not re.search(
            r"@|https?:|www\.|\+?\d[\d /-]{7,}\d", "".join(each.content for each in said(talk))
        )
        assert secrets_in(talk.text) == []

    def test_is_no_copy_of_another(self, talk: Talk) -> None:
        others = {each.content for other in TALKS if other != talk for each in said(other)}

        assert not {each.content for each in said(talk) if len(each.content) > 25} & others


@pytest.mark.parametrize("name", LEARNED)
def test_what_the_demo_shows_is_learned_from_it(name: str) -> None:
    found = learned(named(name))

    assert LEARNED[name] <= found
    assert LEARNED[name] or not found


def test_one_conversation_gives_a_key_away_that_each_run_makes_up() -> None:
    (talk,) = [each for each in TALKS if SECRET in each.text]
    first, second = (made_up_key() for _ in range(2))

    assert first != second
    assert first in str(talk.messages(first))


def test_a_key_that_was_made_up_is_taken_for_a_secret_whatever_it_is() -> None:
    keys = [made_up_key() for _ in range(500)]

    assert [key for key in keys if not secrets_in(f"For your notes: api_key={key}")] == []
