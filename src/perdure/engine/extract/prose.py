"""The sentences that somebody says in their own words, and the clauses of these.

Code, logs, quotations and pasted texts are somebody else's words. They are blotted out, character
for character, so that rules can't find anything in them and every position stays what it was.
"""

import operator
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.engine.extract.words import any_case, words_of

# ---------------------------------------------------------------- pasted mails, letters and chats
_HEADER = any_case(
    r"\s*(?P<field>From|To|Cc|Bcc|Subject|Sent|Date|Reply-To|Von|An|Betreff|Gesendet)\s?:\s"
)
_FEWEST_HEADERS = 2
_TURN = any_case(
    r"\s*(?:[-*]\s+)?(?P<time>[\[(]?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]m)?[\])]?[\s,-]*)?"
    r"[<*]{0,2}@?(?P<who>[^\W\d_][\w.'-]{0,25}(?:\s[\w.'-]{1,25}){0,2})[>*]{0,2}"
    r"(?:\s\([^)]{1,30}\))?(?::|>)[*]{0,2}\s+(?P<said>\S.*)"
)
_OF_ONESELF = any_case(r"\b(?:I|I'm|I've|I'd|I'll|my|me|mine|we|we're|our|us)\b")
_OTHERS = any_case(r"(?:the|my|our|a|an|his|her)\s\w+\Z")
_CAPITALS = re.compile(r"[^\W\d_a-z][\w.'-]*(?:\s[^\W\d_a-z][\w.'-]*){0,2}\Z")
_GREETING = any_case(r"\s*(?:hi|hello|hey|dear|good\s(?:morning|evening|day))\b")
_SIGN_OFF = any_case(
    r"(?:.*[.!?]\s)?\s*(?:(?:with\s)?(?:best|kind|kindest|warm|many)\s)?(?:regards|wishes|best|cheers"
    r"|yours(?:\s(?:truly|sincerely|faithfully))?|sincerely|love|thanks|thank\syou|xoxo|hugs)"
    r"[,!.]{0,2}\s*(?P<name>[^\W\d_a-z][\w'-]+(?:\s[^\W\d_a-z][\w'-]+)?)?\s*\Z"
)
_NAME = re.compile(
    r"\s*[-\u2013\u2014]?\s*(?P<name>[^\W\d_a-z][\w'-]+(?:\s[^\W\d_a-z][\w'-]+)?)\s*"
)
_LABELS = words_of("labels")


def others_lines(lines: Sequence[str], own: Collection[str]) -> list[bool]:
    """Return of each line whether somebody else wrote it; `own` are the speaker's names."""
    names = {each.casefold() for each in own if each}
    foreign = [False] * len(lines)
    for begin, end in (*_mails(lines), *_letters(lines, names), *_chats(lines, names)):
        foreign[begin:end] = [True] * (end - begin)
    return foreign


