"""The tasks of a plan: the check boxes of its Markdown."""

import re
from typing import NamedTuple

_BOX = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\[([ xX])\]\s+(\S.*)")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")


class Task(NamedTuple):
    text: str
    done: bool


def tasks_in(text: str) -> list[Task]:
    """Return the tasks of a plan in their order; what stands in a fence is no task."""
    found: list[Task] = []
    fence = ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        elif not fence and (box := _BOX.fullmatch(line)):
            found.append(Task(box[2].strip(), box[1] != " "))
    return found


def title_of(text: str) -> str:
    """Return the first heading of a plan; empty if it has none."""
    heading = re.search(r"^#{1,6}\s+(.*?)\s*#*\s*$", text, re.MULTILINE)
    return heading[1] if heading else ""
