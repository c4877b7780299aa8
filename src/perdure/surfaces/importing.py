"""`import`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypedDict, Unpack

import click

from perdure.engine.importing.choosing import (
    EXPORT,
    FORMATS,
    detected,
    format_named,
    is_installed,
    is_memory,
)
from perdure.engine.importing.importing import Importing, Report, Wishes
from perdure.engine.importing.sources import Source
from perdure.engine.importing.standing import State
from perdure.errors import InvalidValueError
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.carrying.arriving import take_in
from perdure.surfaces.cli.secrets import mention_number_masked
from perdure.surfaces.nodes.opening import Caller, Memory, opened, with_caller
from perdure.surfaces.telling import (
    animated,
    counted,
    mention,
    shown,
    tell_json,
    tell_line,
    tell_table,
)


class Options(TypedDict):
    format_: str | None
    into: str
    of: str
    archive_gone: bool
    learn: bool
    mask_secrets: bool
    dry_run: bool


class _FormatName(click.Choice[str]):
    """A format of ours, or one of an installed package."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices and is_installed(value):
            return value
        return super().convert(value, param, ctx)


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=_FormatName([*FORMATS, EXPORT]),
    help="What it is; seen by its files.",
)
@click.option("--into", metavar="NAME", default="", help="Documents: into which resources.")
@click.option("--of", metavar="ID", default="", help="Memories: only this user's, as named there.")
@click.option("--archive-gone", is_flag=True, help="Documents: put away those without a file.")
@click.option("--learn", is_flag=True, help="Conversations: make memories of what was said.")
@click.option("--mask-secrets", is_flag=True, help="Mask secrets; else what has one is refused.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@as_json(ONE_OBJECT)
@with_caller
def import_command(
    path: Path, *, as_json: bool, caller: Caller, **options: Unpack[Options]
) -> None:
    """Take in what other programs remember, or a memory that was exported.

    PATH is a data export of ChatGPT or Claude (the archive as it is, or conversations.json),
    sessions of Claude Code or Codex, an export of mem0, memory.json of MCP's memory server, or a
    folder of Markdown. What is there already is passed over: import as often as you like. A folder
    that `perdure export` wrote becomes the memory here, with its history, if there is none yet.
    """
    if is_memory(path, options["format_"]):
        take_in(path, dry_run=options["dry_run"], as_json=as_json)
        return
    with opened(caller) as memory:
        _import(memory, path, options, as_json=as_json)


def _import(memory: Memory, path: Path, options: Options, *, as_json: bool) -> None:
    with closing(Source(path)) as source:
        format_ = format_named(options["format_"]) if options["format_"] else detected(source)
        context = memory.context
        importing = Importing(
            context.memory.for_caller(memory.request),
            context.nodes,
            context.relations,
            _wishes(options),
        )
        with _progress(source) as progress:
            report = importing.run(format_, source, progress)
    if as_json:
        tell_json(_json(report, format_.name, dry_run=options["dry_run"]))
    else:
        _tell(report, format_.name, options)
    if report.refused:
        raise InvalidValueError(
            f"{counted(report.refused, 'item')} did not go in; the rest did. "
            "Fix: see above, then import again."
        )


def _wishes(options: Options) -> Wishes:
    return Wishes(
        options["dry_run"],
        options["into"],
        options["of"],
        options["archive_gone"],
        options["learn"],
        options["mask_secrets"],
    )


def _tell(report: Report, name: str, options: Options) -> None:
    if options["dry_run"]:
        mention("nothing is written; this is what would be")
    states = [state.value for state in State]
    rows = (
        (kind, *(str(counts[state]) for state in State)) for kind, counts in report.counts.items()
    )
    if not tell_table((name, *states), rows):
        tell_line("there is nothing to import")
    if options["archive_gone"] and report.gone:
        tell_line(f"{counted(report.gone, 'document')} without a file put away")
    if report.learned:
        told = ", ".join(f"{count} {name}" for name, count in report.learned.items())
        tell_line(f"learned: {told}")
    mention_number_masked(report.masked, [])
    for finding in report.findings:
        mention(f"{'refused' if finding.refused else 'told'}: {shown(str(finding))}")
    if report.more:
        mention(f"and {report.more:,} more")


def _json(report: Report, name: str, *, dry_run: bool) -> dict[str, object]:
    return {
        "format": name,
        "dry_run": dry_run,
        "counts": {
            kind: {state.value: counts[state] for state in State}
            for kind, counts in report.counts.items()
        },
        "refused": report.refused,
        "gone": report.gone,
        "learned": dict(report.learned),
        "masked": report.masked,
        "findings": [
            {
                "file": each.file,
                "where": each.where,
                "what": each.what,
                "fix": each.fix,
                "refused": each.refused,
            }
            for each in report.findings
        ],
    }


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[], None]]:
    """Show on stderr how much of the files was read, if somebody looks."""
    if not animated():
        yield lambda: None
        return
    with click.progressbar(length=source.size, label="importing", file=sys.stderr) as bar:
        yield lambda: bar.update(source.bytes_read - bar.pos)
