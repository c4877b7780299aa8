"""Who may import whom: the contracts bite, and the seam needs nothing but Python."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import perdure
import perdure.storage
from perdure.testing.requirement import requirement

PACKAGE = Path(perdure.__file__).parent
SOURCE = PACKAGE.parent
REPOSITORY = Path(__file__).parents[2]

DATABASES = frozenset(
    {"apsw", "chromadb", "dbm", "duckdb", "faiss", "lmdb", "numpy", "psycopg", "shelve", "sqlite3"}
    | {"sqlalchemy", "sqlite_vec", "usearch"}
)
"""Of the standard library or not: none of these has a place in the seam."""


def modules_of(package: Path) -> dict[str, str]:
    """Return the modules of a package below the source folder: dotted name to text."""
    return {_dotted(file): file.read_text(encoding="utf-8") for file in package.rglob("*.py")}


def _dotted(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(source: str) -> Iterator[str]:
    """Yield whatever a module imports, also inside its functions, as dotted names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import hides where it leads"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph_of(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Return which of the modules each of them imports."""
    return {
        name: {_longest_module(imported, modules) for imported in imports_of(source)} - {""}
        for name, source in modules.items()
    }


def _longest_module(imported: str, modules: Mapping[str, str]) -> str:
    while imported and imported not in modules:
        imported = imported.rpartition(".")[0]
    return imported


HISTORY = (
    "perdure.storage.text_history",
    "perdure.storage.committer",
    "perdure.storage.stamps",
    "perdure.storage.reconciliation",
    "perdure.storage.redo",
    "perdure.storage.recorded",
)
"""Where the seam meets the artifact store, which needs packages, or what is derived."""


