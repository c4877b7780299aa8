"""A hook runs at every session: what it loads is listed, and nothing else may be."""

import pytest

from perdure.testing.requirement import requirement
from tests.process.conftest import PROJECT, Here
from tests.process.test_read_only import loaded

NEEDED = {
    "perdure": "",
    "perdure.app": "identity memory_reader open",
    "perdure.config": "",
    "perdure.context": "node_files note_names note_table note_tree notefile notes",
    "perdure.sqlite": "",
    "perdure.dataclass": "",
    "perdure.engine": "recall recall.result",
    "perdure.errors": "",
    "perdure.files": "",
    "perdure.frontmatter": "",
    "perdure.harness": "project",
    "perdure.artifacts": "recent_names",
    "perdure.index": "sql",
    "perdure.markdown": "",
    "perdure.model": "node project_aliases request trust uri values",
    "perdure.patterns": "",
    "perdure.plugins": "",
    "perdure.process": "__main__ here phase_notes",
    "perdure.storage": "changes contract device_local locator openat read_only registry",
    "perdure.times": "",
}
"""All modules of ours that are needed to show indexed notes."""
SLOW = {
    "asyncio",
    "cbor2",
    "click",
    "concurrent.futures",
    "difflib",
    "email",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "numpy",
    "secrets",
    "socket",
    "subprocess",
    "tempfile",
    "tomlkit",
    "yaml",
}


def ours() -> set[str]:
    found = set()
    for package, modules in NEEDED.items():
        found |= {package, *(f"{package}.{module}" for module in modules.split())}
    return found


@requirement("002-shim-recall-here")
def test_a_hook_loads_what_is_listed_and_nothing_else(here: Here) -> None:
    here.save_all(
        ("We chose SQLite.", "decision", {"project": PROJECT}),
        ("Never push to main.", "rule", {"always_load": True}),
    )

    found = loaded(here, "recall-here")

    backend = {f"perdure.storage.{here.machine.protocol.replace('-', '_')}"}
    assert {name for name in found if name.startswith("perdure")} == ours() | backend
    assert not found & SLOW, found & SLOW


def test_the_list_is_looked_at(here: Here) -> None:
    """A question loads more, and this would be seen."""
    here.save("We chose SQLite.", project=PROJECT)

    found = loaded(here, "recall-here", "--query", "SQLite")

    assert {name for name in found if name.startswith("perdure")} - ours()
    assert "perdure.safety.validation" in found


@pytest.mark.parametrize("arguments", [("recall-here",), ("state-path", "plan")])
def test_where_nothing_was_remembered_less_is_loaded(
    here: Here, arguments: tuple[str, ...]
) -> None:
    found = loaded(here, *arguments)

    assert "perdure.safety.validation" not in found
    assert not found & SLOW, found & SLOW
