"""Rules that source code keeps, checked without running it."""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

SEAM_VERBS = frozenset(
    {
        "resolve",
        "read",
        "read_all",
        "write",
        "remove",
        "list",
        "exists",
        "info",
        "mkdir",
        "capabilities",
        "conflict_strategy",
        "defers_sync",
        "derived_maintenance",
        "saved",
        "earlier",
        "findings",
        "first",
        "identity",
        "is_past",
        "scan",
        "sync",
        "whereabouts",
        "write_all",
        "write_personal",
        "write_unsynced",
    }
)
"""What crosses the seam, in any class."""

ROUTING_FUNCTIONS = frozenset(
    {
        "find_repo",
        "harness_state_dir",
        "list_repos",
        "project_locator",
        "project_root",
        "read_state_file",
        "register_repo",
        "registry_locator",
        "remote_of",
        "resolve_project",
        "roots_of",
        "unregister_repo",
        "write_state_file",
    }
)
"""What crosses the seam from above it, at the top of a module."""

PATH_TYPES = frozenset(
    {
        "Path",
        "PurePath",
        "PosixPath",
        "PurePosixPath",
        "WindowsPath",
        "PureWindowsPath",
        "PathLike",
        "DirEntry",
        "StrPath",
        "BytesPath",
        "StrOrBytesPath",
    }
)
"""What an operating system takes for a path, whichever module it was imported from."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class PathLeak:
    """A place where a path crosses the seam, or could without anybody seeing it."""

    file: str
    line: int
    verb: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.verb} {self.what}"


def path_leaks(source: str, file: str) -> list[PathLeak]:
    """Return where the verbs and routing functions of a module let a path through.

    Only signatures count: a file backend may use `Path` in its bodies as it likes. A signature
    that doesn't say what it takes or returns is reported too, because it could hide a path.
    """
    tree = ast.parse(source, file)
    path_types = _path_types(tree)
    leaks = [
        PathLeak(file, line, verb, what)
        for verb, definition, first in _on_the_seam(tree)
        for line, what in _faults(definition, first, path_types)
    ]
    return sorted(leaks, key=lambda leak: leak.line)


# ---------------------------------------------------------------- what is on the seam


def _on_the_seam(tree: ast.Module) -> Iterator[tuple[str, ast.AST, int]]:
    """Yield each name on the seam, its definition, and its first parameter that is not `self`."""
    for node in _scope(tree):
        yield from ((name, node, 0) for name in _defined(node) if name in ROUTING_FUNCTIONS)
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            for node in _scope(owner):
                first = 0 if _is_static(node) else 1
                yield from ((name, node, first) for name in _defined(node) if name in SEAM_VERBS)


def _scope(owner: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in the body of `owner`, also below an `if` or a `try`."""
    for node in ast.iter_child_nodes(owner):
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            yield from _scope(node)


def _defined(node: ast.AST) -> list[str]:
    return [node.name] if isinstance(node, _Function) else _assigned(node)


def _assigned(node: ast.AST) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    names = (name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]


def _is_static(node: ast.AST) -> bool:
    return isinstance(node, _Function) and any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
        for decorator in node.decorator_list
    )


# ---------------------------------------------------------------- what is wrong with it


def _faults(
    definition: ast.AST, first: int, path_types: Collection[str]
) -> Iterator[tuple[int, str]]:
    if isinstance(definition, _Function):
        yield from _parameter_faults(definition.args, first, path_types)
        yield from _return_faults(definition, path_types)
    elif isinstance(definition, ast.AnnAssign):
        if _mentions(definition.annotation, path_types):
            yield definition.lineno, f"is {_shown(definition.annotation)}. Fix: use a Locator."
    elif isinstance(definition, ast.Assign):
        yield definition.lineno, "is assigned, which can hide a path. Fix: define or annotate it."


def _parameter_faults(
    arguments: ast.arguments, first: int, path_types: Collection[str]
) -> Iterator[tuple[int, str]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    starred = [given for given in (arguments.vararg, arguments.kwarg) if given is not None]
    for parameter in [*positional[first:], *arguments.kwonlyargs, *starred]:
        if parameter.annotation is None:
            what = f"takes {parameter.arg} without an annotation, which can hide a path"
            yield parameter.lineno, f"{what}. Fix: annotate it."
        elif _mentions(parameter.annotation, path_types):
            what = f"takes {parameter.arg}: {_shown(parameter.annotation)}"
            yield parameter.lineno, f"{what}. Fix: take a Locator."


def _return_faults(function: _Function, path_types: Collection[str]) -> Iterator[tuple[int, str]]:
    if function.returns is None:
        what = "has no return annotation, which can hide a path"
        yield function.lineno, f"{what}. Fix: annotate it."
    elif _mentions(function.returns, path_types):
        yield function.lineno, f"returns {_shown(function.returns)}. Fix: return a Locator."


def _shown(annotation: ast.expr) -> str:
    return f"{ast.unparse(annotation)!a}, a path"


# ---------------------------------------------------------------- what is a path


def _path_types(tree: ast.Module) -> Collection[str]:
    """Return every name that stands for a path type in this module, aliases included."""
    meanings = [found for node in ast.walk(tree) for found in _meanings(node)]
    names = set(PATH_TYPES)
    while aliases := {n for n, meaning in meanings if n not in names and _mentions(meaning, names)}:
        names |= aliases
    return names


def _meanings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a statement gives a name to."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, ast.Name(alias.name)
    elif isinstance(node, ast.ClassDef):
        for base in node.bases:
            yield node.name, base
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for name in _assigned(node):
            yield name, node.value


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    """Whether a type holds one of `names`, however deep."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Constant(value=str(text)):
            return any(_mentions(meant, names) for meant in _parsed(text))
        case ast.Subscript(value=ast.Name(id=form) | ast.Attribute(attr=form), slice=inside):
            return form in names or any(_mentions(m, names) for m in _types_in(form, inside))
        case _:
            return any(_mentions(child, names) for child in ast.iter_child_nodes(node))


def _parsed(annotation: str) -> list[ast.expr]:
    try:
        return [ast.parse(annotation.strip(), mode="eval").body]
    except SyntaxError:  # then it is a sentence, and no type
        return []


def _types_in(form: str, inside: ast.expr) -> list[ast.expr]:
    """Return the types between the brackets; a literal or a remark is none."""
    if form == "Literal":
        return []
    if form == "Annotated" and isinstance(inside, ast.Tuple):
        return inside.elts[:1]
    return [inside]
