"""A private folder on this device; the default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from perdure.files import make_folder
from perdure.storage.contract import Capabilities
from perdure.storage.folder import FolderBackend
from perdure.storage.registry import BackendOptions


class DeviceLocalBackend(FolderBackend):
    """Texts in a folder that only Perdure writes. The first write creates it."""

    @classmethod
    def from_options(cls, options: Mapping[str, object], home: str) -> Self:
        given = BackendOptions("device-local", options, known={"root"})
        return cls(given.folder("root") or os.path.join(home, "memory"), home)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(concurrent_writers=True)

    @property
    def defers_sync(self) -> bool:
        """Only where a restart of the machine can be told: else each process would redo a lot."""
        from perdure.artifacts.disk import boot_name  # noqa: PLC0415 - who writes pays for it

        return bool(boot_name())

    def _prepare_root(self) -> None:
        if self._identity is None:
            make_folder(Path(self._root))
            self._identity = self._identify()
        self._check_root()
