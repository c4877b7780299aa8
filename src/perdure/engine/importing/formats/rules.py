"""Instructions for coding agents: `CLAUDE.md`, `AGENTS.md`, `.cursor/rules/*.mdc` and their like.

A file is one memory of the project that its folder belongs to. Each item of a list, and each
paragraph, is a rule; what it stands below is said with it where it would mean something else alone.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.engine.importing.contract import Finding, Item, Statement
from perdure.engine.importing.reading import each_text
from perdure.engine.importing.sources import ENTERED, Entry, Source
from perdure.engine.learn.statements import cid_of
from perdure.model.values import JSON, MAX_CONTENT, shortened

_NAMES = frozenset({"claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules"})
_PROSE = (".md", ".mdc")
_FRONTMATTER = re.compile(r"\A\ufeff?---[ \t]*\n.*?^---[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,4}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.+)")
_TABLE = re.compile(r"[ \t]*\|")
_IMPORT = re.compile(r"@\S+\s*")
_BREAK = re.compile(r"[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*|[ \t]*<[^>]*>[ \t]*")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NEGATIVE = re.compile(
    r"\b(?:don.?t|do not|never|avoid\w*|not|no|without|forbid\w*|prohibit\w*|anti-?patterns?"
    r"|bad|wrong)\b",
    re.IGNORECASE,
)
_LONGEST = 1_000


class Rules:
    name = "rules"
    kind = "memories"

    def detect(self, source: Source) -> bool:
        meant = [each for each in source.entries if each.base.lower().endswith((*_PROSE, "rules"))]
        return bool(meant) and all(map(_is_rules, meant))

    def items(self, source: Source) -> Iterator[Item | Finding]:
        alone = not source.is_folder and len(source.entries) == 1
        entries = [each for each in source.entries if alone or _is_rules(each)]
        cwd = _folder(source)
        return each_text(
            source, entries, MAX_CONTENT, lambda entry, text: self._file(entry, text, cwd)
        )

    def _file(self, entry: Entry, text: str, cwd: str) -> Iterator[Item | Finding]:
        reading = _Reading()
        rules = [*reading.rules(text)]
        lines: dict[str, JSON] = {cid_of(each.text): each.line for each in rules}
        if rules:
            yield Statement(
                file=entry.name,
                where=f"line {rules[0].line}",
                source=self.name,
                source_id=entry.name,
                content=_written(rules),
                category="pattern",
                cwd=cwd,
                metadata={"kind": "rule", "source_file": entry.name, "source_lines": lines},
            )
        for what, count in (+reading.left).items():
            told = f"{what} were left out: {count}"
            yield Finding(entry.name, "", told, "nothing; the file stays as it is", refused=False)


@dataclass(frozen=True, slots=True)
class _Rule:
    heading: str
    line: int
    text: str


class _Reading:
    """Reads the rules of one file, and counts the lines that are none."""

    def __init__(self) -> None:
        self.left: Counter[str] = Counter()

    def rules(self, text: str) -> Iterator[_Rule]:
        """Yield the rules; each is on one line, with what leads to it."""
        heading, leads, open_ = "", list[tuple[int, str]](), list[tuple[int, int, str]]()

        def ended() -> Iterator[_Rule]:
            """Yield the rule that ends here; one that ends in a colon leads to those below."""
            for indent, line, words in open_:
                leads[:] = [each for each in leads if each[0] < indent]
                before = [each for _, each in leads[-1:]]
                said = shortened(" ".join([*before, *words.split()]), _LONGEST)
                if said.endswith(":"):
                    leads.append((indent, said))
                elif said:
                    named = f"{heading}: {said}" if _NEGATIVE.search(heading) else said
                    yield _Rule(heading, line, named)
            open_.clear()

        for number, line in self._lines(text):
            titled, item = _HEADING.fullmatch(line), _ITEM.fullmatch(line)
            if titled:
                yield from ended()
                heading, leads = " ".join(titled[1].strip("# ").split()), []
            elif item:
                yield from ended()
                open_.append((len(item[1].expandtabs(4)), number, item[2]))
            elif line.strip() and open_:
                indent, first, said = open_.pop()
                open_.append((indent, first, f"{said} {line.strip()}"))
            elif line.strip():
                leads = leads if line[0].isspace() else []
                open_.append((-1 if not line[0].isspace() else 0, number, line.strip()))
            else:
                yield from ended()
        yield from ended()

    def _lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers; what is no prose is blank, and counted."""
        text = text.replace("\r\n", "\n")
        for part in (_FRONTMATTER, _COMMENT):
            text = part.sub(lambda found: "\n" * found[0].count("\n"), text)
        fence = ""
        for number, line in enumerate(text.split("\n"), start=1):
            mark = _FENCE.match(line)
            kind = ""
            if mark or fence:
                kind = "lines of code"
                closes = mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0])
                fence = (mark[1] if mark else "") if not fence else "" if closes else fence
            elif _TABLE.match(line):
                kind = "lines of tables"
            elif _IMPORT.fullmatch(line.strip()):
                kind = "files that it imports"
            self.left[kind] += bool(kind)
            yield number, "" if kind or _BREAK.fullmatch(line) else line


def _written(rules: list[_Rule]) -> str:
    """Return rules as a list below their headings."""
    lines: list[str] = []
    heading = ""
    for each in rules:
        if each.heading != heading:
            heading = each.heading
            lines += ["", f"## {heading}", ""] if heading else [""]
        lines.append(f"- {each.text}")
    return "\n".join(lines).strip() + "\n"


def _is_rules(entry: Entry) -> bool:
    is_cursor = entry.base.lower().endswith(".mdc")
    return is_cursor or entry.base.lower() in _NAMES


def _folder(source: Source) -> str:
    """Return the folder that the rules are for; "" for those in an archive."""
    if not source.is_folder and source.entries and source.entries[0].name != source.name:
        return ""
    folder = source.path if source.is_folder else source.path.parent
    hidden = next((at for at, part in enumerate(folder.parts) if part in ENTERED), None)
    return str(folder if hidden is None else Path(*folder.parts[:hidden]))
