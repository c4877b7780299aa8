"""Instructions for coding agents: `CLAUDE.md`, `AGENTS.md`, `.cursor/rules/*.mdc` and others.

A file is one memory of the project that its folder belongs to. Each item of a list, and each
paragraph, is a rule; it includes the line or heading above it that it does not make sense without.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.engine.learn.statements import cid_of
from perdure.markdown import blocks, without_markers
from perdure.model.values import JSON, MAX_CONTENT, shortened
from perdure.transfer.contract import StatementItem
from perdure.transfer.json_records import Items, counted_findings, each_text
from perdure.transfer.source import ENTERED, ImportSource, SourceFile

_NAMES = frozenset({"claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules"})
_PROSE = (".md", ".mdc")
_IMPORT = re.compile(r"@\S+\s*")
_MARKUP = re.compile(r"<!--.*?-->|^[ \t]*</?[^<>\n]+>[ \t]*$", re.DOTALL | re.MULTILINE)
"""Comments, and lines with only a tag: the text between tags is read as Markdown."""
_LEFT = {"fence": "lines of code", "code": "lines of code", "table": "lines of tables"}
_NEGATIVE = re.compile(
    r"\b(?:don.?t|do not|never|avoid\w*|not|no|without|forbid\w*|prohibit\w*|anti-?patterns?"
    r"|bad|wrong)\b",
    re.IGNORECASE,
)
_MAX_LENGTH = 1_000


class RulesFormat:
    name = "rules"
    kind = "memories"

    def detect(self, source: ImportSource) -> bool:
        meant = [each for each in source.entries if each.base.lower().endswith((*_PROSE, "rules"))]
        return bool(meant) and all(map(_is_rules, meant))

    def items(self, source: ImportSource) -> Items:
        alone = not source.is_folder and len(source.entries) == 1
        entries = [each for each in source.entries if alone or _is_rules(each)]
        cwd = _folder(source)
        return each_text(
            source, entries, MAX_CONTENT, lambda entry, text: self._file(entry, text, cwd)
        )

    def _file(self, entry: SourceFile, text: str, cwd: str) -> Items:
        left: Counter[str] = Counter()
        rules = [*_rules(text, left)]
        lines: dict[str, JSON] = {cid_of(each.text): each.line for each in rules}
        if rules:
            yield StatementItem(
                file=entry.name,
                where=f"line {rules[0].line}",
                source=self.name,
                source_id=entry.name,
                content=_written(rules),
                category="pattern",
                cwd=cwd,
                metadata={"kind": "rule", "source_file": entry.name, "source_lines": lines},
            )
        yield from counted_findings(entry.name, left, "nothing; the file stays as it is")


@dataclass(frozen=True, slots=True)
class _Rule:
    heading: str
    line: int
    text: str


def _rules(text: str, left: Counter[str]) -> Iterator[_Rule]:
    """Yield the rules, each on one line with its introduction; count the other lines."""
    heading, leads = "", list[tuple[int, str]]()
    text = _MARKUP.sub(lambda found: "\n" * found[0].count("\n"), text)
    for block in blocks(text):
        if block.kind == "heading":
            heading, leads = block.info, []
        elif what := _LEFT.get(block.kind):
            left[what] += block.last_line - block.first_line + 1
        elif block.kind == "paragraph":
            leads = [each for each in leads if each[0] < block.depth]
            before = leads[-1][1] if leads else ""
            lines = text[block.start : block.end].splitlines()
            used = [line for line in map(without_markers, lines) if not _IMPORT.fullmatch(line)]
            left["files that it imports"] += len(lines) - len(used)
            rule = shortened(" ".join(" ".join([before, *used]).split()), _MAX_LENGTH)
            if rule.endswith(":"):  # it introduces those below
                leads.append((block.depth, rule))
            elif rule != before:
                named = f"{heading}: {rule}" if _NEGATIVE.search(heading) else rule
                yield _Rule(heading, block.first_line, named)


def _written(rules: list[_Rule]) -> str:
    lines: list[str] = []
    heading = ""
    for each in rules:
        if each.heading != heading:
            heading = each.heading
            lines += ["", f"## {heading}", ""] if heading else [""]
        lines.append(f"- {each.text}")
    return "\n".join(lines).strip() + "\n"


def _is_rules(entry: SourceFile) -> bool:
    is_cursor = entry.base.lower().endswith(".mdc")
    return is_cursor or entry.base.lower() in _NAMES


def _folder(source: ImportSource) -> str:
    """Return the folder that the rules apply to; "" for rules in an archive."""
    if not source.is_folder and source.entries and source.entries[0].name != source.name:
        return ""
    folder = source.path if source.is_folder else source.path.parent
    hidden = next((at for at, part in enumerate(folder.parts) if part in ENTERED), None)
    return str(folder if hidden is None else Path(*folder.parts[:hidden]))
