"""What statements name of a checkout, and what is noticed of it later, on real git histories."""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from perdure.harness import spans
from perdure.harness.ancestry import Ancestry
from perdure.harness.project import GitCheckout
from perdure.harness.working_tree import WorkingTree, working_tree
from perdure.model.anchors import (
    CHANGED,
    FRESH,
    MOVED,
    UNKNOWN,
    AnchoredStatement,
    Anchors,
    AnchorStatus,
    FileAnchor,
    SessionOrigin,
    anchors_of,
)
from tests.harness.conftest import git

ENOUGH = 10.0
"""Seconds: these tests are about verdicts, on however busy a machine."""
CODE = '''"""Reading."""

LIMIT = 40


@cached
def parse(text):
    """Return the words.

  of a text
    """
    if not text:
        return []
# until 3.0
    return text.split()[:LIMIT]


class Reader:
    def open(self):
        return parse(self.text)
'''
MAKE = "all: test\n\ntest:\n\tpytest\n\n.PHONY: all test\n"
PACKAGE = json.dumps({"scripts": {"build": "tsc", "lint:all": "eslint ."}})
PROJECT = "[project.scripts]\nharbour = 'harbour:run'\n[tool.poe.tasks]\ndocs = 'mkdocs'\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    files = {
        "src/a.py": CODE,
        "src/b.py": "def other():\n    return 1\n",
        "Makefile": MAKE,
        "package.json": PACKAGE,
        "pyproject.toml": PROJECT,
        "justfile": "set shell := ['sh']\nship target='x': build\n  echo\n",
    }
    for name, text in files.items():
        put(folder, name, text)
    git(folder, "init", "-q", "-b", "main")
    save(folder, "begin")
    return folder


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def save(folder: Path, message: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def tree(folder: Path, cache: Path | None = None) -> WorkingTree:
    found = working_tree(str(folder), cache)
    assert found is not None
    return found


def built(folder: Path, text: str, kind: str = "fact") -> AnchoredStatement:
    """Return a statement that is made in a folder now."""
    anchors = tree(folder).anchors_of(text, None, None)
    read = None if anchors is None else anchors_of(json.loads(json.dumps(anchors.as_json())))
    assert read == anchors  # as it is stored
    return AnchoredStatement(text, kind, datetime(2026, 3, 2, tzinfo=UTC), (read,) if read else ())


def verdict(folder: Path, stated: AnchoredStatement) -> AnchorStatus:
    return tree(folder).check([stated], ENOUGH)[0]


def edit(old: str, new: str, name: str = "src/a.py") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        put(folder, name, text.replace(old, new))

    return change


def rename(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        git(folder, "mv", old, new)

    return change


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


FILE, SYMBOL = "The reader is in src/a.py.", "`parse` in src/a.py returns words."
ALONE = "parse() caps its result."
LINES, SNIPPET = "See src/a.py:12-13.", "src/a.py says `return text.split()[:LIMIT]` now."
RUN = "Run make test before you push."
SAME = edit("", "")
TABLE = [
    (FILE, SAME, FRESH, ""),
    (FILE, edit("40", "41"), CHANGED, "src/a.py changed since"),
    (FILE, rename("src/a.py", "lib/reading.py"), MOVED, "now lib/reading.py"),
    (
        FILE,
        both(rename("src/a.py", "lib/a.py"), edit("40", "9", "lib/a.py")),
        CHANGED,
        "now lib/a.py",
    ),
    (SYMBOL, SAME, FRESH, ""),
    (SYMBOL, edit("LIMIT = 40", "LIMIT = 41"), FRESH, ""),
    (SYMBOL, edit("self.text", "self.words"), FRESH, ""),
    (SYMBOL, edit("return []", "return ()"), CHANGED, "parse in src/a.py changed since"),
    (SYMBOL, edit("[:LIMIT]", "[:-1]"), CHANGED, "parse in src/a.py changed since"),
    (SYMBOL, edit("  of a text", "  of two texts"), CHANGED, "parse in src/a.py changed since"),
    (SYMBOL, edit("@cached", "@lru_cache"), CHANGED, "parse in src/a.py changed since"),
    (
        SYMBOL,
        edit("        return []", "    return []"),
        CHANGED,
        "parse in src/a.py changed since",
    ),
    (SYMBOL, edit("    if not", "\n    if not"), FRESH, ""),
    (SYMBOL, edit("        return []", "            return []   "), FRESH, ""),
    (SYMBOL, edit("LIMIT = 40", "LIMIT = 40\nMORE = 1"), MOVED, ""),
    (SYMBOL, edit("def parse", "def parsed"), CHANGED, "parse in src/a.py changed since"),
    (SYMBOL, rename("src/a.py", "lib/a.py"), MOVED, "now lib/a.py"),
    (ALONE, SAME, FRESH, ""),
    (ALONE, edit("return []", "return ()"), CHANGED, "parse in src/a.py changed since"),
    ("LIMIT in src/a.py is 40.", edit("LIMIT = 40", "LIMIT = 41"), CHANGED, "LIMIT in src/a.py"),
    ("`Reader` in src/a.py opens.", edit("self.text", "self.x"), CHANGED, "Reader in src/a.py"),
    (LINES, SAME, FRESH, ""),
    (LINES, edit("LIMIT = 40", "A = 1\n\nLIMIT = 40"), MOVED, "now src/a.py:14"),
    (LINES, edit("if not text", "if text"), CHANGED, "src/a.py changed since"),
    (SNIPPET, edit("return []", "return ()"), FRESH, ""),
    (SNIPPET, edit("[:LIMIT]", "[:4]"), CHANGED, "src/a.py changed since"),
    (RUN, edit("pytest", "pytest -q", "Makefile"), FRESH, ""),
    ("Use npm run build.", edit("tsc", "tsc -b", "package.json"), FRESH, ""),
    ("Use poe docs and uv run harbour.", edit("mkdocs", "x", "pyproject.toml"), FRESH, ""),
    ("Call just ship.", edit("echo", "echo x", "justfile"), FRESH, ""),
    (f"{RUN} Also see src/b.py.", edit("test", "check", "Makefile"), CHANGED, "`make test` gone"),
    ("Tests are in src/.", SAME, UNKNOWN, ""),
    ("Say please, and/or thanks.", SAME, UNKNOWN, ""),
]


@pytest.mark.parametrize(("text", "change", "state", "note"), TABLE, ids=range(len(TABLE)))
def test_a_change_is_noticed_where_it_matters(
    root: Path, text: str, change: Callable[[Path], None], state: str, note: str
) -> None:
    stated = built(root, text)
    change(root)

    found = verdict(root, stated)

    assert (found.state, found.held_back) == (state, "")
    assert found.note.startswith(note)
    assert bool(found.note) is bool(note)
    if found.state == CHANGED:
        assert " since 20" in found.note


def test_what_was_reverted_is_fresh_again(root: Path) -> None:
    stated = built(root, SYMBOL)
    edit("return []", "return ()")(root)
    save(root, "change")
    assert verdict(root, stated).state == CHANGED
    git(root, "revert", "--no-edit", "HEAD")

    assert verdict(root, stated).state == FRESH


@pytest.mark.parametrize(
    ("text", "name"), [(FILE, "src/a.py"), (RUN, "Makefile"), ("Call just ship.", "justfile")]
)
def test_what_names_only_what_is_gone_is_held_back(root: Path, text: str, name: str) -> None:
    stated = built(root, text)
    remove(name)(root)

    found = verdict(root, stated)

    assert found.state == CHANGED
    assert "gone since 2026-03-02" in found.held_back


def test_a_file_that_was_written_after_the_statement_proves_nothing(root: Path) -> None:
    before = datetime(2020, 1, 1, tzinfo=UTC)
    anchors = tree(root).anchors_of(SYMBOL, before, SessionOrigin(str(root)))

    assert anchors is not None
    assert anchors.spans == (FileAnchor("src/a.py"),)
    assert verdict(root, AnchoredStatement(SYMBOL, "fact", before, (anchors,))).state == UNKNOWN


def test_a_path_from_a_folder_below_is_stored_from_the_top(root: Path) -> None:
    anchors = tree(root / "src").anchors_of("parse in a.py is slow.", None, None)

    assert anchors is not None
    assert [each.path for each in anchors.spans] == ["src/a.py"]


# ---------------------------------------------------------------- branches
DECISION = "We decided to keep words in a list."
NEW = "`fetch` in src/new.py retries."


def on_branch(root: Path, text: str = DECISION, kind: str = "decision") -> AnchoredStatement:
    """Return a statement of a branch that has a commit of its own; main is checked out."""
    git(root, "checkout", "-q", "-b", "feature")
    put(root, "src/new.py", "def fetch():\n    return 1\n")
    save(root, "fetch")
    stated = built(root, text, kind)
    git(root, "checkout", "-q", "main")
    return stated


def test_what_was_learned_on_a_branch_is_shown_there_only(root: Path) -> None:
    stated = on_branch(root)

    assert "feature" in verdict(root, stated).held_back
    assert not verdict(root, stated).is_abandoned
    git(root, "checkout", "-q", "feature")
    assert not verdict(root, stated).held_back


def test_what_was_learned_on_a_branch_is_general_once_it_is_merged(root: Path) -> None:
    stated = on_branch(root)
    save(root, "meanwhile")
    git(root, "merge", "-q", "--no-edit", "feature")
    git(root, "branch", "-q", "-D", "feature")

    assert verdict(root, stated) == AnchorStatus(UNKNOWN)


def test_what_was_learned_before_a_branch_began_holds_on_it(root: Path) -> None:
    stated = built(root, DECISION, "decision")
    git(root, "checkout", "-q", "-b", "feature")
    save(root, "on")

    assert not verdict(root, stated).held_back


@pytest.mark.parametrize("kind", ["rule", "preference"])
def test_a_rule_that_names_no_code_holds_on_every_branch(root: Path, kind: str) -> None:
    stated = on_branch(root, "Never push to main.", kind)
    git(root, "branch", "-q", "-D", "feature")

    assert not verdict(root, stated).held_back


def test_a_rule_that_names_code_of_a_branch_holds_there_only(root: Path) -> None:
    assert verdict(root, on_branch(root, NEW, "rule")).held_back


def test_what_a_gone_branch_stated_is_abandoned(root: Path) -> None:
    stated = on_branch(root)
    git(root, "branch", "-q", "-D", "feature")

    found = verdict(root, stated)

    assert found.is_abandoned
    assert found.held_back == "the branch feature is gone and was not merged"


def test_a_branch_that_a_remote_has_is_not_gone(root: Path) -> None:
    stated = on_branch(root)
    git(root, "update-ref", "refs/remotes/origin/feature", "feature")
    git(root, "branch", "-q", "-D", "feature")
    assert not verdict(root, stated).is_abandoned
    git(root, "pack-refs", "--all")

    assert not verdict(root, stated).is_abandoned


def test_what_a_squash_merge_brought_is_general_by_its_spans(root: Path) -> None:
    stated = on_branch(root, NEW)
    assert verdict(root, stated).held_back
    git(root, "merge", "-q", "--squash", "feature")
    save(root, "squashed")
    git(root, "branch", "-q", "-D", "feature")

    assert verdict(root, stated) == AnchorStatus(FRESH)


@pytest.mark.parametrize("text", [NEW, FILE, SYMBOL])
@pytest.mark.parametrize("is_merged", [True, False])
@pytest.mark.parametrize("has_log", [True, False])
def test_a_squash_merge_brings_what_names_a_file_that_is_younger_than_it(
    root: Path,
    text: str,
    is_merged: bool,  # noqa: FBT001 - one of two cases
    has_log: bool,  # noqa: FBT001 - one of two cases
) -> None:
    git(root, "checkout", "-q", "-b", "feature")
    save(root, "begin feature")
    origin = SessionOrigin(str(root), "feature", git(root, "rev-parse", "HEAD"))
    put(root, "src/new.py", "def fetch():\n    return 1\n")
    put(root, "src/a.py", CODE.replace("40", "50"))
    anchors = tree(root).anchors_of(text, datetime(2026, 3, 2, tzinfo=UTC), origin)
    assert anchors is not None
    assert not any(each.blob for each in anchors.spans)
    stated = AnchoredStatement(text, "fact", datetime(2026, 3, 2, tzinfo=UTC), (anchors,))
    save(root, "fetch")
    git(root, "checkout", "-q", "main")
    assert verdict(root, stated).held_back
    if is_merged:
        git(root, "merge", "-q", "--squash", "feature")
        save(root, "squashed")
    git(root, "branch", "-q", "-D", "feature")
    if not has_log:
        (root / ".git" / "logs" / "HEAD").unlink()

    found = verdict(root, stated)

    is_known = has_log or text == NEW  # without git's log, only what the branch added
    assert (not found.held_back) == (is_merged and is_known)
    assert found.state != FRESH


def test_a_branch_that_was_rebased_and_merged_is_merged_though_it_is_gone(root: Path) -> None:
    stated = on_branch(root)
    save(root, "meanwhile")
    git(root, "checkout", "-q", "feature")
    git(root, "rebase", "-q", "main")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "feature")
    git(root, "branch", "-q", "-D", "feature")

    assert not verdict(root, stated).held_back


def test_after_a_rebase_the_branch_stands_for_its_commits(root: Path) -> None:
    stated = on_branch(root)
    save(root, "meanwhile")
    git(root, "checkout", "-q", "feature")
    git(root, "rebase", "-q", "main")
    assert not verdict(root, stated).held_back
    git(root, "checkout", "-q", "main")
    assert verdict(root, stated).held_back
    git(root, "merge", "-q", "feature")

    assert not verdict(root, stated).held_back


def test_an_amended_commit_does_not_hide_what_was_learned_on_it(root: Path) -> None:
    stated = built(root, DECISION)
    git(root, "commit", "-q", "--amend", "--allow-empty", "-m", "begin again")
    git(root, "checkout", "-q", "-b", "feature")

    assert not verdict(root, stated).held_back


def test_what_was_stated_again_elsewhere_holds_in_both_places(root: Path) -> None:
    first = on_branch(root)
    again = built(root, DECISION)
    both_places = replace(first, anchors=(*first.anchors, *again.anchors))

    assert not verdict(root, both_places).held_back


def test_a_shallow_clone_decides_only_what_it_can(root: Path, tmp_path: Path) -> None:
    old = built(root, f"{DECISION} {FILE}")
    save(root, "next")
    there = on_branch(root)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", root.as_uri(), str(shallow))
    git(shallow, "checkout", "-q", "-b", "mine")

    assert verdict(shallow, old) == AnchorStatus(FRESH)
    assert verdict(shallow, there).held_back == ""


def test_a_worktree_has_its_own_branch(root: Path, tmp_path: Path) -> None:
    stated = on_branch(root)
    other = tmp_path / "other"
    git(root, "worktree", "add", "-q", str(other), "feature")

    assert not verdict(other, stated).held_back
    assert verdict(root, stated).held_back


def test_a_detached_head_hides_nothing(root: Path) -> None:
    stated = on_branch(root)
    git(root, "checkout", "-q", "--detach", "main")

    assert verdict(root, stated) == AnchorStatus(UNKNOWN)
    assert built(root, FILE).anchors[0].branch == ""
    assert verdict(root, built(root, FILE)).state == FRESH


def test_a_submodule_is_a_checkout_of_its_own(root: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(root), "sub")
    save(outer, "sub")

    inside, above = built(outer / "sub", FILE), built(outer, "See sub/src/a.py.")
    edit("40", "41", "sub/src/a.py")(outer)

    assert verdict(outer / "sub", inside).state == CHANGED
    assert verdict(outer, above).state == CHANGED


def test_where_there_is_no_working_tree_nothing_is_checked(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(root), str(bare))
    plain = tmp_path / "plain"
    plain.mkdir()

    assert working_tree(str(bare)) is None
    assert working_tree(str(plain)) is None
    assert working_tree(str(tmp_path / "nowhere")) is None
    assert working_tree("") is None


def test_a_repository_without_a_commit_is_no_error(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    put(tmp_path, "src/a.py", CODE)

    assert verdict(tmp_path, built(tmp_path, FILE)).state == FRESH


def test_another_repository_proves_nothing(root: Path) -> None:
    git(root, "remote", "add", "origin", "https://github.com/ana/one.git")
    stated = built(root, FILE)
    git(root, "remote", "set-url", "origin", "https://github.com/ana/two.git")
    edit("40", "41")(root)

    assert verdict(root, stated).state == UNKNOWN


# ---------------------------------------------------------------- what was only noticed
def noticed(root: Path, text: str) -> AnchoredStatement:
    at = Anchors(branch="main", commit=git(root, "rev-parse", "HEAD"))
    return AnchoredStatement(text, "fact", datetime(2026, 3, 2, tzinfo=UTC), (at,))


def test_a_sentence_is_checked_by_what_git_had_of_its_files(root: Path) -> None:
    one, two, none = (noticed(root, f"See {name}.") for name in ("src/a.py", "src/b.py", "x/y.py"))
    edit("40", "41")(root)
    remove("src/b.py")(root)
    save(root, "change")

    assert verdict(root, one).note.startswith("src/a.py changed since 20")
    assert verdict(root, two).held_back == "src/b.py gone since 2026-03-02"
    assert verdict(root, none) == AnchorStatus(UNKNOWN)


def test_a_sentence_without_hashes_is_never_called_fresh(root: Path) -> None:
    edit("40", "41")(root)  # the statement is about this, which is never committed
    stated = noticed(root, "See src/a.py.")
    git(root, "checkout", "-q", ".")
    save(root, "next")

    assert verdict(root, stated).state == UNKNOWN


# ---------------------------------------------------------------- hundreds of edits
@dataclass
class Part:
    """A function as it is meant: what it does, and not how it is laid out."""

    name: str
    body: list[tuple[int, str]]
    """Lines, each with its depth."""
    decorator: str = ""
    blank: int = 0
    width: int = 4
    margin_note: bool = False
    """Whether a comment stands at the margin in the middle of it."""

    @property
    def meaning(self) -> tuple[object, ...]:
        return self.name, tuple(self.body), self.decorator, self.margin_note

    def python(self) -> str:
        lines = [f"@{self.decorator}"] if self.decorator else []
        lines.append(
            f"def {self.name}(\n    a,\n):" if len(self.body) % 2 else f"def {self.name}():"
        )
        for at, (depth, text) in enumerate(self.body):
            lines += [""] * (self.blank if at % 2 else 0)
            lines += ["# a note"] if self.margin_note and at == 1 else []
            lines.append(" " * self.width * (depth + 1) + text)
        return "\n".join(lines) + "\n"

    def script(self) -> str:
        lines = [f"export async function {self.name}(a) {{"]
        for at, (depth, text) in enumerate(self.body):
            lines += [""] * (self.blank if at % 2 else 0)
            lines += ["// a note"] if self.margin_note and at == 1 else []
            lines.append(" " * self.width * (depth + 1) + text)
        return "\n".join([*lines, "}"]) + "\n"


@dataclass
class Module:
    parts: list[Part] = field(default_factory=list)

    def text(self, suffix: str) -> str:
        return "\n\n".join(
            each.python() if suffix == "py" else each.script() for each in self.parts
        )

    def edit(self, random: Random) -> None:
        part = random.choice(self.parts)
        match random.randrange(9):
            case 0:
                part.body[random.randrange(len(part.body))] = (0, f"call_{random.randrange(999)}()")
            case 1:
                part.body.insert(random.randrange(len(part.body) + 1), (0, "more = 'it}'"))
            case 2 if len(part.body) > 1:
                part.body.pop(random.randrange(len(part.body)))
            case 3:
                self.parts.insert(random.randrange(len(self.parts)), new_part(random))
            case 4:
                random.shuffle(self.parts)
            case 5:
                part.blank, part.width = random.randrange(3), random.choice((2, 4, 8))
            case 6:
                part.name = f"{part.name}_x" if random.random() < 0.3 else part.name
            case 7:
                part.decorator = random.choice(("", "cached", "cached(1)"))
            case 8:
                at = random.randrange(len(part.body))
                part.body[at] = (1 - part.body[at][0] if at else 0, part.body[at][1])


BODIES = ('x = """\ntext }\n"""', "if a:  # don't", "y = `\n${a}\n`", "z = [1,", "]", "s = '\\''")


def new_part(random: Random) -> Part:
    body = [(0, f"step_{random.randrange(999)}(a)"), (1, random.choice(BODIES)), (0, "return a")]
    return Part(f"work_{random.randrange(10**6)}", body, margin_note=random.random() < 0.4)


def test_nothing_is_called_fresh_whose_span_changed(root: Path) -> None:
    random = Random(7)
    counts: Counter[str] = Counter()
    for number in range(400):
        suffix = ("py", "js")[number % 2]
        module = Module([new_part(random) for _ in range(random.randrange(1, 6))])
        part = random.choice(module.parts)
        put(root, f"src/m.{suffix}", module.text(suffix))
        stated, before = built(root, f"`{part.name}` in src/m.{suffix} works."), part.meaning
        name = part.name
        for _ in range(random.randrange(4)):
            module.edit(random)
        put(root, f"src/m.{suffix}", module.text(suffix))
        now = [each.meaning for each in module.parts if each.name == name]
        is_same = now == [before] or (
            suffix == "js" and [_plain(m) for m in now] == [_plain(before)]
        )
        found = verdict(root, stated).state
        counts[f"{found} {'same' if is_same else 'changed'}"] += 1
        assert is_same or found not in {FRESH, MOVED}, module.text(suffix)
    assert counts["fresh same"] + counts["moved same"] > 0.9 * (
        counts.total() - counts["changed changed"]
    )


def _plain(meaning: tuple[object, ...]) -> tuple[object, ...]:
    return meaning[0], meaning[1], meaning[3]


# ---------------------------------------------------------------- whole histories
@dataclass
class History:
    """A repository whose commits are made at random, and what its files mean."""

    root: Path
    random: Random
    files: dict[str, Module] = field(default_factory=dict)

    def commit(self) -> None:
        match self.random.randrange(10):
            case 0 | 1 if len(self.files) < 6:
                number = self.random.randrange(10**6)
                parts = [new_part(self.random) for _ in range(self.random.randrange(1, 5))]
                self.files[f"src/m{number}.{self.random.choice(('py', 'js'))}"] = Module(parts)
            case 2 if len(self.files) > 1:
                old = self.random.choice(list(self.files))
                new = f"lib/n{self.random.randrange(10**6)}.{old.rpartition('.')[2]}"
                rename(old, new)(self.root)
                self.files[new] = self.files.pop(old)
            case 3 if len(self.files) > 3:
                name = self.random.choice(list(self.files))
                del self.files[name]
                remove(name)(self.root)
            case _ if self.files:
                self.random.choice(list(self.files.values())).edit(self.random)
        for name, module in self.files.items():
            put(self.root, name, module.text(name.rpartition(".")[2]))
        save(self.root, "next")

    def statement(self) -> tuple[AnchoredStatement, str, str]:
        """Return a statement on a file, a function or lines; the file, and what it means of it."""
        name = self.random.choice(list(self.files))
        part = self.random.choice(self.files[name].parts).name
        last = (self.root / name).read_text().count("\n")
        line = self.random.randrange(1, max(2, last - 1))
        about = self.random.choice((name, f"`{part}` in {name}", f"{name}:{line}-{line + 1}"))
        stated = built(self.root, f"Mind {about}.")
        span = stated.anchors[0].spans[0]
        return stated, name, self.meant(span, name)

    def meant(self, span: FileAnchor, name: str) -> str:
        """Return what a file says of a span, by the model and not by a hash; empty if nothing."""
        if name not in self.files:
            return ""
        lines = (self.root / name).read_text().split("\n")
        if span.lines:
            return "\n".join(map(str.strip, lines[span.line - 1 :][: span.lines]))
        if span.symbol:
            parts = [each for each in self.files[name].parts if each.name == span.symbol]
            return repr([_plain(each.meaning) for each in parts]) if parts else ""
        return "\n".join(lines)


def replayed(root: Path, seed: int, commits: int) -> Counter[str]:
    """Return how often each verdict was given in a history, and how often one was wrong."""
    random = Random(seed)
    history, known, counts = (
        History(root, random),
        list[tuple[AnchoredStatement, str, str]](),
        Counter[str](),
    )
    for number in range(commits):
        history.commit()
        if history.files:
            known += [history.statement() for _ in range(2)]
        if number % 5 == 4:
            verdicts = tree(root).check([each for each, _, _ in known], ENOUGH)
            for (stated, name, meant), found in zip(known, verdicts, strict=True):
                counts[found.state] += 1
                now = history.meant(stated.anchors[0].spans[0], name)
                is_wrong = found.state == FRESH and now != meant
                counts["wrong"] += is_wrong
                counts["missed"] += found.state in {CHANGED, UNKNOWN} and now == meant
    return counts


@pytest.mark.parametrize("seed", range(4))
def test_in_a_history_nothing_is_called_fresh_whose_span_changed(root: Path, seed: int) -> None:
    counts = replayed(root, seed, 40)

    assert counts["wrong"] == 0
    assert min(counts[FRESH], counts[MOVED], counts[CHANGED]) > 0
    assert counts[UNKNOWN] == 0


# ---------------------------------------------------------------- hostile and large
@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "../../etc/passwd",
        "/etc/passwd",
        "src/link.py",
        "links/outside.py",
        "src/pipe.py",
    ],
)
def test_nothing_outside_of_the_checkout_is_read(root: Path, path: str) -> None:
    put(root.parent, "outside.py", "def parse():\n    return 1\n")
    (root / "src" / "link.py").symlink_to(root.parent / "outside.py")
    (root / "links").symlink_to(root.parent)
    os.mkfifo(root / "src" / "pipe.py")
    stated = built(root, f"See {path}, which matters.")

    assert [each.spans for each in stated.anchors] == [()]
    forged = Anchors("", "", "", "", (FileAnchor(path, "0" * 40),))
    assert verdict(root, replace(stated, anchors=(forged,))).state in {UNKNOWN, CHANGED}