@pytest.fixture(scope="module")
def seam() -> dict[str, str]:
    return modules_of(PACKAGE / "storage")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the package that a test may spoil."""
    shutil.copytree(PACKAGE, tmp_path / "perdure", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path / "perdure"


def lint_imports(copy: Path) -> tuple[int, str]:
    """Check the import contracts of a copy; the folder we start in is the first on the path."""
    command = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        (command, "--no-cache", "--no-logo"),
        cwd=copy.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


class TestContract:
    def test_the_package_as_it_is_keeps_the_contract(self, copy: Path) -> None:
        code, told = lint_imports(copy)

        assert code == 0, told
        assert "KEPT" in told

    @pytest.mark.parametrize(
        ("module", "line", "told_of"),
        [
            ("storage/oops.py", "import perdure.surfaces", "perdure.surfaces"),
            ("storage/oops.py", "from perdure import config", "perdure.config"),
            ("proofs/oops.py", "import perdure.storage", "perdure.storage"),
            ("safety/oops.py", "import perdure.llm", "perdure.llm"),
            ("storage/oops.py", "from perdure.app import open_storage", "perdure.app"),
            ("config/oops.py", "import perdure.app", "perdure.app"),
            ("app/oops.py", "import perdure.testing.requirement", "perdure.testing"),
            ("surfaces/oops.py", "import perdure.testing", "perdure.testing"),
            ("errors/oops.py", "import perdure.storage.locator", "perdure.storage"),
            ("harness/oops.py", "import perdure.app", "perdure.app"),
            ("harness/oops.py", "import perdure.engine", "perdure.engine"),
            ("llm/oops.py", "import perdure.engine", "perdure.engine"),
            ("process/oops.py", "import perdure.surfaces", "perdure.surfaces"),
        ],
    )
    @requirement("001-no-import-cycle")
    def test_an_import_upwards_or_sideways_breaks_it(
        self, copy: Path, module: str, line: str, told_of: str
    ) -> None:
        make_package(copy / Path(module).parts[0])
        (copy / module).write_text(f"{line}\n", encoding="utf-8")

        code, told = lint_imports(copy)

        assert code == 1, told
        assert "BROKEN" in told
        assert told_of in told

    @requirement("001-no-import-cycle")
    def test_an_import_upwards_inside_a_function_breaks_it(self, copy: Path) -> None:
        lazily = "def oops() -> None:\n    import perdure.app\n"
        (copy / "storage" / "oops.py").write_text(lazily, encoding="utf-8")

        code, told = lint_imports(copy)

        assert code == 1, told
        assert "perdure.storage.oops -> perdure.app" in told

    @pytest.mark.parametrize("module", ["engine", "context", "app", "harness", "storage"])
    @requirement("002-one-way-dependency")
    def test_memory_that_imports_the_process_seam_breaks_it(self, copy: Path, module: str) -> None:
        line = "from perdure.process import recall_here\n"
        (copy / module / "oops.py").write_text(line, encoding="utf-8")

        code, told = lint_imports(copy)

        assert code == 1, told
        assert f"perdure.{module}.oops -> perdure.process" in told

    @pytest.mark.parametrize(
        "line",
        [
            "from perdure.storage.vault import VaultBackend",
            "def oops() -> None:\n    import perdure.storage.device_local",
            "import perdure.storage.recorded",
        ],
    )
    @requirement("001-routing-imports-no-backend")
    def test_routing_that_imports_a_backend_breaks_it(self, copy: Path, line: str) -> None:
        (copy / "harness" / "oops.py").write_text(f"{line}\n", encoding="utf-8")

        code, told = lint_imports(copy)

        assert code == 1, told
        assert "Routing names no concrete backend, nor what is around one BROKEN" in told

    @pytest.mark.parametrize(
        "line",
        [
            "from perdure.engine.memory import Memory",
            "def oops() -> None:\n    import perdure.storage.text_history",
            "from perdure.context.reader import NodeReader",
        ],
    )
    def test_a_surface_that_reaches_past_the_facade_breaks_it(self, copy: Path, line: str) -> None:
        (copy / "surfaces" / "oops.py").write_text(f"{line}\n", encoding="utf-8")

        code, told = lint_imports(copy)

        assert code == 1, told
        assert "Surfaces reach memory through the façade BROKEN" in told

    @pytest.mark.parametrize("name", ["utils.py", "helpers/__init__.py"])
    def test_a_part_without_a_layer_breaks_it(self, copy: Path, name: str) -> None:
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).touch()

        code, told = lint_imports(copy)

        assert code == 1, told
        assert "exhaustive" in told
        assert f"perdure.{Path(name).parts[0].removesuffix('.py')}" in told


INSIDES = frozenset({"open_context", "_parts"})
"""What would give a surface the parts of a memory."""


def insides_in(source: str) -> set[str]:
    """Return which insides of a memory a module names."""
    nodes = list(ast.walk(ast.parse(source)))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imported = {a.name for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names}
    return (attributes | imported) & INSIDES


def test_no_surface_takes_the_parts_of_a_memory() -> None:
    surfaces = modules_of(PACKAGE / "surfaces")
    found = {name: insides_in(source) for name, source in surfaces.items()}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source", ["from perdure.app import open_context", "def f(m):\n    return m._parts.nodes"]
)
def test_one_that_does_is_found(source: str) -> None:
    assert insides_in(source)


def make_package(place: Path) -> None:
    """Make a package out of a module, so that another module can be put into it."""
    module = place.with_suffix(".py")
    if module.is_file():
        place.mkdir()
        module.rename(place / "__init__.py")


class TestSeam:
    @requirement("001-seam-imports-nothing-external")
    def test_the_seam_imports_only_python_and_perdure(self, seam: Mapping[str, str]) -> None:
        allowed = sys.stdlib_module_names | {"perdure"}

        assert foreign_imports(seam, allowed) == []

    @requirement("000-seam-imports-no-database", "000-registry-imports-no-fsspec-nor-database")
    def test_the_seam_imports_no_database(self, seam: Mapping[str, str]) -> None:
        allowed = (sys.stdlib_module_names | {"perdure"}) - DATABASES

        assert "perdure.storage.registry" in seam
        assert foreign_imports(seam, allowed) == []

    @pytest.mark.parametrize(
        "line",
        ["import fsspec", "import sqlite3", "from fsspec.registry import x", "import numpy.linalg"],
    )
    def test_a_foreign_import_is_found(self, seam: Mapping[str, str], line: str) -> None:
        spoiled = {**seam, "perdure.storage.oops": f"def oops():\n    {line}\n"}
        allowed = (sys.stdlib_module_names | {"perdure"}) - DATABASES

        assert len(foreign_imports(spoiled, allowed)) == 1

    @requirement("001-seam-imports-nothing-external", "000-seam-imports-no-database")
    def test_the_seam_works_where_no_package_is_installed(self, seam: Mapping[str, str]) -> None:
        program = (
            "import importlib, sys; sys.path.append(sys.argv[1])\n"
            "for name in sys.argv[2:]: importlib.import_module(name)\n"
            "print(*{name.partition('.')[0] for name in sys.modules})"
        )
        plain = [name for name in seam if not name.startswith(HISTORY)]
        command = (sys.executable, "-I", "-S", "-c", program, str(SOURCE), *plain)
        run = subprocess.run(command, capture_output=True, text=True, check=False)

        assert run.returncode == 0, run.stderr
        loaded = set(run.stdout.split())
        assert "perdure" in loaded
        assert not loaded & (DATABASES | {"fsspec"})

    @requirement("001-no-import-cycle")
    def test_the_seam_imports_nothing_from_above(self, seam: Mapping[str, str]) -> None:
        parts = (
            *("artifacts", "dataclass", "errors", "files", "patterns", "sqlite"),
            *("plugins", "storage", "times"),
        )
        below = tuple(f"perdure.{part}" for part in parts)
        ours = [i for source in seam.values() for i in imports_of(source) if i[:7] == "perdure"]

        assert ours
        assert [imported for imported in ours if not imported.startswith(below)] == []

    @requirement("001-no-import-cycle")
    def test_no_module_of_the_package_imports_itself_in_a_circle(self) -> None:
        TopologicalSorter(graph_of(modules_of(PACKAGE))).prepare()

    def test_a_circle_of_imports_is_found(self, seam: Mapping[str, str]) -> None:
        spoiled = {
            **seam,
            "perdure.storage.oops": "from perdure.storage import registry",
            "perdure.storage.contract": "def lazily():\n    import perdure.storage.oops",
        }

        with pytest.raises(CycleError):
            TopologicalSorter(graph_of(spoiled)).prepare()

    @requirement("000-no-module-entry-point")
    def test_the_seam_can_not_be_run(self) -> None:
        command = (sys.executable, "-m", "perdure.storage")
        run = subprocess.run(command, capture_output=True, text=True, check=False)

        assert run.returncode != 0
        assert "cannot be directly executed" in run.stderr

    @requirement("000-no-module-entry-point")
    def test_no_module_of_the_seam_does_something_else_when_run(
        self, seam: Mapping[str, str]
    ) -> None:
        assert [name for name in seam if name.endswith("__main__")] == []
        assert [name for name, source in seam.items() if "__main__" in source] == []

    @requirement("000-public-names")
    def test_the_public_names_of_the_seam_are_there(self) -> None:
        seeded = {
            "InvalidLocatorError",
            "normalize_key",
            "Locator",
            "Info",
            "Capabilities",
            "StorageBackend",
            "ProtocolError",
            "BackendRegistry",
            "registry",
            "Tier",
            "TierLayout",
            "DerivedMaintenance",
        }

        assert seeded <= set(perdure.storage.__all__)
        assert [n for n in perdure.storage.__all__ if not hasattr(perdure.storage, n)] == []


def foreign_imports(modules: Mapping[str, str], allowed: frozenset[str]) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, source in modules.items()
        for imported in imports_of(source)
        if imported.partition(".")[0] not in allowed
    ]
