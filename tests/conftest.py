import os
import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give tests a home that nothing can be kept in: what needs one has to bring its own."""
    nowhere = tmp_path_factory.getbasetemp() / "no-home"
    nowhere.touch()
    os.environ["HOME"] = str(nowhere)
    os.environ.pop("PERDURE_HOME", None)


@pytest.fixture(scope="session", autouse=True)
def _can_be_signalled() -> None:
    """Let what tests start be interrupted, though whoever started us in the background can't."""
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture
def agfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new stores have five files for each node: for tests that open these files themselves."""
    monkeypatch.setattr("perdure.app.identity.DEFAULT_LAYOUT", "agfs")
    monkeypatch.setenv("PERDURE_LAYOUT", "agfs")
