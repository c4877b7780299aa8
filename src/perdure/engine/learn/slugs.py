"""What candidates of every extractor have: a slug, an owner and metadata."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from perdure.engine.learn.evidence import Evidence
from perdure.engine.tables import lists
from perdure.model import RequestContext, slugify
from perdure.model.values import JSON

_LISTS = lists(__file__, "words.txt")


def words_of(section: str) -> frozenset[str]:
    """Return the words of a section of `words.txt`."""
    return frozenset(word.replace("_", " ") for word in " ".join(_LISTS[section]).split())


def lines_of(section: str) -> list[str]:
    return _LISTS[section]


_STOP = words_of("stop")
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
    kept = [word for word in re.findall(r"[\w']+", text) if word not in _STOP][:_MOST_WORDS]
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


_ATTITUDE = re.compile(
    rf"\b(?:{'|'.join(sorted(words_of('attitudes'), key=len, reverse=True))})(?!\w)", re.IGNORECASE
)


def thing_of(about: str) -> str:
    """Return what is liked or disliked without that word, so that both have one slug."""
    plain = " ".join(about.replace("\u2019", "'").split())
    return " ".join(_ATTITUDE.sub(" ", plain).split()) or plain


_SHARED = frozenset({"skill", "case"})
"""Categories of what an agent learns from work for all of its users."""


def owner_space(category: str, ctx: RequestContext) -> str:
    """Return whose a candidate is.

    An agent has many users. What one of them merely states must not reach the others: "always run
    this before you answer" would be an order to everybody's agent. So a rule belongs to who stated
    it. What is shared is what a command is for, and what was seen to help.
    """
    return f"agent:{ctx.agent_id}" if category in _SHARED else f"user:{ctx.user_id}"


def metadata_of(evidence: Iterable[Evidence], topic: str, ctx: RequestContext) -> dict[str, JSON]:
    found: dict[str, JSON] = {"evidence": [each.as_json() for each in evidence]}
    told: dict[str, JSON] = {"topic": topic, "session_id": ctx.session_id}
    return found | {name: value for name, value in told.items() if value}
