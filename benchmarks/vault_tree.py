"""Make a vault of Markdown notes out of HTML documentation, such as Debian's packages carry.

    apt-get download openjdk-17-doc cppreference-doc-en-html rust-doc && dpkg -x ... FOLDER
    python benchmarks/vault_tree.py VAULT FOLDER [FOLDER ...] --most 15000

Headings, paragraphs, lists, code and links become Markdown; links between pages become links
between notes. Pages that say next to nothing, and lists
of everything, are left out.
"""

import argparse
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = {"p", "div", "section", "table", "tr", "ul", "ol", "dl", "dt", "dd", "pre", "br"}
_SILENT = {"script", "style", "nav", "head", "noscript", "header", "footer"}
_EMPTY = re.compile(r"-\s*(?:\[\s*\]\(.*?\))?\s*")
"""A point of a list without words, as menus leave it."""
_LEAST_WORDS = 20
_MOST_BYTES = 60_000
_UNUSABLE = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]')


class _Page(HTMLParser):
    """The Markdown of one page."""

    def __init__(self, note: str) -> None:
        super().__init__()
        self._folder = posixpath.dirname(note)
        self._out: list[str] = []
        self._silent = 0
        self._fenced = False
        self._target = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _HEADINGS:
            self._out.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "li":
            self._out.append("\n- ")
        elif tag == "pre":
            self._fenced = True
            self._out.append("\n\n```\n")
        elif tag == "a":
            self._target = self._note_at(dict(attrs).get("href") or "")
            self._out.append("[" if self._target else "")
        elif tag in _BLOCKS:
            self._out.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "pre":
            self._fenced = False
            self._out.append("\n```\n\n")
        elif tag == "a" and self._target:
            self._out.append(f"]({self._target})")
            self._target = ""
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._out.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._out.append(data if self._fenced else re.sub(r"\s+", " ", data))

    def _note_at(self, href: str) -> str:
        """Return the path of the note that a link of this page leads to; empty if to none."""
        parts = urlsplit(href)
        if parts.scheme or parts.netloc or not parts.path.endswith(".html"):
            return ""
        path = posixpath.normpath(posixpath.join(self._folder, unquote(parts.path)))
        path = posixpath.relpath(note_name(path), self._folder or ".")
        return path.replace(" ", "%20").replace("(", "%28").replace(")", "%29")

    def text(self) -> str:
        lines = (line.rstrip() for line in "".join(self._out).replace("\xa0", " ").split("\n"))
        text = "\n".join(line for line in lines if not _EMPTY.fullmatch(line))
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def note_name(path: str) -> str:
    parts = path.removesuffix(".html").split("/")
    return "/".join(part if part == ".." else _UNUSABLE.sub("-", part) for part in parts) + ".md"


def make(vault: Path, folders: list[Path], most: int) -> int:
    """Write the notes; return how many there are."""
    written = 0
    for folder in folders:
        for page in sorted(folder.rglob("*.html")):
            if written == most or page.is_symlink():
                continue
            name = f"{folder.name}/{page.relative_to(folder).as_posix()}"
            parser = _Page(name)
            parser.feed(page.read_text(encoding="utf-8", errors="replace"))
            text = parser.text()
            if len(text.split()) < _LEAST_WORDS or len(text) > _MOST_BYTES:
                continue
            note = vault / note_name(name)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(text, encoding="utf-8")
            written += 1
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vault", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=15_000)
    given = parser.parse_args()
    print(f"{make(given.vault, given.folders, given.most):,} notes in {given.vault}")


if __name__ == "__main__":
    main()
