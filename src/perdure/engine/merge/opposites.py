"""Words that can't both hold of one thing, and attributes that have one value at a time."""

from collections import defaultdict

from perdure.engine.merge.vocabulary import set_of

_EXCLUSIVE = """
like hate
love hate
love dislike
enjoy hate
trust fear
enable disable
on off
true false
accept reject
accept decline
approve reject
approved pending review draft
draft final
draft approved
draft published
open closed close
planned done
planned finished
pending merged done approved
beta stable alpha
stable unstable
public private
required optional
mandatory optional
allow forbid
allow ban
permit forbid
allow block
pass fail
include exclude
increase decrease
ascending descending
faster slower
bigger smaller
larger smaller
more less
more fewer
higher lower
better worse
cheaper costlier
early late
married divorced single engaged widowed
vegetarian vegan omnivore
daily weekly monthly yearly hourly nightly
minutely secondly hourly
always usually sometimes rarely
often rarely
all some most none
~atleast ~atmost
red black blue green white yellow orange purple brown grey pink silver
debug info warning error
north south east west
home office
synchronous asynchronous
sync async
online offline
active archived
started finished
single double
left right
hot cold
remote onsite
employed retired
junior senior
""".strip().splitlines()
EXCLUSIVE: dict[str, frozenset[int]]
"""The sets of which a word is one; of each set, only one word holds."""


def _by_word() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for number, line in enumerate(_EXCLUSIVE):
        for word in line.split():
            found[word].add(number)
    return {word: frozenset(sets) for word, sets in found.items()}


EXCLUSIVE = _by_word()

PLACING = {
    "live": "in at on to",
    "reside": "in at on",
    "base": "in at",
    "move": "in to",
    "relocate": "to",
    "locate": "in at on",
    "host": "in at on",
    "work": "at for as from in",
    "~be": "as",
    "store": "in at on",
    "keep": "in at on for",
    "write": "in with",
    "build": "in with",
    "run": "on in with",
    "read": "from",
    "load": "from",
    "listen": "on",
    "set": "to",
    "send": "on",
    "study": "at",
    "postpone": "to until",
    "delay": "to until",
    "schedule": "for on at",
}
"""Verbs whose phrase has one value at a time, with the prepositions that it begins with."""

ATTRIBUTES = set_of(
    """
    name color colour favorite favourite deadline birthday status state level language version
    limit owner manager boss lead leader husband wife spouse partner ceo cto cfo default
    branch editor timezone address email phone number password port host database backend
    framework currency budget price cost rent salary age title role job project package format
    mode theme priority size weight height length date time day location place room floor
    point file path url entry endpoint extension code plan provider vendor account server
    temperature region zone label type
    """
)
"""Nouns that are said to be one thing at a time."""

VERBS = set_of(
    """
    live move work use run have need take like hate love enjoy prefer want own play speak
    study teach know cost weigh last end begin start expire listen store keep host write build
    read load set go get make require depend support allow forbid deploy log meet eat drink
    smoke call name return show add cover contain hold handle raise join leave visit manage
    lead report
    """
)

LABELS = set_of(
    """
    issue ticket pr room chapter page section step server flight line lesson unit exercise
    task job figure table question rule commit module sprint bus train track day
    """
)
"""Nouns that a number tells apart from others of their kind."""
