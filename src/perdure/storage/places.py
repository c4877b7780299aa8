"""Looks at places before they are changed, and refuses what can't be done there."""

from perdure.errors import ConcurrentModificationError, FileAboveError, NotTextError
from perdure.storage.content import Expectation, check_found
from perdure.storage.contract import StorageBackend
from perdure.storage.locator import Locator
from perdure.storage.undo import UNREADABLE, Text


class Places:
    """The places of one commit. Each directory above them is looked at once."""

    def __init__(self, inner: StorageBackend) -> None:
        self._inner = inner
        self._directories: dict[Locator, bool] = {}
        """Whether they are there."""

    def found(self, locator: Locator, wanted: str | None, expect: Expectation) -> Text:
        """Return what is there, if it is as expected and the wanted text can be there."""
        text = self._text(locator, wanted)
        if text is not UNREADABLE:
            check_found(None if text is None else text.encode(), expect, locator)
        elif expect is not None:
            raise ConcurrentModificationError(
                f"{locator.key!a} is no text any more, so it is not what this write expected. "
                "Nothing was changed. Fix: look at the file; to replace it, write without a "
                "condition."
            )
        return text

    def _text(self, locator: Locator, wanted: str | None) -> Text:
        if not self._directories.get(locator.parent, True):
            return None
        try:
            return self._inner.read(locator)
        except FileNotFoundError:
            if wanted is not None:
                self._refuse_text_above(locator.parent)
            return None
        except NotTextError:
            return UNREADABLE

    def _refuse_text_above(self, above: Locator) -> None:
        """Refuse a text anywhere above; above a directory there is none."""
        while above.key and above not in self._directories:
            self._directories[above] = self._is_there(above)
            if self._directories[above]:
                return
            above = above.parent

    def _is_there(self, directory: Locator) -> bool:
        try:
            if self._inner.info(directory).is_dir:
                return True
        except FileNotFoundError:
            return False
        raise FileAboveError(
            f"{directory.key!a} is a text, so nothing can lie below it. "
            "Fix: choose a place outside of it."
        )
