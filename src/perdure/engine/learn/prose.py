"""The user's own sentences in a message, and how likely each is to last.

Pastes, code, quotations and short answers are left out. `weights.json` has the fitted model of the
score, `patterns.txt` its features.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.markdown import code_fences
from perdure.model.speech import SpeechKind, speech_of
from perdure.model.transcript import Message
from perdure.model.values import WORD as _WORD
from perdure.model.values import comparison_key, shortened
from perdure.patterns import later, required_literals, table

LONGEST_SENTENCE = 600
"""Characters. A longer span without an end is not a sentence."""
LONGEST_MESSAGE, LAST = 16_000, 4_000
"""Characters that are read of a longer message: the first ones, and the last ones."""
LONGEST_OWN = 1_500
"""Characters. In a longer message, headings and lists are taken for pasted text."""
SHORTEST_ANSWER = 5
"""Words. A numbered line with fewer is an answer to a question that it does not repeat."""

_COMMAND = later(r"\s*(?:/[a-z][\w:-]*(?:\s|\Z)|@(?:agent|workspace)\s)")
"""The beginning of a slash command, or of a call of another agent."""
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
"""The share of letters and spaces below which a line is not prose."""
_MANY_LINES = 25


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the user, and its span in the content of the message."""

    message: int
    start: int
    end: int
    text: str
    place: int = 0
    of: int = 1

    @property
    def plain(self) -> str:
        """The text, with one word in place of each code span and quotation."""
        return _QUOTED.sub("QUOTED", _CODE.sub("CODE", self.text)).replace("\u2019", "'")

    @property
    def key(self) -> str:
        return comparison_key(self.text)


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
        key = comparison_key(line)
        if len(key) >= 20:  # noqa: PLR2004 - a shorter line may be the same by chance
            yield key


def sentences(content: str, message: int = 0, quoted: Collection[str] = ()) -> list[Sentence]:
    """Return the sentences of a message that are its author's own prose.

    Left out are texts that a program inserted (`model.speech`), pastes, code, quotations, and
    requests to forget, which would reveal what was forgotten. `quoted` has the keys of lines of
    other speakers; a line that repeats one is a paste.
    """
    speech = speech_of("user", content)
    if speech.kind is not SpeechKind.USER or _COMMAND.match(content):
        return []
    text = _shortened_middle(speech.text)
    for start, end, _ in code_fences(text):
        text = text[:start] + _NO_BREAK.sub("\0", text[start:end]) + text[end:]
    text = _TAGGED.sub(_blanked, text)
    text = _SPOKEN.sub(lambda found: _blanked(found) if _ENDS.search(found[1]) else found[0], text)
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
        at = content.find(own, last)  # a text inserted before it moves it
        if at >= 0:  # no text was inserted into it
            last = at + len(own)
            if not _FORGETTING.match(own):
                found.append(Sentence(message, at, last, own, place, len(spans)))
    return found


_LONG_PASTE = 600
"""Characters of a prompt that are not its author's own, from which they are a document."""
_FEWEST_TYPED = 4


def pasted_in(prompt: str) -> str:
    """Return the parts of a prompt that are not its author's own sentences."""
    starts = [0]
    ends = []
    for each in sentences(prompt):
        ends.append(each.start)
        starts.append(each.end)
    pieces = zip(starts, [*ends, len(prompt)], strict=True)
    return "\n".join(filter(str.strip, (prompt[start:end] for start, end in pieces)))


def is_paste(text: str) -> bool:
    """Whether a text that is not the author's own is long enough for a pasted document."""
    return len(text) >= _LONG_PASTE


def typed_keys(prompt: str) -> set[str]:
    """Return hashes of the sentences that the author of a prompt typed, and of their ends.

    An agent that repeats one omits its beginning: "from now on", "please remember".
    """
    found: set[str] = set()
    for each in sentences(prompt):
        words = each.key.split()
        starts = range(max(1, len(words) - _FEWEST_TYPED + 1))
        found.update(_hash(" ".join(words[at:])) for at in starts)
    return found


def is_typed(text: str, typed: Collection[str]) -> bool:
    """Whether all of a text was typed by the user, given the hashes of what they typed."""
    stated = [each.key for each in sentences(text)] or [comparison_key(text)]
    return all(_hash(key) in typed for key in stated)


def sentence_id(text: str) -> str:
    """Return the id of a sentence: a hash of its words, without their case and punctuation."""
    return sha256(comparison_key(text).encode()).hexdigest()[:12]


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:16]


def _blanked(found: re.Match[str]) -> str:
    """Return a match as null characters of the same length; line breaks stay."""
    return _NO_BREAK.sub("\0", found[0])


def _shortened_middle(content: str) -> str:
    """Return a message in which null characters replace the middle of a very long one."""
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
        if pasted or is_others or foreign[number] or (quoted and comparison_key(line) in quoted):
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


