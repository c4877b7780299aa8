"""A vault with everything in it that can go wrong with a note, made by a generator."""

import os
import unicodedata
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

WORD = "quillwort"
"""In the body of each note that is memory, with a number: `quillwort17`."""
NOT_TEXT = 3
"""How many notes are not UTF-8."""
LINKS = 10_000
OUTSIDE = "Not of the vault: ragwort."

PROPERTIES = (
    *("id", "title", "aliases", "tags", "created", "updated", "date", "version", "status"),
    *("owner", "learned", "relations", "abstract", "overview", "evidence", "statements", "merges"),
    *("perdure", "perdure-store", "perdure-layout", "perdure-owner", "in_place", "kind", "project"),
    *("valid-from", "valid-until", "by", "proposed", "source", "source_id", "origins", "branch"),
    *("always_load", "phases", "enforced", "kept_apart_from", "pinned", "cssclasses", "publish"),
)
"""Every property that is read of a note, and some that other programs read."""
VALUES = (
    *(
        "",
        "null",
        "true",
        "17",
        "-1",
        "1e999",
        ".nan",
        "0x1F",
        "9" * 60,
        "2026-02-30",
        "10000-01-01",
    ),
    *("[]", "{}", "[[[[]]]]", "{a: {b: {c: d}}}", "[1, null, {x: []}]", "- - - x", "!!binary aGk="),
    *(
        "!!python/object/apply:os.system [id]",
        "*nothing",
        "&a [*a]",
        '"\\0"',
        '"\\ud800"',
        "|\n  x",
    ),
    *("'../../etc/passwd'", "preference/another", "ctx://other/users/eve/memories/profile"),
    *(
        "archived",
        "[" * 3_000,
        '[NaN, "\\ud800"]',
        "{a: Infinity}",
        '"' + "long " * 3_000 + '"',
        "[" + "x, " * 5_000 + "x]",
    ),
)
"""What a property may have instead of what it should."""


def _bomb(levels: int = 9) -> str:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def _merges(levels: int = 30) -> str:
    lines = ["m0: &m0 {k: v}"]
    lines += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, levels)]
    return "\n".join(lines)


FRONTMATTERS = (
    *(_bomb(), _merges(), "<<: {a: 1}", "a: &a\n  b: *a", "[" * 2_000, "{" * 2_000),
    *("a: " * 500, "- x\n" * 5_000, "k" * 70_000 + ": 1", "k: " + "v" * 70_000, "? [a, b]\n: c"),
    *("title: one\ntitle: two", "\ttitle: tab", "title:\tx\n\ty", "a:\n\t- b", "title: 'unclosed"),
    *(
        "title: x\x00y",
        "\x00",
        "title: \x07\x1b[31mred",
        "%YAML 9.9",
        "a: b\n...\nc: d",
        "@at",
        "`",
    ),
    *("title: \u202eevil", "title: \ufeffx", "\ufeff", "# only a comment", "just a sentence"),
    *("a: !!set {x, y}", "a: !!omap [x: 1]", "a: !<tag:yaml.org,2002:int> x", "!!map [a]", "1: 2"),
    *("null: 1\ntrue: 2", "a: 2026-03-01 99:99:99", "\x85a: b", "a: b\u2028c: d", "-" * 300),
)


