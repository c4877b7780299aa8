"""Errors, and what helped against them: in one sentence, or over several messages."""

import re
from collections.abc import Iterator, Sequence

from perdure.engine.extract import confidence
from perdure.engine.extract.candidates import slug_of
from perdure.engine.extract.findings import Finding, Turn
from perdure.engine.extract.persons import sentence as as_sentence
from perdure.engine.extract.prose import BLOT, Sentence, tail
from perdure.engine.extract.words import any_case
from perdure.model.values import shortened

Place = tuple[Turn, int, int]
"""A message, and from where to where in it."""

_ERROR = any_case(
    r"(?-i:\b[A-Za-z_.]{0,60}(?:Error|Exception)\b:?|\b(?:ERROR|FATAL|ERR!"
    r"|E[A-Z]{4,12}\b):?\s)|\b(?:fatal|error):\s|\b(?:command not found|no such file"
    r"|permission denied|connection refused|no space left|cannot find|already in use"
    r"|timed out|unable to|segmentation fault"
    r"|no upstream|cannot import|not found)\b"
)
_TROUBLE = any_case(
    r"\b(?:fails?|failed|failing|broken|breaks|broke|stuck|crash(?:es|ed)?|hangs|drops"
    r"|doesn't work|not working|won't start"
    r"|is red|is down|blows? up|freezes|too slow|is full|locked)\b"
)
_FIX_IS = any_case(
    r"\b(?:the\s)?(?:fix|workaround)\s(?:for\s(?:it|that|this)\s)?(?:was|is)"
    r"\s(?!not\b)(?:to\s|that\s)?"
    r"|\bthe\s(?:solution|trick|remedy|answer)\s(?:for\s(?:it|that|this)\s)?(?:was|is)"
    r"\s(?:to\s|(?=`|\w+ing\b))"
)
_SOLVED_BY = any_case(
    r"\b(?:I|we|you)(?:'ve|\shave)?\s(?:finally\s|just\s)?(?:fixed|solved|resolved"
    r"|worked\saround)\s(?:it|that|this|the\s[\w\s-]{2,40}?)\s"
    r"(?:[\w\s]{1,30}?\s)?by\s"
)
_IT_SOLVED = any_case(
    rf"(?:(?P<code>`{BLOT}{{2,300}}`)|(?:\A\W*|[,;:.]\s|\s(?:and|but)"
    rf"\s)(?P<doing>[a-z]{{2,20}}ing\b[^.,;!?\n]{{0,60}}?))\s(?:has\s|have\s)?(?:fixed"
    rf"|solved|resolved|cured|helped|did\sthe\strick)"
    r"(?:\s(?:it|that|this|the\s[\w-]{2,30}))?\b"
)
_WORKED = any_case(
    r"\b(?:that|this|it)\s(?:has\s)?(?:worked|works\snow|works(?=\W*\Z)|fixed|solved"
    r"|helped|did\sthe\strick|resolved|did\sit)(?:\s(?:it|that|everything|the\s\w+))?\b"
    r"|\A\W*(?:ok\W+|perfect\W+|great\W+|yes\W+|yep\W+){0,2}works(?:\snow|\sagain|"
    r"\slike\sa\scharm)\b|\bproblem\ssolved\b"
)
_NOT = any_case(
    r"\b(?:n't|not|never|nothing|no|hopefully|hope|should|will|would|might|maybe)\b|n't\b"
)
_ADVICE = re.compile(r"`(?P<code>[^`\n]{2,300})`")
_LOOK_BACK = 6
_LONGEST = 200


