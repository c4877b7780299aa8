"""Packages that import a name when it is asked for offer what they say, and nothing else."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gates.test_imports import PACKAGE, modules_of

LAZY = sorted(
    name for name, source in modules_of(PACKAGE).items() if "__getattr__ = exports(" in source
)


def test_there_are_such_packages() -> None:
    assert {"perdure.artifacts", "perdure.model", "perdure.storage"} <= set(LAZY)


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_where_the_type_checker_looks_for_it(package: str) -> None:
    module = importlib.import_module(package)
    for name, source in _for_the_type_checker(Path(str(module.__file__))).items():
        assert getattr(module, name) is getattr(importlib.import_module(source), name)


@pytest.mark.parametrize("package", LAZY)
def test_what_is_offered_is_all_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert hasattr(module, name)


@pytest.mark.parametrize("package", LAZY)
def test_any_other_name_is_refused(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        module.nonsense  # noqa: B018 - asking is the point


@pytest.mark.parametrize("package", LAZY)
def test_importing_a_package_does_not_import_what_it_offers_later(package: str) -> None:
    file = Path(str(importlib.import_module(package).__file__))
    program = f"import sys, {package}; print(*sys.modules)"
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True, timeout=60
    )
    later = set(_for_the_type_checker(file).values())
    # What the contract of a backend is written with.
    needed = {"perdure.storage.changes", "perdure.storage.locator", "perdure.storage.personal"}
    assert not (later - needed) & set(done.stdout.split())


def _for_the_type_checker(file: Path) -> dict[str, str]:
    """Return the names that a module imports for the type checker alone, and from where."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for guard in guarded for node in guard.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
