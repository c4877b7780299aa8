"""Names that another history had given, told apart from our own."""

import re

_FOREIGN = re.compile("@[0-9a-f]{32}(/|$)")


def is_foreign(name: str) -> bool:
    """Whether another history had bound this name, or it is the folder of such names."""
    return _FOREIGN.match(name) is not None
