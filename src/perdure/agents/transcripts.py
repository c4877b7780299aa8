"""How far the transcripts of agents were read. Derived: what is lost or wrong is read again.

A reading names a place in a file by what stands before it, not by the file's name or number, so a
transcript that was rewritten, cut or exchanged is noticed.
"""

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from perdure.agents.shown import session_file
from perdure.dataclass import asdict, dataclass
from perdure.engine.sessions import SessionEnd
from perdure.errors import UnreadableSourceError
from perdure.files import write_whole
from perdure.model.values import JSON
from perdure.transfer.contract import ImportFinding, ImportItem, Resumable
from perdure.transfer.source import SourceFile, open_plain_file, translate_errors

_LOOKED_AT = 4_096
"""So many bytes at the start, and before the place, tell whether a file is the same."""
_STEP = 65_536
_LONGEST_LAST = 1_000_000
_MOST_READINGS = 2_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A place in a transcript, and what was kept of what is before it."""

    offset: int
    before: str
    """The hash of how the file begins, and of what stands before the place."""
    source_id: str
    """Which session it was kept as; another one where the user went back in it."""
    state: Mapping[str, JSON]
    """What the format needs to read on."""
    end: SessionEnd


class Readings:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, agent: str, session_id: str) -> Reading | None:
        """Return how far a session was read; None if nothing says so."""
        try:
            data = json.loads(session_file(self._folder, agent, session_id).read_bytes())
            end = SessionEnd(**data.pop("end"))
            reading = Reading(**data, end=end)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        numbers = reading.offset, end.part, end.messages
        texts = reading.before, reading.source_id, end.digest, end.mark
        is_one = all(type(each) is int and each >= 0 for each in numbers)
        is_one = is_one and all(isinstance(each, str) for each in texts)
        return reading if is_one and isinstance(reading.state, dict) else None

    def put(self, agent: str, session_id: str, reading: Reading) -> None:
        write_whole(
            session_file(self._folder, agent, session_id), json.dumps(asdict(reading)).encode()
        )
        self._forget_oldest()

    def forget(self, agent: str, session_id: str) -> None:
        session_file(self._folder, agent, session_id).unlink(missing_ok=True)

    def _forget_oldest(self) -> None:
        with suppress(OSError):
            files = [entry for entry in os.scandir(self._folder) if entry.name.endswith(".json")]
            if len(files) > _MOST_READINGS:
                oldest = sorted(files, key=lambda entry: entry.stat().st_mtime)
                for entry in oldest[: len(files) - _MOST_READINGS // 2]:
                    Path(entry.path).unlink(missing_ok=True)


class Transcript:
    """An open transcript that an agent may be writing to: its whole lines, and no more."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path = path
        self._stream = stream
        self.size = _whole_lines(stream)

    def items(
        self, format_: Resumable, known: Reading | None
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield what a format finds; behind a reading, if there is one."""
        start = known.offset if known else 0
        self._stream.seek(start)
        stream = io.BytesIO(translate_errors(lambda: self._stream.read(self.size - start)))
        entry = SourceFile(self._path.name, self.size, lambda: self._stream)
        if known is None:
            return format_.read(entry, stream)
        return format_.resume(entry, stream, known.state)

    def is_behind(self, known: Reading) -> bool:
        """Whether what was read is what stands there still."""
        return known.offset <= self.size and self.before(known.offset) == known.before

    def before(self, offset: int) -> str:
        hashed = sha256()
        for start in (0, max(0, offset - _LOOKED_AT)):
            self._stream.seek(start)
            hashed.update(self._stream.read(min(_LOOKED_AT, offset - start)))
        return hashed.hexdigest()


@contextmanager
def transcript(path: Path) -> Iterator[Transcript]:
    """Open a transcript; whatever is wrong with the file is `UnreadableSourceError`."""
    try:
        stream = open_plain_file(path.resolve(strict=True))
    except OSError as error:
        raise UnreadableSourceError(
            f"{str(path)!a} can't be read: {error.strerror}. Fix: none needed; nothing was kept."
        ) from error
    with stream:
        yield Transcript(path, stream)


def _whole_lines(stream: BinaryIO) -> int:
    """Return how many bytes of a file are whole lines; the last may lack its end if it is JSON."""
    size = at = stream.seek(0, os.SEEK_END)
    while at > 0:
        start = max(0, at - _STEP)
        stream.seek(start)
        found = stream.read(at - start).rfind(b"\n")
        if found >= 0:
            at = start + found + 1
            break
        at = start
    stream.seek(at)
    return size if size - at <= _LONGEST_LAST and _is_json(stream.read(size - at)) else at


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
