"""The list of what a user forgot, as keyed hashes, and the functions that hide it.

The list is a small file of the user, with a history like any other text. It never has words. A
sentence of a session that matches the list is replaced by `HIDDEN` before it is stored, or where it
was stored already, so no index, briefing or extractor reads it.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from perdure.context.node_files import FORGOTTEN, text_at, user_file
from perdure.context.nodes import NodeDraft
from perdure.context.reader import NodeReader
from perdure.dataclass import asdict, dataclass, replace
from perdure.engine.recall.question import STOP_WORDS
from perdure.engine.recall.result import Hint, HintKind, RecallResult
from perdure.errors import BrokenNodeError
from perdure.index.sql import stems
from perdure.model import RequestContext, Uri
from perdure.model.transcript import HIDDEN, is_heading
from perdure.model.values import JSON
from perdure.patterns import table

_SHARE = 0.8
"""The share of the words of a statement that a matching sentence has."""
_FEW = 2
"""A sentence matches a statement with at most this many words only if it has no others."""
_DENSE = 0.5
"""The share of matching words between the first and the last one."""
_LONG = 300
"""Characters. Of a longer sentence, only the words from the first to the last match are hidden."""
_LEAST_RUN = 3
_MOST_KNOWN = 50_000
"""Cache at most this many words, and lines."""
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
class ForgottenEntry:
    """A forgotten node with its statements, or a forgotten session."""

    of: str
    sentences: tuple[str, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    """For each statement, the hashes of its words; none for an erased one."""
    runs: tuple[tuple[int, str], ...] = ()
    """For each erased statement, the number of its words, and one hash of them all."""


class MaskedText(NamedTuple):
    text: str
    hidden: int


class ForgottenList:
    """Decides whether a sentence was forgotten, and hides it. Immutable."""

    def __init__(self, key: str, entries: Iterable[ForgottenEntry] = ()) -> None:
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

    def of(self, entries: Iterable[ForgottenEntry]) -> "ForgottenList":
        return ForgottenList(self.key, entries)

    # ------------------------------------------------------------ hiding
    def masked(self, text: str) -> MaskedText:
        """Return a text with `HIDDEN` in place of each forgotten sentence. Idempotent."""
        if not self.entries:
            return MaskedText(text, 0)
        lines = [self._masked_line(line) for line in text.split("\n")]
        hidden = sum(count for _, count in lines)
        return MaskedText("\n".join(line for line, _ in lines) if hidden else text, hidden)

    def matches(self, text: str) -> bool:
        return self.masked(text).hidden > 0

    def is_all(self, text: str) -> bool:
        """Whether a text has no words but forgotten ones."""
        masked = self.masked(text)
        return masked.hidden > 0 and not _WORD.search(masked.text.replace(HIDDEN, ""))

    def value(self, value: JSON) -> JSON:
        """Return a JSON value with forgotten sentences hidden in its texts."""
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
        """Return how many statements share at least half of their words with a question."""
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
        """Return a line with forgotten sentences hidden, and their number."""
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
        """Return the span of the next forgotten sentence of a line; None if there is none."""
        for begin, end in _units(line, start):
            found = self._found(_ESCAPED.sub("  ", line[begin:end]))
            if found is not None:
                return begin + found[0], begin + found[1]
        return None

    def _found(self, sentence: str) -> tuple[int, int] | None:
        """Return the span of a sentence to hide; None if it does not match."""
        if self._hash(_key(sentence)) in self._sentences:
            return 0, len(sentence)
        tokens = self._tokens(sentence)
        window = self._window(tokens) or self._run(tokens)
        if window is None or len(sentence) <= _LONG:
            return window and (0, len(sentence))
        return tokens[window[0]][1], tokens[window[1]][2]

    def _window(self, tokens: Sequence[Token]) -> tuple[int, int] | None:
        """Return the first and last index of the words of a sentence that match a statement."""
        words_of_text = {word for word, _, _ in tokens}
        counts = Counter(number for word in words_of_text for number in self._having.get(word, ()))
        for number, count in counts.items():
            words = self._statements[number]
            if len(words) <= _FEW:
                if words == words_of_text:
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
        """Return the hash of the stem of a word; empty for a word without a meaning of its own."""
        known = self._known.get(word)
        if known is None:
            stem = "not" if word in _NEGATING else " ".join(stems(word)) or word
            is_ignored = word in _CARRIERS and word not in _NEGATING
            known = "" if is_ignored else self._hash(stem)
            if len(self._known) < _MOST_KNOWN:
                self._known[word] = known
        return known

    def _hash(self, text: str) -> str:
        encoded = text.encode(errors="replace")
        return blake2b(encoded, key=self._secret, digest_size=_DIGEST).hexdigest()

    # ------------------------------------------------------------ changing
    def entry(
        self, uri: str, statements: Iterable[str], evidence: Iterable[str] = ()
    ) -> ForgottenEntry:
        """Return the entry of a node: hashes of its statements and evidence.

        It includes the hashes of an earlier entry of the node.
        """
        before = self.only([uri]).entries
        sentences = dict.fromkeys(each for entry in before for each in entry.sentences)
        words = dict.fromkeys(each for entry in before for each in entry.words)
        for statement in statements:
            found = list(_sentences(statement))
            for sentence in found:
                hashes = tuple(dict.fromkeys(word for word, _, _ in self._tokens(sentence)))
                if len(found) > 1 and len(hashes) <= _FEW:
                    continue  # such as "It works.", which is too common
                sentences[self._hash(_key(sentence))] = None
                words |= {hashes: None} if hashes else {}
        for quote in evidence:
            sentences |= dict.fromkeys(self._hash(_key(each)) for each in _sentences(quote))
        runs = (run for entry in before for run in entry.runs)
        return ForgottenEntry(
            self._hash(uri), tuple(sentences), tuple(words), tuple(dict.fromkeys(runs))
        )

    def completed(
        self, entry: ForgottenEntry, hidden: Iterable[str], *, erased: bool
    ) -> ForgottenEntry:
        """Return an entry with the hashes of sentences that it hides.

        With `erased`, it has no hash of a single word, which a dictionary could reveal.
        """
        mine = self.of([entry])
        known = sorted(self._hash(_key(each)) for each in hidden if mine.matches(each))
        entry = replace(entry, sentences=tuple(dict.fromkeys((*entry.sentences, *known))))
        if not erased:
            return entry
        runs = ((len(words), self._hash(_joined(words))) for words in entry.words)
        found = (*entry.runs, *(run for run in runs if run[0] >= _LEAST_RUN))
        return replace(entry, words=(), runs=tuple(dict.fromkeys(found)))

    def added(self, *entries: ForgottenEntry) -> "ForgottenList":
        names = {entry.of for entry in entries}
        return self.of((*(each for each in self.entries if each.of not in names), *entries))

    def united(self, other: "ForgottenList") -> "ForgottenList":
        """Return the union of two lists, in the same order on every machine.

        Raises `ValueError` if their keys differ.
        """
        if other.key != self.key:
            raise ValueError("the keys of the lists differ")
        found: dict[str, ForgottenEntry] = {}
        for each in (*self.entries, *other.entries):
            had = found.get(each.of, ForgottenEntry(each.of))
            found[each.of] = ForgottenEntry(
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
        """Return the list without the entries that a text matches: the user stated it again."""
        return self.of(each for each in self.entries if not self.of([each]).matches(text))

    def to_text(self) -> str:
        return json.dumps({"key": self.key, "entries": [*map(asdict, self.entries)]}, indent=0)


# ---------------------------------------------------------------- sentences
def _units(line: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences in a line; of a tool call, those in its arguments."""
    called = _CALLED.match(line)
    first = called.end() if called else 0
    texts = [(first, len(line))]
    if called and line.startswith("{", first):
        line = _ESCAPED.sub("  ", line)
        texts = [(found.start() + 1, found.end() - 1) for found in _STRING.finditer(line, first)]
    for begin, end in texts:
        for found in _SENTENCE.finditer(line, max(begin, start), end):
            yield found.span()


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from (line[start:end] for start, end in _units(line, 0) if _key(line[start:end]))


