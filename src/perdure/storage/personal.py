"""Authorisations of the operator to write outside the store."""

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
    """Permission to write one text at one locator of the personal space, once, within minutes.

    Granted by an action of the operator (an answered prompt, a typed command) for the text that
    the operator saw; never by an agent, and never by a setting.
    """

    operator: str
    locator: Locator
    content_hash: str
    expires: float
    id: UUID = field(default_factory=uuid4)

    @classmethod
    def grant(cls, operator: str, locator: Locator, content: str) -> "Authorisation":
        if not operator.strip():
            raise ValueError("an authorisation needs the name of the operator who grants it")
        expires = time.time() + DEFAULT_LIFETIME_SECONDS
        return cls(operator, locator, content_hash(content), expires)

    def check(self, locator: Locator, content: str, now: float) -> None:
        """Raise unless this is for exactly this text at exactly this locator, now."""
        if locator != self.locator:
            raise _refused(locator, f"the authorisation is for {str(self.locator)!a}")
        if content_hash(content) != self.content_hash:
            raise _refused(locator, "the text is not the one that the operator saw")
        if not now <= self.expires <= now + DEFAULT_LIFETIME_SECONDS:
            raise _refused(locator, "the authorisation has expired, or is valid for too long")


class AuthorisationLedger:
    """The used authorisations, for all processes that share the folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def redeem(self, authorisation: object, locator: Locator, content: str) -> Authorisation:
        """Mark an authorisation as used, or raise `PersonalWriteRefusedError`."""
        if not isinstance(authorisation, Authorisation):
            raise _refused(locator, f"{type(authorisation).__name__} is not an authorisation")
        authorisation.check(locator, content, time.time())
        try:
            self._remove_expired()
            is_used = not self._claim(authorisation)
        except OSError as error:
            raise StorageFaultError(
                f"can't record in {self._folder!a} that an authorisation is used: "
                f"{error.strerror}. Fix: make that folder writable."
            ) from error
        if is_used:
            raise _refused(locator, "the authorisation was used already")
        return authorisation

    def _claim(self, authorisation: Authorisation) -> bool:
        path = self._mark(authorisation)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def release(self, authorisation: Authorisation) -> None:
        """Make an authorisation valid again, because nothing was written."""
        with suppress(FileNotFoundError):
            os.unlink(self._mark(authorisation))

    def _remove_expired(self) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):
                if time.time() - entry.stat().st_mtime > 2 * DEFAULT_LIFETIME_SECONDS:
                    os.unlink(entry.path)

    def _mark(self, authorisation: Authorisation) -> str:
        return os.path.join(self._folder, str(authorisation.id))


def _refused(locator: Locator, why: str) -> PersonalWriteRefusedError:
    return PersonalWriteRefusedError(
        f"{str(locator)!a} in the personal space was not written: {why}. "
        "Fix: show the operator the text and ask for Authorisation.grant(operator, locator, text)."
    )
