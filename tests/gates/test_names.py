"""Names by the glossary: one word for each idea, and one place for each name."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import perdure

PACKAGE = Path(perdure.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
AVOIDED = re.compile(
    r"(?:^|_)(?:told|said|kept|made|wishes|standing|way|shelf|joint|turn|means|parts|somebody)(?:_|$)"
    r"|(?:Told|Said|Kept|Made|Wishes|Standing|Way|Shelf|Joint|Turn|Means|Parts|Somebody)(?![a-z])"
)
SEED = {"parts", "test_resolve_joins_its_parts", "test_resolve_without_parts_is_the_root"}
"""`resolve(*parts)`, `child(*parts)` and `Locator.parts` are names of the specification."""
MANY = {"__init__", "__main__", "contract"}
NOUNS_IN_ING = {"briefing"}


def names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_identifiers_have_no_avoided_word() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in FILES
        for name in names_in(parsed(file))
        if AVOIDED.search(name) and name not in SEED
    ]

    assert not found


def test_a_module_name_exists_once() -> None:
    """A module of a command has the name of the command, which is often that of a verb."""
    files = [file for file in FILES if file.parent.name != "cli"]
    names = Counter(file.stem for file in files)

    assert {name for name, number in names.items() if number > 1} <= MANY


def test_a_module_is_named_by_a_noun_or_a_verb() -> None:
    assert {file.stem for file in FILES if file.stem.endswith("ing")} <= NOUNS_IN_ING


def test_a_public_class_name_exists_once() -> None:
    names = Counter(
        node.name
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert {name for name, number in names.items() if number > 1} == set()