def hidden_sentences(before: str, forgotten: ForgottenList) -> Iterator[str]:
    yield from filter(forgotten.matches, _sentences(before))


def _key(text: str) -> str:
    return " ".join(word.casefold() for word in _WORD.findall(text))


def _joined(hashes: Iterable[str]) -> str:
    return " ".join(sorted(hashes))


def _narrowest(tokens: Sequence[Token], words: frozenset[str], count: int) -> tuple[int, int]:
    """Return the first and last index of the shortest run of tokens with `count` of these words."""
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
    """Return the list of a user; raises `BrokenNodeError` if it can't be read."""
    locator = user_file(account_id, user_id, FORGOTTEN)
    found = text_at(locator, reader.backend)
    if found is None:
        return ForgottenList("")
    try:
        known = _parsed(found if isinstance(found, str) else "")
    except (ValueError, TypeError, LookupError) as error:
        raise BrokenNodeError(
            f"{locator.key!a} does not have the format of a forgotten list. Nothing was changed. "
            "Fix: restore an earlier version of the file; without it, all that was forgotten "
            "would come back."
        ) from error
    for copy in reader.copies_of(locator):
        with suppress(ValueError, TypeError, LookupError):  # `conflicts` lists it
            known = known.united(_parsed(copy))
    return known