def remedies(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield each fix with the trouble that came last before it; a fix of nothing known is none."""
    for at, turn in enumerate(turns):
        if turn.message.role in {"user", "assistant"}:
            before = turns[max(0, at - _LOOK_BACK) : at]
            yield from _remedies(before, turn)


def _remedies(before: Sequence[Turn], turn: Turn) -> Iterator[Finding]:
    for claim in turn.claims:
        told = _told(claim)
        if told is not None:
            begin, finish = told
            fix = claim.text[begin:finish]
            yield from _remedy(before, turn, (claim.start + begin, claim.start + finish), fix, ())
            return
    for claim in turn.claims:
        match = _WORKED.search(claim.plain)
        advice = _advice(before, turn) if match and not _NOT.search(claim.plain) else None
        if match and advice:
            span = (claim.start + match.start(), claim.start + match.end())
            whose, begin, finish = advice
            fix = whose.message.content[begin:finish]
            earlier = [each for each in before if each.index <= whose.index]
            yield from _remedy(earlier, turn, span, fix, (advice,))
            return


def _told(claim: Sentence) -> tuple[int, int] | None:
    """Return where a sentence says itself what helped."""
    for pattern in (_FIX_IS, _SOLVED_BY):
        match = pattern.search(claim.plain)
        if match and not _NOT.search(claim.plain[: match.start()]):
            finish = tail(claim, match.end())
            return (match.start(), finish) if finish > match.end() else None
    match = _IT_SOLVED.search(claim.plain)
    if match and not _NOT.search(match[0]):
        return match.start("code" if match["code"] else "doing"), match.end()
    return None


def _remedy(
    before: Sequence[Turn], turn: Turn, span: tuple[int, int], fix: str, advice: tuple[Place, ...]
) -> Iterator[Finding]:
    problem = _problem(before, turn, span[0])
    if problem is None:
        return
    whose, begin, finish = problem
    trouble = " ".join(shortened(whose.message.content[begin:finish], _LONGEST).split())
    content = (
        f"Problem: {as_sentence(trouble)} What helped: {as_sentence(shortened(fix, _LONGEST))}"
    )
    yield Finding(
        turn=turn,
        start=span[0],
        end=span[1],
        category="case",
        content=content,
        slug=slug_of(trouble),
        confidence=confidence.DONE,
        when=turn.message.time,
        also=(*advice, problem),
    )


def _advice(before: Sequence[Turn], turn: Turn) -> Place | None:
    """Return what another one advised last: a command, of the last two messages."""
    for each in reversed(before[-2:]):
        if each.message.role == turn.message.role:
            continue
        found = [
            match for match in _ADVICE.finditer(each.message.content) if not _ERROR.search(match[0])
        ]
        if found and not any(map(_told, each.claims)):
            return _whole_sentence(each, found[-1].start(), found[-1].end())
    return None


def _whole_sentence(turn: Turn, begin: int, finish: int) -> Place:
    for sentence in turn.sentences:
        if sentence.start <= begin and finish <= sentence.end <= sentence.start + _LONGEST:
            return turn, sentence.start, sentence.end
    return turn, begin, finish


def _problem(before: Sequence[Turn], turn: Turn, start: int) -> Place | None:
    """Return the error nearest before a fix; if there is none, a sentence that tells of trouble."""
    here = _last_error(turn, start)
    if here:
        return here
    for each in reversed(before):
        found = _last_error(each, len(each.message.content))
        if found:
            return found
    for each in reversed(before):
        for sentence in reversed(each.sentences):
            if _TROUBLE.search(sentence.plain):
                return each, sentence.start, min(sentence.end, sentence.start + _LONGEST)
    return None


def _last_error(turn: Turn, limit: int) -> Place | None:
    """Return the last line with an error before a place; if it stands in code, only that code."""
    content = turn.message.content[:limit]
    end = len(content)
    for line in reversed(content.split("\n")):
        begin = end - len(line)
        match = _ERROR.search(line[:2000])
        if match:
            return (turn, *_error_in(line, begin, match.start()))
        end = begin - 1
    return None


def _error_in(line: str, begin: int, position: int) -> tuple[int, int]:
    for code in _ADVICE.finditer(line[:2000]):
        if code.start() <= position < code.end():
            return begin + code.start("code"), begin + code.end("code")
    start = max(0, position - 60)
    first = begin + start + len(line[start:]) - len(line[start:].lstrip())
    return first, min(begin + len(line.rstrip()), first + _LONGEST)
