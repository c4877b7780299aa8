"""`perdure edit`, and texts that are edited in the user's editor."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import click

from perdure import Memory
from perdure.errors import (
    ContextError,
    InvalidValueError,
    NotTextError,
    PerdureError,
)
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import with_memory, with_reason
from perdure.surfaces.out import message_of, version_line


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


@node_command("edit")
@with_reason
@click.option("--as-is", is_flag=True, help="Write the text unchanged, even with new secrets.")
@with_memory()
def edit_command(memory: Memory, node: str, reason: str, *, as_is: bool, as_json: bool) -> None:
    """Edit a node in your editor.

    The editor is the command in VISUAL or EDITOR. When it ends, the content is written as the next
    version, if it changed. If the node was changed meanwhile, or the text has a new secret, nothing
    is written, and your text stays in a file that the error names.
    """
    editor = find_editor("pipe the text into `perdure write NODE --version N`")
    with editing(editor, memory.uri(node).rpartition("/")[2]) as change:
        done = memory.edit(node, change, reason=reason, as_is=as_is)
    out.answer(
        {"uri": done.uri, "version": done.version, "written": done.written},
        version_line(done.uri, done.version),
        as_json=as_json,
    )
    if not done.written:
        out.mention("no change; nothing was written")
