"""Open a store, and tell as JSON how long that took and how much memory."""

import json
import sys
import time
from pathlib import Path

from perdure.artifacts import CID, ArtifactStore

PRIVATE = ("Private_Clean:", "Private_Dirty:")
"""Shared with no other process; files that only this one maps are in it too."""
OWN = ("Anonymous:",)
"""Not to be had back from any file."""


def memory(kinds: tuple[str, ...]) -> int:
    lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(kinds))


def main(folder: str) -> None:
    asked = [CID.of(b"%d" % number) for number in range(1_000)]
    imported, own = memory(PRIVATE), memory(OWN)
    begun = time.perf_counter()
    store = ArtifactStore.open(folder)
    opened = time.perf_counter() - begun
    grown = memory(PRIVATE) - imported
    begun = time.perf_counter()
    store.has(asked[0])
    first = time.perf_counter() - begun
    for cid in asked:
        store.has(cid)
    measured = {
        "imported": imported,
        "opened": opened,
        "grown": grown,
        "first": first,
        "used": memory(PRIVATE) - imported,
        "own": memory(OWN) - own,
    }
    store.close()
    print(json.dumps(measured))


if __name__ == "__main__":
    main(sys.argv[1])
