"""Lists of words as they are written in this package: in one text, with spaces between."""


def words_in(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def set_of(text: str) -> frozenset[str]:
    return frozenset(text.split())