def _mails(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield what follows the header of a mail, down to the end."""
    heads = [(at, match) for at, line in enumerate(lines) if (match := _HEADER.match(line))]
    subject = any(match["field"].lower() in {"subject", "betreff"} for _, match in heads)
    if subject or len(heads) >= _FEWEST_HEADERS:
        yield heads[0][0], len(lines)


def _letters(lines: Sequence[str], own: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield what stands between a greeting and another one's name."""
    begin: int | None = None
    for at, line in enumerate(lines):
        if _GREETING.match(line[:80]):
            begin = at if begin is None else begin
        signed = _signed(lines, at) if begin is not None else None
        if begin is not None and signed is not None:
            name, end = signed
            if not _is_own(name, own):
                yield begin, end
            begin = None


def _signed(lines: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return whose name ends a letter here, and where the next line is."""
    match = _SIGN_OFF.match(lines[at][-200:])
    if match is None:
        return None
    if match["name"]:
        return match["name"], at + 1
    for below in range(at + 1, min(at + 4, len(lines))):
        if lines[below].strip():
            name = _NAME.fullmatch(lines[below][:80])
            return (name["name"], below + 1) if name else None
    return None


def _chats(lines: Sequence[str], own: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield what others say in a chat: their lines, and those that go on without a name."""
    turns = [(at, _TURN.match(line[:300])) for at, line in enumerate(lines)]
    begins = [at for at, turn in turns if turn and _is_anothers(turn, own)]
    labelled = {at for at, turn in turns if turn}
    for begin in begins:
        end = begin + 1
        while len(labelled) > 1 and end < len(lines) and lines[end].strip():
            if end in labelled:
                break
            end += 1
        yield begin, end


def _is_anothers(turn: re.Match[str], own: Collection[str]) -> bool:
    who = turn["who"]
    if _is_own(who, own):
        return False
    if turn["time"]:
        return True
    if "-".join(who.casefold().split()).rstrip(".") in _LABELS or not _OF_ONESELF.search(
        turn["said"]
    ):
        return False
    return " " not in who or bool(_CAPITALS.match(who) or _OTHERS.match(who))


def _is_own(name: str, own: Collection[str]) -> bool:
    return any(part in own for part in (name.casefold(), *name.casefold().split()))


# ---------------------------------------------------------------- sentences
BLOT = "\x1a"
"""Stands for each character that is not the speaker's own."""

_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})")
_FOREIGN_LINE = re.compile(
    r"\s*>|\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:|\s*\[?\d\d:\d\d:\d\d|\s*\[?(?:DEBUG|INFO"
    r"|WARN|WARNING|ERROR|FATAL"
    r"|TRACE)\b|Traceback\b|\s*File \"|\s+at \S+[.(:]|\s*(?:\$|>>>|#|\+\+\+|---|@@|//)"
    r"\s|npm (?:ERR|WARN)"
    r"|E   |diff --git|\s*</?\w+[ >/]|\s*[\w.]{1,80}(?:Error|Exception)\b:|\s*[{}]\s*$"
)
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_PASTE = any_case(
    r"\b(?:e-?mail|mail|letter|message|text|article|logs?|transcript|quote|post|ticket|review|reply"
    r"|wrote|writes|says|said|output|document|draft|prompt|story|poem|lyrics)\b[^.!?\n]{0,80}:\s*$"
)
_SPANS = re.compile(
    r"`(?P<code>[^`\n]{1,400})`|\"(?P<plain>[^\"\n]{1,400})\""
    r"|\u201c(?P<curly>[^\u201d\n]{1,400})\u201d"
    r"|\u00ab(?P<angled>[^\u00bb\n]{1,400})\u00bb"
    r"|\u201e(?P<low>[^\u201c\u201d\n]{1,400})[\u201c\u201d]"
    r"|(?<!\w)'(?P<single>[^'\n]{2,200})'(?!\w)|(?P<link>https?://\S{1,400})"
)
_END = re.compile(r"[.!?\u2026]+[\"')\]\u201d\u2019*]{0,3}(?=\s|$)|[\u3002\uff01\uff1f]")
_ABBREVIATED = any_case(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|approx|no|inc|ltd|jr|sr|dept|u\.s"
    r"|u\.k|a\.m|p\.m)"
    r"|\b[A-Z])\Z"
)
_WRAPPED = 60
"""A line at least as long that goes on with a small letter was wrapped."""
LONGEST = 1_000
"""Characters of a sentence; what goes on without an end is cut there."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` is what stands in the message from `start` on; `plain` is the same, blotted."""

    text: str
    plain: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def part(self, begin: int, finish: int) -> "Sentence":
        return Sentence(self.text[begin:finish], self.plain[begin:finish], self.start + begin)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence says from `begin` to `finish` of it."""

    begin: int
    finish: int
    content: str
    confidence: float
    about: str = ""
    """What it is named after."""
    topic: str = ""
    """What of the profile it is; what kind of event."""
    when: datetime | None = None


def apart(found: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements in their order; of those that overlap, the first and longest."""
    taken = -1
    for statement in sorted(found, key=lambda each: (each.begin, -each.finish)):
        if statement.begin >= taken:
            taken = statement.finish
            yield statement


