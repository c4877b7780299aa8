"""The operator's leave to write outside the store."""

import os
import time
from contextlib import suppress
from uuid import UUID, uuid4

from perdure.dataclass import dataclass, field
from perdure.errors import PersonalWriteRefusedError, StorageFaultError
from perdure.storage.changes import content_hash
from perdure.storage.locator import Locator

DEFAULT_LIFETIME_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Authorisation:
    """Leave to write one text at one place of the personal space, once, soon.

    Made by an operator's own action (a prompt that was answered, a command that was typed) from
    the text that the operator saw; never by an agent, and never out of a setting.
    """

    operator: str
    locator: Locator
    content_hash: str
    expires: float
    id: UUID = field(default_factory=uuid4)

    @classmethod
    def grant(cls, operator: str, locator: Locator, content: str) -> "Authorisation":
        if not operator.strip():
            raise ValueError("an authorisation needs the name of the operator who gives it")
        expires = time.time() + DEFAULT_LIFETIME_SECONDS
        return cls(operator, locator, content_hash(content), expires)

    def check(self, locator: Locator, content: str, now: float) -> None:
        """Raise unless this leave is for just this text at just this place, now."""
        if locator != self.locator:
            raise _refused(locator, f"the leave is for {str(self.locator)!a}")
        if content_hash(content) != self.content_hash:
            raise _refused(locator, "the text is not the one that the operator saw")
        if not now <= self.expires <= now + DEFAULT_LIFETIME_SECONDS:
            raise _refused(locator, "the leave has lapsed, or claims to hold too long")


class AuthorisationLedger:
    """Which authorisations were used up, for all processes that share the folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def redeem(self, leave: object, locator: Locator, content: str) -> Authorisation:
        """Use `leave` up, so that nobody else can, or raise `PersonalWriteRefusedError`."""
        if not isinstance(leave, Authorisation):
            raise _refused(locator, f"{type(leave).__name__} is no authorisation")
        leave.check(locator, content, time.time())
        try:
            if self._claim(leave):
                return leave
        except OSError as error:
            raise StorageFaultError(
                f"can't note in {self._folder!a} that a leave is used: {error.strerror}. "
                "Fix: make that folder writable."
            ) from error
        raise _refused(locator, "the leave was used already")

    def _claim(self, leave: Authorisation) -> bool:
        self._clear_lapsed()
        try:
            os.close(os.open(self._mark(leave), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def give_back(self, leave: Authorisation) -> None:
        """Let `leave` count again, because nothing was written."""
        with suppress(FileNotFoundError):
            os.unlink(self._mark(leave))

    def _clear_lapsed(self) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):
                if time.time() - entry.stat().st_mtime > 2 * DEFAULT_LIFETIME_SECONDS:
                    os.unlink(entry.path)

    def _mark(self, leave: Authorisation) -> str:
        return os.path.join(self._folder, str(leave.id))


def _refused(locator: Locator, why: str) -> PersonalWriteRefusedError:
    return PersonalWriteRefusedError(
        f"{str(locator)!a} in the personal space was not written: {why}. "
        "Fix: show the operator the text and ask for Authorisation.grant(operator, locator, text)."
    )
