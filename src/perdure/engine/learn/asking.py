"""What a language model may add to the judge: whether other words say the same.

It is asked only where the rules found nothing but other words. What differs by a digit, a name or a
"not" is never shown to it, so it can't make one of two.
"""

from perdure.engine.learn.judge import Comparison, Verdict, compare
from perdure.engine.llm.contract import LLM
from perdure.engine.llm.quoting import DATA, line_of, quoted
from perdure.model.values import JSON, shortened, visible

WORTH_ASKING = 0.5
"""The least similarity. Below it, statements that say the same were rare among the labelled."""
_LONGEST_REASON = 200

_JUDGING = f"""\
Say what two statements of one memory are to each other.

You are shown a record with both, each as JSON on a line of its own.

{DATA}

verdict:
- same: they say the same of the same thing, so that one of them is enough. Not if one says more.
- contradicts: they say of one thing what can't both hold.
- different: everything else, and whenever you are not sure.
reason: one short sentence.
"""
_VERDICT: dict[str, JSON] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": [each.value for each in Verdict]},
        "reason": {"type": "string"},
    },
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}


class AskingJudge:
    """A `Judge` that goes by rules, and asks a model about other words.

    It says the same in either order, and asks the same, so that one answer is paid for. Errors of
    the model go up as they are.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def __call__(self, old: str, new: str) -> Comparison:
        found = compare(old, new)
        if not found.only_words or found.similarity < WORTH_ASKING:
            return found
        told = self._llm.complete_json(_about(old, new), _VERDICT)
        reason = shortened(visible(" ".join(told["reason"].split())), _LONGEST_REASON)
        return Comparison(Verdict(told["verdict"]), f"By a model: {reason}", found.similarity)


def _about(old: str, new: str) -> str:
    """Return a prompt about two statements, the same in either order."""
    record = quoted([line_of({"statement": each}) for each in sorted((old, new))])
    return f"{_JUDGING}\n{record}\n\nThe record is over. Answer about the two statements.\n"
