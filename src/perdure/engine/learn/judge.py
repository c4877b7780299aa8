"""Judge whether two statements say the same, contradict each other, or may both hold.

The judge is conservative. Two statements are the same only if they have the same words, apart from
case, punctuation, articles, the person of a verb and a clause that is moved to the front. They
contradict each other only in forms that have one value at a time. All others are different, and
both are stored.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from perdure.dataclass import dataclass
from perdure.engine.learn.slugs import groups_of, singular, words_of
from perdure.index.sql import stems
from perdure.patterns import later, table

MAX_STATEMENT = 2000
"""Characters. Longer texts are compared word for word."""
_MOST_WORDS = 3
"""Words of a value."""
_FEWEST = 3
"""Words that a statement and a rewording of it have in common."""


class Agreement(Enum):
    SAME = "same"
    DIFFERENT = "different"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Comparison:
    agreement: Agreement
    reason: str
    """A short sentence that names the deciding words of the statements."""


Words = tuple[str, ...]


def compare(old: str, new: str) -> Comparison:
    """Compare two short statements; their order does not matter.

    SAME: one of them is enough. CONTRADICTS: they are about one subject, and can't both hold.
    DIFFERENT: all others. Accepts any text.
    """
    if old == new:
        return Comparison(Agreement.SAME, "The texts are the same.")
    if max(len(old), len(new)) > MAX_STATEMENT:
        same = old.split() == new.split()
        agreement = Agreement.SAME if same else Agreement.DIFFERENT
        return Comparison(agreement, "Long texts are compared word for word.")
    one, other = sorted((old, new))
    first, second = plain_words(one), plain_words(other)
    if first and (first == second or _is_moved(first, second)):
        return Comparison(Agreement.SAME, "The words are the same.")
    if reason := _contradiction((one, first), (other, second)):
        return Comparison(Agreement.CONTRADICTS, reason)
    alone = _apart(first, second), _apart(second, first)
    shown = " ".join(_as_written(one, alone[0]) + _as_written(other, alone[1]))
    return Comparison(Agreement.DIFFERENT, f'Only one has "{shown[:60]}".')


_TOKEN = later(
    r"`[^`\n]+`|\w+@[\w.-]+|https?://[^\s)]+|-?\d[\d.,:/-]*\d|-\d|--?[a-z][\w-]*|[\w][\w./:#+@-]*[\w#+]"
    r"|[\w#+]+|'s\b|[<>=\u2264\u2265%$\u20ac\u00a3?~^*&|\\]"
)
_ORDINAL = later(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_PREPOSITIONS = words_of("prepositions")
_NOT = later(r"(?<=\w)n['\u2019]t\b|\bcannot\b|\b(?:do|does|is|ca)nt\b", re.IGNORECASE)
_SHORT = later(r"\b(i|you|we|they|it|he|she|that|there)['\u2019](m|re|s)\b", re.IGNORECASE)
_USER = later(r"\A(?:the )?user(?=\s(?!['\u2019]))|\A(?:i|we)(?=\s)", re.IGNORECASE)
_CEASED = later(r"\bno longer ", re.IGNORECASE)
_LIGHT, _VERBS, _NEGATIONS = (words_of(each) for each in ("light", "verbs", "negations"))
_SYNONYMS = {word: group[0] for group in groups_of("synonyms") for word in group}
_GROUPS = [frozenset(group) for group in groups_of("exclusive")]
_TIMES = ("january", "monday", "mondays", "day", "am")
"""One word of each group that names times."""
_MONTHS = next(group for group in _GROUPS if "january" in group)


@lru_cache(maxsize=4096)
def plain_words(text: str) -> Words:
    """Return the significant words of a text, normalized; names and identifiers stay unchanged."""
    text = _SHORT.sub(lambda found: f"{found[1]} {'am' if found[2] == 'm' else 'is'}", text)
    text = _CEASED.sub("not ", _USER.sub("", _NOT.sub(_expanded, text.strip())))
    words = [each for each in map(_plain, _TOKEN.findall(text)) if each not in _LIGHT]
    for at, (word, after) in enumerate(pairwise(tuple(words))):
        if word in {"do", "does"} and after == "not":
            words[at] = ""
        if word in {"moved", "relocated"} and after == "to":
            words[at : at + 2] = ["live", "in"]
        if word in _MONTHS and after.isdigit() and len(after) <= 2:  # noqa: PLR2004 - a day
            words[at : at + 2] = [after, word]
    return tuple(each for each in words if each)


def _expanded(found: re.Match[str]) -> str:
    return {"cannot": "can not", "cant": "can not"}.get(found[0].lower(), " not")


def _plain(token: str) -> str:
    """Return a normalized word; code, acronyms and other identifiers stay unchanged."""
    bare = token.strip("`")
    word = bare.casefold()
    if token.startswith("`") or (bare.isupper() and len(bare) > 1 and word not in _NEGATIONS):
        return bare
    if not bare.replace("'", "").isalpha():
        bare = bare.rstrip(".:,")
        return _ORDINAL.sub(r"\1", bare) if bare[:1].isdigit() else _SYNONYMS.get(word, bare)
    for end in ("s", "es"):
        if word.endswith(end) and word.removesuffix(end) in _VERBS:
            word = word.removesuffix(end)
    return _SYNONYMS.get(word, word)


def _as_written(text: str, words: Sequence[str]) -> list[str]:
    given = {_plain(each): each.rstrip(".:,") for each in reversed(_TOKEN.findall(text))}
    return [given.get(word, word) for word in words]


def _is_moved(first: Words, second: Words) -> bool:
    """Whether they differ only by a clause at the front: "after A, B" and "B after A"."""
    if sorted(first) != sorted(second) or "only" in first:
        return False
    return any(
        second == first[at:] + first[:at] and {first[0], first[at]} & _PREPOSITIONS
        for at in range(1, len(first))
    )


_PAST = later(r"\w{2,}ed|taught|went|met|bought|got|had|was|were|did|made|took|gave|saw|wrote")
_VALUE = later(r"v?\d[\w.,:/-]*%?|[a-z]+\d+", re.IGNORECASE)


def _contradiction(  # noqa: PLR0911 - one form after the other
    old: tuple[str, Words], new: tuple[str, Words]
) -> str | None:
    """Return a sentence that explains the contradiction; None if it is not certain."""
    first, second = old[1], new[1]
    bare = [tuple(word for word in each if word not in _NEGATIONS) for each in (first, second)]
    denied = sorted((len(first) - len(bare[0]), len(second) - len(bare[1])))
    if bare[0] == bare[1] and len(bare[0]) > 1 and denied == [0, 1]:
        return "One says it, the other denies it."
    if _is_turned(first, second):
        return "What is preferred over what is turned around."
    if any(denied):
        return None
    lead, one, other, tail = _middle(first, second)
    if not lead or not all(0 < len(each) <= _MOST_WORDS for each in (one, other)):
        return None
    if sorted(one) == sorted(other) or _PAST.fullmatch(lead[0]) or _digits(one) & _digits(other):
        return None  # another order of words, an event, or two spellings of a number
    if not _is_exclusive(lead, one, other) and not _is_single(lead, one, other, tail):
        return None
    values = (" ".join(_as_written(*each)) for each in ((old[0], one), (new[0], other)))
    return 'One says "{}", the other "{}".'.format(*values)


def _middle(first: Words, second: Words) -> tuple[Words, Words, Words, Words]:
    """Return the common beginning, the middle of each, and the common end."""
    shorter = min(len(first), len(second))
    head = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    rest = range(shorter - head)
    tail = next((at for at in rest if first[-1 - at] != second[-1 - at]), len(rest))
    end = len(first) - tail
    return first[:head], first[head:end], second[head : len(second) - tail], first[end:]


def _is_turned(first: Words, second: Words) -> bool:
    old, new = _sides(first), _sides(second)
    return old is not None and new == (old[0], old[2], old[1]) and old != new


def _sides(words: Words) -> tuple[Words, Words, Words] | None:
    verb = words.index("prefer") if "prefer" in words else len(words)
    for over in ("over", "to"):
        if over in words[verb:]:
            at = words.index(over, verb)
            return words[:verb], words[verb + 1 : at], words[at + 1 :]
    return None


def _digits(words: Words) -> set[str]:
    joined = " ".join(words).casefold().replace(",", "")
    return set(re.findall(r"\d+(?:\.\d+)*", re.sub(r"(?<=\d)k\b", "000", joined)))


def group_of(word: str) -> list[str]:
    """Return the words that exclude each other, of the groups that have a given word."""
    return sorted(other for group in _GROUPS if word in group for other in group)


def is_other_of_group(one: str, other: str) -> bool:
    """Whether two words exclude each other: npm and pnpm."""
    return one != other and any({one, other} <= group for group in _GROUPS)


def _is_exclusive(lead: Words, one: Words, other: Words) -> bool:
    """Whether two values exclude each other; two times only if something takes place then."""
    if len(one) != 1 or len(other) != 1 or not is_other_of_group(one[0], other[0]):
        return False
    if lead[-1] == "when":
        return False  # two conditions
    is_time = any(one[0] in group_of(word) for word in _TIMES)
    if not is_time or lead[-1] not in _PREPOSITIONS or lead[0] == "every":
        return True
    return "is" in lead or "due" in lead


def _is_single(lead: Words, one: Words, other: Words, tail: Words) -> bool:
    if _PREPOSITIONS & {*one, *other}:
        return False  # a value that holds only for something
    ends = [end for end in groups_of("single") if lead[-len(end) :] == end]
    if ends and not tail:
        alike = bool(_VALUE.fullmatch(one[0])) is bool(_VALUE.fullmatch(other[0]))
        return alike and (len(lead) > 1 or lead[0] == "live")
    if len(lead) == 1:
        return False
    if lead[-1] == "is" and not tail and words_of("attributes") & {*lead[:-1]}:
        return True
    is_number = bool(_VALUE.fullmatch(one[0]) and _VALUE.fullmatch(other[0]))
    has_verb = any(word in {"is", "set"} or word in _VERBS for word in lead)
    return is_number and has_verb and one[1:] == other[1:]


_REPLY = later(r"\A(?:no|yes|ok|okay|actually|sorry)\s*,\s+", re.IGNORECASE)
_CLAUSE = later(r"[,;:.!?](?=\s|$)")


def is_rewording(one: str, other: str) -> bool:
    """Whether one of two texts has all significant words of the other, and no other number.

    That is weaker than `Agreement.SAME`: use it only if something else suggests that they are one.
    Neither denies what the other states: "X, not Y" is not "Y, not X".
    """
    spare = _stems((words_of("stop") | words_of("spare")) - _NEGATIONS)
    one, other = (_REPLY.sub("", each.strip()) for each in (one, other))
    first, second = (_stems(plain_words(each)) - spare for each in (one, other))
    shorter, longer = sorted((first, second), key=len)
    apart = longer - shorter
    fixed = _stems(_NEGATIONS.union(*_GROUPS))
    has_number = any(map(str.isdigit, "".join(apart)))
    if len(shorter) < _FEWEST or not shorter <= longer or fixed & apart or has_number:
        return False
    denied, denied_too = _denied(one), _denied(other)
    return not (denied & (second - denied_too)) and not (denied_too & (first - denied))


def _denied(text: str) -> set[str]:
    """Return the words between a negation and the end of its clause."""
    found: set[str] = set()
    for words in map(plain_words, _CLAUSE.split(text)):
        at = next((at for at, word in enumerate(words) if word in _NEGATIONS), len(words))
        found |= _stems(words[at:])
    return found - _stems(_NEGATIONS | _VERBS | words_of("stop") | words_of("spare"))


def _stems(words: Iterable[str]) -> set[str]:
    return set(stems(" ".join(words)))


def _apart(words: Words, others: Words) -> list[str]:
    """Return the words that the others have less often."""
    left, found = list(others), []
    for word in words:
        if word in left:
            left.remove(word)
        else:
            found.append(word)
    return found


_FORMS, _TYPES = (
    [later(text, re.IGNORECASE) for text in table(__file__, "patterns.txt", name).values()]
    for name in ("changes", "values")
)
_ADJUSTED = later(
    r"^(?:no,? |actually,? |ok,? |sorry,? )*(?:make|let's make|set|change) (?:it|that) (?:to )?"
    r"(?P<value>.*?\d.*?|[a-z]+days?)[.!]?$",
    re.IGNORECASE,
)
_SPARE = words_of("stop") | words_of("verbs") | {"is", "have", "always", "repo", "project"}
"""Words without a meaning of their own."""
_PURPOSE = later(
    r" for (?:all |the |our |any |unit |dev )*(?:tests?|testing|everything|packages|dependencies|"
    r"installs?|installing|builds?|building|linting|formatting)[.!]?$",
    re.IGNORECASE,
)
"""A purpose that all tools of a group have."""
_FRAGMENT = 6
"""Words. A shorter "X instead of Y" has neither a subject nor a verb."""


class StatedChange(NamedTuple):
    """The new and the old words that a sentence names; either may be empty."""

    new: tuple[str, ...]
    old: tuple[str, ...]


def change_in(text: str) -> StatedChange | None:
    for form in _FORMS:
        if found := form.search(text.replace("\u2019", "'")):
            part = {"came": "", "gone": ""} | found.groupdict(default="")
            return StatedChange(plain_words(part["came"]), plain_words(part["gone"]))
    return None


def outdates(new: str, old: str) -> bool | None:
    """Return whether it is certain that a newer statement ends an older one; None if it does not.

    It is certain only if the older one has no words but the old value, and at most a purpose that
    the new value shares.
    """
    change = change_in(new)
    if change is None or change_in(old) == change:
        return None
    was = [singular(word) for word in plain_words(old)]
    gone = _gone(change, was)
    if not gone or (change.new and {*map(singular, change.new)} <= set(was)):
        return None
    spare = {singular(word) for word in (*plain_words(new), *_SPARE)}
    came = [singular(word) for word in change.new]
    if any(is_other_of_group(word, other) for word in gone for other in came):
        was = [singular(word) for word in plain_words(_PURPOSE.sub("", old))]
    return all(word in gone or word in spare for word in was)


def _gone(change: StatedChange, was: Sequence[str]) -> set[str]:
    named = {singular(word) for word in change.old} - _SPARE
    if named:
        return named if named <= set(was) else set()
    came = [singular(word) for word in change.new]
    return {word for word in was for other in came if is_other_of_group(word, other)}


def searched(text: str) -> str:
    """Return a statement with the words that find the statements that it ends."""
    change = change_in(text)
    if change is None:
        return text
    others = (word for came in change.new for word in group_of(singular(came)))
    return " ".join((text, *others))


def completions(new: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """Return each known statement that a fragment may change, after the statement it results in.

    "Mondays instead of Thursdays" and "actually make it every 15 minutes" name the new value only.
    """
    return [(whole, old) for old in known if (whole := _whole(new, old))]


def is_fragment(text: str) -> bool:
    """Whether a text only names a new value."""
    if _ADJUSTED.match(text):
        return True
    change = change_in(text)
    if change is None or not (change.new and change.old) or len(text.split()) >= _FRAGMENT:
        return False
    verbs = words_of("verbs") | {"is", "switched", "moved", "renamed", "replace", "rename"}
    return verbs.isdisjoint(plain_words(text))


def _whole(new: str, old: str) -> str | None:
    if found := _ADJUSTED.match(new):
        return _with_value(found["value"], old)
    form = _FORMS[0].search(new)
    if form is None or not is_fragment(new):
        return None
    named, came = form["gone"].rstrip(".,!").rstrip("s"), form["came"].split()[-1]
    gone = re.compile(rf"(?<!\w){re.escape(named)}s?(?!\w)", re.IGNORECASE)
    return gone.sub(came, old, count=1) if len(gone.findall(old)) == 1 else None


def _with_value(value: str, old: str) -> str | None:
    for kind in _TYPES:
        if new := kind.search(value):
            found = kind.findall(old)
            changed = kind.sub(new[0], old, count=1)
            return changed if len(found) == 1 and changed != old else None
    return None
