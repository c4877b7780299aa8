"""What an agent learns from work: commands, what helped against errors, and how things are done."""

import re
from collections.abc import Iterator, Mapping, Sequence

from perdure.engine.extract import confidence
from perdure.engine.extract.candidates import slug_of
from perdure.engine.extract.claims import hedged
from perdure.engine.extract.findings import Finding, Turn, candidates, turns_of
from perdure.engine.extract.likes import has_code, is_procedure
from perdure.engine.extract.persons import sentence as as_sentence
from perdure.engine.extract.prose import BLOT, Sentence, tail
from perdure.engine.extract.remedies import remedies
from perdure.engine.extract.reminders import reminders
from perdure.engine.extract.words import any_case
from perdure.model import CandidateMemory, RequestContext


class ProcedureExtractor:
    """Finds commands and what they are for, errors with what helped, and how things are done.

    What a command is for and what helped are memories of the agent: they say how to work, not who
    somebody is. How somebody wants things done is theirs, as others have the same agent.
    """

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        turns = turns_of(messages, ctx)
        found = [*_skills(turns), *_steps(turns), *_customs(turns), *remedies(turns)]
        return candidates(found, ctx)


# ---------------------------------------------------------------- commands
_CODE = rf"`(?P<code>{BLOT}{{2,300}})`"
_RUN = r"(?:run|use|call|type|execute|try|do|invoke)"
_TO_RUN = any_case(
    rf"\bto\s(?P<purpose>[a-z][^,.;:!?`]{{2,80}}),?\s(?:(?:just|you\scan|you\sneed\sto"
    rf"|simply|please|always|first)\s){{0,2}}{_RUN}\s{_CODE}"
)
_RUN_TO = any_case(
    rf"\b{_RUN}\s{_CODE}\s(?:first\s)?(?:to|when|whenever|for)"
    rf"\s(?P<purpose>[a-z][^,.;:!?`]{{2,80}})"
)
_WITH = any_case(
    rf"(?:\A|[,;:]\s|\s(?:and|so|but)\s)(?P<purpose>[a-z][^,.;:!?`]{{2,80}}?)\s(?:with"
    rf"|via|using|by\srunning)\s{_CODE}"
)
_DOES = any_case(
    rf"{_CODE}\s(?!is\b|was\b|has\b|does\b|fails\b|says\b|gives\b|as\b|works\b|this\b"
    rf"|helps\b|shows\sthat|hangs\b|crashes\b)(?P<purpose>[a-z]{{3,20}}s\s[^,.;:!?`]{{2,80}})"
)
_NO_ADVICE = any_case(
    r"\b(?:fail|fails|failed|got|error|says|said|told|solved|fixed|ran|was|were|starts? with)\b"
)
_TO_HELP = any_case(
    r"\b(?:start|stop|run|see|see|build|test|deploy|regenerate|rebuild|generate"
    r"|install|check|open|reset|clear|create|update"
    r"|list|restart|log|lint|format|debug|migrate|seed|publish|release|continue|resume"
    r"|be\s\w+ed|be\srun)\b"
)
_JOINED = any_case(r"(?:and|so|but)\s")
_IT = any_case(r"\b(?:it|them|this|that)\b")


def _skills(turns: Sequence[Turn]) -> Iterator[Finding]:
    for turn in turns:
        if turn.message.role not in {"user", "assistant"}:
            continue
        for claim in turn.claims:
            if has_code(claim.plain):
                yield from _commands(turn, claim)


def _commands(turn: Turn, claim: Sentence) -> Iterator[Finding]:
    taken: set[int] = set()
    for pattern in (_TO_RUN, _RUN_TO, _WITH, _DOES):
        for match in pattern.finditer(claim.plain):
            if match.start("code") in taken or not _is_advice(pattern, match):
                continue
            taken.add(match.start("code"))
            yield _skill(turn, claim, match)


def _is_advice(pattern: re.Pattern[str], match: re.Match[str]) -> bool:
    if is_procedure(match.string) and re.search(
        r"\b(?:always|never|whenever|when)\b", match.string, re.IGNORECASE
    ):
        return pattern is _RUN_TO and re.match(r"(?i)always|never|when", match.string) is None
    if pattern is _WITH and not (_TO_HELP.search(match["purpose"]) and " " in match["purpose"]):
        return False
    return not _NO_ADVICE.search(match["purpose"])


def _skill(turn: Turn, claim: Sentence, match: re.Match[str]) -> Finding:
    begin, finish = match.span()
    begin += len(match[0]) - len(match[0].lstrip(" ,;:"))
    joined = _JOINED.match(claim.plain, begin)
    begin = joined.end() if joined else begin
    code = claim.text[match.start("code") : match.end("code")]
    said = claim.text[begin:finish]
    if _IT.search(match["purpose"]):
        begin, said = 0, claim.text[:finish]
    sure = confidence.DONE if turn.message.role == "user" else confidence.ADVISED
    return Finding(
        turn=turn,
        start=claim.start + begin,
        end=claim.start + finish,
        category="skill",
        content=as_sentence(said),
        slug=slug_of(code),
        confidence=confidence.weighed(sure, hedged=hedged(claim, begin, finish)),
        when=turn.message.time,
    )


# ---------------------------------------------------------------- steps
_TITLE = any_case(
    r"\W{0,4}(?P<title>(?:to|steps\s(?:to|for)|how\s(?:to|we|i)|(?:the\s)?(?:process"
    r"|procedure|checklist|runbook|recipe|way)\s(?:to|for))\s"
    r"[^:\n]{2,80}):?\**\s*\Z"
)
_ITEM = re.compile(r"\s{0,3}(?:\d{1,2}[.)]|[-*\u2022])\s+(?P<step>\S.*)")
_FEWEST = 2
_MOST = 20


