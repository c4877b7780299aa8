"""Requests: how somebody always wants something, or how it is done here."""

import re

from perdure.engine.extract.prose import BLOT
from perdure.engine.extract.words import MANNERS, STYLE

_PROCEDURE = re.compile(
    r"\b(?:before|after|whenever|when|each time|every time|once)\b", re.IGNORECASE
)
_DOING = re.compile(
    r"\b(?:run|restart|deploy|build|install|execute|migrate|regenerate|rebuild|check"
    r"|update|bump|tag|push|start"
    r"|stop|test|lint|merge|rebase|squash|commit|backup|back up|clear|reset)\b",
    re.IGNORECASE,
)


def has_code(text: str) -> bool:
    """Whether a blotted text has a piece of code in its line."""
    return f"`{BLOT}" in text


def is_procedure(clause: str) -> bool:
    """Whether a wish says how work is done, rather than what somebody likes."""
    return _DOING.search(clause) is not None and (
        has_code(clause) or _PROCEDURE.search(clause) is not None
    )


def is_of_manners(clause: str, *, surely: bool = False) -> bool:
    """Whether a wish is about how to write or speak, and so outlasts the task.

    "Add her name to the list" may be; to be sure, it has to speak of form and nothing else.
    """
    known = STYLE if surely else MANNERS
    return any(word in known for word in re.findall(r"[\w-]+", clause.lower()))
