"""Words that the rules know, as `words.txt` lists them."""

import re

from perdure.engine.tables import lists

_LISTS = lists(__file__, "words.txt")


def words_of(section: str) -> frozenset[str]:
    return frozenset(" ".join(_LISTS[section]).split())


def any_case(pattern: str) -> re.Pattern[str]:
    """Return a pattern that matches whether letters are capital or small."""
    return re.compile(pattern, re.IGNORECASE)


def either(given: frozenset[str]) -> str:
    """Return a pattern for one of the words, the longest first; `_` stands for a space."""
    ordered = sorted(given, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace("_", r"\s") for word in ordered)


ADVERBS = words_of("adverbs")
FAMILY = words_of("family")
PEOPLE = words_of("people")
PETS = words_of("pets")
THINGS = words_of("things")
TITLES = words_of("titles")
JOBS = words_of("jobs")
JOB_ENDINGS = ("ologist", "ographer", "ician", "keeper", "maker", "smith", "wright", "worker")
TRAITS = words_of("traits")
PEOPLES = words_of("peoples")
STYLE = words_of("style")
MANNERS = words_of("manners")
REQUESTS = words_of("requests")
OCCASIONS = words_of("occasions")
PAST = words_of("past")
MODALS = words_of("modals")
NO_NAMES = words_of("no names")
STOP = words_of("stop")
