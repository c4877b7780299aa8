"""What a user forgot: a list of keyed hashes, and the one place that hides the words.

The list is a small file of the user's, with a history like any other text. It never has words. A
sentence of a session that the list knows is replaced by `HIDDEN` before it is kept, or where it
was kept already; so neither index nor briefing nor learning ever sees it.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from perdure.context.aliases import user_file
from perdure.context.draft import Draft
from perdure.context.files import FORGOTTEN, found_at
from perdure.context.reading import NodeReader
from perdure.dataclass import asdict, dataclass, replace
from perdure.engine.recall.question import STOP_WORDS
from perdure.engine.recall.result import Hint, HintKind, RecallResult
from perdure.errors import BrokenNodeError
from perdure.index.words import stems
from perdure.model import RequestContext, Uri
from perdure.model.transcript import HIDDEN, is_heading
from perdure.model.values import JSON
from perdure.tables import table

_SHARE = 0.8
"""Of the words of a statement, so many must be in a sentence that says the same."""
_FEW = 2
"""Of a statement with so few words, a sentence must have all, and none besides."""
_DENSE = 0.5
"""Of the words between the first and the last that match, so many must."""
_LONG = 300
"""Characters. Of a longer sentence, only the words that match are hidden, and those between."""
_LEAST_RUN = 3
_MOST_KNOWN = 50_000
"""So many words, and lines, are not looked at twice."""
_DIGEST = 8

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"\S.*?(?:[.!?…]+[)\]}\"'\u201d\u2019]*(?=\s|$)|$)")
_CALLED = re.compile(r"\[called [^\]:\s]{1,80}(?::|\])\s*")
_ESCAPED = re.compile(r"\\[nrt\"]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)')
_TABLE = table(__file__, "forgotten.txt")
_CARRIERS = STOP_WORDS | frozenset(_TABLE["CARRIERS"].split())
_NEGATING = frozenset(_TABLE["NEGATING"].split())


Token = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was forgotten: a node with its statements, or a session."""

    of: str
    sentences: tuple[str, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    """For each statement, the hashes of its words; none of what was erased."""
    runs: tuple[tuple[int, str], ...] = ()
    """For each statement that was erased, how many words it has, and one hash of them all."""


class Masked(NamedTuple):
    text: str
    hidden: int


class ForgottenList:
    """Decides whether a sentence was forgotten, and hides it. It is never changed in place."""

    def __init__(self, key: str, entries: Iterable[Entry] = ()) -> None:
        self.key, self._secret = key, bytes.fromhex(key)
        self.entries = tuple(entries)
        self._names = {entry.of for entry in self.entries}
        self._sentences = {each for entry in self.entries for each in entry.sentences}
        self._statements = [frozenset(each) for entry in self.entries for each in entry.words]
        self._runs = {run for entry in self.entries for run in entry.runs}
        self._sizes = sorted({size for size, _ in self._runs})
        self._having: dict[str, list[int]] = defaultdict(list)
        for number, words in enumerate(self._statements):
            for word in words:
                self._having[word].append(number)
        self._known: dict[str, str] = {}
        self._clean: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.entries)

    def of(self, entries: Iterable[Entry]) -> "ForgottenList":
        return ForgottenList(self.key, entries)

    # ------------------------------------------------------------ hiding
    def masked(self, text: str) -> Masked:
        """Return a text with `HIDDEN` for each sentence that was forgotten. Twice is once."""
        if not self.entries:
            return Masked(text, 0)
        lines = [self._masked_line(line) for line in text.split("\n")]
        hidden = sum(count for _, count in lines)
        return Masked("\n".join(line for line, _ in lines) if hidden else text, hidden)

    def says(self, text: str) -> bool:
        return self.masked(text).hidden > 0

    def is_all(self, text: str) -> bool:
        """Whether a text says nothing but what was forgotten."""
        masked = self.masked(text)
        return masked.hidden > 0 and not _WORD.search(masked.text.replace(HIDDEN, ""))

    def value(self, value: JSON) -> JSON:
        """Return a JSON value with what was forgotten hidden in its texts."""
        if isinstance(value, str):
            return self.masked(value).text
        if isinstance(value, Mapping):
            return {name: self.value(each) for name, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, Sequence) else value

    def hides_session(self, place: Uri) -> bool:
        """Whether a session was forgotten as a whole."""
        session = str(Uri(place.account, place.path[:2]))
        return bool(self.entries) and self._hash(session) in self._names

    def touched(self, text: str) -> int:
        """Return how many statements have to do with a question: half of their words, or more."""
        if not self.entries:
            return 0
        asked = {word for word, _, _ in self._tokens(text)}
        counts = Counter(number for word in asked for number in self._having.get(word, ()))
        sizes = {number: len(self._statements[number]) for number in counts}
        return sum(
            count >= max(min(_FEW, sizes[number]), (sizes[number] + 1) // 2)
            for number, count in counts.items()
        )

    def _masked_line(self, line: str) -> tuple[str, int]:
        """Return a line without what was forgotten, and how many sentences that was."""
        hidden = start = 0
        if line in self._clean or is_heading(line):
            return line, 0
        whole = line
        while (span := self._span(line, start)) is not None:
            line = f"{line[: span[0]]}{HIDDEN}{line[span[1] :]}"
            start, hidden = span[0] + len(HIDDEN), hidden + 1
        if not hidden and len(self._clean) < _MOST_KNOWN:
            self._clean.add(whole)
        return line, hidden

    def _span(self, line: str, start: int) -> tuple[int, int] | None:
        """Return where the next forgotten sentence of a line is; None if there is none."""
        for begin, end in _units(line, start):
            found = self._found(_ESCAPED.sub("  ", line[begin:end]))
            if found is not None:
                return begin + found[0], begin + found[1]
        return None

    def _found(self, sentence: str) -> tuple[int, int] | None:
        """Return what to hide of a sentence: all of it, but of a long one only some; or None."""
        if self._hash(_key(sentence)) in self._sentences:
            return 0, len(sentence)
        tokens = self._tokens(sentence)
        window = self._window(tokens) or self._run(tokens)
        if window is None or len(sentence) <= _LONG:
            return window and (0, len(sentence))
        return tokens[window[0]][1], tokens[window[1]][2]

    def _window(self, tokens: Sequence[Token]) -> tuple[int, int] | None:
        """Return the first and last word of a sentence that have a statement between them."""
        said = {word for word, _, _ in tokens}
        counts = Counter(number for word in said for number in self._having.get(word, ()))
        for number, count in counts.items():
            words = self._statements[number]
            if len(words) <= _FEW:
                if words == said:
                    return 0, len(tokens) - 1
            elif count >= _SHARE * len(words):
                window = _narrowest(tokens, words, count)
                if count >= _DENSE * (window[1] - window[0] + 1):
                    return window
        return None

    def _run(self, tokens: Sequence[Token]) -> tuple[int, int] | None:
        for size in self._sizes:
            for at in range(len(tokens) - size + 1):
                run = self._hash(_joined(word for word, _, _ in tokens[at : at + size]))
                if (size, run) in self._runs:
                    return at, at + size - 1
        return None

    # ------------------------------------------------------------ hashes
    def _tokens(self, text: str) -> list[Token]:
        return [
            (hashed, found.start(), found.end())
            for found in _WORD.finditer(text)
            if (hashed := self._word(found[0].casefold()))
        ]

    def _word(self, word: str) -> str:
        """Return the hash of a word's stem; empty for one that says nothing."""
        known = self._known.get(word)
        if known is None:
            stem = "not" if word in _NEGATING else " ".join(stems(word)) or word
            silent = word in _CARRIERS and word not in _NEGATING
            known = "" if silent else self._hash(stem)
            if len(self._known) < _MOST_KNOWN:
                self._known[word] = known
        return known

    def _hash(self, text: str) -> str:
        data = text.encode(errors="replace")
        return blake2b(data, key=self._secret, digest_size=_DIGEST).hexdigest()

    # ------------------------------------------------------------ changing
    def entry(self, uri: str, statements: Iterable[str], evidence: Iterable[str] = ()) -> Entry:
        """Return what to remember of a node that is forgotten: its statements, and their proofs.

        What is known of it already is part of it.
        """
        before = self.only([uri]).entries
        sentences = dict.fromkeys(each for entry in before for each in entry.sentences)
        words = dict.fromkeys(each for entry in before for each in entry.words)
        for statement in statements:
            parts = list(_parts(statement))
            for part in parts:
                told = tuple(dict.fromkeys(word for word, _, _ in self._tokens(part)))
                if len(parts) > 1 and len(told) <= _FEW:
                    continue  # such as "It works.", which many say
                sentences[self._hash(_key(part))] = None
                words |= {told: None} if told else {}
        for quote in evidence:
            sentences |= dict.fromkeys(self._hash(_key(part)) for part in _parts(quote))
        runs = (run for entry in before for run in entry.runs)
        return Entry(self._hash(uri), tuple(sentences), tuple(words), tuple(dict.fromkeys(runs)))

    def completed(self, entry: Entry, hidden: Iterable[str], *, erased: bool) -> Entry:
        """Return an entry that knows sentences, which are hidden now, again as a whole.

        Of what is erased, no word can be looked up in a dictionary.
        """
        mine = self.of([entry])
        known = sorted(self._hash(_key(each)) for each in hidden if mine.says(each))
        entry = replace(entry, sentences=tuple(dict.fromkeys((*entry.sentences, *known))))
        if not erased:
            return entry
        runs = ((len(words), self._hash(_joined(words))) for words in entry.words)
        found = (*entry.runs, *(run for run in runs if run[0] >= _LEAST_RUN))
        return replace(entry, words=(), runs=tuple(dict.fromkeys(found)))

    def added(self, *entries: Entry) -> "ForgottenList":
        names = {entry.of for entry in entries}
        return self.of((*(each for each in self.entries if each.of not in names), *entries))

    def united(self, other: "ForgottenList") -> "ForgottenList":
        """Return all that either list has, in the same order on every machine.

        `ValueError` if they have other keys.
        """
        if other.key != self.key:
            raise ValueError("the lists have other keys")
        found: dict[str, Entry] = {}
        for each in (*self.entries, *other.entries):
            had = found.get(each.of, Entry(each.of))
            found[each.of] = Entry(
                each.of,
                tuple(sorted({*had.sentences, *each.sentences})),
                tuple(sorted({*had.words, *each.words})),
                tuple(sorted({*had.runs, *each.runs})),
            )
        return self.of(found[name] for name in sorted(found))

    def only(self, uris: Iterable[str]) -> "ForgottenList":
        names = {self._hash(uri) for uri in uris}
        return self.of(each for each in self.entries if each.of in names)

    def without(self, uris: Iterable[str]) -> "ForgottenList":
        gone = self.only(uris).entries
        return self.of(each for each in self.entries if each not in gone)

    def lifted(self, text: str) -> "ForgottenList":
        """Return the list without what a text says: the user says it again."""
        return self.of(each for each in self.entries if not self.of([each]).says(text))

    def to_text(self) -> str:
        return json.dumps({"key": self.key, "entries": [*map(asdict, self.entries)]}, indent=0)


# ---------------------------------------------------------------- sentences
def _units(line: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield where sentences are in a line; of a call of a tool, what it was called with."""
    called = _CALLED.match(line)
    first = called.end() if called else 0
    texts = [(first, len(line))]
    if called and line.startswith("{", first):
        line = _ESCAPED.sub("  ", line)
        texts = [(found.start() + 1, found.end() - 1) for found in _STRING.finditer(line, first)]
    for begin, end in texts:
        for found in _SENTENCE.finditer(line, max(begin, start), end):
            yield found.span()


def _parts(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from (line[start:end] for start, end in _units(line, 0) if _key(line[start:end]))


def hidden_sentences(before: str, forgotten: ForgottenList) -> Iterator[str]:
    for part in _parts(before):
        if forgotten.says(part):
            yield part


def _key(text: str) -> str:
    return " ".join(word.casefold() for word in _WORD.findall(text))


def _joined(hashes: Iterable[str]) -> str:
    return " ".join(sorted(hashes))


def _narrowest(tokens: Sequence[Token], words: frozenset[str], count: int) -> tuple[int, int]:
    """Return the first and last index of the fewest tokens that have `count` of these words."""
    best, last = (0, len(tokens) - 1), dict[str, int]()
    for at, (word, _, _) in enumerate(tokens):
        if word in words:
            last[word] = at
            first = min(last.values())
            if len(last) == count and at - first < best[1] - best[0]:
                best = first, at
    return best


# ---------------------------------------------------------------- the file
def load(reader: NodeReader, account_id: str, user_id: str) -> ForgottenList:
    """Return what a user forgot; `BrokenNodeError` if the list can't be read."""
    locator = user_file(account_id, user_id, FORGOTTEN)
    found = found_at(locator, reader.backend)
    if found is None:
        return ForgottenList("")
    try:
        known = _parsed(found if isinstance(found, str) else "")
    except (ValueError, TypeError, LookupError) as error:
        raise BrokenNodeError(
            f"{locator.key!a} does not say what was forgotten. Nothing was changed. "
            "Fix: restore an earlier version of the file; without it, all that was forgotten "
            "would come back."
        ) from error
    for copy in reader.copies_of(locator):
        with suppress(ValueError, TypeError, LookupError):  # `conflicts` lists it
            known = known.united(_parsed(copy))
    return known


def united(one: str, other: str) -> str:
    """Return a list that has what both have; `ValueError` and others if one is not a list."""
    return _parsed(one).united(_parsed(other)).to_text() + "\n"


@lru_cache(maxsize=8)
def _parsed(text: str) -> ForgottenList:
    told = json.loads(text)
    return ForgottenList(told["key"], map(_entry, told["entries"]))


def of_caller(reader: NodeReader, ctx: RequestContext) -> ForgottenList:
    return load(reader, ctx.account_id, ctx.user_id)


def _entry(told: Mapping[str, JSON]) -> Entry:
    runs = tuple((int(size), str(run)) for size, run in told["runs"])  # type: ignore[misc, union-attr, arg-type] # checked by what it raises
    words = tuple(tuple(map(str, each)) for each in told["words"])  # type: ignore[union-attr, arg-type] # as before
    return Entry(str(told["of"]), tuple(map(str, told["sentences"])), words, runs)  # type: ignore[arg-type] # as before


Change = Callable[[ForgottenList], ForgottenList]


def changed(
    draft: Draft, account_id: str, user_id: str, change: Change
) -> tuple[ForgottenList, ForgottenList]:
    """Let the list of a user be changed with a draft; return it as it was, and as it will be."""
    reader = draft.reader
    before = load(reader, account_id, user_id)
    if not before.key:
        owner = f"{account_id}/{user_id}".encode()  # so that lists of two machines can be united
        before = ForgottenList(blake2b(owner, digest_size=16).hexdigest())
    after = change(before)
    if after.entries != before.entries:
        locator = user_file(account_id, user_id, FORGOTTEN)
        found = found_at(locator, reader.backend)
        draft.put(locator, after.to_text() + "\n", found)
    return before, after


def kept_back(result: RecallResult, forgotten: ForgottenList) -> RecallResult:
    """Return an answer that says if something was kept back because the user forgot it."""
    if not forgotten:
        return result
    shown = sum(HIDDEN in hit.snippet for hit in result.hits)
    count = forgotten.touched(result.query) or shown
    what = "1 statement is" if count == 1 else f"{count} statements are"
    text = f"{what} kept back, because the user forgot {'it' if count == 1 else 'them'}"
    hints = (Hint(HintKind.FORGOTTEN, text),) if count else ()
    says = forgotten.says(result.query)
    more = (*result.hints, *hints)
    return replace(result, says_forgotten=says, withheld=count, hints=more)


def masked_past(result: RecallResult, forgotten: ForgottenList) -> RecallResult:
    """Return an answer as of the past without what was forgotten since."""
    if not forgotten:
        return result
    hits = tuple(
        replace(
            hit,
            snippet=forgotten.masked(hit.snippet).text,
            title=forgotten.masked(hit.title).text,
        )
        for hit in result.hits
    )
    return replace(result, hits=hits, context=forgotten.masked(result.context).text)
