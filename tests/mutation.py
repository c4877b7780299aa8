"""Change the code of the artifact store and the seam in one place at a time, and run its tests."""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("artifacts", "storage")

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SUMS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


class Mutant(NamedTuple):
    file: str
    """Below src/perdure."""
    place: int
    """Which of the places of the file that can be changed."""
    name: str

    @property
    def package(self) -> str:
        return self.file.partition("/")[0]


def mutants(root: Path) -> Iterator[Mutant]:
    """Return every change that can be made to the packages below `root`."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for place, node in enumerate(_places(tree)):
                before = ast.unparse(node)
                name = f"{file}:{node.lineno}: {before} -> {ast.unparse(_changed(node))}"
                yield Mutant(file, place, name.replace("\n", " "))


def changed_source(source: str, place: int) -> str:
    """Return the source with one of its places changed."""
    tree = ast.parse(source)
    node = list(_places(tree))[place]
    changed = _changed(node)

    class Replacing(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> ast.AST:
            found: ast.AST = changed if visited is node else self.generic_visit(visited)
            return found

    return ast.unparse(ast.fix_missing_locations(Replacing().visit(tree)))


def survivors(seed: int, done: set[str], until: float) -> Iterator[tuple[str, bool]]:
    """Try mutants in an order made from `seed`; return each one's name, and whether it lived."""
    source = REPOSITORY / "src" / "perdure"
    chosen = [mutant for mutant in mutants(source) if mutant.name not in done]
    Random(seed).shuffle(chosen)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "perdure"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in chosen:
            if time.time() > until:
                return
            path = copy / mutant.file
            whole = path.read_text(encoding="utf-8")
            path.write_text(changed_source(whole, mutant.place), encoding="utf-8")
            yield mutant.name, _passes(mutant.package, Path(folder))
            path.write_text(whole, encoding="utf-8")


def _passes(package: str, source: Path) -> bool:
    command = ("-m", "pytest", "-q", "-x", "-n", "2", "--tier=test", f"tests/{package}")
    ran = subprocess.run(
        (sys.executable, *command, "-o", "timeout=60"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return ran.returncode == 0


def _places(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
                yield node
            case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.BoolOp():
                yield node
            case ast.UnaryOp(op=ast.Not()):
                yield node
            case ast.Constant(value=bool() | int()):
                yield node


def _changed(node: ast.expr) -> ast.expr:
    match node:
        case ast.Compare(left, [operator], right):
            return ast.Compare(left, [_COMPARISONS[type(operator)]()], right)
        case ast.BinOp(left, operation, right):
            return ast.BinOp(left, _SUMS[type(operation)](), right)
        case ast.BoolOp(junction, values):
            return ast.BoolOp(ast.Or() if isinstance(junction, ast.And) else ast.And(), values)
        case ast.UnaryOp(_, operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() as number):
            return ast.Constant(number + 1)
    raise AssertionError(f"{node} can't be changed")
