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
    TakesText,
    masked_json,
    mention_masked,
    piped,
    with_memory,
    with_meta,
)
from perdure.surfaces.out import version_line


class Options(TypedDict):
    abstract: str | None
    overview: str | None
    reason: str
    version: int | None
    replace: bool
    mask_secrets: bool
    as_is: bool


@node_command("write", cls=TakesText)
@click.argument("text", required=False)
@click.option("--abstract", metavar="TEXT", help="What it says in one sentence.")
@click.option("--overview", metavar="TEXT", help="What it says in some more.")
@with_meta
@click.option("--reason", metavar="TEXT", default="", help="Why; it stands in the history.")
@click.option(
    "--version", type=click.IntRange(min=1), metavar="N", help="Follow this version, and no other."
)
@click.option("--replace", is_flag=True, help="Follow whatever version is there.")
@click.option("--mask-secrets", is_flag=True, help="Write it without the secrets that are in it.")
@click.option("--as-is", is_flag=True, help="Write it to the letter, with the secrets in it.")
@with_memory()
def write_command(
    memory: Memory,
    node: str,
    text: str | None,
    meta: tuple[tuple[str, JSON], ...],
    *,
    as_json: bool,
    **options: Unpack[Options],
) -> None:
    """Write a node, or the next version of one.

    TEXT is the content, in Markdown; if it is - or left out, it is read from stdin. A node that is
    there already is written only with --version or --replace. What no option names stays as it
    is, and what says all of it already is not written again. A secret in it is refused, unless it
    may be masked, or you want it kept.
    """
    if options["version"] is not None and options["replace"]:
        raise click.UsageError("--version and --replace contradict each other. Fix: give one.")
    if options["mask_secrets"] and options["as_is"]:
        raise click.UsageError("--mask-secrets and --as-is contradict each other. Fix: give one.")
    others = meta or None, options["abstract"], options["overview"]
    content = _content(text, is_optional=any(each is not None for each in others))
    done = memory.write(node, content, metadata=dict(meta), **options)
    if as_json:
        answer = {"uri": done.uri, "version": done.version, "written": done.written}
        out.json({**answer, "created": done.created, "masked": masked_json(done.masked)})
    else:
        out.line(version_line(done.uri, done.version))
    if not done.written:
        out.mention("it says that already; nothing was written")
    mention_masked(done.masked)
    for name in done.cut:
        out.mention(f"the {name} was too long; what is written ends in [cut]")


def _content(text: str | None, *, is_optional: bool) -> str | None:
    if text is not None and text != STDIN:
        return text
    piped_in = "" if text is None and sys.stdin.isatty() else piped()
    if piped_in:
        return piped_in
    if text is None and is_optional:
        return None
    raise click.UsageError(
        'there is no text. Fix: give it behind the name, or pipe it in; "" is an empty one.'
    )