class HostileVault:
    """A folder with good notes among bad ones; what it has can be compared afterwards."""

    def __init__(self, folder: Path, notes: int, megabytes: float) -> None:
        self.folder = folder
        self.words: list[str] = []
        """One of each note that must be found."""
        self._random = Random(notes)
        folder.mkdir()
        for path, head, tail in self._notes(notes):
            self._put(path, head, tail)
        self._odd_names()
        self._odd_bytes(megabytes)
        self._links()

    def snapshot(self) -> dict[str, str]:
        """Return the hashes of all files by their names, links left out."""
        found = {}
        for directory, _, names in os.walk(os.fsencode(self.folder)):
            for path in (Path(os.fsdecode(directory)) / os.fsdecode(name) for name in names):
                if path.is_file() and not path.is_symlink():
                    found[ascii(path)] = sha256(path.read_bytes()).hexdigest()
        return found

    def _word(self) -> str:
        self.words.append(f"{WORD}{len(self.words)}")
        return self.words[-1]

    def _put(self, path: str, head: str, tail: str = "") -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = f"{head}\nIt has {self._word()}, and little else.\n{tail}"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))

    def _notes(self, number: int) -> Iterator[tuple[str, str, str]]:
        for place, lines in enumerate(FRONTMATTERS):
            yield f"Broken/Frontmatter {place}.md", f"---\n{lines}\n---\n# Note {place}\n", ""
            yield f"Perdure/Facts/Broken {place}.md", f"---\n{lines}\n---", ""
        yield "Broken/No end.md", "---\ntitle: x\n", ""
        yield "Broken/Carriage returns.md", "---\r\ntitle: x\r\ntags: [a]\r\n---\r\n# A\r\n", ""
        yield "Broken/Old line ends.md", "---\rtitle: x\r---\r# A\r", ""
        yield "Broken/Marked.md", "\ufeff---\ntitle: marked\n---\n", ""
        yield "Broken/Deep.md", "> " * 5_000 + "deep\n" + "- " * 2_000 + "\n", "[" * 20_000
        yield "Broken/Fences.md", "# Fences\n", "```\n" * 999 + "<!--" * 2_000
        yield "Links.md", "# Links\n", "".join(f"[[Note {n}]] " for n in range(LINKS))
        wrong = [(name, value) for name in PROPERTIES for value in VALUES]
        self._random.shuffle(wrong)
        for count, (name, value) in enumerate(wrong[: number // 3]):
            lines = f"---\n{name}: {value}\n---"
            folder = ("Wrong", "Perdure/Preferences", "Perdure/Sessions")[count % 3]
            yield f"{folder}/{name} {count}.md", lines, ""
        for count in range(number - len(self.words)):
            head = f"---\ntags: [fern]\naliases: [Plant {count}]\n---\n# Note {count}\n"
            yield f"Plants/{count % 40}/Note {count}.md", head, f"See [[Note {count + 1}]].\n"

    def _odd_names(self) -> None:
        decomposed = unicodedata.normalize("NFD", "Größe")
        names = ["100%25.md", "a%2Fb.md", "A: colon.md", "two\nlines.md", ".hidden.md", "-rf.md"]
        names += ["..two dots.md", "Case.md", "case.md", "CASE.md", "Größe.md", f"{decomposed}.md"]
        names += ["ﬁ.md", "fi.md", "İ.md", "\u202edm.evil.md", "back\\slash.md", "tab\t.md", " .md"]
        names += [f"{'n' * 250}.md", f"{'ü' * 126}.md", "con.md", "x.MD", ".md", "*?.md", "\x7f.md"]
        for name in names:
            (self.folder / name).write_text(f"# Odd\n\nIt has {WORD}odd.\n")
        deep = self.folder / "/".join(["d" * 200] * 8)
        deep.mkdir(parents=True)
        (deep / "Too deep.md").write_text("Too deep for a key.\n")
        (self.folder / os.fsdecode(b"\xff\xfe.md")).write_text("A name that is not UTF-8.\n")
        (self.folder / "A folder.md").mkdir()
        (self.folder / "A folder.md" / "Inside.md").write_text("# Inside\n")

    def _odd_bytes(self, megabytes: float) -> None:
        for name, content in (("Latin", "Größe".encode("latin-1")), ("Wide", "x".encode("utf-16"))):
            (self.folder / f"{name}.md").write_bytes(content)
        (self.folder / "Perdure" / "Facts" / "Latin.md").write_bytes(b"---\nid: x\n---\n\xff")
        (self.folder / "Empty.md").write_bytes(b"")
        (self.folder / "Blank.md").write_bytes(b" \n\t\n")
        (self.folder / "Zeros.md").write_bytes(b"\x00" * 4_096)
        line = b"A line of a very long note about horsetails and clubmosses.\n"
        (self.folder / "Huge.md").write_bytes(line * int(megabytes * 1_000_000 / len(line)))
        (self.folder / "One line.md").write_bytes(b"word " * 19_000)
        (self.folder / "picture.png").write_bytes(b"\x89PNG")

    def _links(self) -> None:
        outside = self.folder.parent / "outside"
        outside.mkdir()
        (outside / "Secret.md").write_text(OUTSIDE)
        (self.folder / "Out").symlink_to(outside)
        (self.folder / "Secret.md").symlink_to(outside / "Secret.md")
        (self.folder / "Round").symlink_to(self.folder)
        (self.folder / "Plants" / "Up").symlink_to("..")
        (self.folder / "Itself.md").symlink_to("Itself.md")
        (self.folder / "Nowhere.md").symlink_to("nowhere")
        os.mkfifo(self.folder / "Pipe.md")
        os.mkfifo(self.folder / "Perdure" / "Facts" / "Pipe.md")
