"""The words of emissions, read again as of their positions; and which of them an agent used."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import Enum
from functools import lru_cache
from pathlib import Path

from perdure.artifacts import IndexState
from perdure.context.node_files import CONTENT
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass
from perdure.engine.briefing import LONGEST_END, BriefingItem, short_id
from perdure.engine.briefing_records import LONGEST_LINE, likely_in, lines_of
from perdure.engine.emissions import EmissionRecord, EmittedLine, key_of, read_emissions
from perdure.engine.forgotten import ForgottenList
from perdure.engine.learn.prose import scored, sentences
from perdure.engine.learn.statements import Statement
from perdure.engine.prompts import LIST_MARK, SENTENCE
from perdure.engine.recall.question import STOP_WORDS
from perdure.engine.tool_calls import fixes_in
from perdure.errors import ArtifactError, ContextError, StorageError
from perdure.index.sql import stems
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.transcript import HIDDEN, parse
from perdure.model.uri import stable_name
from perdure.model.values import shortened
from perdure.safety.validation import presentable_line
from perdure.storage.text_history import History, View

_MOST_VERSIONS = 20
"""Search at most this many earlier versions for words that the position does not have."""
_CACHED_STATES = 64
_SHARE = 0.6
"""The share of the significant words of a line that a line of the agent has to use it."""
_FEWEST_WORDS = 3
_CODE = re.compile(r"`([^`\n]{3,})`")
_WORD = re.compile(r"\w+")
_CALL = "[called "
"""The beginning of a line of a message that calls a tool."""
_MOST_COMPARED = 4_000
"""Characters of one line of the agent that are compared."""


class LineState(Enum):
    """Whether the words of a shown line can be read again."""

    SHOWN = "shown"
    """The words are those that the agent was shown."""
    FORGOTTEN = "forgotten"
    """The user has forgotten or erased it since."""
    GONE = "gone"
    """History no longer has it, or the caller may not read it."""
    CHANGED = "changed"
    """The memory exists, but no version has the words that were shown."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    uri: str
    message: int | None
    key: str
    state: LineState
    text: str = ""
    """Its words; empty unless the state is `SHOWN`."""

    @property
    def id(self) -> str:
        return short_id(self.uri, self.message)

    @property
    def item(self) -> EmittedLine:
        return EmittedLine(self.uri, self.message, self.key)


@dataclass(frozen=True, slots=True)
class ShownEmission:
    record: EmissionRecord
    lines: tuple[ShownLine, ...]


def selected(
    home: Path,
    caller: RequestContext,
    *,
    session: str,
    since: datetime | None,
    projects: tuple[str, ...] | None,
) -> list[EmissionRecord]:
    """Return the emissions that a caller may see, by session, time and projects, oldest first."""

    def is_wanted(record: EmissionRecord) -> bool:
        is_own = record.account == caller.account_id and record.user == caller.user_id
        if not is_own and not (caller.governs and record.account in {caller.account_id, ""}):
            return False
        if session and session not in {record.session, stable_name(record.agent, record.session)}:
            return False
        is_late = since is None or record.when >= since
        return is_late and (projects is None or record.project in projects)

    return list(filter(is_wanted, read_emissions(home)))


