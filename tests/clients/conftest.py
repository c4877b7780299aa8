import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.clients import KINDS, Client
from tests.nightly import FOLDER

NewClient = Callable[..., Client]


@pytest.fixture(scope="session")
def programs() -> Path:
    """Return where npm put the agents; `make nightly PART=clients` does so."""
    given = os.environ.get("CLIENTS")
    folder = (Path(given) if given else FOLDER / "clients") / "npm"
    if not (folder / "node_modules" / ".bin" / "claude").exists():
        pytest.skip(f"no agents are in {folder}; `make nightly PART=clients` installs them")
    return folder


@pytest.fixture
def new_client(programs: Path, tmp_path: Path) -> NewClient:
    """Return what makes a client that knows of memory, of a user with a config of their own."""

    def make(name: str, *, small: bool = False) -> Client:
        client = Client(
            KINDS[name], programs, tmp_path / name, tmp_path / name / "work" / "harbour"
        )
        client.set_up(small=small)
        client.install()
        return client

    return make


@pytest.fixture
def client(request: pytest.FixtureRequest, new_client: NewClient) -> Client:
    return new_client(str(request.param))
