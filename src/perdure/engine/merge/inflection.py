"""Which forms of an English word are one word.

Only inflection counts: Porter's stems also make one of "experience" and "experiment", of "engine"
and "engineer", of "policy" and "police", of "important" and "import".
"""

from functools import lru_cache

from perdure.engine.merge.vocabulary import set_of, words_in

_VOWELS = frozenset("aeiou")
_SHORT = 3
"""Words of so few letters have no ending."""
_PASTS = words_in(
    """
    be,was,were,been have,had,had do,did,done go,went,gone get,got,gotten make,made,made
    take,took,taken come,came,come see,saw,seen know,knew,known give,gave,given
    find,found,found think,thought,thought tell,told,told become,became,become leave,left,left
    feel,felt,felt bring,brought,brought begin,began,begun keep,kept,kept hold,held,held
    write,wrote,written stand,stood,stood hear,heard,heard mean,meant,meant meet,met,met
    run,ran,run pay,paid,paid sit,sat,sat speak,spoke,spoken lead,led,led grow,grew,grown
    lose,lost,lost fall,fell,fallen send,sent,sent build,built,built
    understand,understood,understood draw,drew,drawn break,broke,broken spend,spent,spent
    rise,rose,risen drive,drove,driven buy,bought,bought wear,wore,worn choose,chose,chosen
    eat,ate,eaten drink,drank,drunk sing,sang,sung swim,swam,swum fly,flew,flown
    forget,forgot,forgotten freeze,froze,frozen hide,hid,hidden ride,rode,ridden
    sell,sold,sold shoot,shot,shot show,showed,shown sleep,slept,slept steal,stole,stolen
    teach,taught,taught throw,threw,thrown wake,woke,woken win,won,won catch,caught,caught
    fight,fought,fought bind,bound,bound lend,lent,lent say,said,said stick,stuck,stuck
    learn,learnt,learnt bear,bore,born lie,lay,lain hang,hung,hung deal,dealt,dealt
    withdraw,withdrew,withdrawn overwrite,overwrote,overwritten rewrite,rewrote,rewritten
    rebuild,rebuilt,rebuilt
    """
)
_SAME_PAST = set_of("set put cut let hit cost read shut split spread quit reset")
_NO_PAST = set_of(
    """
    need feed speed red bed embed exceed proceed indeed hundred wed shed seed weed breed bleed
    shared unshared naked sacred wicked bored unused need seed succeed ted fred jared sled
    """
)
_NO_PLURAL = set_of(
    """
    is was has his this its us bus gas always perhaps news series species less unless yes plus
    thus kubernetes redis postgres analysis basis physics mathematics maths canvas status
    focus bonus virus campus corpus census alias bias atlas christmas as lens across besides
    towards jenkins nous
    """
)
_PLURALS = {
    "has": "have", "does": "do", "goes": "go",
    "children": "child", "men": "man", "women": "woman", "people": "person", "feet": "foot",
    "teeth": "tooth", "mice": "mouse", "geese": "goose", "wives": "wife", "knives": "knife",
    "lives": "life", "leaves": "leaf", "halves": "half", "shelves": "shelf", "indices": "index",
    "indexes": "index", "analyses": "analysis", "criteria": "criterion", "data": "data",
}  # fmt: skip
_OWN_ADVERBS = set_of(
    """
    hardly lately nearly mostly only early daily weekly monthly yearly hourly nightly shortly
    barely family reply apply supply supply rely italy july ugly fly bully belly jelly
    assembly anomaly likely friendly lovely lonely elderly orderly costly fairly directly
    presently scarcely
    """
)
"""What ends in -ly, and says something else than the word before it."""
_FORMS = tuple(verb.split(",") for verb in _PASTS)
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
