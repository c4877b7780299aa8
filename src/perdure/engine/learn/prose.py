"""The user's own prose in a message: sentences without pastes, code, quotes and answers."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256

from perdure.dataclass import dataclass
from perdure.engine.tables import table
from perdure.markdown import fenced
from perdure.model.speech import Kind, speech_of
from perdure.model.transcript import Message
from perdure.model.values import WORD as _WORD
from perdure.model.values import words_key
from perdure.patterns import later

LONGEST_SENTENCE = 600
"""Characters. A longer stretch without an end is not a sentence that someone wrote."""
LONGEST_MESSAGE, LAST = 16_000, 4_000
"""Characters that are looked at: the first and the last ones of a message that is longer."""
LONGEST_OWN = 1_500
"""Characters of a message in which headings and lists are still the user's own."""
SHORTEST_ANSWER = 5
"""Words. A numbered line with fewer is an answer to a question that the sentence leaves out."""

_COMMAND = later(r"\s*(?:/[a-z][\w:-]*(?:\s|\Z)|@(?:agent|workspace)\s)")
"""How a slash command or a call of another agent begins."""
_TAGGED = later(r"<(?P<tag>[A-Za-z][\w-]*)(?:\s[^<>]{0,200})?>.*?</(?P=tag)>", re.DOTALL)
_SPOKEN = later(r"[\"\u201c](?=\w)([^\"\u201c\u201d]{1,3000})[\"\u201d]")
_ENDS = later(r"[.!?]\s")
_HEADER = later(r"\s*(?:From|To|Subject|Sent|Cc|Betreff|Von): \S")
_SPEAKER = later(r"\s*[A-Z][\w ]{0,20}: \S")
_HEADING = later(r"\s*#{1,6}\s")
_PATTERNS = table(__file__, "patterns.txt", "prose")
_PASTE_LEAD = later(_PATTERNS["paste lead"], re.IGNORECASE)
_FOREIGN = later(_PATTERNS["foreign"])
_FORGETTING = later(_PATTERNS["forgetting"], re.IGNORECASE)
_LIST = later(r"\s*(?:[-*•]|(?P<number>\(?\d{1,2}[.):]|[a-h][.)]))\s+")
_CODE = later(r"`[^`\n]{1,300}`")
_QUOTED = later(r"[\"\u201c](?=\S)[^\"\u201c\u201d\n]{1,400}?[\"\u201d](?!\w)")
_END = later(
    r"(?<!\b[A-Z])(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)[.!?]+[)\"\u201d']*(?=[\s\0])|\n|\0+"
)
_NO_BREAK = later(r"[^\n]")
_PROSE_SHARE = 0.6
"""Of the characters, letters and spaces: below this a line is data."""
_MANY_LINES = 25


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the user's, from `start` to `end` of the message's content."""

    message: int
    start: int
    end: int
    text: str
    place: int = 0
    of: int = 1

    @property
    def plain(self) -> str:
        """Return the text with code and quotations replaced by one word each."""
        return _QUOTED.sub("QUOTED", _CODE.sub("CODE", self.text)).replace("\u2019", "'")

    @property
    def key(self) -> str:
        return words_key(self.text)


def user_sentences(messages: Sequence[Message | Mapping[str, object]]) -> list[Sentence]:
    quoted: set[str] = set()
    found: list[Sentence] = []
    for index, each in enumerate(messages):
        message = each if isinstance(each, Message) else Message.from_mapping(each)
        if message.role != "user":
            quoted.update(_line_keys(message.content))
            continue
        found += sentences(message.content, index, quoted)
    return found


def _line_keys(content: str) -> Iterator[str]:
    for line in content[:LONGEST_MESSAGE].split("\n"):
        key = words_key(line)
        if len(key) >= 20:  # noqa: PLR2004 - a shorter line may be the same by chance
            yield key


def sentences(content: str, message: int = 0, quoted: Collection[str] = ()) -> list[Sentence]:
    """Return the sentences of a message that are its author's own prose.

    What a program put into it is left out (`model.speech`), as are pastes, code and quotations, and
    what asks to forget: to keep that would tell of what was forgotten.
    `quoted` has the keys of lines of other speakers; a line that repeats one is a paste.
    """
    speech = speech_of("user", content)
    if speech.kind is not Kind.USER or _COMMAND.match(content):
        return []
    text = _looked_at(speech.text)
    for start, end, _ in fenced(text):
        text = text[:start] + _NO_BREAK.sub("\0", text[start:end]) + text[end:]
    text = _TAGGED.sub(_blotted, text)
    text = _SPOKEN.sub(lambda found: _blotted(found) if _ENDS.search(found[1]) else found[0], text)
    spans = [
        span
        for start, line in _own_lines(text, quoted)
        for span in _split(start, line)
        if len(_WORD.findall(speech.text[span[0] : span[1]])) > 1
    ]
    found: list[Sentence] = []
    last = 0
    for place, (start, end) in enumerate(spans):
        own = speech.text[start:end]
        at = content.find(own, last)  # what a program put before it moved it
        if at >= 0:  # not cut in two by what a program put into it
            last = at + len(own)
            if not _FORGETTING.match(own):
                found.append(Sentence(message, at, last, own, place, len(spans)))
    return found


_LONG_PASTE = 600
"""Characters of a prompt that are not its author's own: then it has a pasted document."""
_FEWEST_TYPED = 4


