"""English as statements are compared: small words by what they do, and which forms are one word.

The words themselves are in `english.txt`. Of forms, only inflection counts: Porter's stems also
make one of "experience" and "experiment", of "engine" and "engineer", of "policy" and "police", of
"important" and "import".
"""

from collections import defaultdict
from functools import lru_cache

from perdure.engine.tables import lists

_LISTS = lists(__file__, "english.txt")


def lines_of(section: str) -> list[str]:
    return _LISTS[section]


def list_of(section: str) -> list[str]:
    return " ".join(_LISTS[section]).split()


def words_of(section: str) -> frozenset[str]:
    return frozenset(list_of(section))


def pairs_of(section: str) -> dict[str, str]:
    """Return what stands before each colon, with what stands behind it."""
    return dict(line.split(": ") for line in _LISTS[section])


def _leads(section: str) -> dict[str, str]:
    """Return for each word the one before the colon."""
    return {word: lead for lead, rest in pairs_of(section).items() for word in rest.split()}


def _groups(section: str) -> dict[str, frozenset[str]]:
    """Return for each word the lines that it is in."""
    found: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_LISTS[section]):
        for word in line.split():
            found[word].add(f"~{number}")
    return {word: frozenset(groups) for word, groups in found.items()}


SYNONYMS = _groups("synonyms")
"""The groups that a word is in."""
EXCLUSIVE = _groups("exclusive")
"""The sets of which a word is one; of each set, only one word holds."""

# ---------------------------------------------------------------- small words
SOFT = words_of("soft")
PERSONS = _leads("persons")
BE = {"am": "is", "is": "is", "are": "is", "be": "is", "~be": "is", "was": "was", "were": "was"}
DO = frozenset({"do", "does", "did"})
HAVE = frozenset({"have", "has", "had", "get", "gets", "got"})
"""Also helping verbs, before a participle."""
OBLIGATIONS = frozenset({"must", "should"})
WEAK = words_of("weak")
STRONG = words_of("strong")
NEGATIONS = _leads("negations")
STOPPING = words_of("stopping")
NEGATED = {word: lead for lead, word in pairs_of("negated").items()}
TAKES_NO = words_of("takes no")
ADVERBS = words_of("adverbs")
MODALS = words_of("modals")
BOUNDS = frozenset({"~atleast", "~atmost"})
FLOATING = (ADVERBS, MODALS, BOUNDS)
"""Words that may stand anywhere, if there is one of their kind."""
EACH = words_of("each")
SPELLS = words_of("spells")
CONJUNCTIONS = words_of("conjunctions")
SERVING = words_of("serving")
ERGATIVE = words_of("ergative")
INTERCHANGEABLE = tuple(frozenset(line.split()) for line in lines_of("interchangeable"))

# ---------------------------------------------------------------- forms of a word
_VOWELS = frozenset("aeiou")
_SHORT = 3
"""Words of so few letters have no ending."""
_SAME_PAST = words_of("same past")
_NO_PAST = words_of("no past")
_NO_PLURAL = words_of("no plural")
_PLURALS = _leads("irregular plurals")
_OWN_ADVERBS = words_of("own adverbs")
_FORMS = tuple(verb.split(",") for verb in words_of("irregular verbs"))
_BASES = {form: base for base, *forms in _FORMS for form in forms}
_PAST = frozenset(form for _, *forms in _FORMS for form in forms[:-1])
_PARTICIPLES = frozenset(forms[-1] for forms in _FORMS)


@lru_cache(maxsize=8192)
def lemmas(word: str) -> frozenset[str]:
    """Return what a word may be a form of; two words are one if they share any of it."""
    found = {word}
    if word in _BASES:
        found.add(_BASES[word])
    if word in _PLURALS:
        found.add(_PLURALS[word])
    if word.isascii() and len(word) > _SHORT:
        found.update(_singulars(word))
        found.update(_verbs(word))
        found.update(_american(each) for each in tuple(found))
        if is_adverb(word):
            found.add(word[:-2])
    return frozenset(found)


def _american(word: str) -> str:
    """Return the word as Americans spell it; what is no such word stays what no word is."""
    if len(word) > 5 and word.endswith("our"):  # noqa: PLR2004 - not "four", not "hour"
        return word[:-3] + "or"
    return word[:-3] + "ize" if len(word) > 5 and word.endswith("ise") else word  # noqa: PLR2004


def _singulars(word: str) -> set[str]:
    if word in _NO_PLURAL or not word.endswith("s") or word.endswith("ss"):
        return set()
    if word.endswith("ies") and len(word) > _SHORT + 1:
        return {word[:-3] + "y"}
    if word.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
        return {word[:-2], word[:-1]} if word.endswith(("ches", "oes", "zes")) else {word[:-2]}
    return {word[:-1]}


def _verbs(word: str) -> set[str]:
    if word.endswith("ing") and len(word) > _SHORT + 1:
        return _stripped(word[:-3])
    if word.endswith("ied"):
        return {word[:-3] + "y"}
    if word.endswith("ed") and word not in _NO_PAST:
        return _stripped(word[:-2])
    return set()


def _stripped(base: str) -> set[str]:
    """Return the verbs that end in `base` before -ing or -ed."""
    if not _VOWELS.intersection(base.replace("y", "i")):
        return set()
    if base[-1] == base[-2:-1] and base[-1] not in _VOWELS:
        return {base, base[:-1]} if base[-1] in "lszf" else {base[:-1]}
    if _is_short(base):
        return {base + "e", base} if base[-1] in "wxy" else {base + "e"}
    return {base, base + "e"}


def _is_short(base: str) -> bool:
    """Whether `base` is one syllable that would have doubled its last letter."""
    if not base[1:] or base[-1] in _VOWELS or base[-2] not in _VOWELS:
        return False
    return not _VOWELS.intersection(base[:-2])


def is_adverb(word: str) -> bool:
    """Whether the word is another one with -ly behind it."""
    return word.endswith("ly") and word not in _OWN_ADVERBS


def is_participle(word: str) -> bool:
    """Whether the word may follow "is" or "has" as a part of a verb."""
    return word in _PARTICIPLES or word in _SAME_PAST or _is_regular_past(word)


def is_past(word: str) -> bool:
    """Whether the word, alone, says that something happened."""
    return word in _PAST or _is_regular_past(word)


def is_gerund(word: str) -> bool:
    return word.endswith("ing") and len(word) > _SHORT + 1 and bool(_VOWELS.intersection(word[:-3]))


def _is_regular_past(word: str) -> bool:
    return word.endswith("ed") and len(word) > _SHORT and word not in _NO_PAST
