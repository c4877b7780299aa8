"""What a model is told if a tool can't do what was asked: what, why, and how to mend it."""

import json
import re
from collections.abc import Collection, Mapping

from perdure.errors import PerdureError, StorageSelectionError
from perdure.model.values import shortened, visible

_PATH = re.compile(r"\w+://\S*|(?<![\w/.~%-])/(?:[^\s/'\"]+/)+(?=[^\s/'\"])")
"""A URI, or the folders of a path from the root of this machine."""
_LINE_BREAK = re.compile(r"\s*\n\s*")
_LONGEST = 2_000


def told(
    error: BaseException, tool: str, environ: Mapping[str, str], arguments: Collection[str] = ()
) -> str:
    """Return what may be said of an error: never a trace, nor where things lie on this machine.

    But for the config: its owner has to find it. Of what would allow it, the arguments of the tool
    are named.
    """
    text = _said(error, tool, arguments)
    if isinstance(error, StorageSelectionError):
        return _in_one_line(_with_short_home(text, environ))
    return without_paths(text, environ)


def without_paths(text: str, environ: Mapping[str, str]) -> str:
    """Return a text of ours in one line, without the folders of this machine."""
    text = _with_short_home(text, environ)
    return _in_one_line(_PATH.sub(lambda at: at[0] if "://" in at[0] else ".../", text))


def _with_short_home(text: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "").rstrip("/")
    return text.replace(f"{home}/", "~/") if home else text


def _in_one_line(text: str) -> str:
    return shortened(visible(_LINE_BREAK.sub(" ", text)), _LONGEST)


def _said(error: BaseException, tool: str, arguments: Collection[str]) -> str:
    def spelled(name: str, value: object) -> str:
        return f"{name}: {json.dumps(value)}" if name in arguments else ""

    match error:
        case PerdureError():
            return error.message(spelled)
        case OSError():
            return (
                f"the system refused: {error.strerror or 'it did not say why'}. "
                "Fix: ask the user to run `perdure doctor`."
            )
    return (
        f"{tool} failed in a way that nobody foresaw ({type(error).__name__}). Fix: ask the user "
        "to look at what the server wrote on stderr, and to run `perdure doctor`."
    )
