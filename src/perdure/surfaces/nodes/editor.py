"""The user's editor, and what is made of a text in it."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from perdure.errors import (
    ContextError,
    InvalidValueError,
    NotTextError,
    PerdureError,
    UnregisteredError,
)


def find_editor(otherwise: str) -> list[str]:
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
            f"no editor is set. Fix: set EDITOR, as in EDITOR=nano; or {otherwise}."
        )
    return words


@contextmanager
def edited(editor: list[str], name: str, text: str) -> Iterator[str]:
    """Yield what somebody makes of a text; if it can't be used, it is kept, and the error says so.

    The error of an editor that fails, or of whoever uses the text, goes on.
    """
    folder = Path(tempfile.mkdtemp(prefix="perdure-"))
    file = folder / f"{name}.md"
    file.write_bytes(text.encode())
    try:
        _run(editor, file)
        yield _text_in(file)
    except UnregisteredError:  # it is written
        rmtree(folder)
        raise
    except PerdureError as error:
        if not file.exists() or file.read_bytes() == text.encode():
            rmtree(folder)
            raise
        kind = type(error) if isinstance(error, ContextError) else InvalidValueError
        raise kind(f"{error} Your text is kept in {str(file)!a}.") from error
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
