"""`perdure import`."""

import os
from pathlib import Path
from typing import Any

import click

from perdure import ImportReport, import_formats, is_export
from perdure.agents.history import AGENTS_WITH_HISTORY
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
from perdure.surfaces.telling import counted, picked, shown

_EXPORT = "perdure"
"""The format of a memory that was exported; it is taken in whole, and not item by item."""
_ARRIVED = {
    "restored": "this memory is now the same as that one",
    "continued": "this memory now goes on as that one does",
    "known": "nothing in it is new",
}


class _FormatName(click.Choice[str]):
    """A built-in format, or one of an installed package."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        self.choices = (*import_formats(), _EXPORT)
        return super().convert(value, param, ctx)


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option(
    "--history",
    type=click.Choice(AGENTS_WITH_HISTORY),
    help="Instead of PATH: the past sessions of an agent on this machine.",
)
@click.option(
    "--format",
    type=_FormatName([*import_formats(), _EXPORT]),
    help="What it is; seen by its files.",
)
@click.option("--into", metavar="NAME", default="", help="Documents: into which resources.")
@click.option("--of", metavar="ID", default="", help="Memories: only this user's, as named there.")
@click.option("--archive-gone", is_flag=True, help="Documents: put away those without a file.")
@click.option("--learn", is_flag=True, help="Conversations: make memories of what was said.")
@click.option("--mask-secrets", is_flag=True, help="Mask secrets; else what has one is refused.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
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
    """Take in what other programs remember, or a memory that was exported.

    PATH is a data export of ChatGPT or Claude (the archive as it is, or conversations.json),
    sessions of Claude Code or Codex, histories of SpecStory, an export of mem0 or Letta, the
    memory.json of MCP's memory server, notes of basic-memory, rules for agents (CLAUDE.md,
    AGENTS.md, .cursor/rules), or a folder of Markdown. What is there already is passed over: import
    as often as you like. What does not go in is counted. Without --learn, which can be added later,
    nothing is learned from conversations. A folder
    that `perdure export` wrote becomes the memory here, with its history, if there is none yet.
    With --history, the past sessions of an agent are kept and learned from, as its hooks do it.
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
        _tell(done, dry_run=dry_run, archive_gone=options["archive_gone"])
        arrived = done.totals().get("sessions", {})
        if not options["learn"] and (count := arrived.get("new", 0) + arrived.get("changed", 0)):
            out.mention(f"to learn from {counted(count, 'session')}: import again with --learn")
    if done.refused:
        raise InvalidValueError(
            f"{counted(done.refused, 'item')} did not go in; the rest did. "
            "Fix: see above, then import again."
        )


def _tell(done: ImportReport, *, dry_run: bool, archive_gone: bool) -> None:
    if dry_run:
        out.mention("nothing is written; this is what would be")
    rows = [(kind, *map(str, states.values())) for kind, states in done.totals().items()]
    if not out.table((done.format, *next(iter(done.totals().values()), ())), rows):
        out.line("there is nothing to import")
    if archive_gone and done.gone:
        out.line(f"{counted(done.gone, 'document')} without a file put away")
    if done.learned:
        told = ", ".join(f"{count} {name}" for name, count in done.learned.items())
        out.line(f"learned: {told}")
    mention_number_masked(done.masked, [])
    for finding in done.findings:
        out.mention(f"{'refused' if finding.refused else 'told'}: {shown(str(finding))}")
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
        sentence = f"whole: {number}, history up to entry {done.position}"
    else:
        sentence = f"{_ARRIVED[done.how.value]}: wrote {number}"
    if not as_json:
        out.line(sentence)
    elif done.how is None:
        out.json({"dry_run": True, "position": done.position, "files": done.files})
    else:
        out.json({**asdict(done), "how": done.how.value})
