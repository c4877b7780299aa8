"""The lines above a content that people see: made for display, and theirs to change."""

import re
from collections.abc import Iterable
from json.encoder import encode_basestring

from perdure.errors import InvalidValueError
from perdure.patterns import later

_OPENING = r"\A\ufeff?---[ \t]*\r?\n"
_FENCED = later(rf"{_OPENING}(?P<lines>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_OPENED = later(_OPENING)
_FENCE = later(r"^---[ \t]*\r?$", re.MULTILINE)
_UNPRINTABLE = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
"""What YAML does not let stand as it is, beyond what JSON escapes."""
_DEPTH = 64


def generate(title: str) -> str:
    """Return the lines that let a note be shown, and linked to, by its title."""
    said = encode_basestring(title)
    if not title.isprintable():
        said = re.sub(_UNPRINTABLE, lambda found: f"\\u{ord(found[0]):04x}", said)
    return f"title: {said}\naliases:\n  - {said}\n"


def join(lines: str, body: str) -> str:
    """Return the text of a file. `body` comes back from `split` to the letter."""
    return f"---\n{lines}---\n{body}" if lines or _OPENED.match(body) else body


def split(text: str) -> tuple[str, str]:
    """Return the lines between the fences, if any, and the body; a missing end is an error."""
    if not _OPENED.match(text):
        return "", text
    fenced = _FENCED.match(text)
    if fenced is None:
        raise InvalidValueError(
            "its frontmatter has no end. Fix: put a line with --- after it, or take away the first."
        )
    return fenced["lines"], text[fenced.end() :]


def check(lines: str) -> None:
    """Refuse lines that are no YAML mapping, or that would end before their end."""
    parsed(lines)


def parsed(lines: str) -> dict[str, object]:
    """Return what the lines say; `InvalidValueError` if `check` would refuse them."""
    import yaml  # noqa: PLC0415 - only what somebody wrote by hand must be looked at

    if _FENCE.search(lines):
        raise InvalidValueError("its frontmatter holds a line ---. Fix: take that line away.")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_deep(yaml.parse(lines, Loader=loader))
        said = yaml.load(lines, Loader=loader)  # noqa: S506 - both are safe
    except InvalidValueError:
        raise
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        # The last but one are of values such as `!!int ""`, for which it has no errors of its own.
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 2}" if mark else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise InvalidValueError(
            f"its frontmatter is no YAML{where}: {what}. Fix: correct that line."
        ) from error
    if said is not None and not isinstance(said, dict):
        raise InvalidValueError(
            "its frontmatter is YAML, but no list of names and values. "
            "Fix: write lines such as 'title: A name'."
        )
    return said or {}


def _refuse_deep(events: Iterable[object]) -> None:
    """Refuse what is nested so deep that the loader, which is C, would end the process."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > _DEPTH:
            raise InvalidValueError(
                f"its frontmatter is nested more than {_DEPTH} levels deep. Fix: make it flatter."
            )


def spliced(lines: str, generated: str, title: str) -> str:
    """Return the lines with the title of today; whatever somebody wrote stays as it is."""
    if not lines.startswith(generated):
        return lines
    return generate(title) + lines.removeprefix(generated)
