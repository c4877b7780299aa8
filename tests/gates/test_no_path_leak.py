"""No path crosses the seam: the gate finds nothing in what ships, and every leak it is shown."""

import ast
import inspect
import pkgutil
from pathlib import Path

import pytest

import perdure
import perdure.storage
from perdure.harness import repo_registry
from perdure.testing.requirement import requirement
from tests.support.gates import ROUTING_FUNCTIONS, SEAM_VERBS, PathLeak, path_leaks

PACKAGE = Path(perdure.__file__).parent
GUARDED = sorted(
    module for folder in ("storage", "harness") for module in (PACKAGE / folder).rglob("*.py")
)
"""The seam, and what routes to it."""


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def in_a_class(*lines: str) -> str:
    """Return a module with a backend whose body is `lines`; the first of them is line 9."""
    head = (
        "import os",
        "import pathlib",
        "import pathlib as p",
        "import typing",
        "from pathlib import Path, Path as P, PurePath, PurePosixPath",
        "from typing import Annotated, Literal, Optional",
        "",
        "class Backend:",
    )
    return "\n".join((*head, *(f"    {line}" for line in lines), ""))


RETURNED = (
    "Path",
    "P",
    "PurePath",
    "PurePosixPath",
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib.PureWindowsPath",
    "p.Path",
    "os.PathLike",
    "os.DirEntry[str]",
    "'Path'",
    "'pathlib.Path'",
)
NESTED = (
    "list[Path]",
    "Path | None",
    "None | Path",
    "Optional[Path]",
    "Optional['Path']",
    "'Optional[Path]'",
    "\"Optional['Path']\"",
    "typing.Union[str, Path]",
    "str | os.PathLike[str]",
    "dict[str, tuple[int, list[p.Path]]]",
    "typing.Callable[[], Path]",
    "typing.Callable[[Path], None]",
    "Annotated[Path, 'where it is']",
    "typing.Annotated['Path', 1]",
    "tuple[Literal['a'], Path]",
    "type[Path]",
    "typing.Iterator['list[Path]']",
)
HARMLESS = (
    "str",
    "'Locator'",
    "list[Locator]",
    "None",
    "PathFinder",
    "Literal['Path']",
    "typing.Literal['a', 'Path']",
    "Annotated[str, 'a Path, once', Path]",
    "typing.Annotated[str, Path]",
    "'this is no annotation'",
)


@requirement("001-gate-flags-path-return", "000-no-path-check-static")
@pytest.mark.parametrize("annotation", RETURNED)
def test_a_verb_that_returns_a_path_is_reported(annotation: str) -> None:
    source = in_a_class(f"def read(self, locator: str) -> {annotation}: ...")

    (leak,) = path_leaks(source, "leaky.py")

    assert leak.what.startswith("returns")
    assert annotation in leak.what
    assert (leak.file, leak.line, leak.verb) == ("leaky.py", 9, "read")


@requirement("001-gate-flags-nested-path")
@pytest.mark.parametrize("annotation", NESTED)
def test_a_path_is_found_however_deep_it_is_nested(annotation: str) -> None:
    source = in_a_class(f"def list(self, locator: str) -> {annotation}: ...")

    assert [leak.verb for leak in path_leaks(source, "leaky.py")] == ["list"]


@requirement("001-gate-reads-syntax")
@pytest.mark.parametrize("annotation", HARMLESS)
def test_an_annotation_that_is_no_path_is_not_reported(annotation: str) -> None:
    source = in_a_class(f"def read(self, locator: {annotation}) -> {annotation}: ...")

    assert path_leaks(source, "clean.py") == []


@pytest.mark.parametrize(
    "alias",
    [
        "Where = Path",
        "Where = Path | None",
        "Where = Inner = Path",
        "Where, Other = Path, str",
        "Where: typing.TypeAlias = 'Path'",
        "Where: object = list[pathlib.Path]",
        "Where = typing.NewType('Where', Path)",
        "Where = typing.TypeVar('Where', bound=Path)",
        "Place = Path\nPlaces = list[Place]\nWhere = Places | None",
        "Where = 'Place'\nPlace = os.PathLike",
        "class Where(Path): ...",
        "class Place(pathlib.PurePath): ...\nclass Where(Place): ...",
        "from pathlib import Path as Where",
        "from os import PathLike as Where",
        "from perdure.config import Path as Where",
        "if typing.TYPE_CHECKING:\n    from pathlib import PurePath as Where",
        "try:\n    Where = Path\nexcept NameError:\n    Where = str",
    ],
)
def test_a_path_under_another_name_is_reported(alias: str) -> None:
    source = f"{alias}\n{in_a_class('def info(self, locator: str) -> Where: ...')}"

    assert [leak.verb for leak in path_leaks(source, "leaky.py")] == ["info"]


