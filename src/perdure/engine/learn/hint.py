"""The line that a prompt hook adds where a user may have said something lasting."""

from perdure.engine.learn import net
from perdure.engine.learn.prose import words_key
from perdure.model.values import shortened

_LONGEST = 120
"""Characters of the words that are shown; with the rest about 40 tokens."""
LIKELY = 0.25
"""The least score of a sentence that is worth a line."""


def prompt_hint(prompt: str) -> str:
    """Return one line about the sentence of a prompt that is most likely to last; empty if none is.

    The same words give the same line, so that a hook can show it once.
    """
    found = net.candidates([{"role": "user", "content": prompt}])
    best = max(found, key=lambda each: each.score, default=None)
    if best is None or best.score < LIKELY or not words_key(best.sentence.text):
        return ""
    words = shortened(" ".join(best.sentence.text.split()), _LONGEST)
    return f"possibly lasting: {words}; `mcp__perdure__remember` it if so"
