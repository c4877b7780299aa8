"""How far a session was learned from: a text beside its nodes, which no index reads."""

from collections.abc import Callable

from perdure.context.draft import Draft
from perdure.context.files import LEARNED, said_at
from perdure.context.reading import NodeReader
from perdure.errors import VersionMismatchError
from perdure.model import RequestContext, Uri
from perdure.storage import Locator


class Marks:
    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader

    def read(self, session: Uri, ctx: RequestContext) -> str:
        """Return the mark of a session; none is empty, and so is what is no text."""
        self._reader.reach.seen(str(session), ctx)
        found = said_at(self._file(session), self._reader.backend.read)
        return found if isinstance(found, str) else ""

    def moved(self, session: Uri, before: str, after: str) -> Callable[[Draft], None]:
        """Return the plan to move a mark; refused (`VersionMismatchError`) if others moved it."""

        def plan(draft: Draft) -> None:
            found = said_at(self._file(session), self._reader.backend.read)
            if (found if isinstance(found, str) else "") != before:
                raise VersionMismatchError(
                    f"{str(session)!a} was learned from by somebody else meanwhile. "
                    "Nothing was changed. Fix: commit it again."
                )
            draft.put(self._file(session), after, found)

        return plan

    def _file(self, session: Uri) -> Locator:
        return self._reader.file(Uri(session.account, session.path[:2]), LEARNED)
