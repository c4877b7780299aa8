"""What every embedder asks of the texts that it is given."""

from collections.abc import Sequence

from perdure.errors import InvalidValueError
from perdure.model.values import encodable, shown


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts, if UTF-8 can say each; else `InvalidValueError`.

    A text that is not in a list is refused: it would be embedded letter by letter.
    """
    if isinstance(texts, str):
        raise InvalidValueError(f"{shown(texts)} is one text. Fix: give a list of texts.")
    return [encodable(text, "text to embed") for text in texts]
