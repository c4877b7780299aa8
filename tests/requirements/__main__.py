"""Print each requirement with the first tier that tests it: python -m tests.requirements."""

import tempfile
from pathlib import Path

from tests.requirements.collected import collect
from tests.tiers import TIERS


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = collect(Path(folder))
    first: dict[str, tuple[int, str]] = {}
    for node, held in found.items():
        for each in held.requirements:
            first[each] = min(first.get(each, (9, "")), (TIERS.index(held.tier), node))
    for each, (tier, node) in sorted(first.items()):
        print(f"{TIERS[tier]:8}{each:48}{node}")  # noqa: T201 - it is asked for


if __name__ == "__main__":
    main()