def test_hostile_files_that_define_commands_are_passed_over(root: Path) -> None:
    with (root / "Makefile").open("wb") as file:
        file.truncate(1 << 30)
    put(root, "package.json", '{"scripts":' + "[" * 100_000)
    put(root, "pyproject.toml", "[project.scripts]\n" + "a" * 900_000)
    put(root, "justfile", "a" + " " * 900_000)
    began = monotonic()

    found = built(root, f"{RUN} Use npm run build, just ship, and poe docs.")

    assert found.anchors[0].commands == ()
    assert monotonic() - began < 2


def test_metadata_that_a_user_edited_is_no_error(root: Path) -> None:
    odd = {
        "spans": [{"path": 3}, 4, {"path": "src/a.py", "blob": "zz", "lines": 10**9, "line": -1}]
    }
    forged = anchors_of(odd | {"branch": "../../x", "commit": "--all", "commands": [{"text": ""}]})

    assert forged is not None
    assert verdict(root, AnchoredStatement(FILE, "fact", None, (forged,))).state != FRESH


def test_what_is_not_reached_in_time_is_unknown(root: Path) -> None:
    stated = built(root, FILE)
    edit("40", "41")(root)

    assert tree(root).check([stated], 0) == [AnchorStatus(UNKNOWN, "not checked")]


