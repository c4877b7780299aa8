"""A folder of Markdown: each file is a document, by its path in the folder."""

from collections.abc import Iterator
from typing import BinaryIO

from perdure.engine.importing.contract import Document, Finding, Item
from perdure.engine.importing.reading import each_file
from perdure.engine.importing.sources import Entry, Source
from perdure.model.values import MAX_CONTENT

SUFFIXES = (".md", ".markdown")
_MOST_BYTES = 4 * MAX_CONTENT


class Markdown:
    name = "markdown"
    kind = "documents"

    def detect(self, source: Source) -> bool:
        return source.is_folder and bool(source.named(*SUFFIXES))

    def items(self, source: Source) -> Iterator[Item | Finding]:
        return each_file(source, source.meant(*SUFFIXES), self._read)

    def _read(self, entry: Entry, stream: BinaryIO) -> Iterator[Item | Finding]:
        data = stream.read(_MOST_BYTES + 1)
        try:
            text = data.decode(errors="replace" if len(data) > _MOST_BYTES else "strict")
        except UnicodeDecodeError:
            yield Finding(entry.name, "", "it is no UTF-8 text", "save it as UTF-8")
            return
        if len(text) > MAX_CONTENT:
            what = f"it has more than {MAX_CONTENT:,} characters"
            yield Finding(entry.name, "", what, "split it into several files")
        elif not text.strip():
            yield Finding(entry.name, "", "it is empty", "nothing; write something", refused=False)
        else:
            yield Document(
                file=entry.name, where="", source=self.name, source_id=entry.name, text=text
            )