def united(one: str, other: str) -> str:
    """Return the union of two lists as text; raises `ValueError` or others if one is malformed."""
    return _parsed(one).united(_parsed(other)).to_text() + "\n"


@lru_cache(maxsize=8)
def _parsed(text: str) -> ForgottenList:
    fields = json.loads(text)
    return ForgottenList(fields["key"], map(_entry, fields["entries"]))


def of_caller(reader: NodeReader, ctx: RequestContext) -> ForgottenList:
    return load(reader, ctx.account_id, ctx.user_id)


def _entry(fields: Mapping[str, JSON]) -> ForgottenEntry:
    runs = tuple((int(size), str(run)) for size, run in fields["runs"])  # type: ignore[misc, union-attr, arg-type] # a wrong type raises
    words = tuple(tuple(map(str, each)) for each in fields["words"])  # type: ignore[union-attr, arg-type] # as before
    return ForgottenEntry(str(fields["of"]), tuple(map(str, fields["sentences"])), words, runs)  # type: ignore[arg-type] # as before


Change = Callable[[ForgottenList], ForgottenList]


def changed(
    draft: NodeDraft, account_id: str, user_id: str, change: Change
) -> tuple[ForgottenList, ForgottenList]:
    """Change the list of a user in a draft; return it before and after the change."""
    reader = draft.reader
    before = load(reader, account_id, user_id)
    if not before.key:
        owner = (
            f"{account_id}/{user_id}".encode()
        )  # the same on all machines, so that lists can be united
        before = ForgottenList(blake2b(owner, digest_size=16).hexdigest())
    after = change(before)
    if after.entries != before.entries:
        locator = user_file(account_id, user_id, FORGOTTEN)
        found = text_at(locator, reader.backend)
        draft.put(locator, after.to_text() + "\n", found)
    return before, after


def with_forgotten_hint(result: RecallResult, forgotten: ForgottenList) -> RecallResult:
    """Return a result with a hint if forgotten statements match the query or are hidden in hits."""
    if not forgotten:
        return result
    shown = sum(HIDDEN in hit.snippet for hit in result.hits)
    count = forgotten.touched(result.query) or shown
    what = "1 statement is" if count == 1 else f"{count} statements are"
    text = f"{what} withheld, because the user forgot {'it' if count == 1 else 'them'}"
    hints = (Hint(HintKind.FORGOTTEN, text),) if count else ()
    says = forgotten.matches(result.query)
    more = (*result.hints, *hints)
    return replace(result, says_forgotten=says, withheld=count, hints=more)


def without_forgotten(result: RecallResult, forgotten: ForgottenList) -> RecallResult:
    """Return a result as of the past without what was forgotten since."""
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
