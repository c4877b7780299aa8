"""The files that a flow of the architecture names are run by the code, in that order."""

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import perdure
from perdure import Memory
from tests.docs.blocks import REPOSITORY

ARCHITECTURE = REPOSITORY / "docs" / "ARCHITECTURE.md"
SOURCE = Path(perdure.__file__).parent


def files_of(flow: str) -> list[str]:
    """Return the files that a flow names, in the order of its steps."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## Flow \d: {flow}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"`src/perdure/([\w/]+\.py)`", section)


@contextmanager
def traced() -> Iterator[list[str]]:
    """Give the files of the package that run meanwhile, in the order of their first call."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{SOURCE}/"):
            seen[Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix()] = None

    found: list[str] = []
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        found.extend(seen)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Give a memory that saved and recalled something before, so that no flow opens it."""
    with perdure.open(home=tmp_path / "home", user="ana") as opened:
        opened.save("Likes tea.", category="preference", slug="tea")
        opened.recall("tea")
        yield opened


def save(memory: Memory) -> None:
    memory.save("Prefers tabs.", category="preference", slug="indentation")


def recall(memory: Memory) -> None:
    assert memory.recall("tea").hits


def commit(memory: Memory) -> None:
    message = {"role": "user", "name": "Ana", "time": "2026-03-02", "content": "I live in Berlin."}
    assert memory.commit_session([message], session_id="2026-03-02-a").created


@pytest.mark.parametrize(("flow", "verb"), [("a save", save), ("a recall", recall)])
def test_a_flow_runs_the_files_that_it_names_in_order(
    memory: Memory, flow: str, verb: Callable[[Memory], None]
) -> None:
    with traced() as ran:
        verb(memory)

    named = files_of(flow)
    assert [file for file in ran if file in named] == named


def test_the_flow_of_a_session_runs_the_files_that_it_names(memory: Memory) -> None:
    with traced() as ran:
        commit(memory)

    assert set(files_of("a session is learned")) <= set(ran)


def test_the_flow_of_an_edit_runs_the_files_that_it_names(memory: Memory, tmp_path: Path) -> None:
    (note,) = (tmp_path / "home").rglob("Tea.md")
    note.write_text("Likes coffee.\n", encoding="utf-8")

    with traced() as ran:
        (hit,) = memory.recall("coffee").hits

    assert hit.snippet == "Likes coffee."
    assert set(files_of("an edit on disk")) <= set(ran)


RETURNS = {
    "a save": {("storage", "context"), ("index", "engine")},
    "a recall": {("storage", "context"), ("storage", "engine"), ("index", "engine")},
}
"""Calls up into a package that the flow had left: from which one, to which one.

`storage` calls a layout of `context`, which is a wrapper of a backend. The others are functions
that run within a transaction of the index, or while files are scanned. The list only gets shorter.
"""


def height(package: str) -> int:
    """Return how high a package is among the layers that pyproject.toml lists."""
    config = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    (level,) = (
        number for number, names in enumerate(layers) if package in re.split(r" [|:] ", names)
    )
    return -level


def package_of(frame: FrameType) -> str:
    """Return the package of the code that a frame runs; "" if it is in none of ours."""
    inside = frame.f_code.co_filename.removeprefix(f"{SOURCE}/")
    package, _, module = inside.partition("/")
    return package if package and module else ""


@contextmanager
def returns() -> Iterator[set[tuple[str, str]]]:
    """Give the pairs of packages of which the first called the second, which was on the stack."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        package = package_of(frame) if event == "call" else ""
        if not package:
            return
        callers, each = [], frame.f_back
        while each is not None:
            callers.append(package_of(each))
            each = each.f_back
        named = [*filter(None, callers)]
        if named and named[0] != package and package in named:
            found.add((named[0], package))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(("flow", "verb"), [("a save", save), ("a recall", recall)])
def test_a_flow_does_not_return_to_a_package_that_it_had_left(
    memory: Memory, flow: str, verb: Callable[[Memory], None]
) -> None:
    with returns() as found:
        verb(memory)

    upwards = {(caller, called) for caller, called in found if height(called) > height(caller)}
    assert upwards <= RETURNS[flow]
