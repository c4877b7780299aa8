"""The paraphrase questions ask for one memory each, in words that it does not have."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

SET = Path(__file__).parents[2] / "benchmarks" / "paraphrases.json"
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about above after again against all am an and any are aren as at be because been before
    being below between both but by can could couldn d did didn do does doesn doing don down during
    each ever few for from further had has have having he her here hers herself him himself his how
    i if in into is isn it its itself just ll m may me might more most must my myself no nor not now
    of off on once only or other our ours ourselves out over own re s same shall she should so some
    such t than that the their theirs them themselves then there these they this those through to
    too under until up ve very was wasn we were what when where which while who whom whose why will
    with would wouldn you your yours yourself""",
    )
)


class Paraphrases:
    """The set, and a full-text index over its memories that stems as Porter did."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        told = json.loads(SET.read_text(encoding="utf-8"))
        self.memories: list[dict[str, str]] = told["memories"]
        self.questions: list[dict[str, str]] = told["questions"]
        self.texts = {memory["id"]: memory["text"] for memory in self.memories}
        self.slugs = {memory["id"]: memory["slug"] for memory in self.memories}
        self._connection = connection
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize='porter')")
        connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")
        connection.execute(
            "CREATE VIRTUAL TABLE memories USING fts5(id UNINDEXED, text, tokenize='porter')"
        )
        connection.executemany("INSERT INTO memories VALUES (?, ?)", self.texts.items())

    def stems(self, text: str) -> dict[str, str]:
        """Return the stems of the content words, each with the word that it is the stem of."""
        words = content_words(text)
        self._connection.execute("DELETE FROM words")
        self._connection.executemany(
            "INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(words)
        )
        found = self._connection.execute("SELECT term, doc FROM stems").fetchall()
        return {stem: words[row] for stem, row in found}

    def first_hit(self, question: str) -> str | None:
        """Return what plain full text finds first for any of the content words."""
        wanted = " OR ".join(f'"{word}"' for word in content_words(question))
        row = self._connection.execute(
            "SELECT id FROM memories WHERE memories MATCH ? ORDER BY rank LIMIT 1", (wanted,)
        ).fetchone()
        return None if row is None else str(row[0])


def content_words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W_]+", text) if word.lower() not in STOP_WORDS]


@pytest.fixture
def paraphrases() -> Iterator[Paraphrases]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield Paraphrases(connection)


def test_a_question_shares_no_word_with_its_memory_but_a_name(paraphrases: Paraphrases) -> None:
    sharing = 0
    for question in paraphrases.questions:
        place = question["memory"]
        asked = paraphrases.stems(question["question"])
        told = paraphrases.stems(f"{paraphrases.texts[place]} {paraphrases.slugs[place]}")
        shared = [asked[stem] for stem in asked.keys() & told.keys()]
        sharing += bool(shared)
        assert all(_is_name(word, question["question"]) for word in shared), question
    assert sharing <= 0.15 * len(paraphrases.questions)


def test_plain_full_text_finds_few(paraphrases: Paraphrases) -> None:
    found = [
        paraphrases.first_hit(question["question"]) == question["memory"]
        for question in paraphrases.questions
    ]

    assert sum(found) < 0.25 * len(found)


def _is_name(word: str, question: str) -> bool:
    return word.istitle() and not question.startswith(word)
