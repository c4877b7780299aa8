"""The user's editor, and what is made of a text in it."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from perdure.errors import (
    ContextError,
    InvalidValueError,
    NotTextError,
    PerdureError,
)
from perdure.surfaces.out import message_of


def find_editor(alternative: str) -> list[str]:
    """Return the command that VISUAL or EDITOR name; `otherwise` says what can be done without."""
    said = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(said)
    except ValueError as error:
        raise InvalidValueError(
            f"the editor {said!a} can't be understood: {error}. Fix: set EDITOR to a command."
        ) from None
    if not words:
        raise InvalidValueError(
            f"no editor is set. Fix: set EDITOR, as in EDITOR=nano; or {alternative}."
        )
    return words


@contextmanager
def editing(editor: list[str], name: str) -> Iterator[Callable[[str], str]]:
    """Yield a function that lets the user edit a text, and returns it.

    If an error follows, the edited text is kept in a file, and the error names it.
    """
    folder = Path(tempfile.mkdtemp(prefix="perdure-"))
    file = folder / f"{name}.md"
    given = b""

    def change(text: str) -> str:
        nonlocal given
        given = text.encode()
        file.write_bytes(given)
        _run(editor, file)
        return _text_in(file)

    try:
        yield change
    except PerdureError as error:
        if not file.exists() or file.read_bytes() == given:
            rmtree(folder)
            raise
        kind = type(error) if isinstance(error, ContextError) else InvalidValueError
        raise kind(f"{message_of(error)} Your text is kept in {str(file)!a}.") from error
    else:
        rmtree(folder)


def _run(editor: list[str], file: Path) -> None:
    try:
        done = subprocess.run([*editor, str(file)], check=False)  # noqa: S603 - it is the user's own
    except OSError as error:
        raise InvalidValueError(
            f"the editor {editor[0]!a} can't be started: {error.strerror}. "
            "Nothing was written. Fix: set EDITOR to one that is installed."
        ) from error
    if done.returncode:
        raise InvalidValueError(
            f"the editor {editor[0]!a} ended with {done.returncode}. Nothing was written. "
            "Fix: try again."
        )


def _text_in(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise NotTextError("what was saved is no text. Fix: save it as UTF-8.") from error
    except FileNotFoundError as error:
        raise InvalidValueError(
            "the editor removed its file. Nothing was written. Fix: try again."
        ) from error
