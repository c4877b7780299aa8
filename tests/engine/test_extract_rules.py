"""What each extractor makes of a sentence, and what it leaves alone."""

from datetime import UTC, datetime

import pytest

from perdure.engine.learn.contract import CandidateExtractor
from perdure.engine.learn.persons import name_at
from perdure.engine.learn.extractors import (
    EntityEventExtractor,
    PreferenceExtractor,
    ProfileExtractor,
)
from perdure.engine.learn.extractors import ProcedureExtractor
from perdure.model import CandidateMemory, RequestContext
from perdure.testing.requirement import requirement

ANA = RequestContext("acme", "ana")
WEDNESDAY = datetime(2026, 4, 15, 12, tzinfo=UTC)
NOTHING: list[str] = []


def found_in(
    extractor: CandidateExtractor, content: str, name: str = "Ana", role: str = "user"
) -> list[CandidateMemory]:
    message = {"role": role, "content": content, "name": name, "time": WEDNESDAY}
    return extractor.extract([message], ANA)


def told(extractor: CandidateExtractor, content: str) -> list[str]:
    return [each.content for each in found_in(extractor, content)]


PROFILE = [
    ("My name is Ana Silva.", ["Ana's name is Ana Silva."]),
    ("I'm 68, so I don't lift anything.", ["Ana is 68."]),
    ("I'm 90% sure", NOTHING),
    ("I'm 5 minutes away", NOTHING),
    ("I live in Porto", ["Ana lives in Porto."]),
    ("I don't live in Porto any more", ["Ana does not live in Porto any more."]),
    ("I live in fear of spiders", NOTHING),
    ("I was born in Gothenburg but left", ["Ana was born in Gothenburg."]),
    ("I'm a nurse at São João", ["Ana is a nurse at São João."]),
    ("I'm not a nurse any more", ["Ana is not a nurse any more."]),
    ("I'm a bit tired", NOTHING),
    ("I'm a big fan of clocks", NOTHING),
    ("I work for Telenor", ["Ana works for Telenor."]),
    ("My daughter Mia is 7", ["Ana's daughter Mia is 7."]),
    ("my cousin Rachel came by", ["Rachel is Ana's cousin."]),
    ("Mia is my daughter", ["Mia is Ana's daughter."]),
    ("We have three daughters", ["Ana and others have three daughters."]),
    ("I speak German, English and some Czech", ["Ana speaks German, English and some Czech."]),
    ("My pronouns are they/them", ["Ana's pronouns are they/them."]),
    ("I'm allergic to nuts", ["Ana is allergic to nuts."]),
    ("My time zone is CET", ["Ana's time zone is CET."]),
    ("My birthday is 3 May", ["Ana's birthday is 3 May."]),
    ("If I lived in Porto I'd swim", NOTHING),
    ("I wish I lived in Porto", NOTHING),
    ("My boss says I live in the office", NOTHING),
    ("Tom says, I live in Rome", NOTHING),
    ("My boss told everybody: I live in the office", NOTHING),
    ("I said, I live in Rome", ["Ana lives in Rome."]),
    ("the city I live in is small", NOTHING),
    ("I live in Porto. Just kidding!", NOTHING),
    ("I live on the moon, just kidding", NOTHING),
    ("I moved, did I tell you I live in Porto?", NOTHING),
]
PREFERENCE = [
    ("I really like hiking", ["Ana really likes hiking."]),
    ("I don't like coffee", ["Ana does not like coffee."]),
    ("I can't stand the gym", ["Ana can't stand the gym."]),
    ("I prefer tabs over spaces", ["Ana prefers tabs over spaces."]),
    ("I'd rather not use docker", ["Ana would rather not use docker."]),
    ("My favourite flowers are peonies", ["Ana's favourite flowers are peonies."]),
    ("Peonies are my favourite flowers", ["Peonies are Ana's favourite flowers."]),
    ("Please use tabs", ["Ana asks to use tabs."]),
    ("Call me Bea.", ["Ana wants to be called Bea."]),
    ("don't use emojis", ["Ana asks not to use emojis."]),
    ("Never commit to main", ["Ana asks never to commit to main."]),
    ("No emojis please", ["Ana wants No emojis."]),
    ("I never drink alcohol", ["Ana never drinks alcohol."]),
    ("I like it", NOTHING),
    ("I love that idea", NOTHING),
    ("I'd love to", NOTHING),
    ("I like your second option", NOTHING),
    ("please use the second file", NOTHING),
    ("add her name to it, then respond to some emails", NOTHING),
    ("Always run `make lint` before you push", NOTHING),
    ("Never give up", NOTHING),
    ("I always forget", NOTHING),
    ("Tom says he likes hiking", NOTHING),
    ("Tom says I like hiking", NOTHING),
    ("Would I like hiking", NOTHING),
    ("like I said", NOTHING),
    ("The sign said 'I like trains'", NOTHING),
]
ENTITY_EVENT = [
    ("Rex is my dog", ["Rex is Ana's dog."]),
    ("my friend Olaf came", ["Olaf is Ana's friend."]),
    ("Our project is called Atlas", ["Ana's project is called Atlas."]),
    ("My manager is Tanaka-san", ["Ana's manager is Tanaka-san."]),
    ("Hanami is our new reading app", ["Hanami is Ana's new reading app."]),
    ("I have a dog named Rex", ["Ana has a dog named Rex."]),
    ("the girl named Charlotte won", NOTHING),
    ("Python is my favourite language", NOTHING),
    ("Berlin is a city", NOTHING),
    ("I sold my boat yesterday", ["Ana sold their boat on 2026-04-14."]),
    ("I sold it last Friday", ["Ana sold it on 2026-04-10."]),
    ("I met her on a sunny Friday", ["Ana met her on a sunny Friday 2026-04-10."]),
    ("I have an exam on Friday", ["Ana has an exam on Friday 2026-04-17."]),
    ("I had an exam on Friday", ["Ana had an exam on Friday 2026-04-10."]),
    (
        "We are getting married on September 12th",
        ["Ana and others are getting married on 2026-09-12."],
    ),
    ("I moved to Porto last month", ["Ana moved to Porto in 2026-03."]),
    ("I retired in 2019", ["Ana retired in 2019."]),
    ("next week I'm flying to Rome", ["In the week of 2026-04-20 Ana is flying to Rome."]),
    ("We decided to use Postgres 16", ["Ana and others decided to use Postgres 16."]),
    ("Let's go with white", ["Ana and others decided to go with white."]),
    ("I go running every Friday", NOTHING),
    ("I didn't sell it yesterday", NOTHING),
    ("I often sold things last year", NOTHING),
    ("see you tomorrow", NOTHING),
    ("I've lived here since 1980", NOTHING),
    ("the trip we took last year was fun", NOTHING),
]
PROCEDURE = [
    ("To deploy, run `make ship`.", ["To deploy, run `make ship`."]),
    ("Run `rq info` to see the queue", ["Run `rq info` to see the queue."]),
    ("`bin/seed` fills the database", ["`bin/seed` fills the database."]),
    ("Always run `make lint` before you push", ["Always run `make lint` before you push."]),
    ("In this repo we write migrations by hand", ["In this repo we write migrations by hand."]),
    ("To add one:\n1. copy it\n2. run it", ["To add one: copy it; run it."]),
    (
        "I got `Error: no such table`. The fix was to migrate first.",
        ["Problem: Error: no such table. What helped: The fix was to migrate first."],
    ),
    ("should I run `make ship` to deploy?", NOTHING),
    ("should I run `make ship` to deploy", NOTHING),
    ("I got `Error: x` and the fix was not to be found", NOTHING),
    ("we always look forward to the summer", NOTHING),
    ("`make ship` fails on my machine", NOTHING),
]