def test_a_name_that_is_only_given_inside_the_class_is_followed() -> None:
    source = in_a_class("Where = Path", "def info(self, locator: str) -> Where: ...")

    assert [(leak.line, leak.verb) for leak in path_leaks(source, "leaky.py")] == [(10, "info")]


@pytest.mark.parametrize(
    "parameters",
    [
        "self, locator: Path",
        "self, locator: str, content: 'P'",
        "self, locator: Path, /",
        "self, *locators: Path",
        "self, *, expect: Path | None = None",
        "self, **options: list[Path]",
        "self, locator",
        "self, *locators",
        "self, *, expect=None",
        "self, **options",
    ],
)
def test_a_parameter_that_is_or_could_hide_a_path_is_reported(parameters: str) -> None:
    source = in_a_class(f"def write({parameters}) -> str: ...")

    assert [(leak.line, leak.verb) for leak in path_leaks(source, "leaky.py")] == [(9, "write")]


def test_a_verb_without_a_return_annotation_is_reported() -> None:
    source = in_a_class("def read(self, locator: str):", "    return Path(locator)")

    (leak,) = path_leaks(source, "leaky.py")

    assert (leak.line, leak.verb) == (9, "read")
    assert "no return annotation" in leak.what


def test_a_static_verb_has_no_self_to_leave_out() -> None:
    static = in_a_class("@staticmethod", "def read(locator) -> str: ...")
    bound = in_a_class("@classmethod", "def read(cls) -> str: ...")

    assert [leak.verb for leak in path_leaks(static, "leaky.py")] == ["read"]
    assert path_leaks(bound, "clean.py") == []


@pytest.mark.parametrize(
    "lines",
    [
        ("read = _read_path",),
        ("read, other = _read_path, None",),
        ("read: Path",),
        ("read: typing.Callable[[str], Path] = _read_path",),
    ],
)
def test_a_verb_that_is_assigned_says_nothing_of_paths(lines: tuple[str, ...]) -> None:
    (leak,) = path_leaks(in_a_class(*lines), "leaky.py")

    assert (leak.line, leak.verb) == (9, "read")


def test_a_verb_that_is_assigned_with_a_harmless_annotation_is_not_reported() -> None:
    source = in_a_class("capabilities: Capabilities = Capabilities(sync=True)")

    assert path_leaks(source, "clean.py") == []


@pytest.mark.parametrize(
    "lines",
    [
        ("async def read(self) -> Path: ...",),
        ("@property", "def read(self) -> Path: ..."),
        ("if True:", "    def read(self) -> Path: ..."),
        ("try:", "    pass", "except OSError:", "    def read(self) -> Path: ..."),
        ("class Inner:", "    def read(self) -> Path: ..."),
        ("def make(self) -> object:", "    class Inner:", "        def read(self) -> Path: ..."),
    ],
)
def test_a_verb_is_found_wherever_a_class_defines_it(lines: tuple[str, ...]) -> None:
    assert [leak.verb for leak in path_leaks(in_a_class(*lines), "leaky.py")] == ["read"]


@pytest.mark.parametrize("verb", sorted(SEAM_VERBS))
def test_every_verb_of_the_seam_is_watched(verb: str) -> None:
    source = in_a_class(f"def {verb}(self) -> Path: ...")

    assert [leak.verb for leak in path_leaks(source, "leaky.py")] == [verb]


def test_every_public_member_of_the_contract_is_watched_except_its_factory() -> None:
    public = {name for name in vars(perdure.storage.StorageBackend) if not name.startswith("_")}

    assert public - {"from_options"} == SEAM_VERBS


@requirement("001-gate-covers-routing")
@pytest.mark.parametrize("function", sorted(ROUTING_FUNCTIONS))
def test_every_routing_function_is_watched(function: str) -> None:
    leaky = f"if True:\n    def {function}(backend: Backend) -> dict[str, Path]: ...\n"
    clean = f"def {function}(backend: Backend) -> Locator: ...\n"
    unannotated = f"def {function}(backend) -> Locator: ...\n"

    assert [(leak.line, leak.verb) for leak in path_leaks(leaky, "leaky.py")] == [(2, function)]
    assert [(leak.line, leak.verb) for leak in path_leaks(unannotated, "x.py")] == [(1, function)]
    assert path_leaks(clean, "clean.py") == []