def test_the_time_is_looked_at_before_each_statement(root: Path) -> None:
    """Each look at the clock takes a millisecond; 100 are for what git is asked."""
    stated = built(root, FILE)
    looks = count()

    found = tree(root).check([stated] * 100, 0.15, lambda: next(looks) / 1000)

    states = [each.state for each in found]
    assert 0 < states.count(FRESH) < 50
    assert found == sorted(found, key=lambda each: each.state != FRESH)
    assert {each.note for each in found if each.state != FRESH} == {"not checked"}
    assert next(looks) < 300  # after the deadline, nothing but looks


def test_paths_without_hashes_are_not_looked_for_after_the_time(root: Path) -> None:
    texts = " and ".join(f"src/file{number}.py" for number in range(50))
    looks = count()
    bare = AnchoredStatement(f"See {texts}.", "fact", None, ())

    assert tree(root).check([bare], 0.005, lambda: next(looks) / 1000) == [
        AnchorStatus(UNKNOWN, "not checked")
    ]
    assert next(looks) < 20


def test_a_large_checkout_is_checked_in_time(root: Path) -> None:
    """10⁵ files in the index, of which git is asked for nothing; a file of 200 MB is not read."""
    blob = git(root, "rev-parse", "HEAD:src/b.py")
    listed = "".join(f"100644 {blob}\tpackages/p{n % 500}/file{n}.py\n" for n in range(100_000))
    index = root.parent / "listed"
    index.write_text(listed)
    os.system(f"cd {root} && git update-index --add --index-info < {index}")  # noqa: S605
    with (root / "huge.bin").open("wb") as file:
        file.truncate(200_000_000)
    gone = built(root, FILE)
    huge = built(root, "See huge.bin.")
    rename("src/a.py", "lib/reading.py")(root)
    lines = [gone, huge, *[built(root, "See src/b.py.")] * 98]
    began = monotonic()

    found = tree(root).check(lines, 1.0)

    assert (found[0].state, found[0].note) == (MOVED, "now lib/reading.py")
    assert found[1].state == UNKNOWN
    assert {each.state for each in found[2:]} == {FRESH}
    assert monotonic() - began < 1


