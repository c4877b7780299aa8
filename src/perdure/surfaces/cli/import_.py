"""`perdure import`."""

import os
from pathlib import Path
from typing import Any

import click

from perdure import ImportReport, import_formats, is_export
from perdure.agents.past_sessions import AGENTS_WITH_HISTORY
from perdure.app import import_memory
from perdure.dataclass import asdict
from perdure.errors import InvalidValueError
from perdure.surfaces import out
from perdure.surfaces.cli.install import index_sessions
from perdure.surfaces.cli.options import (
    as_json,
    caller_in,
    caller_options,
    mention_number_masked,
    opened,
    project_in,
    project_option,
)
from perdure.surfaces.out import counted, picked, shown

_EXPORT = "perdure"
"""The format of an exported memory; it is imported as a whole, not item by item."""
_RESULTS = {
    "restored": "this memory is now the same as the exported one",
    "continued": "this memory now continues with the exported changes",
    "known": "the export has nothing new",
}


class _FormatName(click.Choice[str]):
    """A built-in format, or one that an installed package registers."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        self.choices = (*import_formats(), _EXPORT)
        return super().convert(value, param, ctx)


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option(
    "--history",
    type=click.Choice(AGENTS_WITH_HISTORY),
    help="Import the past sessions of an agent on this machine, instead of PATH.",
)
@click.option(
    "--format",
    type=_FormatName([*import_formats(), _EXPORT]),
    help="The format of PATH. Default: detected from its files.",
)
@click.option("--into", metavar="NAME", default="", help="Documents: import into resources/NAME.")
@click.option("--of", metavar="ID", default="", help="Memories: only this user's, as named there.")
@click.option("--archive-gone", is_flag=True, help="Documents: archive those whose file is gone.")
@click.option("--learn", is_flag=True, help="Conversations: learn memories from them.")
@click.option("--mask-secrets", is_flag=True, help="Mask secrets, instead of refusing the item.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@as_json()
@project_option
@caller_options
def import_command(
    path: Path | None,
    *,
    history: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - as click has checked them
) -> None:
    """Import memories from another program, or a Perdure export.

    PATH is a data export of ChatGPT or Claude (the archive itself, or conversations.json), sessions
    of Claude Code or Codex, SpecStory histories, an export of mem0 or Letta, the memory.json of
    MCP's memory server, notes of basic-memory, rules for agents (CLAUDE.md, AGENTS.md,
    .cursor/rules), or a folder of Markdown. Items that were imported before are skipped, and items
    that are refused are counted. Nothing is learned from conversations without --learn, which you
    can add in a later import. If there is no memory yet, a folder written by `perdure export`
    becomes the memory here, with its history. With --history, the past sessions of an agent are
    stored and learned from, as its hooks do.
    """
    if (path is None) == (history is None):
        raise click.UsageError("Give either PATH or --history. Fix: name what to import.")
    if history is not None:
        index_sessions(history)
        return
    assert path is not None  # noqa: S101 - one of them is
    project, caller, dry_run = project_in(options), caller_in(options), options["dry_run"]
    if options["format"] == _EXPORT or (options["format"] is None and is_export(path)):
        _import_memory(path, dry_run=dry_run, as_json=as_json)
        return
    with opened(caller, project) as memory, out.progress("importing") as show:
        done = memory.import_from(path, progress=show, **options)
    if as_json:
        out.json(_json(done, dry_run=dry_run))
    else:
        _print(done, dry_run=dry_run, archive_gone=options["archive_gone"])
        sessions = done.totals().get("sessions", {})
        if not options["learn"] and (count := sessions.get("new", 0) + sessions.get("changed", 0)):
            out.mention(f"to learn from {counted(count, 'session')}: import again with --learn")
    if done.refused:
        others = "nothing was imported" if dry_run else "the others were imported"
        raise InvalidValueError(
            f"{counted(done.refused, 'item')} refused; {others}. Fix: see above, then import again."
        )


def _print(done: ImportReport, *, dry_run: bool, archive_gone: bool) -> None:
    if dry_run:
        out.mention("dry run: nothing was written")
    rows = [(kind, *map(str, states.values())) for kind, states in done.totals().items()]
    if not out.table((done.format, *next(iter(done.totals().values()), ())), rows):
        out.line("there is nothing to import")
    if archive_gone and done.gone:
        out.line(f"{counted(done.gone, 'document')} without a file archived")
    if done.learned:
        counts = ", ".join(f"{count} {name}" for name, count in done.learned.items())
        out.line(f"learned: {counts}")
    mention_number_masked(done.masked, [])
    for finding in done.findings:
        out.mention(f"{'refused' if finding.refused else 'note'}: {shown(str(finding))}")
    if done.more:
        out.mention(f"and {done.more:,} more")


def _json(done: ImportReport, *, dry_run: bool) -> dict[str, object]:
    return {
        "format": done.format,
        "dry_run": dry_run,
        "counts": done.totals(),
        **picked(done, "refused gone learned masked"),
        "findings": [asdict(each) for each in done.findings],
    }


def _import_memory(folder: Path, *, dry_run: bool, as_json: bool) -> None:
    with out.progress("importing") as show:
        done = import_memory(os.environ, folder, dry_run=dry_run, progress=show)
    number = counted(done.files, "file")
    if done.how is None:
        sentence = f"complete: {number}, history up to entry {done.position}"
    else:
        sentence = f"{_RESULTS[done.how.value]}: wrote {number}"
    if not as_json:
        out.line(sentence)
    elif done.how is None:
        out.json({"dry_run": True, "position": done.position, "files": done.files})
    else:
        out.json({**asdict(done), "how": done.how.value})