@requirement("001-gate-covers-routing")
def test_every_routing_function_is_there_to_be_watched() -> None:
    """One that was renamed would be watched by nobody."""
    routing = [module for module in GUARDED if name_of(module).startswith("harness/")]
    trees = [ast.parse(module.read_text(encoding="utf-8")) for module in routing]
    defined = {node.name for tree in trees for node in tree.body if hasattr(node, "name")}

    assert defined >= ROUTING_FUNCTIONS


@requirement("001-gate-covers-routing")
def test_every_public_function_of_the_repository_registry_is_watched() -> None:
    public = {
        name
        for name, function in vars(repo_registry).items()
        if inspect.isfunction(function)
        and function.__module__ == repo_registry.__name__
        and not name.startswith("_")
    }

    assert public <= ROUTING_FUNCTIONS


def test_functions_that_are_neither_verb_nor_routing_are_left_alone() -> None:
    source = in_a_class(
        "def _root_of(self, key) -> Path:",
        "    def read(key) -> Path: ...",  # inside a body
        "    return read(key)",
        "def register_repo(self) -> Path: ...",  # a routing name, but in a class
    )
    source += "def read(where: Path) -> Path: ...\n"  # a verb's name, but outside of a class

    assert path_leaks(source, "clean.py") == []


@requirement("001-gate-allows-path-in-body", "000-path-inside-backend-allowed")
def test_a_path_in_the_body_of_a_verb_is_not_reported() -> None:
    source = in_a_class(
        "def read(self, locator: str) -> str:",
        "    path: Path = Path(self._root) / locator",
        "    def inside(where: Path) -> Path:",
        "        return where",
        "    return inside(path).read_text()",
    )

    assert path_leaks(source, "clean.py") == []


@requirement("001-gate-reads-syntax")
def test_the_word_in_a_comment_or_a_docstring_is_not_reported() -> None:
    source = in_a_class(
        "def read(self, locator: str) -> str:  # -> Path",
        "    '''Return the text, never a Path: not `-> Path`.'''",
        "    # def read(self) -> Path:",
        "    return 'def read(self) -> Path: ...'",
    )

    assert path_leaks(source, "clean.py") == []


def test_every_leak_of_a_module_is_reported_in_order() -> None:
    source = in_a_class(
        "def write(self, locator: Path, content) -> Path: ...",
        "def read(self, locator: str) -> str: ...",
        "def mkdir(self, locator: str): ...",
    )

    assert [(leak.line, leak.verb) for leak in path_leaks(source, "leaky.py")] == [
        (9, "write"),
        (9, "write"),
        (9, "write"),
        (11, "mkdir"),
    ]


def test_a_leak_is_shown_as_file_line_verb_and_what_to_do() -> None:
    (leak,) = path_leaks(in_a_class("def read(self) -> Path: ..."), "leaky.py")

    assert leak == PathLeak("leaky.py", 9, "read", leak.what)
    assert str(leak) == "leaky.py:9: read returns 'Path', a path. Fix: return a Locator."


@requirement("001-gate-scans-every-storage-module")
def test_the_gate_reads_every_module_of_the_seam() -> None:
    package = perdure.storage
    modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    names = {module.name.removeprefix("perdure.").replace(".", "/") for module in modules}
    read = {name_of(module).removesuffix(".py").removesuffix("/__init__") for module in GUARDED}

    assert names <= read
    assert {"storage/device_local", "storage/vault"} <= names


@requirement("001-gate-scans-every-storage-module", "000-no-path-crosses-seam")
@pytest.mark.parametrize("module", GUARDED, ids=name_of)
def test_no_verb_of_a_shipped_module_lets_a_path_through(module: Path) -> None:
    source = module.read_text(encoding="utf-8")

    assert path_leaks(source, name_of(module)) == []


@requirement("001-gate-flags-path-return")
@pytest.mark.parametrize("module", GUARDED, ids=name_of)
def test_a_leak_that_is_added_to_a_shipped_module_is_reported(module: Path) -> None:
    leak = "\n\nclass Leak:\n    def read(self) -> 'Path': ...\n"
    source = module.read_text(encoding="utf-8") + leak

    assert [(leak.file, leak.verb) for leak in path_leaks(source, name_of(module))] == [
        (name_of(module), "read")
    ]
