"""What a session was shown: nothing is injected into it twice until its context is compacted."""

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.engine.emissions import key_of
from perdure.errors import StorageError
from perdure.files import write_whole

_MOST = 2_000
_KEPT_SECONDS = 14 * 24 * 3600.0
_HINT_SECONDS = 180.0
"""At most one hint in this time."""


@dataclass(slots=True)
class AnsweredFrom:
    """Whose memory a moment was answered from, and up to which position of the log."""

    account: str = ""
    user: str = ""
    project: str = ""
    position: int = 0
    behind: bool = False
    """Whether edits made outside Perdure were not looked for, as a hint of the answer has it."""


class Shown:
    """The keys of what one session was shown, in a small file. If it is lost, it is empty."""

    def __init__(self, folder: Path, agent: str, session_id: str) -> None:
        self._path = session_file(folder, agent, session_id)
        self._keys: list[str] = []
        self._hinted = 0.0
        self._prompts = 0
        self.has_briefing = False
        with suppress(OSError, ValueError, TypeError, KeyError):
            data = json.loads(self._path.read_bytes())
            self._keys, self._hinted = [str(key) for key in data["keys"]], float(data["hinted"])
            self._prompts = int(data["prompts"])
            self.has_briefing = bool(data["briefed"])

    def __contains__(self, key: str) -> bool:
        return key_of(key) in self._keys

    def add(self, keys: Iterable[str]) -> None:
        new = [key_of(key) for key in keys]
        if new:
            self._keys = [*self._keys, *new][-_MOST:]
            self._write()

    def brief(self, keys: Iterable[str]) -> None:
        """Note a briefing, if it says anything; all before it is gone from the context."""
        self._keys, self._prompts = [key_of(key) for key in keys], 0
        self.has_briefing = bool(self._keys)
        self._write()

    def prompted(self) -> int:
        """Count one more prompt of the session; return how many there were before."""
        self._prompts += 1
        self._write()
        return self._prompts - 1

    def may_hint(self, words: str) -> bool:
        """Return whether a hint may be given now; if so, note that it was."""
        now = time.time()
        if words in self or now - self._hinted < _HINT_SECONDS:
            return False
        self._hinted = now
        self.add([words])
        return True

    def _write(self) -> None:
        data: dict[str, object] = {"keys": self._keys, "hinted": self._hinted}
        data |= {"prompts": self._prompts, "briefed": self.has_briefing}
        with suppress(OSError, StorageError):  # on a read-only disk it is shown again
            write_whole(self._path, json.dumps(data).encode())
            for other in self._path.parent.iterdir():
                if other.stat().st_mtime < time.time() - _KEPT_SECONDS:
                    other.unlink()


def session_file(folder: Path, agent: str, session_id: str) -> Path:
    """Return the file that is about one session of an agent, whatever its id is made of."""
    named = json.dumps([agent, session_id])
    return folder / (sha256(named.encode()).hexdigest()[:32] + ".json")
