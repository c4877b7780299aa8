"""A folder of Markdown: each file is a document, by its path in the folder."""

from perdure.model.values import MAX_CONTENT
from perdure.transfer.contract import DocumentItem
from perdure.transfer.json_records import Items, each_text
from perdure.transfer.source import ImportSource, SourceFile

SUFFIXES = (".md", ".markdown")


class MarkdownFormat:
    name = "markdown"
    kind = "documents"

    def detect(self, source: ImportSource) -> bool:
        return source.is_folder and bool(_files(source))

    def items(self, source: ImportSource) -> Items:
        return each_text(source, _files(source), MAX_CONTENT, self._read)

    def _read(self, entry: SourceFile, text: str) -> Items:
        yield DocumentItem(
            file=entry.name, where="", source=self.name, source_id=entry.name, text=text
        )


def _files(source: ImportSource) -> list[SourceFile]:
    """Return the files that are not in hidden folders, which belong to other programs."""
    return [entry for entry in source.selected(*SUFFIXES) if "/." not in f"/{entry.name}"]
