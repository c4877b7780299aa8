"""`edit`."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import click

from holdfast.context import frontmatter
from holdfast.errors import (
    ContextError,
    HoldfastError,
    InvalidValueError,
    NotTextError,
    UnregisteredError,
    VersionMismatchError,
)
from holdfast.model import ContextNode
from holdfast.surfaces.asking import ONE_OBJECT, as_json
from holdfast.surfaces.nodes.describing import version_line
from holdfast.surfaces.nodes.opening import NAMES, Memory, with_memory
from holdfast.surfaces.nodes.writing import refuse_broken
from holdfast.surfaces.telling import mention, tell_json, tell_line


@click.command("edit", epilog=NAMES)
@click.argument("node")
@click.option("--reason", metavar="TEXT", default="", help="Why; it stands in the history.")
@as_json(ONE_OBJECT)
@with_memory
def edit_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Change a node in your editor.

    That is what VISUAL or EDITOR name. The content is written as the next version when the editor
    ends, if it changed. If somebody else changed the node meanwhile, nothing is written, and your
    text is kept in a file.
    """
    editor = _editor()
    before = memory.node(memory.node_place(node))
    refuse_broken(before, "correct its file in an editor")
    memory.context.nodes.reach.changed(before.uri, memory.request)
    page = Page(before)
    with _edited(editor, before.place.name, page.text) as text:
        after = page.revised(text)
        if after is not None:
            _write(memory, after, reason)
    now = before if after is None else after
    if as_json:
        tell_json({"uri": now.uri, "version": now.version, "written": after is not None})
    else:
        tell_line(version_line(now.uri, now.version))
    if after is None:
        mention("it was not changed; nothing was written")


def _write(memory: Memory, node: ContextNode, reason: str) -> None:
    try:
        memory.context.nodes.because(reason).write_node(node, memory.request)
    except VersionMismatchError:
        raise VersionMismatchError(
            f"{node.uri!a} was changed by somebody else while you edited it. Nothing was written. "
            "Fix: edit it again, and take over what you wrote."
        ) from None


@dataclass(frozen=True, slots=True)
class Page:
    """A node as an editor shows it: its frontmatter, if somebody wrote some, and its content.

    It ends with a line break, for editors add one; that is no change of the node.
    """

    node: ContextNode

    @property
    def text(self) -> str:
        return f"{self._whole}\n" if self._unended else self._whole

    @property
    def _whole(self) -> str:
        return frontmatter.join(self.node.frontmatter or "", self.node.content)

    @property
    def _unended(self) -> bool:
        return bool(self._whole) and not self._whole.endswith("\n")

    def revised(self, text: str) -> ContextNode | None:
        """Return the next version of the node; None if it would be the same."""
        if text == self.text:
            return None
        if not text.strip():
            raise InvalidValueError(
                f"{self.node.uri!a} would be empty. Nothing was written. "
                "Fix: `holdfast delete` removes a node."
            )
        lines, content = frontmatter.split(text.removesuffix("\n") if self._unended else text)
        same = lines == (self.node.frontmatter or "")
        return self.node.revised(
            content=content, frontmatter=self.node.frontmatter if same else lines
        )


# ---------------------------------------------------------------- the editor
def _editor() -> list[str]:
    said = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(said)
    except ValueError as error:
        raise InvalidValueError(
            f"the editor {said!a} can't be understood: {error}. Fix: set EDITOR to a command."
        ) from None
    if not words:
        raise InvalidValueError(
            "no editor is set. Fix: set EDITOR, as in EDITOR=nano; or pipe the text into "
            "`holdfast write NODE --version N`."
        )
    return words


@contextmanager
def _edited(editor: list[str], name: str, text: str) -> Iterator[str]:
    """Yield what somebody makes of a text; if it can't be used, it is kept, and the error says so.

    The error of an editor that fails, or of whoever uses the text, goes on.
    """
    folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
    file = folder / f"{name}.md"
    file.write_bytes(text.encode())
    try:
        _run(editor, file)
        yield _text_in(file)
    except UnregisteredError:  # it is written
        rmtree(folder)
        raise
    except HoldfastError as error:
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