_CACHED_WORDS = 8192
_LONG_MESSAGE = 12
"""Sentences. A message with more describes a task."""
_CASED = frozenset({"capitals", "code"})
_CAPITAL = later(r"(?<!\\)[A-Z]")
_KIND_OF = (
    ("rejected", frozenset({"rejected"})),
    ("task", frozenset({"task"})),
    ("rule", frozenset({"widening", "every", "prohibition", "rule_word", "correction"})),
    ("decision", frozenset({"choice", "renaming", "contrast"})),
    ("preference", frozenset({"preference"})),
    ("rule", frozenset({"obligation"})),
    ("command", frozenset({"command"})),
    ("fact", frozenset({"practice", "location", "statement"})),
)


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    sentence: Sentence
    kind: str
    score: float
    """The probability that it lasts, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The fitted model: one weight per feature, and the least score of a candidate."""

    bias: float
    features: Mapping[str, float]
    threshold: float
    most: int
    """At most this many candidates of one session."""


def candidates(
    messages: Sequence[Message | Mapping[str, object]], weights: Weights | None = None
) -> list[ScoredSentence]:
    """Return the sentences of a session that may last, in order."""
    model = weights or fitted()
    once = {each.key: each for each in reversed(user_sentences(messages))}
    found = [_scored(each, model) for each in once.values()]
    likely = (each for each in found if each.score >= model.threshold)
    best = sorted(likely, key=lambda each: -each.score)[: model.most]
    return sorted(best, key=lambda each: (each.sentence.message, each.sentence.start))


def scored(text: str) -> list[ScoredSentence]:
    return [_scored(each, fitted()) for each in sentences(text)]


_LONGEST_HINT = 120
"""Characters of the quoted sentence; the whole line has about 40 tokens."""
LIKELY = 0.21
"""The least score of a sentence that is shown; one without any pattern has 0.201."""


def prompt_hint(prompt: str) -> str:
    """Return a line about the sentence of a prompt that most likely lasts; empty if none does."""
    stated = _compiled("stated").values()

    def worth(each: ScoredSentence) -> float:
        return each.score + any(pattern.search(each.sentence.plain.lower()) for pattern in stated)

    found = [each for each in scored(prompt) if "question" not in matched(each.sentence.plain)]
    best = max(found, key=worth, default=None)
    if best is None or worth(best) < LIKELY or not comparison_key(best.sentence.text):
        return ""
    words = shortened(" ".join(best.sentence.text.split()).rstrip("."), _LONGEST_HINT)
    return f"possibly lasting: {words}; `mcp__perdure__remember` it if so"


def _scored(sentence: Sentence, model: Weights) -> ScoredSentence:
    seen = matched(sentence.plain)
    return ScoredSentence(sentence, kind_of(seen), score(features(sentence, seen), model))


def score(given: Mapping[str, float], model: Weights) -> float:
    total = model.bias + sum(model.features.get(name, 0.0) * value for name, value in given.items())
    return 1 / (1 + math.exp(-total))


def kind_of(seen: frozenset[str]) -> str:
    """Return the kind that the patterns of a sentence suggest."""
    return next((kind for kind, names in _KIND_OF if names & seen), "fact")


def matched(plain: str) -> frozenset[str]:
    small, patterns = plain.lower(), _compiled("patterns")
    possible = _CASED.union(*map(_possible, small.split()))
    return frozenset(
        name for name in possible if patterns[name].search(plain if name in _CASED else small)
    )


@lru_cache(maxsize=_CACHED_WORDS)
def _possible(word: str) -> frozenset[str]:
    """Return the patterns that can match a text with this word."""
    return frozenset(
        name for name, texts in _needed_words().items() if any(map(word.__contains__, texts))
    )


@cache
def _needed_words() -> dict[str, tuple[str, ...]]:
    """Return for each pattern the words of which each of its matches contains one."""
    return {
        name: tuple(
            max(text.split(), key=len, default="")
            for text in required_literals(pattern.pattern) or ("",)
        )
        for name, pattern in _compiled("patterns").items()
    }


def features(sentence: Sentence, seen: frozenset[str] | None = None) -> dict[str, float]:
    """Return the features of a sentence: its patterns, its length, its position."""
    count = len(sentence.plain.split())
    found = dict.fromkeys(matched(sentence.plain) if seen is None else seen, 1.0)
    found["short"] = float(count < 4)  # noqa: PLR2004 - words
    found["long"] = float(count > 30)  # noqa: PLR2004 - words
    found["length"] = math.log(1 + count) / 3
    found["opens session"] = float(sentence.message == 0)
    found["opens message"] = float(sentence.place == 0)
    found["ends message"] = float(sentence.place == sentence.of - 1)
    found["long message"] = min(1.0, sentence.of / _LONG_MESSAGE)
    return found


@cache
def _compiled(section: str) -> dict[str, re.Pattern[str]]:
    listed = table(__file__, "patterns.txt", section)
    # Lower case in pattern and text takes half of the time of IGNORECASE.
    return {
        name: re.compile(
            text if name in _CASED else _CAPITAL.sub(lambda found: found[0].lower(), text)
        )
        for name, text in listed.items()
    }


@cache
def fitted() -> Weights:
    """Return the weights of `weights.json`, which documents their origin."""
    found = json.loads(Path(__file__).with_name("weights.json").read_text("utf-8"))
    return Weights(**{name: found[name] for name in Weights.__slots__})
