"""Lists of words that are kept as text files beside the code that uses them."""

from importlib.resources import files


def word_lists(package: str, name: str) -> dict[str, list[str]]:
    """Return the lines of each section of a file, by the section's name in brackets.

    Empty lines, and lines that begin with `#`, are ignored.
    """
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (files(package) / name).read_text(encoding="utf-8").split("\n"):
        if line.startswith("["):
            lines = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found