def pasted_in(prompt: str) -> str:
    starts = [0]
    ends = []
    for each in sentences(prompt):
        ends.append(each.start)
        starts.append(each.end)
    pieces = zip(starts, [*ends, len(prompt)], strict=True)
    return "\n".join(filter(str.strip, (prompt[start:end] for start, end in pieces)))


def is_paste(text: str) -> bool:
    """Whether this much that is not the author's own makes a pasted document."""
    return len(text) >= _LONG_PASTE


def typed_keys(prompt: str) -> set[str]:
    """Return hashes of the sentences that the author of a prompt typed, and of how they end.

    An agent that repeats one leaves out its beginning: "from now on", "please remember".
    """
    found: set[str] = set()
    for each in sentences(prompt):
        words = each.key.split()
        starts = range(max(1, len(words) - _FEWEST_TYPED + 1))
        found.update(_hash(" ".join(words[at:])) for at in starts)
    return found


def is_typed(text: str, typed: Collection[str]) -> bool:
    """Whether all of a text was typed by the user, given the hashes of what they typed."""
    stated = [each.key for each in sentences(text)] or [words_key(text)]
    return all(_hash(key) in typed for key in stated)


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:16]


def _blotted(found: re.Match[str]) -> str:
    """Return what is not the author's own as so many null characters; lines stay."""
    return _NO_BREAK.sub("\0", found[0])


def _looked_at(content: str) -> str:
    """Return a message, as long as it is, with the middle of a very long one blotted out."""
    if len(content) <= LONGEST_MESSAGE + LAST:
        return content
    middle = "\0" * (len(content) - LONGEST_MESSAGE - LAST)
    return content[:LONGEST_MESSAGE] + middle + content[-LAST:]


def _own_lines(text: str, quoted: Collection[str]) -> Iterator[tuple[int, str]]:
    start, pasted, headed = 0, False, 0
    is_long = len(text) > LONGEST_OWN
    lines = text.split("\n")
    foreign = [*map(_is_foreign, lines)]
    is_log = sum(foreign) > _MANY_LINES
    is_dialogue = sum(_SPEAKER.match(line) is not None for line in lines) > 1
    for number, line in enumerate(lines):
        begin, start = start, start + len(line) + 1
        headed += _HEADING.match(line) is not None
        if headed and (is_long or headed > 1):
            return  # a pasted document
        if (is_log and number > _MANY_LINES) or _HEADER.match(line):
            return
        is_others = is_dialogue and _SPEAKER.match(line)
        if pasted or is_others or foreign[number] or words_key(line) in quoted:
            pasted = pasted and bool(line.strip())
            continue
        pasted = _PASTE_LEAD.search(line) is not None
        lead = _LIST.match(line)
        if lead and lead["number"] and len(line[lead.end() :].split()) < SHORTEST_ANSWER:
            continue
        skipped = lead.end() if lead else 0
        yield begin + skipped, line[skipped:]


def _is_foreign(line: str) -> bool:
    bare = line.strip().replace("\0", "")
    is_code = line.startswith(("    ", "\t")) and not _LIST.match(line)
    if not bare or is_code or _FOREIGN.match(line):
        return True
    letters = sum(map(str.isalpha, bare)) + bare.count(" ")
    return letters < _PROSE_SHARE * len(bare) and not _CODE.search(bare)


def _split(start: int, line: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for end in [*(match.end() for match in _END.finditer(line)), len(line)]:
        piece = line[begin:end]
        bare = piece.strip(" \t\r\0")
        if bare and len(bare) <= LONGEST_SENTENCE:
            left = begin + len(piece) - len(piece.lstrip(" \t\r\0"))
            yield start + left, start + left + len(bare)
        begin = end