class EmissionReader:
    """Reads the words of emissions for one caller, without what was forgotten or erased since."""

    def __init__(self, history: History, ctx: RequestContext, forgotten: ForgottenList) -> None:
        self._history = history
        self._ctx = ctx
        self._forgotten = forgotten
        self._reader = lru_cache(_CACHED_STATES)(self._reader_at)

    def read(self, record: EmissionRecord) -> ShownEmission:
        return ShownEmission(
            record, tuple(self._line(item, record.position) for item in record.items)
        )

    def _line(self, item: EmittedLine, position: int) -> ShownLine:
        words = next((each for each in self._words(item, position) if each), "")
        if self._is_forgotten(item, words):
            state, words = LineState.FORGOTTEN, ""
        elif words:
            state = LineState.SHOWN
        else:
            is_there = next(self._texts(item, (position,)), None) is not None
            state = LineState.CHANGED if is_there else LineState.GONE
        return ShownLine(item.uri, item.message, item.key, state, presentable_line(words))

    def _is_forgotten(self, item: EmittedLine, words: str) -> bool:
        return bool(self._forgotten.only([item.uri])) or self._forgotten.matches(words)

    def _words(self, item: EmittedLine, position: int) -> Iterator[str]:
        """Yield the words with the key of the item, as of the position and of earlier versions."""
        for text in self._texts(item, self._positions(item, position)):
            yield next((each for each in lines_in(text) if key_of(each) == item.key), "")

    def _positions(self, item: EmittedLine, position: int) -> Iterator[int]:
        """Yield the position, then those of the versions before it, newest first.

        Another process may have written between the emission and its record.
        """
        newest = position or self._history.position()
        yield newest
        file = self._reader(newest).file(Uri.parse(item.uri), CONTENT)
        earlier = (each.commit for each in self._history.versions(file) if each.commit < newest)
        yield from sorted(earlier, reverse=True)[:_MOST_VERSIONS]

    def _texts(self, item: EmittedLine, positions: Iterable[int]) -> Iterator[str]:
        """Yield the texts of the memory or the message at these positions, and fixes near it."""
        try:
            for position in positions:
                node = self._reader(position).read_node(item.uri, self._ctx)
                if item.message is None:
                    yield f"{node.content}\n{node.abstract}"
                else:
                    found = (each for each in parse(node.content) if each.index == item.message)
                    yield "\n".join(each.message.content for each in found).replace(HIDDEN, "")
                    yield "\n".join(fixes_in(each.message.content for each in parse(node.content)))
        except (ContextError, StorageError, ArtifactError):
            return

    def _reader_at(self, position: int) -> NodeReader:
        state = self._history.store.last_commit(IndexState(0, position))
        return NodeReader(View(self._history, state))


def items_of(node: ContextNode) -> list[BriefingItem]:
    return [
        BriefingItem(
            str(row["kind"]),
            str(row["text"]),
            node.uri,
            None,
            pinned=bool(row.get("pinned")),
            confirmed=node.updated_at,
        )
        for row in lines_of(node)
    ]


def lines_in(text: str) -> Iterator[str]:
    """Yield every line of a memory or a message that a hook can show."""
    whole = " ".join(text.split())
    yield from (shortened(whole, LONGEST_LINE), shortened(whole, LONGEST_END))
    for line in text.split("\n"):
        for each in (line, *SENTENCE.split(line)):
            whole = LIST_MARK.sub("", " ".join(each.split()))
            bare = " ".join(Statement.read(whole).text.split())
            yield from (whole, shortened(whole, LONGEST_LINE), bare, shortened(bare, LONGEST_LINE))
    for sentence in sentences(text):
        whole = " ".join(sentence.text.split())
        yield from (whole, shortened(whole, LONGEST_END))
    yield from (str(row[0]) for row in likely_in(scored(text)) if isinstance(row, list))


# ---------------------------------------------------------------- used
def used_lines(lines: Iterable[ShownLine], words: str) -> Iterator[ShownLine]:
    """Yield the lines that an agent uses: it names the id, has the words, or runs the command."""
    spoken = [each[:_MOST_COMPARED] for each in words.split("\n") if each]
    calls = [each for each in spoken if each.startswith(_CALL)]
    spoken_stems = [frozenset(stems(each)) for each in spoken]
    for line in lines:
        runs = any(code in each for code in _CODE.findall(line.text) for each in calls)
        if runs or line.id in words or _is_stated(line.text, spoken_stems):
            yield line


def _is_stated(text: str, spoken: Iterable[frozenset[str]]) -> bool:
    counted = (word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)
    wanted = {stem for word in counted for stem in stems(word)}
    fewest = max(_FEWEST_WORDS, _SHARE * len(wanted))
    return any(len(wanted & each) >= fewest for each in spoken)
