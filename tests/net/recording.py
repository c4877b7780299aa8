"""Recorded answers: each test compares with a file beside this one, `make net` writes the file."""

import os
from difflib import unified_diff
from pathlib import Path

HERE = Path(__file__).parent
RECORDING = os.environ.get("NET") == "record"
"""Whether files are written instead of compared."""
_MOST_LINES = 80


def same_as_recorded(name: str, text: str, *, record: bool = True) -> None:
    """Fail with a diff unless the file `name` holds `text`; write it instead while recording.

    Without `record` it is always compared: a second way to what was just recorded.
    """
    file = HERE / name
    if RECORDING and record:
        file.write_text(text, encoding="utf-8")
        return
    before = file.read_text(encoding="utf-8")
    if before == text:
        return
    lines = list(
        unified_diff(before.splitlines(), text.splitlines(), name, "now", n=1, lineterm="")
    )
    more = [f"... and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
    diff = "\n".join([*lines[:_MOST_LINES], *more])
    raise AssertionError(
        f"tests/net/{name} was recorded with another answer. Fix: restore the answer or, if the "
        f"change is intended, run `make net` and commit the file.\n{diff}"
    )
