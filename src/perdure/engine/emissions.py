"""The log of emissions: which memories an agent was shown, when and why, without their words.

One line of JSON for each emission, in a file of bounded size that any number of processes append
to. So it never has anything forgotten or erased; `shown_lines` reads the words again.
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
"""The size of each of the two files; about a thousand briefings or four thousand prompts."""
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
"""Reasons that are logged whole; of others only the first word, as the rest may be a quote."""


class EmittedLine(NamedTuple):
    """One emitted line: the memory that it is of, without its words."""

    uri: str
    message: int | None
    """The message of the session, from 0; None for a memory."""
    key: str
    """The hash of its words (`key_of`), which identifies a statement of a node."""


class EmissionRecord(NamedTuple):
    agent: str
    session: str
    """The agent's own id of the session."""
    moment: str
    reason: str
    tokens: int
    bytes: int
    """The size of what the agent read, marks included."""
    items: tuple[EmittedLine, ...] = ()
    account: str = ""
    user: str = ""
    project: str = ""
    position: int = 0
    """The position of the history then; 0 if memory was not opened."""
    blocked: bool = False
    """Whether the tool call was refused."""
    behind: bool = False
    """Whether edits made outside Perdure may be missing."""
    time: float = 0.0
    """Seconds since 1970; by default when it is appended."""

    @property
    def when(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)


def key_of(text: str) -> str:
    """Return the hash of a text, which ignores case and white space."""
    return sha256(" ".join(text.split()).casefold().encode(errors="replace")).hexdigest()[:16]


def append_emission(home: Path, record: EmissionRecord) -> None:
    """Log an emission; does nothing if the file can't be written."""
    fields = record._asdict()
    fields["time"] = record.time or round(time.time(), 3)
    if record.reason not in REASONS:
        fields["reason"] = record.reason.partition(" ")[0]
    fields["session"] = record.session[:_LONGEST_NAME]
    line = json.dumps(fields, separators=(",", ":")).encode()
    with suppress(OSError):
        append_line(_path(home), line, MOST_BYTES)


def read_emissions(home: Path) -> Iterator[EmissionRecord]:
    """Yield the logged emissions, oldest first; ignores malformed lines."""
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
