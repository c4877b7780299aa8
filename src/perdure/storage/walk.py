"""Every memory's text below a place."""

from collections.abc import Iterator

from perdure.storage.contract import FindingKind, StorageBackend
from perdure.storage.locator import Locator


def walk(backend: StorageBackend, root: Locator) -> Iterator[Locator]:
    """Yield the texts below `root`, directory by directory, in key order within each.

    Left out are conflict copies, which are for a human to settle, and folders whose names begin
    with a dot, which belong to tools: `.obsidian`, `.git`, `.trash`. Whatever is derived from the
    source starts here.
    """
    pending = [root]
    while pending:
        directory = pending.pop()
        copies = {
            finding.name
            for finding in backend.findings(directory)
            if finding.kind is FindingKind.CONFLICT_COPY
        }
        below = []
        for child in backend.list(directory):
            if child.name in copies:
                continue
            try:
                is_dir = backend.info(child).is_dir
            except FileNotFoundError:  # removed since it was listed
                continue
            if not is_dir:
                yield child
            elif not child.name.startswith("."):
                below.append(child)
        pending.extend(reversed(below))


def is_directory(backend: StorageBackend, locator: Locator) -> bool:
    """Whether a directory is there; False also if it was removed since somebody saw it."""
    try:
        return backend.info(locator).is_dir
    except FileNotFoundError:
        return False
