import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give tests a home that nothing can be kept in: what needs one has to bring its own."""
    nowhere = tmp_path_factory.getbasetemp() / "no-home"
    nowhere.touch()
    os.environ["HOME"] = str(nowhere)
    os.environ.pop("HOLDFAST_HOME", None)
