"""The size of each package: a ratchet that only goes down.

Raising a number needs a decision record, named in a comment beside the number.
"""

import ast
import subprocess
import sys
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


BUDGETS = {
    "": Size(3_761, 13, 108, 184),
    "agents": Size(4_391, 17, 43, 150),
    "app": Size(2_701, 11, 13, 94),
    "artifacts": Size(6_639, 20, 80, 188),
    "context": Size(5_049, 14, 33, 145),
    "engine": Size(22_091, 65, 241, 631),
    "harness": Size(2_029, 8, 16, 84),
    "index": Size(4_537, 15, 36, 254),
    "llm": Size(1_596, 8, 24, 51),
    "model": Size(3_108, 13, 39, 136),
    "process": Size(570, 6, 2, 21),
    "proofs": Size(663, 3, 9, 20),
    "safety": Size(1_288, 5, 13, 59),
    "storage": Size(5_934, 19, 69, 180),
    "surfaces": Size(7_131, 57, 15, 217),
    "testing": Size(4_244, 22, 29, 127),
    "transfer": Size(5_056, 22, 58, 131),
}
"""The modules beside the packages are `""`."""
MOST_LINES = 76_544
MOST_FILES = 296
MOST_CLASSES = 799
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
    # Record 0108: the freshness of statements moved here; the budget of `engine` did not rise.
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= 3_598


MOST_LOADED = 78
_RECALL = """
import sys, perdure
with perdure.open(home=sys.argv[1]) as memory:
    assert memory.recall("Which tea?").hits
print(sum(name.partition(".")[0] == "perdure" for name in sys.modules))
"""


def test_a_recall_loads_no_more_of_our_modules_than_before(tmp_path: Path) -> None:
    with perdure.open(home=tmp_path) as memory:
        memory.save("Prefers green tea.", category="preference", slug="tea")
        memory.recall("tea")
    command = [sys.executable, "-c", _RECALL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert int(done.stdout) <= MOST_LOADED
