"""Patterns that are compiled when they are first used: most processes use few of them."""

import re
from typing import cast

_VERBS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub")


class _Later:
    """Stands for a pattern until it is used."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        pattern = re.compile(*self._given)
        for verb in _VERBS:
            setattr(self, verb, getattr(pattern, verb))
        return getattr(pattern, name)


def later(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern as `re.compile` does; if it is malformed, using it raises `re.error`."""
    return cast("re.Pattern[str]", _Later(text, flags))
