"""Every memory's text below a place."""

from collections.abc import Iterator

from holdfast.storage.contract import FindingKind, StorageBackend
from holdfast.storage.locator import Locator


def walk(backend: StorageBackend, root: Locator) -> Iterator[Locator]:
    """Yield the texts below `root`, directory by directory, in key order within each.

    Conflict copies are left out: they are for a human to settle, never memories. Whatever is
    derived from the source starts here.
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
            if is_dir:
                below.append(child)
            else:
                yield child
        pending.extend(reversed(below))
