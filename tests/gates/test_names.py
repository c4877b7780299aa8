"""Names by the glossary: one word for each idea, and one place for each name. Ratchets that only go down."""

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
MOST_AVOIDED = 0
"""How many functions, classes, parameters, variables and attributes have such a word in them."""
SHARED_MODULES: dict[str, int] = {}
"""Modules that share a name, `contract.py`, `__init__.py` and `__main__.py` aside."""
SHARED_CLASSES: set[str] = set()
"""Public classes that share a name."""
NOUNS_IN_ING = {"briefing", "hashing"}


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
        if AVOIDED.search(name)
    ]

    assert len(found) <= MOST_AVOIDED, "\n".join(found)


def test_a_module_name_exists_once() -> None:
    names = Counter(
        file.stem for file in FILES if file.stem not in {"contract", "__init__", "__main__"}
    )
    shared = {name: number for name, number in names.items() if number > 1}

    assert shared == SHARED_MODULES


def test_a_module_is_named_by_a_noun_or_a_verb() -> None:
    assert {file.stem for file in FILES if file.stem.endswith("ing")} <= NOUNS_IN_ING


def test_a_public_class_name_exists_once() -> None:
    names = Counter(
        node.name
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert {name for name, number in names.items() if number > 1} == SHARED_CLASSES
