"""The sample conversations: a file for each, named by its day and what it is about."""

import json
import secrets
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SECRET = "{secret}"  # noqa: S105 - the place of one
"""Stands for a key in a conversation. None is shipped: each run invents its own."""
OWNER = "mara"
"""Whose memory it is: the user that Mara of the conversations is."""
_KEY = (string.ascii_lowercase, string.digits, string.ascii_uppercase, string.digits) * 8
_FOLDER = "conversations"
_ENDING = ".jsonl"


@dataclass(frozen=True, slots=True)
class SampleSession:
    name: str
    """Begins with the day, as in 2026-01-05-kick-off; it is the id of the session too."""
    text: str
    """A message in JSON on each line."""

    @property
    def month(self) -> str:
        return self.name[:7]

    @property
    def file(self) -> str:
        return f"{_FOLDER}/{self.name}{_ENDING}"

    def messages(self, secret: str) -> list[Mapping[str, object]]:
        """Return the messages, with the key in place of its mark."""
        messages = [json.loads(line) for line in self.text.splitlines()]
        return [each | {"content": each["content"].replace(SECRET, secret)} for each in messages]


def sample_sessions() -> list[SampleSession]:
    """Return the conversations in the order in which they took place."""
    return sorted(_read(), key=lambda session: session.name)


def invented_key() -> str:
    """Return a key that opens nothing, and looks like one that does."""
    return "".join(map(secrets.choice, _KEY))


def _read() -> Iterator[SampleSession]:
    for file in (Path(__file__).parent / _FOLDER).iterdir():
        if file.name.endswith(_ENDING):
            yield SampleSession(file.name.removesuffix(_ENDING), file.read_text(encoding="utf-8"))
