"""What of a message is worth repeating on its occasion: what says how to work, and what objects.

It is not kept as a rule, and not stated to be one: it is shown as the user's words, with their day.
"""

import re
from collections.abc import Iterator, Sequence

from perdure.engine.learn.prose import LONGEST_OWN, Candidate, matched
from perdure.engine.occasions import FEWEST_STEPS, LONGEST_STEPS, condition_in
from perdure.model.speech import Kind, speech_of
from perdure.model.values import JSON, words_key
from perdure.patterns import later
from perdure.safety.injection import instructions_in

_FEWEST, _LONGEST = 4, 240
"""Words and characters of a sentence that is worth repeating."""
_STEP = later(r"\s*\d{1,2}[.)]\s+\S")
_ATTACHED = later(r"^(?:@\S+\s+)+")
_OBJECTING = later(
    r"^(?:no|nope|wait|actually|hey|stop)\b|\bwhy (?:did|are|were|have|do|does|is)(?:n'?t)? you\b"
    r"|\byou (?:did ?n[o']?t|missed|forgot|updated|should|need to|were supposed|never|keep)\b"
    r"|\b(?:did(?:n'?t)?|have(?:n'?t)?) you\b|\bwhat about\b|\bfix (?:this|it|that)\b"
    r"|\bi (?:only |just |already )?(?:asked|told|wanted|said|meant)\b|\bi did(?:n'?t| not)\b",
    re.IGNORECASE,
)
_BINDING = frozenset(
    {"widening", "every", "prohibition", "contrast", "obligation", "correction", "rule_word"}
)
_ORDERED, _ASKING = frozenset({"making", "one_off"}), frozenset({"asking", "question"})
_ALWAYS = later(
    r"\b(?:always|never|from now on|in future|next time|going forward)\b", re.IGNORECASE
)
_PRODUCT = later(r"(?:the )?CODE (?:\w+ )?(?:should|must|needs?|takes?)\b", re.IGNORECASE)
"""What a sentence begins with that says what the code is to do, and not how to work."""
_DICTATING = later(
    r"\b(?:explain|specif(?:y|ies)|say|state|mention|document|record)(?:ing|s)? "
    r"(?:that|how|when)\b",
    re.IGNORECASE,
)
_CARRIES_MORE = later(r"[<>|]\s*\w*sh\b|://|\b(?:curl|wget)\b")


def is_repeatable(text: str) -> bool:
    """Whether a sentence of a user says how to work, or objects; not what to do now."""
    plain = _ATTACHED.sub("", text)
    if len(plain.split()) < _FEWEST or len(text) > _LONGEST:
        return False
    seen = matched(plain)
    is_stated = _DICTATING.search(plain) or _ALWAYS.search(plain)
    if (_ORDERED & seen and not is_stated) or _PRODUCT.match(plain):
        return False
    if _OBJECTING.search(plain):
        return True
    is_asked = bool(_ASKING & seen) and not is_stated
    return not is_asked and bool(_BINDING & seen or condition_in(plain))


def occasions_in(content: str, sentences: Sequence[Candidate]) -> list[JSON]:
    """Return the sentences of a message that are worth repeating, and procedures it dictates."""
    found: list[JSON] = [[text, "rule", 1.0] for text in procedures_in(content)]
    stated = (each for each in sentences if is_repeatable(each.sentence.plain))
    found += [
        [" ".join(each.sentence.text.split()), "rule", round(each.score, 3)] for each in stated
    ]
    return found


def procedures_in(content: str) -> Iterator[str]:
    """Yield what a user dictates as numbered steps below a condition, each as one line.

    It may be in a fence: a text that an agent is to write into a file is still the user's, unless
    the message is so long that it is pasted.
    """
    speech = speech_of("user", content)
    is_own = speech.kind is Kind.USER and len(speech.text) <= LONGEST_OWN
    lead, steps = "", list[str]()
    for line in [*(speech.text if is_own else "").split("\n"), "end"]:
        if _STEP.match(line):
            steps.append(" ".join(line.split()))
        elif line.strip():
            if len(steps) >= FEWEST_STEPS and lead.endswith(":") and condition_in(lead):
                made = _procedure(lead, steps)
                if not (instructions_in(made) or _CARRIES_MORE.search(made)):
                    yield made
            lead, steps = " ".join(line.split()), []


def first_step(procedure: str) -> str:
    """Return the words of the first step, by which a text that has them is known."""
    return words_key(re.split(r"\s\d{1,2}[.)]\s", procedure)[1])


def _procedure(lead: str, steps: Sequence[str]) -> str:
    made = lead
    for step in steps:
        if len(made) + len(step) > LONGEST_STEPS:
            return f"{made} …"
        made = f"{made} {step}"
    return made