# ---------------------------------------------------------------- git's answers
def test_answers_of_git_are_stored_and_bounded(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "hooks" / "ancestry.json"
    stated = on_branch(root)
    first = tree(root, cache).check([stated], ENOUGH)
    monkeypatch.setenv("PATH", "/nowhere")

    assert first == tree(root, cache).check([stated], ENOUGH)
    assert first[0].held_back
    assert "feature" not in cache.read_text()
    assert stated.anchors[0].commit not in cache.read_text()


def test_without_git_what_is_not_known_is_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = on_branch(root)
    monkeypatch.setenv("PATH", "/nowhere")

    assert verdict(root, stated) == AnchorStatus(UNKNOWN)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', "[" * 100_000])
def test_a_damaged_file_of_answers_is_created_again(root: Path, tmp_path: Path, text: str) -> None:
    cache = tmp_path / "ancestry.json"
    cache.write_text(text)

    assert tree(root, cache).check([on_branch(root)], ENOUGH)[0].held_back
    assert json.loads(cache.read_text())


def test_an_index_that_is_compressed_is_not_searched(root: Path) -> None:
    git(root, "update-index", "--index-version", "4")

    assert not Ancestry(GitCheckout(root / ".git", root / ".git"), None).can_search


# ---------------------------------------------------------------- words
def test_paths_symbols_and_commands_are_known_by_their_words() -> None:
    text = "Call `Reader.open()` of src/x/a.py:12-14, not lib/b.ts#L3; run `npm run lint:all`."

    found = {tuple(each) for each in spans.paths_in(text)}
    assert {("src/x/a.py", 12, 14), ("lib/b.ts", 3, 3)} <= found
    assert "open" in spans.symbols_in(text)
    assert [(each.text, each.name) for each in spans.commands_in(text)] == [
        ("npm run lint:all", "lint:all")
    ]
