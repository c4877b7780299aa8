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
