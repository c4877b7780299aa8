"""`perdure save`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from perdure import Memory
from perdure.model.values import JSON
from perdure.surfaces import out
from perdure.surfaces.cli.options import (
    STDIN,
    TextCommand,
    masked_json,
    mention_lifted,
    mention_masked,
    piped,
    with_meta,
    with_project_memory,
)
from perdure.surfaces.out import picked, version_line

_CATEGORY = "note"


@click.command("save", cls=TextCommand)
@click.argument("text", required=False)
@click.option(
    "--category",
    metavar="NAME",
    default=_CATEGORY,
    help="preference, profile, event, or a category of your own. Default: note.",
)
@click.option("--slug", metavar="NAME", default="", help="Its name. Default: from its first words.")
@with_meta
@click.option("--mask-secrets", is_flag=True, help="Mask secrets, instead of refusing the text.")
@click.option("--replace", is_flag=True, help="Replace a node even if it was learned.")
@with_project_memory()
def save_command(  # noqa: PLR0913 - one for each option
    memory: Memory,
    text: str | None,
    *,
    category: str,
    slug: str,
    meta: tuple[tuple[str, JSON], ...],
    mask_secrets: bool,
    replace: bool,
    as_json: bool,
) -> None:
    """Save a memory.

    TEXT is Markdown; if it is - or missing, it is read from stdin or, at a terminal, from your
    editor. If the slug exists, the text becomes its next version; a node that was learned from
    sessions is replaced only with --replace.
    """
    with _given(text) as given:
        saved = memory.save(
            given("").strip("\n"),
            category=category,
            slug=slug,
            metadata=dict(meta),
            mask_secrets=mask_secrets,
            replace_learned=replace,
        )
    if as_json:
        answer = {"uri": saved, "version": saved.version, "written": saved.written}
        masked = masked_json(saved.masked)
        more = picked(saved, "created changed lifted")
        out.json({**answer, **more, "masked": masked})
    else:
        out.line(version_line(saved, saved.version))
    if not saved.written:
        out.mention("already stored; nothing was written")
    mention_masked(saved.masked)
    mention_lifted(saved.lifted)
    if saved.changed:
        name = memory.name(saved)
        out.mention(f"the text was changed for safety: `perdure read {name}` shows it")


@contextmanager
def _given(text: str | None) -> Iterator[Callable[[str], str]]:
    """Yield a function that returns the text to save: the argument, stdin, or the editor's."""
    if text is None and sys.stdin.isatty():
        from perdure.surfaces.cli.edit import editing, find_editor

        with editing(find_editor("give the text after `perdure save`"), "memory") as typed:
            yield typed
    else:
        yield lambda _: piped() if text is None or text == STDIN else text
