"""Words that were said, on their way to who reads them."""

from perdure.engine.validate.texts import presentable
from perdure.surfaces.telling import shown


def said(text: str) -> str:
    """Return what somebody said, in one line that does nothing to a terminal or its reader."""
    return shown(" ".join(presentable(text).split()))
