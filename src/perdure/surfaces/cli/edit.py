"""`perdure edit`."""

import click

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.editor import editing, find_editor
from perdure.surfaces.cli.options import with_memory, with_reason
from perdure.surfaces.out import version_line


@node_command("edit")
@with_reason
@click.option("--as-is", is_flag=True, help="Write it to the letter, with new secrets in it.")
@with_memory()
def edit_command(memory: Memory, node: str, reason: str, *, as_is: bool, as_json: bool) -> None:
    """Change a node in your editor.

    That is what VISUAL or EDITOR name. The content is written as the next version when the editor
    ends, if it changed. If somebody else changed the node meanwhile, or there is a new secret in
    it, nothing is written, and your text is kept in a file.
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
        out.mention("it was not changed; nothing was written")
