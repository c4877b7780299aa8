"""Words that were said, on their way to who reads them."""

from holdfast.engine.validate.texts import presentable
from holdfast.surfaces.telling import shown


def said(text: str) -> str:
    """Return what somebody said, in one line that does nothing to a terminal or its reader."""
    return shown(" ".join(presentable(text).split()))
