"""The lines above a content that people see: made for display, and theirs to change."""

import json
import re

from holdfast.errors import InvalidValueError

_FENCE = re.compile(
    r"\A---[ \t]*\r?\n(?P<lines>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_OPENING = re.compile(r"\A---[ \t]*\r?\n")


def generate(title: str) -> str:
    """Return the lines that let a note be shown, and linked to, by its title."""
    said = json.dumps(title, ensure_ascii=not title.isprintable())
    return f"title: {said}\naliases:\n  - {said}\n"


def join(lines: str, body: str) -> str:
    """Return the text of a file. `body` comes back from `split` to the letter."""
    return f"---\n{lines}---\n{body}"


def split(text: str) -> tuple[str | None, str]:
    """Return the lines between the fences, None if there are no fences, and the body.

    Lines that nobody could read are `InvalidValueError`.
    """
    if not _OPENING.match(text):
        return None, text
    fenced = _FENCE.match(text)
    if fenced is None:
        raise InvalidValueError(
            "its frontmatter has no end. Fix: put a line with --- after it, or take away the first."
        )
    return fenced["lines"], text[fenced.end() :]


def check(lines: str) -> None:
    """Refuse lines that are no YAML mapping."""
    import yaml  # noqa: PLC0415 - only what somebody wrote by hand must be looked at

    try:
        said = yaml.load(lines, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, ValueError, RecursionError) as error:
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


def spliced(lines: str | None, old_title: str, new_title: str) -> str:
    """Return the lines with the title of today; whatever somebody wrote stays as it is."""
    before, now = generate(old_title), generate(new_title)
    if lines is None:
        return now
    return now + lines.removeprefix(before) if lines.startswith(before) else lines
