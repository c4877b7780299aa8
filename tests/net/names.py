"""Public names with their signatures, as text in which a moved module changes nothing."""

import enum
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import import_module

import perdure

ANSWERS = (
    "perdure.engine.memory Memory PastMemory",
    "perdure.engine.recall.result RecallResult Hit",
    "perdure.engine.session_commit SessionCommit",
    "perdure.engine.restore UnmergeReport",
    "perdure.engine.restore RewindReport",
    "perdure.engine.erasure_plan ForgetReport",
    "perdure.transfer.export ExportReport",
    "perdure.engine.provenance Provenance",
    "perdure.storage.text_history Version BlamedLine",
)
"""What `perdure.open` gives, and what its verbs return: where each is, and its names."""
_OURS = re.compile(r"\bperdure(?:\.\w+)*\.(?=\w)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def public_packages() -> list[str]:
    """Return the packages that list what they offer."""
    found = pkgutil.walk_packages(perdure.__path__, "perdure.")
    names = ["perdure", *(each.name for each in found if each.ispkg)]
    return [name for name in names if hasattr(import_module(name), "__all__")]


def lines_of_packages() -> Iterator[str]:
    for package in public_packages():
        module = import_module(package)
        for name in sorted(module.__all__):
            yield from _lines(f"{package}.{name}", getattr(module, name))


def lines_of_answers() -> Iterator[str]:
    for each in ANSWERS:
        module, *names = each.split()
        for name in (name for name in names if name not in perdure.__all__):
            yield from _lines(name, getattr(import_module(module), name))


def lines_of_errors() -> Iterator[str]:
    yield from _tree(import_module("perdure.errors").PerdureError, 0)


def _tree(error: type, depth: int) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in error.__bases__)
    yield f"{'    ' * depth}{error.__name__}({bases})"
    children: list[type] = error.__subclasses__()
    for child in sorted(children, key=lambda child: child.__name__):
        if child.__module__ == error.__module__:
            yield from _tree(child, depth + 1)


def _lines(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})" if bases else f"class {name}"
        yield from (f"    {line}" for line in sorted(_members(value)))
    elif inspect.isfunction(value):
        yield f"def {name}{_signature(value)}"
    else:
        yield f"{name} = {_plain(repr(value))}"


def _members(cls: type) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield from (f"{each.name} = {each.value!r}" for each in cls)
    elif (signature := _signature(cls)) != "()":
        yield f"__init__{signature}"
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        if name.startswith("_") or not owner.__module__.startswith("perdure"):
            continue
        yield from _member(name, inspect.getattr_static(cls, name))


def _member(name: str, value: object) -> Iterator[str]:
    kind = "def"
    if isinstance(value, classmethod | staticmethod):
        kind, value = type(value).__name__, value.__func__
    if inspect.isfunction(value):
        yield f"{kind} {name}" if name.startswith("test_") else f"{kind} {name}{_signature(value)}"
    elif isinstance(value, property):
        returns = _signature(value.fget).partition("->")[2] if value.fget else ""
        yield f"{name}:{returns or ' property'}"
    elif not isinstance(value, enum.Enum):
        yield f"{name}: {'field' if inspect.isdatadescriptor(value) else 'attribute'}"


def _signature(value: Callable[..., object]) -> str:
    try:
        return _plain(str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"


def _plain(text: str) -> str:
    """Drop what a reader of the signature can't rely on: our modules, and addresses."""
    return _ADDRESS.sub("", _OURS.sub("", text))