@requirement("003-extract-profile")
@pytest.mark.parametrize(("content", "expected"), PROFILE)
def test_the_profile_is_what_somebody_says_of_themselves(content: str, expected: list[str]) -> None:
    assert told(ProfileExtractor(), content) == expected


@requirement("003-extract-preference")
@pytest.mark.parametrize(("content", "expected"), PREFERENCE)
def test_preferences_are_likes_and_standing_wishes(content: str, expected: list[str]) -> None:
    assert told(PreferenceExtractor(), content) == expected


@requirement("003-extract-entity-event")
@pytest.mark.parametrize(("content", "expected"), ENTITY_EVENT)
def test_entities_are_defined_and_events_are_dated(content: str, expected: list[str]) -> None:
    assert told(EntityEventExtractor(), content) == expected


@requirement("003-extract-procedure")
@pytest.mark.parametrize(("content", "expected"), PROCEDURE)
def test_procedures_are_commands_customs_and_cases(content: str, expected: list[str]) -> None:
    found = found_in(ProcedureExtractor(), content)

    assert [each.content for each in found] == expected
    assert {each.category for each in found} <= {"skill", "pattern", "case"}
    for each in found:
        assert each.owner_space == ("user:ana" if each.category == "pattern" else "agent:default")


EVERYONE = (ProfileExtractor(), PreferenceExtractor(), EntityEventExtractor(), ProcedureExtractor())


@requirement("003-extract-four-extractors")
def test_there_is_one_for_each_kind_of_memory() -> None:
    text = (
        "I live in Porto. I like tea. Rex is my dog. I sold it today. Run `a b` to see the queue."
    )
    kinds = [{each.category for each in found_in(extractor, text)} for extractor in EVERYONE]

    assert kinds == [{"profile"}, {"preference"}, {"entity", "event"}, {"skill"}]


@pytest.mark.parametrize("extractor", EVERYONE[:3], ids=lambda each: type(each).__name__)
def test_what_an_assistant_says_of_itself_is_no_memory_of_the_user(
    extractor: CandidateExtractor,
) -> None:
    text = "I live in Porto. I like tea. Rex is my dog. I sold it today."

    assert found_in(extractor, text)
    assert found_in(extractor, text, role="assistant") == []
    assert found_in(extractor, text, role="system") == []
    assert found_in(extractor, text, role="tool") == []


