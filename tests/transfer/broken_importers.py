"""Importers with one fault each. The name says the fault."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from perdure.engine.session_commit import SessionCommit
from perdure.safety.validation import CleanText
from perdure.transfer import items
from perdure.transfer.contract import Format, ImportFinding, ImportItem, RelationItem
from perdure.transfer.imports import Importer, ImportOptions, ImportReport
from perdure.transfer.items import AdmittedSession, DocumentImporter, ItemState, SessionImporter
from perdure.transfer.source import ImportSource


class WritesOnADryRun(Importer):
    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._options = ImportOptions()


class WritesNothing(Importer):
    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._options = ImportOptions(dry_run=True)


class TakesEverythingForNew(Importer):
    def _put(self, item: ImportItem | AdmittedSession, documents: DocumentImporter) -> ItemState:
        super()._put(item, documents)
        return ItemState.NEW


class ForgetsWhatADryRunFound(Importer):
    def _put(self, item: ImportItem | AdmittedSession, documents: DocumentImporter) -> ItemState:
        state = super()._put(item, documents)
        return ItemState.CHANGED if self._options.dry_run else state


class RelatesBeforeAllIsThere(Importer):
    def _items(self, format_: Format, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for found in super()._items(format_, source):
            if isinstance(found, RelationItem):
                self._memories.relate(found, dry_run=self._options.dry_run)
            yield found


class SwallowsFindings(Importer):
    def _items(self, format_: Format, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        return (each for each in super()._items(format_, source) if isinstance(each, ImportItem))


class StopsAtTheFirstFinding(Importer):
    def _items(self, format_: Format, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for found in super()._items(format_, source):
            yield found
            if isinstance(found, ImportFinding):
                return


class ForgetsTheFirst(Importer):
    def _import_item(
        self, item: ImportItem, documents: DocumentImporter, report: ImportReport
    ) -> None:
        if self._seen:
            super()._import_item(item, documents, report)
        self._seen.setdefault((type(item).__name__, item.source_id), "")


class TrustsNames(Importer):
    def _check_name(self, item: ImportItem) -> None:
        """Let it pass."""


class KeepsTitles(Importer):
    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._sessions = _KeepingTitles(self._memory, self._nodes)


class _KeepingTitles(SessionImporter):
    def put(self, admitted: AdmittedSession, *, dry_run: bool) -> ItemState:
        with patch.object(items, "clean_title", CleanText):
            return super().put(admitted, dry_run=dry_run)


class NotesBeforeItCommits(Importer):
    """Says of a session that it is there, before it is."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent
        super().__init__(*parts)
        self._sessions = _NotingFirst(self._memory, self._nodes)


class _NotingFirst(SessionImporter):
    def put(self, admitted: AdmittedSession, *, dry_run: bool) -> ItemState:
        commit = self._memory.commit_session
        waiting: list[dict[str, Any]] = []

        def later(messages: Any, *, session_id: str, **options: Any) -> SessionCommit:  # noqa: ANN401 - as it is
            waiting.append({"messages": messages, "session_id": session_id, **options})
            return SessionCommit(session_id, (), len(messages), len(messages))

        self._memory.commit_session = later  # type: ignore[misc]
        try:
            state = super().put(admitted, dry_run=dry_run)
        finally:
            self._memory.commit_session = commit  # type: ignore[misc]
        for each in waiting:
            commit(**each)
        return state
