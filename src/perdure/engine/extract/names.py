"""Names by their capitals: no list of names could know everybody's."""

import re

from perdure.engine.extract.words import NO_NAMES, either, words_of

_SMALL = words_of("small parts of names")
_PART = r"[^\W\d_a-z][\w'\u2019&-]{0,30}"
_TITLE = r"(?:(?:The|Mr|Mrs|Ms|Dr|Prof)\.?\s)?"
NAME = re.compile(rf"{_TITLE}{_PART}(?:\s(?:(?:{either(_SMALL)})\s){{0,2}}{_PART}){{0,3}}")
"""Up to four words with capitals, perhaps with a small one in between."""


def name_at(text: str, position: int) -> str:
    """Return the name that begins at a position; empty if there is none."""
    match = NAME.match(text, position)
    if match is None:
        return ""
    name = _without_others(match[0])
    return name if is_name(name) else ""


def is_name(text: str) -> bool:
    """Whether it can be a name: a capital first, and no word that all sentences begin with."""
    first = re.sub(_TITLE, "", text, count=1).split(maxsplit=1)[:1]
    if not first or first[0].lower().strip("'\u2019") in NO_NAMES:
        return False
    return not first[0][0].islower()


def _without_others(name: str) -> str:
    """Leave out possessives and words that begin something else."""
    kept: list[str] = []
    for part in name.split():
        if kept and not re.fullmatch(_TITLE, f"{kept[-1]} ") and _begins_anew(part):
            break
        kept.append(part)
        if part.endswith(("'s", "\u2019s")):
            break
    while kept and kept[-1] in _SMALL:
        kept.pop()
    return re.sub(r"['\u2019]s\Z", "", " ".join(kept))


def _begins_anew(part: str) -> bool:
    if part in _SMALL:
        return False
    return part[0].islower() or part.lower() in NO_NAMES