def test_who_has_no_name_is_the_user() -> None:
    assert [each.content for each in found_in(ProfileExtractor(), "I live in Porto", name="")] == [
        "The user lives in Porto."
    ]


def test_what_others_say_of_themselves_is_no_profile_of_the_user() -> None:
    messages = [
        {"role": "user", "name": name, "content": f"I live in {place}"}
        for name, place in (("Ana", "Porto"), ("Tom", "Leeds"))
    ]
    (profile,) = ProfileExtractor().extract(messages, ANA)
    (entity,) = EntityEventExtractor().extract(messages, ANA)

    assert (profile.content, profile.speaker) == ("Ana lives in Porto.", "Ana")
    assert (entity.content, entity.slug, entity.who) == ("Tom lives in Leeds.", "tom", ("Tom",))


def test_of_several_who_are_not_named_like_the_user_none_is() -> None:
    messages = [
        {"role": "user", "name": name, "content": "I like tea. I live in Rome"} for name in "BC"
    ]

    assert ProfileExtractor().extract(messages, ANA) == []
    assert len(PreferenceExtractor().extract(messages, ANA)) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I love coffee", "I don't like coffee"),
        ("I like the coffee", "Well, I really like coffee!"),
        ("I prefer tabs over spaces", "i prefer tabs over spaces."),
        ("My favourite colour is red", "my favourite colour is blue"),
    ],
)
def test_what_is_about_the_same_has_the_same_slug(one: str, other: str) -> None:
    first, second = (found_in(PreferenceExtractor(), text)[0] for text in (one, other))

    assert first.slug == second.slug


@pytest.mark.parametrize("text", ["I like 日本酒", "I like кофе", "I like Grüße", "I like 👩‍👧"])
def test_a_slug_can_be_made_in_any_script(text: str) -> None:
    one, other = (found_in(PreferenceExtractor(), each)[0].slug for each in (text, f"{text}x"))

    assert one
    assert one != other


def test_words_that_a_slug_can_not_hold_still_tell_two_apart() -> None:
    one, other = (
        found_in(PreferenceExtractor(), f"I like tea {word}")[0] for word in ("чай", "да")
    )

    assert one.slug.startswith("tea-")
    assert one.slug != other.slug


def test_events_without_an_anchor_have_no_date_unless_they_name_it() -> None:
    messages = [
        {"role": "user", "content": "I sold my boat yesterday"},
        {"role": "user", "content": "I sold my car on 3 May 2024"},
    ]
    boat, car = EntityEventExtractor().extract(messages, ANA)

    assert (boat.when, boat.content) == (None, "The user sold their boat.")
    assert (car.when, car.content) == (
        datetime(2024, 5, 3, tzinfo=UTC),
        "The user sold their car on 2024-05-03.",
    )
    assert boat.confidence < car.confidence


def test_the_profile_has_no_slug_and_says_what_it_is_about() -> None:
    (found,) = found_in(ProfileExtractor(), "I live in Porto")

    assert found.slug == ""
    assert found.metadata["topic"] == "home"
    assert found.when == WEDNESDAY


@pytest.mark.parametrize(
    "answer", ["that did not work", "it works for others", "I hope that worked", "that will work"]
)
def test_advice_that_nobody_confirmed_is_no_case(answer: str) -> None:
    messages = [
        {"role": "user", "content": "I get `Error: no disk`"},
        {"role": "assistant", "content": "Try `df -h`."},
        {"role": "user", "content": answer},
    ]

    assert [each.category for each in ProcedureExtractor().extract(messages, ANA)] == []


@pytest.mark.parametrize(
    "moment",
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
    ids=["first", "last"],
)
@pytest.mark.parametrize("when", ["on Friday", "on 3 May", "yesterday", "next year", "last week"])
def test_a_time_is_found_on_the_first_day_and_on_the_last(moment: datetime, when: str) -> None:
    messages = [
        {"role": "user", "content": text, "time": moment}
        for text in (f"I sold my boat {when}", f"I have an exam {when}")
    ]

    assert all(each.category == "event" for each in EntityEventExtractor().extract(messages, ANA))


def test_among_people_nobody_knows_who_you_is() -> None:
    text = "I like it when you sing"
    alone = PreferenceExtractor().extract([{"role": "user", "content": text, "name": "Ana"}], ANA)
    among = [{"role": "user", "content": text, "name": name} for name in ("Ana", "Tom")]

    assert [each.content for each in alone] == ["Ana likes it when the assistant sings."]
    assert PreferenceExtractor().extract(among, ANA) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Maria de la Cruz came", "Maria de la Cruz"),
        ("The Blue Heron is", "The Blue Heron"),
        ("Dr. Okafor said", "Dr. Okafor"),
        ("Tanaka-san's desk", "Tanaka-san"),
        ("Olaf Monday", "Olaf"),
        ("Rex \u00fcber alles", "Rex"),
        ("\u00d8yvind and I", "\u00d8yvind"),
        ("Monday it rained", ""),
        ("the dog", ""),
        ("Mrs", ""),
        ("House of the", "House"),
    ],
)
def test_a_name_is_told_by_its_capitals(text: str, name: str) -> None:
    assert name_at(text, 0) == name
