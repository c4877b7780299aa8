"""Words that the documentation of a library would not use."""

import re
from pathlib import Path

import perdure

PACKAGE = Path(perdure.__file__).parent
AVOIDED = re.compile(r"\b(?:said|told|somebody|whoever|anew)\b", re.IGNORECASE)

STORED = {
    "context/notefile.py": 4,
    "engine/briefing_records.py": 1,
    "engine/learn/evidence.py": 2,
    "engine/receipt.py": 2,
}
"""Lines with a key of a stored format, or with a pattern for users' own words."""


def test_no_avoided_word_is_in_the_code() -> None:
    found = {
        name: lines
        for file in sorted(PACKAGE.rglob("*.py"))
        if (
            lines := [line for line in file.read_text("utf-8").splitlines() if AVOIDED.search(line)]
        )
        and len(lines) > STORED.get(name := file.relative_to(PACKAGE).as_posix(), 0)
    }

    assert not found
