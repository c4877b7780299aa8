"""Every door gives the same answer (invariant 10)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.doors.doors import COMMANDS, TOOLS, CommandDoor, PythonDoor, Refused, ToolDoor, plain
from tests.doors.home import Snapshot, make_home
from tests.doors.requests import REQUESTS, Request
from tests.surfaces.mcp.agents import in_process

Ask = Callable[[Request], object]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("doors") / "home"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("USER", "ana")
        for name in ("PERDURE_HOME", "MEMORY_VAULT_PATH", "COLUMNS"):
            patch.delenv(name, raising=False)
        patch.chdir(folder.parent)
        make_home(folder)
        yield folder


@pytest.fixture(scope="module")
def snapshot(home: Path) -> Snapshot:
    return Snapshot(home, home.with_name("copy"))


def answers(request: Request, home: Path, snapshot: Snapshot) -> dict[str, object]:
    """Return the answer of each door that offers the verb, each on the same home."""
    found: dict[str, object] = {}
    snapshot.put_back()
    found["python"] = plain(PythonDoor(home).ask(request.verb, request.arguments))
    if request.verb in COMMANDS:
        snapshot.put_back()
        found["command line"] = plain(CommandDoor(home).ask(request.verb, request.arguments))
    if request.verb in TOOLS:
        snapshot.put_back()
        with in_process(home) as agent:
            found["mcp"] = plain(ToolDoor(agent).ask(request.verb, request.arguments))
    return found


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.id)
def test_every_door_gives_the_same_answer(
    request_: Request, home: Path, snapshot: Snapshot
) -> None:
    found = answers(request_, home, snapshot)

    expected = found["python"]
    assert isinstance(expected, Refused) is request_.is_refused, expected
    assert found == dict.fromkeys(found, expected)


def test_the_table_has_something_for_every_verb_of_every_door() -> None:
    asked = {request.verb for request in REQUESTS}
    assert asked >= COMMANDS.keys() | TOOLS.keys()
    assert len(REQUESTS) >= 60
    assert len({request.id for request in REQUESTS}) == len(REQUESTS)
