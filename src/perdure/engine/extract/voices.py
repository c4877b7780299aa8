"""Lines of a message that somebody else wrote: mails, letters and chats that were pasted."""

import re
from collections.abc import Collection, Iterator, Sequence

from perdure.engine.extract.words import words_of

_HEADER = re.compile(
    r"\s*(?P<field>From|To|Cc|Bcc|Subject|Sent|Date|Reply-To|Von|An|Betreff|Gesendet)\s?:\s",
    re.IGNORECASE,
)
_FEWEST_HEADERS = 2
_TURN = re.compile(
    r"\s*(?:[-*]\s+)?(?P<time>[\[(]?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]m)?[\])]?[\s,-]*)?"
    r"[<*]{0,2}@?(?P<who>[^\W\d_][\w.'-]{0,25}(?:\s[\w.'-]{1,25}){0,2})[>*]{0,2}"
    r"(?:\s\([^)]{1,30}\))?(?::|>)[*]{0,2}\s+(?P<said>\S.*)",
    re.IGNORECASE,
)
_OF_ONESELF = re.compile(r"\b(?:I|I'm|I've|I'd|I'll|my|me|mine|we|we're|our|us)\b", re.IGNORECASE)
_OTHERS = re.compile(r"(?:the|my|our|a|an|his|her)\s\w+\Z", re.IGNORECASE)
_CAPITALS = re.compile(r"[^\W\d_a-z][\w.'-]*(?:\s[^\W\d_a-z][\w.'-]*){0,2}\Z")
_GREETING = re.compile(r"\s*(?:hi|hello|hey|dear|good\s(?:morning|evening|day))\b", re.IGNORECASE)
_SIGN_OFF = re.compile(
    r"(?:.*[.!?]\s)?\s*(?:(?:with\s)?(?:best|kind|kindest|warm|many)\s)?(?:regards|wishes|best|cheers"
    r"|yours(?:\s(?:truly|sincerely|faithfully))?|sincerely|love|thanks|thank\syou|xoxo|hugs)"
    r"[,!.]{0,2}\s*(?P<name>[^\W\d_a-z][\w'-]+(?:\s[^\W\d_a-z][\w'-]+)?)?\s*\Z",
    re.IGNORECASE,
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
