"""`perdure write`."""

import sys
from typing import TypedDict, Unpack

import click

from perdure import Memory
from perdure.model.values import JSON
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import (
    STDIN,
    TextCommand,
    masked_json,
    mention_masked,
    piped,
    with_memory,
    with_meta,
    with_reason,
)
from perdure.surfaces.out import version_line


class WriteOptions(TypedDict):
    abstract: str | None
    overview: str | None
    reason: str
    version: int | None
    replace: bool
    mask_secrets: bool
    as_is: bool


@node_command("write", cls=TextCommand)
@click.argument("text", required=False)
@click.option("--abstract", metavar="TEXT", help="A summary in one sentence.")
@click.option("--overview", metavar="TEXT", help="A longer summary.")
@with_meta
@with_reason
@click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replace version N; fail if the node has another one.",
)
@click.option("--replace", is_flag=True, help="Replace the node, whatever its version.")
@click.option("--mask-secrets", is_flag=True, help="Mask secrets, instead of refusing the text.")
@click.option("--as-is", is_flag=True, help="Write the text unchanged, even with secrets.")
@with_memory()
def write_command(
    memory: Memory,
    node: str,
    text: str | None,
    meta: tuple[tuple[str, JSON], ...],
    *,
    as_json: bool,
    **options: Unpack[WriteOptions],
) -> None:
    """Write a node, or its next version.

    TEXT is the content, in Markdown; if it is - or missing, it is read from stdin. An existing node
    is written only with --version or --replace. Parts that no option names stay as they are, and a
    node that does not change is not written. A text with a secret is refused, unless you add
    --mask-secrets or --as-is.
    """
    if options["version"] is not None and options["replace"]:
        raise click.UsageError("--version and --replace exclude each other. Fix: give one.")
    if options["mask_secrets"] and options["as_is"]:
        raise click.UsageError("--mask-secrets and --as-is exclude each other. Fix: give one.")
    others = meta or None, options["abstract"], options["overview"]
    content = _content(text, is_optional=any(each is not None for each in others))
    done = memory.write(node, content, metadata=dict(meta), **options)
    if as_json:
        answer = {"uri": done.uri, "version": done.version, "written": done.written}
        out.json({**answer, "created": done.created, "masked": masked_json(done.masked)})
    else:
        out.line(version_line(done.uri, done.version))
    if not done.written:
        out.mention("no change; nothing was written")
    mention_masked(done.masked)
    for name in done.cut:
        out.mention(f"the {name} was too long; it was cut, and ends in [cut]")


def _content(text: str | None, *, is_optional: bool) -> str | None:
    if text is not None and text != STDIN:
        return text
    piped_in = "" if text is None and sys.stdin.isatty() else piped()
    if piped_in:
        return piped_in
    if text is None and is_optional:
        return None
    raise click.UsageError(
        'there is no text. Fix: give it after the name, or pipe it in; "" is an empty one.'
    )
