"""The size of each package: a ratchet that only goes down.

Raising a number needs a decision record, named in a comment beside the number.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

import perdure

PACKAGE = Path(perdure.__file__).parent


class Size(NamedTuple):
    lines: int
    """Blank lines and docstrings included."""
    files: int
    classes: int
    names: int
    """Functions, classes and constants of modules that do not begin with an underscore."""


BUDGETS = {}
"""The modules beside the packages are `""`."""
MOST_LINES = 0
MOST_FILES = 299
MOST_CLASSES = 0
"""Of everything but `testing`."""


def size_of(package: str) -> Size:
    folder = PACKAGE / package
    files = [*(folder.rglob("*.py") if package else folder.glob("*.py"))]
    texts = [file.read_text(encoding="utf-8") for file in files]
    trees = [ast.parse(text) for text in texts]
    return Size(
        sum(len(text.splitlines()) for text in texts),
        len(files),
        sum(isinstance(node, ast.ClassDef) for tree in trees for node in ast.walk(tree)),
        sum(not name.startswith("_") for tree in trees for name in _defined(tree)),
    )


def _defined(tree: ast.Module) -> list[str]:
    found = []
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.append(name)
    return found


@pytest.mark.parametrize("package", BUDGETS)
def test_a_package_is_no_larger_than_its_budget(package: str) -> None:
    size, budget = size_of(package), BUDGETS[package]
    larger = {
        name: f"{value} > {most}"
        for name, value, most in zip(Size._fields, size, budget, strict=True)
        if value > most
    }

    assert not larger


def test_every_package_has_a_budget() -> None:
    packages = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}

    assert BUDGETS.keys() == packages | {""}


def test_everything_but_the_suites_is_no_larger_than_its_budget() -> None:
    sizes = [size_of(package) for package in BUDGETS if package != "testing"]

    assert sum(size.lines for size in sizes) <= MOST_LINES
    assert sum(size.files for size in sizes) <= MOST_FILES
    assert sum(size.classes for size in sizes) <= MOST_CLASSES


def test_learning_keeps_to_its_budget_with_its_tables() -> None:
    files = [file for file in (PACKAGE / "engine" / "learn").iterdir() if file.is_file()]
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= 3_421
