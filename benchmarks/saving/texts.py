"""Texts that are made up, the same in every run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

PEOPLE = ("Tom", "Maria", "Lena", "Jonas", "Priya", "Omar", "Ines", "Karl", "Yuki", "Ada")
PLACES = ("Lisbon", "Oslo", "Graz", "Porto", "Turin", "Ghent", "Malmo", "Lyon", "Split", "Bergen")
THINGS = ("oolong tea", "dark mode", "tabs", "night trains", "rye bread", "the oboe", "chess")
TOPICS = ("the migration", "the invoice", "the garden", "the slides", "the parser", "the roof")
BEGAN = datetime(2026, 3, 2, 10, tzinfo=UTC)


def memory(number: int) -> str:
    """Return something that somebody might want to be remembered."""
    person, place = PEOPLE[number % 10], PLACES[number // 10 % 10]
    topic = TOPICS[number % 6]
    return (
        f"{person} called from {place} about {topic}, ticket {number}. It is to be finished in "
        f"{number % 23 + 2} days; until then nobody else is to touch {topic}."
    )


def session(messages: int) -> Iterator[dict[str, object]]:
    """Yield a conversation of two, of which about one message in ten says something to remember."""
    for number in range(messages):
        mine = number % 2 == 0
        yield {
            "role": "user" if mine else "assistant",
            "content": _told(number) if number % 10 == 4 else _chat(number, mine=mine),  # noqa: PLR2004 - one in ten
            "time": (BEGAN + timedelta(minutes=number)).isoformat(),
        }


def _told(number: int) -> str:
    turn = number // 10
    person, place, thing = PEOPLE[turn % 10], PLACES[turn // 7 % 10], THINGS[turn % 7]
    said = (
        f"By the way, I like {thing} number {turn}.",
        f"I met {person} in {place} last Tuesday, for the {turn}th time.",
        f"We decided to move {TOPICS[turn % 6]} to March {turn % 27 + 1}.",
        f"I prefer {thing} over whatever shop {turn} sells.",
        f"My colleague {person} works at Studio {turn} in {place}.",
    )
    return said[turn % len(said)]


def _chat(number: int, *, mine: bool) -> str:
    topic = TOPICS[number // 2 % 6]
    if mine:
        return f"What is still open about {topic}? Message {number} has the details, I think."
    return (
        f"As far as can be told from message {number}, two steps of {topic} are left. The first is "
        "to read it once more; the second is to send it. Both can be done today."
    )
