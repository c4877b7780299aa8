"""The slug and the owner of a candidate."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from perdure.engine.extract.words import STOP
from perdure.model import CandidateMemory, RequestContext, slugify

# ---------------------------------------------------------------- slugs
_MOST_WORDS = 7
_MOST = 60
_DIGEST = 8


_SHARP = re.compile(r"(?<=\w)#(?!\w)")
_PLUS = re.compile(r"(?<=[\w+])\+(?=\+*(?:\W|\Z))")
_DOT = re.compile(r"(?<!\S)\.(?=[a-z])")
_EMOJI = 0x2190
"""From here on, what is a symbol is a picture."""


def slug_of(text: str, prefix: str = "") -> str:
    """Return a slug of the words that matter; letters that it can't hold are told by a digest."""
    text = _spelt(unicodedata.normalize("NFC", text).casefold())
    kept = [word for word in re.findall(r"[\w']+", text) if word not in STOP][:_MOST_WORDS]
    wanted = " ".join([*prefix.split(), *(kept or text.split()[:_MOST_WORDS])])
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", wanted)
        if not unicodedata.combining(letter)
    )
    slug = slugify(plain.replace("'", ""))[:_MOST].strip("-")
    if re.search(r"[^\W_]", re.sub(r"[\x00-\x7f]", "", plain)) or slug in {"", "untitled"}:
        digest = hashlib.sha256(wanted.encode()).hexdigest()[:_DIGEST]
        return f"{slug or 'note'}-{digest}"
    return slug


def _spelt(text: str) -> str:
    """Return words with the signs spelt out that tell them apart: C# and C++, and pictures."""
    text = _DOT.sub("dot ", _PLUS.sub(" plus ", _SHARP.sub(" sharp", text)))
    return "".join(_named(letter) for letter in text)


def _named(letter: str) -> str:
    if ord(letter) < _EMOJI or unicodedata.category(letter) != "So":
        return letter
    return f" {unicodedata.name(letter, '').casefold().replace('-', ' ')} "


# ---------------------------------------------------------------- owners
_STATED = frozenset({"pattern"})
"""Categories of what a user says is to be done."""


def with_owners(found: Iterable[CandidateMemory], ctx: RequestContext) -> list[CandidateMemory]:
    """Return candidates of the agent, with those that a user only stated as that user's own."""
    user = f"user:{ctx.user_id}"
    return [replace(each, owner_space=user) if each.category in _STATED else each for each in found]
