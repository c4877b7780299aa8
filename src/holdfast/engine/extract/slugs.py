"""Names for what was found: the same words give the same one, in any script."""

import hashlib
import re
import unicodedata

from holdfast.engine.extract.words import STOP
from holdfast.model import slugify

_MOST_WORDS = 7
_MOST = 60
_DIGEST = 8


def slug_of(text: str, prefix: str = "") -> str:
    """Return a slug of the words that matter; letters that it can't hold are told by a digest."""
    text = unicodedata.normalize("NFC", text).casefold()
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
