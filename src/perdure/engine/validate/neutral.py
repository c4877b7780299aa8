"""Texts that do nothing to who reads them, in a terminal or a Markdown viewer."""

from perdure.engine.validate.characters import visible
from perdure.engine.validate.markup import inert


def neutralised(text: str) -> str:
    """Return the text with nothing hidden in it, and nothing that runs or loads.

    What was said stays, as text that can be read; code stays as it is but for control characters.
    A text without such things comes back byte for byte, and so does what this made.
    """
    return inert(visible(text))
