"""A folder of Markdown: each file is a document, by its path in the folder."""

from collections.abc import Iterator

from perdure.model.values import MAX_CONTENT
from perdure.transfer.contract import Document, Finding, Item
from perdure.transfer.parsing import each_text
from perdure.transfer.source import Entry, Source

SUFFIXES = (".md", ".markdown")


class Markdown:
    name = "markdown"
    kind = "documents"

    def detect(self, source: Source) -> bool:
        return source.is_folder and bool(_files(source))

    def items(self, source: Source) -> Iterator[Item | Finding]:
        return each_text(source, _files(source), MAX_CONTENT, self._read)

    def _read(self, entry: Entry, text: str) -> Iterator[Item | Finding]:
        yield Document(file=entry.name, where="", source=self.name, source_id=entry.name, text=text)


def _files(source: Source) -> list[Entry]:
    """Return the files, but for what other programs keep in hidden folders."""
    return [entry for entry in source.meant(*SUFFIXES) if "/." not in f"/{entry.name}"]
