"""Words and their stems, as FTS5 sees them."""

import math
import sqlite3
import threading
from collections.abc import Sequence
from functools import cache, lru_cache

from perdure.errors import InvalidValueError
from perdure.model.values import encodable, shown

TOKENIZER = "porter unicode61 remove_diacritics 2"
_MAX_WEIGHT = 1e6
_LEAST_IDF = 1e-6


def check_words(words: Sequence[str]) -> list[str]:
    """Return words to search for; of a text that is not in a list, the words would be letters."""
    if isinstance(words, str):
        raise InvalidValueError(f"{shown(words)} is a text. Fix: give a list of its words.")
    return [
        word if type(word) is str and word.isascii() else encodable(word, "word to search for")
        for word in words
    ]


def check_weight(weight: object) -> float:
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    number = float(weight) if is_number else math.nan  # type: ignore[arg-type] # it is a number
    if 0 <= number <= _MAX_WEIGHT:
        return number
    raise InvalidValueError(
        f"the weight of the context is {shown(weight)}. Fix: give a number from 0 on."
    )


def idf(records: int, hits: int) -> float:
    """Return how rare a word is that some of the records have, as FTS5 reckons it."""
    rare = math.log((records - hits + 0.5) / (hits + 0.5))
    return rare if rare > 0 else _LEAST_IDF


def any_of(words: Sequence[str]) -> str:
    """Return an FTS5 expression that matches if one of the words, taken as phrases, does."""
    quoted = (word.replace("\0", " ").replace('"', '""') for word in words)
    return " OR ".join(f'"{word}"' for word in quoted)


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Return the tokens of a text, as FTS5 makes and stems them."""
    db, lock = _tokenizing()
    with lock:
        db.execute("DELETE FROM said")
        db.execute("INSERT INTO said (rowid, text) VALUES (1, ?)", (text,))
        return tuple(term for (term,) in db.execute("SELECT term FROM tokens ORDER BY offset"))


@cache
def _tokenizing() -> tuple[sqlite3.Connection, threading.Lock]:
    """Return a database of no records, in memory, that takes texts apart."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.execute(f"CREATE VIRTUAL TABLE said USING fts5(text, tokenize='{TOKENIZER}')")
    db.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(said, instance)")
    return db, threading.Lock()


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return a list of texts to embed; `InvalidValueError` for one text, or half a character."""
    if isinstance(texts, str):
        raise InvalidValueError(f"{shown(texts)} is one text. Fix: give a list of texts.")
    return [encodable(text, "text to embed") for text in texts]
