"""Words and their stems, as FTS5 has them, and checks of texts to search and to embed."""

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
    """Return the words to search for; `InvalidValueError` for a text in place of a list."""
    if isinstance(words, str):
        raise InvalidValueError(f"{shown(words)} is one text. Fix: give a list of its words.")
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
        f"the weight of the context is {shown(weight)}. Fix: give a number from 0 to 1,000,000."
    )


def idf(records: int, hits: int) -> float:
    """Return the inverse document frequency of a word, as FTS5 computes it."""
    rare = math.log((records - hits + 0.5) / (hits + 0.5))
    return rare if rare > 0 else _LEAST_IDF


def match_expression(words: Sequence[str]) -> str:
    """Return an FTS5 expression that matches any of the words, each as a phrase."""
    quoted = (word.replace("\0", " ").replace('"', '""') for word in words)
    return " OR ".join(f'"{word}"' for word in quoted)


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Return the stemmed tokens of a text, as FTS5 splits it."""
    db, lock = _tokenizer()
    with lock:
        db.execute("DELETE FROM texts")
        db.execute("INSERT INTO texts (rowid, text) VALUES (1, ?)", (text,))
        return tuple(term for (term,) in db.execute("SELECT term FROM tokens ORDER BY offset"))


@cache
def _tokenizer() -> tuple[sqlite3.Connection, threading.Lock]:
    """Return a database in memory that splits one text at a time, and its lock."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{TOKENIZER}')")
    db.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(texts, instance)")
    return db, threading.Lock()


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts to embed; `InvalidValueError` for a single text or a lone surrogate."""
    if isinstance(texts, str):
        raise InvalidValueError(f"{shown(texts)} is one text. Fix: give a list of texts.")
    return [encodable(text, "text to embed") for text in texts]
