"""A folder of Markdown: each file is a document, by its path in the folder."""

from collections.abc import Iterator

from perdure.model.values import MAX_CONTENT
from perdure.transfer.contract import DocumentItem, ImportFinding, ImportItem
from perdure.transfer.parsing import each_text
from perdure.transfer.source import ImportSource, SourceFile

SUFFIXES = (".md", ".markdown")


class MarkdownFormat:
    name = "markdown"
    kind = "documents"

    def detect(self, source: ImportSource) -> bool:
        return source.is_folder and bool(_files(source))

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        return each_text(source, _files(source), MAX_CONTENT, self._read)

    def _read(self, entry: SourceFile, text: str) -> Iterator[ImportItem | ImportFinding]:
        yield DocumentItem(
            file=entry.name, where="", source=self.name, source_id=entry.name, text=text
        )


def _files(source: ImportSource) -> list[SourceFile]:
    """Return the files, but for what other programs keep in hidden folders."""
    return [entry for entry in source.selected(*SUFFIXES) if "/." not in f"/{entry.name}"]