def _steps(turns: Sequence[Turn]) -> Iterator[Finding]:
    for turn in turns:
        if turn.message.role == "user":
            yield from _lists(turn)


def _lists(turn: Turn) -> Iterator[Finding]:
    lines = turn.message.content.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for number, line in enumerate(lines):
        title = _TITLE.match(line[-120:])
        steps = _items(lines, number + 1) if title else []
        begin = starts[number] + len(line) - len(line.lstrip())
        if title and len(steps) >= _FEWEST and _is_meant(turn, begin):
            last = steps[-1][0]
            yield _pattern(
                turn,
                (begin, starts[last] + len(lines[last].rstrip())),
                f"{title['title']}: " + "; ".join(step for _, step in steps),
                title["title"],
            )


def _is_meant(turn: Turn, begin: int) -> bool:
    return any(each.start <= begin < each.end for each in turn.meant)


def _items(lines: Sequence[str], first: int) -> list[tuple[int, str]]:
    """Return the steps that follow, each with its line; a blank line may come first."""
    found: list[tuple[int, str]] = []
    for number in range(first, min(first + _MOST, len(lines))):
        match = _ITEM.fullmatch(lines[number][:300])
        if match:
            found.append((number, match["step"].strip().rstrip(".;")))
        elif lines[number].strip() or found:
            break
    return found


# ---------------------------------------------------------------- customs
_ALWAYS = any_case(
    r"(?:(?:please|and|also|but)\s){0,2}(?:always|never|make\ssure\sto|remember\sto)\s[a-z]"
)
_WHEN = any_case(
    r"(?:one\smore\sthing,\s)?(?P<when>(?:when|whenever|before|after|each\stime|every"
    r"\stime|once)\s[^.;!?]{3,100}?[,\s]\s?)"
    r"(?<!you\s)(?<!we\s)(?<!I\s)(?<!they\s)(?<!it\s)(?<!to\s)"
    r"(?:(?:please|always|just|first|never)\s){0,2}(?P<do>run|use|regenerate|restart"
    r"|do|call|rebuild|check|update|clear|ask|add|bump|"
    r"tag|delete|reset|set|stop|start|make|commit|push|open)\b"
)
_WE = any_case(
    r"\b(?P<here>(?:in|for|on)\s(?:this|our)\s(?:repo|repository|project|codebase|team"
    r"|company|service|app),?\s)?(?:"
    r"we\s(?:always|never|only)\s[a-z]|we\s(?:use|write|keep|prefer|run|deploy|store"
    r"|name|put|follow|do)\s[^.,;!?]{2,80}?\s"
    r"(?:here|instead\sof|rather\sthan|by\shand|in\sthis\s(?:repo|project))|(?:every"
    r"|each|all)\s[\w\s-]{2,40}?\s(?:needs?|must|should|has\sto"
    r"|have\sto|goes|go|gets?)\s)"
)
_HERE = any_case(
    r"\b(?:in|for|on)\s(?:this|our)\s(?:repo|repository|project|codebase|team|service"
    r"|app),?\s(?:we|all|every|each|the|no)\s"
)
_WORK = any_case(
    r"`|\b(?:repo|deploy\w*|commits?|pull\srequests?|prs?|tests?|builds?|servers?"
    r"|databases?|branch(?:es)?|scripts?|releases?|bugs?|lint"
    r"|migrations?|merge|pip|npm|docker|cache|worker|api|code|schema|backend|packages?"
    r"|staging|production|tickets?|logs?)\b"
)
_STARTS = re.compile(r"\A\W*|[,;:.!]\s+(?:(?:and|but)\s+)?|\s(?:and|but)\s+")


def _customs(turns: Sequence[Turn]) -> Iterator[Finding]:
    for turn in turns:
        if turn.message.role != "user":
            continue
        asked = [each.finding(turn) for each in reminders(turn) if each.is_rule]
        yield from asked
        for claim in turn.claims:
            for custom in _said(turn, claim):
                if not any(each.start <= custom.start < each.end for each in asked):
                    yield custom


def _said(turn: Turn, claim: Sentence) -> Iterator[Finding]:
    taken = -1
    for start in sorted({match.end() for match in _STARTS.finditer(claim.plain)}):
        finish = _custom_at(claim, start) if start >= taken else None
        if finish is None:
            continue
        taken = finish
        said = claim.text[start:finish]
        span = (claim.start + start, claim.start + finish)
        yield _pattern(turn, span, said, said, unsure=hedged(claim, start, finish))


def _custom_at(claim: Sentence, start: int) -> int | None:
    """Return where a custom ends that begins here; None if there is none."""
    always = _ALWAYS.match(claim.plain, start)
    if always:
        finish = tail(claim, always.end())
        return finish if is_procedure(claim.plain[start:finish]) else None
    for pattern in (_WHEN, _HERE, _WE):
        match = pattern.match(claim.plain, start)
        if match and (pattern is _HERE or _WORK.search(claim.plain)):
            return tail(claim, match.end())
    return None


def _pattern(
    turn: Turn, span: tuple[int, int], said: str, about: str, *, unsure: bool = False
) -> Finding:
    return Finding(
        turn=turn,
        start=span[0],
        end=span[1],
        category="pattern",
        content=as_sentence(said)[:500],
        slug=slug_of(about),
        confidence=confidence.weighed(confidence.DONE, hedged=unsure),
        when=turn.message.time,
    )