def sentences(content: str, own: Collection[str] = ()) -> list[Sentence]:
    """Return the sentences of a message, in their order, without what is somebody else's.

    `own` are the names of who speaks.
    """
    plain = own_words(content, own)
    whole = Sentence(content, plain, 0)
    return [
        sentence
        for begin, finish in _lines(plain)
        for sentence in _sentences(whole.part(begin, finish))
        if sentence.plain.replace(BLOT, "").strip()
    ]


def own_words(content: str, own: Collection[str] = ()) -> str:
    """Return the message with what is not the speaker's own blotted out, as long as before."""
    lines = content.split("\n")
    foreign = map(operator.or_, _foreign(lines), others_lines(lines, own))
    kept = (BLOT * len(line) if other else line for line, other in zip(lines, foreign, strict=True))
    return _SPANS.sub(_blot, "\n".join(kept)).replace("\u2019", "'")


def _blot(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    inside = match[kind]
    before = match.start(kind) - match.start()
    return match[0][:before] + BLOT * len(inside) + match[0][before + len(inside) :]


def _foreign(lines: list[str]) -> list[bool]:
    fenced = pasted = False
    found: list[bool] = []
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
            found.append(True)
            continue
        after_code = not found or found[-1] or not lines[len(found) - 1].strip()
        code = after_code and _INDENTED.match(line) is not None
        found.append(fenced or pasted or code or _FOREIGN_LINE.match(line) is not None)
        pasted = pasted or (not fenced and _PASTE.search(line[-200:]) is not None)
    return found


def _lines(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the lines; one that was wrapped goes on in the next."""
    begin = end = 0
    for line in plain.split("\n"):
        if end > begin and not (end - begin >= _WRAPPED and line[:1].islower()):
            yield begin, end - 1
            begin = end
        end += len(line) + 1
    yield begin, max(begin, end - 1)


def _sentences(line: Sentence) -> Iterator[Sentence]:
    begin = 0
    for match in _END.finditer(line.plain):
        if match[0] == "." and _ABBREVIATED.search(
            line.plain, max(0, match.start() - 8), match.start()
        ):
            continue
        yield from _pieces(line, begin, match.end())
        begin = match.end()
    yield from _pieces(line, begin, len(line.plain))


def _pieces(line: Sentence, begin: int, finish: int) -> Iterator[Sentence]:
    for start in range(begin, finish, LONGEST):
        piece = line.part(start, min(start + LONGEST, finish))
        yield _stripped(piece)


def _stripped(piece: Sentence) -> Sentence:
    begin = len(piece.plain) - len(piece.plain.lstrip())
    return piece.part(begin, len(piece.plain.rstrip()))


# ---------------------------------------------------------------- clauses
_NEW_SUBJECT = (
    r"(?:i|i'm|i've|i'd|i'll|we|we're|my|our|he|he's|she|she's|they|it|it's|you|then"
    r"|also|don't|please|never"
    r"|always|now|so|that|this|already|what)"
)
_HARD = (
    r"[,;:!?](?=\s|\Z)|(?<![\w=])\(|\)(?=\W|\Z)|[\u2026\n\u3002]|\s[-\u2013\u2014]+\s|\s(?:but|because|cause|cuz|so|though|although"
    rf"|however|by the way|btw|to be honest|tbh|lol|haha|and\s+{_NEW_SUBJECT})\b"
)
_SOFT = (
    r"|(?<!\sa)\swhile\b|\s(?:when|since|until|after|before|whenever|where|who|which"
    r"|that|even|even though|even if)\b"
)
HARD = any_case(_HARD)
SOFT = any_case(_HARD + _SOFT)
_CLAUSE = any_case(
    r"[,;:]\s|[!?()\u2026]|\s[-\u2013\u2014]+\s|\s(?:but|because|so|though|although|which|and\s+"
    rf"(?={_NEW_SUBJECT}\b|come\b|go\b))\b"
)
_LOOSE = any_case(
    r"(?:\s|\A)(?:for now|now|too|either|btw|tbh|lol|haha|please|pls|though|anyway|again"
    r"|you know|of course|as well|ok"
    r"|at all|right|then|here|these days|in general|by now)\W*\Z"
)
_LIST_GOES_ON = re.compile(
    r",\s(?:(?:some|a little|a bit of|little)\s)?[\w-]{1,30}(?=,|\s(?:and|or)\s|\s*\Z|[.;!])"
)
_LONGEST_TAIL = 160
_ON = re.compile(r"\s(?!(?:and|but|so|because|or)\b)\w")
_PLACED = r"(?:in|at|near|with|on|by|for|as|from|to)"
_SOME = r"(?:the|an?|my|our|some|no|lots|much|many|only|\d+)"
VERB = any_case(
    rf"(?:like|prefer|enjoy|adore|dislike|have|am|speak|know|think|want|believe)\s"
    rf"|(?:live|work|study|listen|come)\s{_PLACED}\s|(?:love|hate|use|own|drive|play|run|teach"
    rf"|drink|eat|need|collect|avoid|study)\s{_SOME}\s"
)
"""A verb that goes on with what somebody says of themselves: "I live in Rome and like tea"."""
_JOINED = any_case(rf",?\s(?:and|or)\s(?={VERB.pattern})")


def tail(sentence: Sentence, position: int, *, soft: bool = False) -> int:
    """Return where what begins at a position ends: at a new thought, or where the sentence does.

    With `soft`, also where it goes on to say when, where or who.
    """
    limit = min(len(sentence.plain), position + _LONGEST_TAIL)
    for match in (SOFT if soft else HARD).finditer(sentence.plain, position, limit):
        if not _is_aside(sentence.plain, position, match):
            return trimmed(sentence, position, match.start())
    return trimmed(sentence, position, _at_a_word(sentence, limit))


def _is_aside(plain: str, position: int, match: re.Match[str]) -> bool:
    """Whether it stands in brackets after which the statement goes on, or is one of these."""
    opened = plain.rfind("(", position, match.end())
    if opened < 0:
        return False
    closed = plain.find(")", opened)
    if closed < match.start():
        return False
    in_a_word = opened > position and not plain[opened - 1].isspace()
    return in_a_word or _ON.match(plain, closed + 1) is not None


def predicate(sentence: Sentence, position: int, end: int) -> int:
    """Return where the first of several verbs ends: "in Rome" of "in Rome and like tea"."""
    joined = _JOINED.search(sentence.plain, position, end)
    return trimmed(sentence, position, joined.start()) if joined else end


def listed(sentence: Sentence, end: int) -> int:
    """Return where a list ends that goes on after `end`: "German, English and some Czech"."""
    while match := _LIST_GOES_ON.match(sentence.plain, end):
        end = match.end()
    last = re.compile(r",?\s(?:and|or)\s(?:(?:some|a little|a bit of|little)\s)?[\w-]{1,30}").match(
        sentence.plain, end
    )
    return last.end() if last else end


def trimmed(sentence: Sentence, position: int, end: int) -> int:
    """Return the end without spaces and loose words before it."""
    while end > position:
        match = _LOOSE.search(sentence.plain, max(position, end - 20), end)
        if match and match.start() > position:
            end = match.start()
        elif sentence.plain[end - 1] in " \t,;:-*.!":
            end -= 1
        else:
            break
    return end


def clauses(sentence: Sentence) -> Iterator[Sentence]:
    """Yield the parts of a sentence that could stand alone; short ones lean on the next."""
    begin = 0
    for match in _CLAUSE.finditer(sentence.plain):
        if match.start() - begin > 0:
            yield sentence.part(begin, match.start())
        begin = match.end()
    if begin < len(sentence.plain):
        yield sentence.part(begin, len(sentence.plain))


def _at_a_word(sentence: Sentence, limit: int) -> int:
    if limit == len(sentence.plain):
        return limit
    space = sentence.plain.rfind(" ", 0, limit)
    return space if space > 0 else limit
