"""Names, code and quotations: words of a statement that stay to the letter.

"US" is no "us", and "Me Before You" speaks of nobody. Where a word could be either, nobody can tell
the statement in the third person.
"""

import re

from perdure.engine.extract.words import FAMILY, PEOPLE, PETS, THINGS, either, words_of

Spans = list[tuple[int, int]]

PRONOUNS = words_of("pronouns")
_QUOTED = re.compile(
    r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|\u201c[^\u201d\n]{1,400}\u201d|\u00ab[^\u00bb\n]{1,400}\u00bb"
    r"|\u2039[^\u203a\n]{1,400}\u203a|\u201e[^\u201c\u201d\n]{1,400}[\u201c\u201d]"
    r"|\u300c[^\u300d\n]{1,400}\u300d|(?<!\w)['\u2018][^'\u2019\n]{2,200}['\u2019](?!\w)"
)
_CHUNK = re.compile(r"\S+")
_OUTSIDE = ".,;:!?()[]\"'*\u2026\u201c\u201d\u2018\u2019"
_CODE = re.compile(r"-+\w|.*\w[._/\\@=$~<>{}|+#%^&:]+\w|[./\\~$@#<].*\w|.*\w(?:\+\+|#)|\w*_\w*\Z")
_RUN_ON = re.compile(r"\w(?:\.{2,}|[,;:!?])(?i:i|my|me|we|our|us|you|your)\b")
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SMALL = r"(?:(?:a|an|the|of|by|in|on|at|to|for|and|or|with|from)\s){0,2}"
_TITLE = re.compile(
    rf"(?<![\w'\u2019])[A-Z][\w'\u2019]{{0,30}}(?:\s{_SMALL}[A-Z][\w'\u2019]{{0,30}}){{1,8}}"
)
_NUMBERED = re.compile(
    r"\b(?:War|Part|Type|Chapter|Phase|Level|Tier|Class|Act|Volume|Book|Grade|Stage|Division"
    r"|Schedule|Title|Article|Category|Element|Episode|Season)\s\Z",
    re.IGNORECASE,
)
_AFTER_NUMERAL = re.compile(
    r"\s*(?:\Z|[,.;:!?)]|(?:is|was|are|were|and|or|of|in|on|at|from|by|to|as|than|with)\b)"
)
_CAPITAL_BEFORE = re.compile(r"(?<![\w'\u2019])[A-Z][\w'\u2019]{0,30}\s\Z")
_JOINS = re.compile(
    r"(?:\A|[,;:.!?(]\s*|\b(?:and|but|so|because|when|while|that|if|as|since|where|what|how|then"
    r"|until|before|after)\s)\Z",
    re.IGNORECASE,
)
_TITLED = re.compile(r"\s[A-Z][a-z]")
_TITLED_TWICE = re.compile(rf"\s(?!(?:{either(FAMILY | PEOPLE | PETS | THINGS)})\b)", re.IGNORECASE)
_TWO_TITLED = re.compile(r"\s[A-Z][a-z]+\s[A-Z][a-z]")


def verbatim(text: str) -> Spans | None:
    """Return what has to stay as it is written; None if a word may be a name or a pronoun."""
    kept = [match.span() for match in _QUOTED.finditer(text)]
    kept += [_inside(match) for match in _CHUNK.finditer(text) if _is_code(match[0])]
    if _RUN_ON.search(text):
        return None
    titles = [match.span() for match in _TITLE.finditer(text)]
    for match in _WORD.finditer(text):
        if match[0].lower().replace("\u2019", "'") not in PRONOUNS or is_in(match.start(), kept):
            continue
        named = _is_named(text, match, titles)
        if named is None:
            return None
        if named:
            kept.append(match.span())
    return sorted(kept)


def is_in(position: int, spans: Spans) -> bool:
    return any(begin <= position < finish for begin, finish in spans)


def _inside(match: re.Match[str]) -> tuple[int, int]:
    """Return where a chunk stands without the punctuation around it."""
    begin = match.start() + len(match[0]) - len(match[0].lstrip("([\"'*,;"))
    return begin, match.start() + len(match[0].rstrip(_OUTSIDE))


def _is_code(chunk: str) -> bool:
    return _CODE.match(chunk.lstrip("([\"'*,;").rstrip(_OUTSIDE)) is not None


def _is_named(text: str, word: re.Match[str], titles: Spans) -> bool | None:
    """Whether a pronoun is (part of) a name here; None if nobody can tell."""
    said, before, after = word[0], text[: word.start()], text[word.end() :]
    if said.lower() == "i":
        return said == "I" and _is_numeral(before, after, titles)
    if len(said) > 1 and said.isupper():
        return True if said == "US" else None
    if not said[0].isupper() or said.startswith(("I'", "I\u2019")):
        return False
    if not before.strip():
        return _begins_a_name(said, after)
    return True if is_in(word.start(), titles) else None


def _is_numeral(before: str, after: str, titles: Spans) -> bool | None:
    if _NUMBERED.search(before):
        return True
    if _TITLED.match(after):
        return None if _JOINS.search(before) else is_in(len(before), titles)
    return _CAPITAL_BEFORE.search(before) is not None and _AFTER_NUMERAL.match(after) is not None


def _begins_a_name(said: str, after: str) -> bool | None:
    """Whether what a statement begins with is a name: "My Chemical Romance", "You Me At Six"."""
    if said in {"My", "Our", "Your"}:
        doubtful = _TWO_TITLED.match(after) and _TITLED_TWICE.match(after)
    else:
        doubtful = _TITLED.match(after)
    return None if doubtful else False
