"""Notes of basic-memory: Markdown whose frontmatter has a `permalink`; each is an entity.

`- [category] text #tag (context)` is an observation, `- relation [[Target]]` a relation.
"""

import re
from datetime import date

from perdure.frontmatter import properties, split
from perdure.model.messages import text_of
from perdure.model.values import JSON, MAX_CONTENT
from perdure.transfer import json_records
from perdure.transfer.contract import EntityItem, RelationItem
from perdure.transfer.json_records import Items, Record, each_text, file_heads, list_of, skipped
from perdure.transfer.source import ImportSource, SourceFile

_PERMALINK = re.compile(rb"\A(?:\xef\xbb\xbf)?---\s*\n(?:[^\n]*\n){0,60}?permalink:")
_OBSERVATION = re.compile(r"^[-*] \[(?![ xX-]\])[^\[\]\n]{1,100}\](?!\() \S[^\n]*$", re.MULTILINE)
_RELATION = re.compile(
    r"^[-*] (?P<kind>[^\[\]\n]{0,200}?) *\[\[(?P<target>[^\[\]\n]{1,500})\]\][^\n]*$", re.MULTILINE
)
_HEADING = re.compile(r"\A\s*# [^\n]*\n?")
_PLAIN = (str, int, float, date)
_LINKS = "relates to"
"""The kind of a relation that has no name."""


class BasicMemoryFormat:
    name = "basic-memory"
    kind = "entities"

    def detect(self, source: ImportSource) -> bool:
        found = [bool(_PERMALINK.match(head)) for head in file_heads(source, ".md")]
        return any(found) and 2 * sum(found) >= len(found)

    def items(self, source: ImportSource) -> Items:
        return _Graph().items(source)


class _Graph:
    """The notes of a folder. A relation names its target by title, permalink or file."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._relations: list[RelationItem] = []

    def items(self, source: ImportSource) -> Items:
        yield from each_text(source, source.selected(".md"), MAX_CONTENT, self._note)
        lost: list[str] = []
        for each in self._relations:
            target = self._ids.get(_key(each.target))
            if target is None:
                lost.append(each.target)
            elif target != each.start:
                yield RelationItem(
                    file=each.file,
                    where=each.where,
                    source=each.source,
                    source_id=f"{each.start} {each.kind} {target}",
                    start=each.start,
                    target=target,
                    kind=each.kind,
                )
        if lost:
            what = f"relations to missing notes were left out: {json_records.count_and_names(lost)}"
            fix = "write these notes; the text names them"
            yield skipped("", what, fix)

    def _note(self, entry: SourceFile, text: str) -> Items:
        lines, body = split(text.replace("\r\n", "\n"))
        about = Record(properties(lines))
        stem = entry.name.removesuffix(".md")
        title = about.text("title").strip() or stem.rpartition("/")[2]
        source_id = about.text("permalink").strip() or stem
        for name in (title, source_id, stem, stem.rpartition("/")[2]):
            self._ids.setdefault(_key(name), source_id)
        for each in _RELATION.finditer(body):
            kind = each["kind"].strip().strip('"') or _LINKS
            self._relations.append(
                RelationItem(
                    file=entry.name,
                    where=f"line {text.count(chr(10), 0, text.find(each[0])) + 1}",
                    source=BasicMemoryFormat.name,
                    source_id="",
                    start=source_id,
                    target=each["target"].partition("|")[0].strip(),
                    kind=kind,
                )
            )
        observations = tuple(each[0][2:] for each in _OBSERVATION.finditer(body))
        rest = _OBSERVATION.sub("", _HEADING.sub("", body, count=1))
        yield EntityItem(
            file=entry.name,
            source=BasicMemoryFormat.name,
            source_id=source_id,
            kind=about.text("type").strip(),
            observations=observations,
            title=title,
            text=re.sub(r"\n{3,}", "\n\n", rest).strip(),
            metadata=_metadata(about),
        )


def _key(name: str) -> str:
    return " ".join(name.casefold().split())


def _metadata(about: Record) -> dict[str, JSON]:
    """Return the other properties of the frontmatter, as text."""
    tags = about.get("tags")
    names = [text_of(each) for each in list_of(tags)] or [text_of(tags)]
    metadata: dict[str, JSON] = {"source_tags": ", ".join(filter(None, names))}
    for name, value in about.items():
        if name not in {"title", "type", "tags", "permalink"} and isinstance(value, _PLAIN):
            metadata[f"basic_memory_{text_of(name)[:60]}"] = str(value)[:500]
    return {name: value for name, value in metadata.items() if value}
