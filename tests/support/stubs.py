"""Writes `async_memory.pyi`: the signatures of `Memory`, as `AsyncMemory` has them.

python -m tests.support.stubs          writes it
"""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import perdure.engine.async_memory
import perdure.engine.memory

STUB = Path(str(perdure.engine.async_memory.__file__)).with_suffix(".pyi")
_HEAD = """# Generated from the signatures of `Memory` by `make stubs`; do not edit.

import builtins
import threading
from collections.abc import AsyncIterator, Callable
from typing import Self
"""
_OWN = """    def __init__(self, memory: Memory | Callable[[], Memory]) -> None: ...
    @property
    def caller(self) -> RequestContext: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
"""


def stub() -> str:
    """Return the stub, formatted."""
    module = _Module("perdure.engine.memory")
    groups: dict[str, str] = {}
    mirrors = [
        _mirror(module, "AsyncPastMemory", ("ReadableMemory", "PastMemory"), groups),
        _mirror(module, "AsyncMemory", ("ReadableMemory", "Memory"), groups, _OWN),
    ]
    modules = {module.name: module}
    for group, home in groups.items():
        modules[home] = _Module(home)
        mirrors.insert(0, _mirror(modules[home], f"Async{group}", (group,), {}))
    body = "\n\n".join(mirrors)
    imports = dict.fromkeys(each for found in modules.values() for each in found.imports(body))
    lines = "\n".join((*imports, "from perdure.engine.memory import Memory"))
    return _formatted(f"{_HEAD}{lines}\n\n{body}\n")


class _Module:
    def __init__(self, name: str) -> None:
        self.name = name
        source = Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8")
        self._tree = ast.parse(source)
        self._imported = dict(self._imports())

    def _imports(self) -> Iterator[tuple[str, str]]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    yield alias.asname or alias.name, node.module
            elif isinstance(node, ast.ClassDef):
                yield node.name, self.name
        for node in self._tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                yield node.targets[0].id, self.name

    def home_of(self, name: str) -> str:
        return self._imported.get(name, self.name)

    def imports(self, body: str) -> Iterator[str]:
        """Yield an import of each name of this module that a text uses."""
        words = set(re.findall(r"\b[A-Za-z_]\w*\b", body))
        for name, module in sorted(self._imported.items()):
            if name in words and module.partition(".")[0] != "typing":
                yield f"from {module} import {name}"

    def methods(self, *classes: str) -> Iterator[ast.FunctionDef]:
        found = {node.name: node for node in self._tree.body if isinstance(node, ast.ClassDef)}
        for name in classes:
            for node in found[name].body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    yield node


def _mirror(
    module: _Module, name: str, classes: tuple[str, ...], groups: dict[str, str], own: str = ""
) -> str:
    methods = {method.name: method for method in module.methods(*classes)}
    lines = [_signature(module, each, groups) for each in methods.values()]
    return f"class {name}:\n{own}" + "".join(f"    {line}\n" for line in lines)


def _signature(module: _Module, method: ast.FunctionDef, groups: dict[str, str]) -> str:
    returns = _annotation(method.returns)
    if any(isinstance(each, ast.Name) and each.id == "property" for each in method.decorator_list):
        home = module.home_of(returns)
        if home.startswith("perdure.engine") and returns[0].isupper():
            groups[returns] = home
            returns = f"Async{returns}"
        return f"@property\n    def {method.name}(self) -> {returns}: ..."
    for each in (*method.args.args, *method.args.kwonlyargs):
        if isinstance(each.annotation, ast.Constant):
            each.annotation = ast.parse(str(each.annotation.value), mode="eval").body
    arguments = ast.unparse(method.args)
    returns = re.sub(r"\b(Past)?Memory\b", r"Async\1Memory", returns)
    returns = re.sub(r"\blist\[", "builtins.list[", returns)  # `list` is a verb there
    if returns.startswith("Iterator["):
        return f"def {method.name}({arguments}) -> Async{returns}: ..."
    return f"async def {method.name}({arguments}) -> {returns}: ..."


def _annotation(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "None" if node is None else ast.unparse(node)


def _formatted(text: str) -> str:
    for words in (("check", "--fix", "--select=I,F401"), ("format",)):
        command = [sys.executable, "-m", "ruff", *words, "--quiet", "--stdin-filename=x.pyi", "-"]
        text = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
