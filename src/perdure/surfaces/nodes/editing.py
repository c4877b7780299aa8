"""`edit`."""

from dataclasses import dataclass

import click

from perdure.context import frontmatter
from perdure.errors import InvalidValueError, VersionMismatchError
from perdure.model import ContextNode
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.checking import refuse_new
from perdure.surfaces.nodes.completing import node_names
from perdure.surfaces.nodes.describing import version_line
from perdure.surfaces.nodes.editor import edited, find_editor
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.nodes.writing import refuse_broken
from perdure.surfaces.telling import mention, tell_json, tell_line

_FIX = "take it out, or keep it all the same with `perdure edit --as-is`."


@click.command("edit", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@click.option("--reason", metavar="TEXT", default="", help="Why; it stands in the history.")
@click.option("--as-is", is_flag=True, help="Write it to the letter, with new secrets in it.")
@as_json(ONE_OBJECT)
@with_memory
def edit_command(memory: Memory, node: str, reason: str, *, as_is: bool, as_json: bool) -> None:
    """Change a node in your editor.

    That is what VISUAL or EDITOR name. The content is written as the next version when the editor
    ends, if it changed. If somebody else changed the node meanwhile, or there is a new secret in
    it, nothing is written, and your text is kept in a file.
    """
    if not as_is:
        refuse_new(reason, "", "reason", _FIX)
    editor = find_editor("pipe the text into `perdure write NODE --version N`")
    before = memory.node(memory.node_place(node))
    refuse_broken(before, "correct its file in an editor")
    memory.context.nodes.reach.changed(before.uri, memory.request)
    page = Page(before)
    with edited(editor, before.place.name, page.text) as text:
        after = page.revised(text)
        if after is not None and not as_is:
            refuse_new(text, page.text, "text", _FIX)
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
                "Fix: `perdure delete` removes a node."
            )
        lines, content = frontmatter.split(text.removesuffix("\n") if self._unended else text)
        same = lines == (self.node.frontmatter or "")
        return self.node.revised(
            content=content, frontmatter=self.node.frontmatter if same else lines
        )
