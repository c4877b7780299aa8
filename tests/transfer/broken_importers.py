"""Importers with one fault each. The name says the fault."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from perdure.engine.saving.saving import SessionCommit
from perdure.safety.texts import CleanText
from perdure.transfer import items
from perdure.transfer.contract import Finding, Format, Item, Relation
from perdure.transfer.imports import Imported, Importing, Wishes
from perdure.transfer.items import Admitted, DocumentImporter, SessionImporter, State
from perdure.transfer.source import Source


class WritesOnADryRun(Importing):
    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._wishes = Wishes()


class WritesNothing(Importing):
    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._wishes = Wishes(dry_run=True)


class TakesEverythingForNew(Importing):
    def _put(self, item: Item | Admitted, documents: DocumentImporter) -> State:
        super()._put(item, documents)
        return State.NEW


class ForgetsWhatADryRunFound(Importing):
    def _put(self, item: Item | Admitted, documents: DocumentImporter) -> State:
        state = super()._put(item, documents)
        return State.CHANGED if self._wishes.dry_run else state


class RelatesBeforeAllIsThere(Importing):
    def _found(self, format_: Format, source: Source) -> Iterator[Item | Finding]:
        for found in super()._found(format_, source):
            if isinstance(found, Relation):
                self._memories.relate(found, dry_run=self._wishes.dry_run)
            yield found


class SwallowsFindings(Importing):
    def _found(self, format_: Format, source: Source) -> Iterator[Item | Finding]:
        return (each for each in super()._found(format_, source) if isinstance(each, Item))


class StopsAtTheFirstFinding(Importing):
    def _found(self, format_: Format, source: Source) -> Iterator[Item | Finding]:
        for found in super()._found(format_, source):
            yield found
            if isinstance(found, Finding):
                return


class ForgetsTheFirst(Importing):
    def _take(self, item: Item, documents: DocumentImporter, report: Imported) -> None:
        if self._seen:
            super()._take(item, documents, report)
        self._seen.setdefault((type(item).__name__, item.source_id), "")


class TrustsNames(Importing):
    def _check_name(self, item: Item) -> None:
        """Let it pass."""


class KeepsTitles(Importing):
    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._sessions = _KeepingTitles(self._memory, self._nodes)


class _KeepingTitles(SessionImporter):
    def put(self, admitted: Admitted, *, dry_run: bool) -> State:
        with patch.object(items, "clean_title", CleanText):
            return super().put(admitted, dry_run=dry_run)


class NotesBeforeItCommits(Importing):
    """Says of a session that it is there, before it is."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._sessions = _NotingFirst(self._memory, self._nodes)


class _NotingFirst(SessionImporter):
    def put(self, admitted: Admitted, *, dry_run: bool) -> State:
        commit = self._memory.commit_session
        waiting: list[dict[str, Any]] = []

        def later(messages: Any, *, session_id: str, **wishes: Any) -> SessionCommit:  # noqa: ANN401 - as it is
            waiting.append({"messages": messages, "session_id": session_id, **wishes})
            return SessionCommit(session_id, (), len(messages), len(messages))

        self._memory.commit_session = later  # type: ignore[misc]
        try:
            state = super().put(admitted, dry_run=dry_run)
        finally:
            self._memory.commit_session = commit  # type: ignore[misc]
        for each in waiting:
            commit(**each)
        return state
