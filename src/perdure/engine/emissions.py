"""The log of what agents were shown: who, when, why and which memories, never their words.

One line of JSON for each emission, in a file of bounded size that any number of processes append
to. What was forgotten or erased can't be left there; `recomposition` looks the words up again.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.files import append_line, read_lines

MOST_BYTES = 1024 * 1024
"""Of one of the two files; about a thousand briefings or four thousand prompts."""
_LONGEST_NAME = 200
REASONS = frozenset(
    {
        "the session starts",
        "the context was compacted",
        "a subagent starts",
        "fits the prompt",
        "may state something lasting",
        "forbids what the tool call uses",
        "is about what the tool call uses",
        "failed the same way",
    }
)
"""Reasons that are logged whole; of any other only the first word, for the rest may quote."""


class EmittedLine(NamedTuple):
    """One line that was emitted: which memory it is of, never its words."""

    uri: str
    message: int | None
    """The message of the session, from 0; None for a memory."""
    key: str
    """The hash of its words, which names a statement among others (`key_of`)."""


class EmissionRecord(NamedTuple):
    agent: str
    session: str
    """The agent's own id of the session."""
    moment: str
    reason: str
    tokens: int
    bytes: int
    """What the agent read of it, marks included."""
    items: tuple[EmittedLine, ...] = ()
    account: str = ""
    user: str = ""
    project: str = ""
    position: int = 0
    """The log position that memory answered from; 0 if it was not opened."""
    blocked: bool = False
    """Whether the tool call was refused."""
    behind: bool = False
    """Whether edits made outside Perdure were not looked for before."""
    time: float = 0.0
    """Seconds since 1970; when it is appended, if not given."""

    @property
    def when(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)


def key_of(text: str) -> str:
    """Return the hash by which words are known again, whatever their case and spacing."""
    return sha256(" ".join(text.split()).casefold().encode(errors="replace")).hexdigest()[:16]


def append_emission(home: Path, record: EmissionRecord) -> None:
    """Log an emission; on a disk that can't be written, nothing is."""
    fields = record._asdict()
    fields["time"] = record.time or round(time.time(), 3)
    if record.reason not in REASONS:
        fields["reason"] = record.reason.partition(" ")[0]
    fields["session"] = record.session[:_LONGEST_NAME]
    line = json.dumps(fields, separators=(",", ":")).encode()
    with suppress(OSError):
        append_line(_path(home), line, MOST_BYTES)


def read_emissions(home: Path) -> Iterator[EmissionRecord]:
    """Yield what is logged, oldest first; a line that is torn or of another kind is passed over."""
    for line in read_lines(_path(home)):
        with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
            fields = json.loads(line)
            items = tuple(_item(*each) for each in fields.pop("items"))
            yield _checked(EmissionRecord(**fields, items=items))


def _item(uri: object, message: object, key: object) -> EmittedLine:
    if not isinstance(message, int | None) or not isinstance(uri, str):
        raise TypeError
    return EmittedLine(uri, message, str(key))


def _checked(record: EmissionRecord) -> EmissionRecord:
    numbers = (record.time, record.position, record.tokens, record.bytes)
    texts = (record.agent, record.session, record.moment, record.reason, record.project)
    if not all(isinstance(each, int | float) for each in numbers):
        raise TypeError
    if not all(isinstance(each, str) for each in (*texts, record.account, record.user)):
        raise TypeError
    return record


def _path(home: Path) -> Path:
    return home / "hooks" / "emitted"
