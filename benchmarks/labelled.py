"""Real coding sessions with labels, for the benchmarks that replay them.

A folder has sessions (`*.json`: project, started, messages) and `labels.json` (items worth keeping,
and questions with their gold messages), as `shared/data/sessions_dev`.
"""

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from perdure import Memory
from perdure.engine.briefing import Briefing, ProjectScope
from perdure.model.speech import SpeechKind, speech_of

MOST_OF = 0.34
"""The share of its words that a line must have to be the item of its message."""
Place = tuple[str, int]
"""A message: the id of its session, and its index."""


class Question(NamedTuple):
    text: str
    project: str
    started: str
    gold: frozenset[Place]


class Data(NamedTuple):
    sessions: Mapping[str, Mapping[str, Any]]
    """By id, the oldest first."""
    labels: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> "Data":
        files = (path for path in folder.glob("*.json") if path.name != "labels.json")
        found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
        found.sort(key=lambda each: (each["started"], each["session"]))
        labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        return cls(
            {each["session"]: each for each in found}, {row["session"]: row for row in labels}
        )

    def questions(self) -> Iterator[Question]:
        for session, row in self.labels.items():
            of = self.sessions[session]
            for each in row["questions"]:
                text = of["messages"][each["message"]]["content"]
                gold = frozenset((name, at) for name, at in each["gold"])
                yield Question(text[:2000], of["project"], of["started"], gold)

    def is_before(self, session: str, question: Question) -> bool:
        return bool(self.sessions[session]["started"] < question.started)

    def items(self, project: str, started: str) -> Iterator[Mapping[str, Any]]:
        """Yield the items of a project from sessions that began before a time."""
        for name, row in self.labels.items():
            session = self.sessions[name]
            if session["project"] == project and session["started"] < started:
                yield from row["items"]


@contextmanager
def new_home(models: Path | None) -> Iterator[Path]:
    """Yield a home that is empty but for its config; it is removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        provider = "minilm" if models else "none"
        (home / "config.toml").write_text(f'[embedding]\nprovider = "{provider}"\n')
        if models:
            (home / "models").symlink_to(models.resolve())
        yield home


def briefing_then(memory: Memory, names: Sequence[str], now: datetime, known: str = "") -> Briefing:
    """Return a briefing as of a time: what is kept counts as old as it was then."""
    parts = memory._services  # noqa: SLF001 - no verb takes another time
    index = parts.indexes.current(memory.caller.account_id).follower.index
    scope = ProjectScope(parts.reader, index, memory.caller, names)
    return scope.briefing(known=known, now=now)


# ---------------------------------------------------------------- what a line is worth
def stems(text: str) -> set[str]:
    return {
        re.sub(r"(?:ing|ed|es|s)$", "", word) for word in re.findall(r"[a-z0-9_]{2,}", text.lower())
    }


def has_most(text: str, wanted: str, share: float = MOST_OF) -> bool:
    """Whether a text has so many of the words of another."""
    want = stems(wanted)
    return len(want & stems(text)) >= share * len(want)


def is_useful(data: Data, evidence: Sequence[Place], text: str) -> bool:
    """Whether a line is an item of a message that it rests on."""
    for session, message in evidence:
        for item in data.labels.get(session, {"items": ()})["items"]:
            enough = has_most(text, item["quote"]) or has_most(text, item["statement"])
            if message in item["messages"] and enough:
                return True
    return False


# ---------------------------------------------------------------- plain text search
class UserMessages:
    """The user's messages in FTS5: what any agent could build in an hour."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE said USING fts5(text, session UNINDEXED, at UNINDEXED, "
            "tokenize='porter unicode61')"
        )

    def add(self, session: str, messages: Sequence[Mapping[str, Any]], start: int = 0) -> None:
        """Add the messages of a session from an index on."""
        rows = [
            (each["content"], session, start + at)
            for at, each in enumerate(messages[start:])
            if speech_of(each["role"], each["content"]).kind is SpeechKind.USER
        ]
        self._db.executemany("INSERT INTO said VALUES (?, ?, ?)", rows)

    def found(self, text: str, limit: int = 50) -> list[tuple[Place, str]]:
        """Return the messages that fit a text best, each with the words around what fits."""
        words = dict.fromkeys(re.findall(r"[a-z0-9_]{2,}", text.lower()))
        query = " OR ".join(f'"{word}"' for word in list(words)[:60]) or '"xxxx"'
        asked = (
            "SELECT session, at, snippet(said, 0, '', '', '', 24) FROM said WHERE said MATCH ? "
            "ORDER BY rank LIMIT ?"
        )
        rows = self._db.execute(asked, (query, limit))
        return [((name, int(at)), " ".join(words.split())) for name, at, words in rows]

    def newest(self, limit: int = 50) -> list[tuple[Place, str]]:
        rows = self._db.execute(
            "SELECT session, at, text FROM said ORDER BY rowid DESC LIMIT ?", (limit,)
        )
        return [((name, int(at)), " ".join(words.split())) for name, at, words in rows]
