"""Edit a text in the user's editor."""

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
    """Return the command in VISUAL or EDITOR; the error names `alternative` as another fix."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidValueError(
            f"the editor {command!a} can't be parsed: {error}. Fix: set EDITOR to a command."
        ) from None
    if not words:
        raise InvalidValueError(
            f"no editor is set. Fix: set EDITOR, as in EDITOR=nano; or {alternative}."
        )
    return words


@contextmanager
def editing(editor: list[str], name: str) -> Iterator[Callable[[str], str]]:
    """Yield a function that opens a text in the editor and returns the edited text.

    If an error follows, the edited text stays in a file, and the error names that file.
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
        raise kind(f"{message_of(error)} Your text is in {str(file)!a}.") from error
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
        raise NotTextError(
            "the saved file is not valid UTF-8. Fix: save the file as UTF-8."
        ) from error
    except FileNotFoundError as error:
        raise InvalidValueError(
            "the editor removed its file. Nothing was written. Fix: try again."
        ) from error
