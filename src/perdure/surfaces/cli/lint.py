"""`perdure lint`."""

import click

from perdure import LintFinding, Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import folder_names
from perdure.surfaces.cli.options import NAMES, OBJECT_PER_LINE, with_memory
from perdure.surfaces.out import counted, picked, shown, styled

_FIELDS = "file line? code error=is_error what fix uri?"


@click.command("lint", epilog=NAMES)
@click.argument("folder", required=False, shell_complete=folder_names)
@with_memory(OBJECT_PER_LINE)
def lint_command(memory: Memory, folder: str | None, *, as_json: bool) -> None:
    """Check the form of notes: fields, names, dates and links.

    Finds missing fields, invalid names and dates, broken links, cyclic or branching chains of
    supersession, and conflict copies of sync clients; in FOLDER, or in the whole account. Changes
    nothing. Exits with 1 if there are errors.
    """
    found = memory.lint(folder)
    if as_json:
        out.json(*(picked(each, _FIELDS) for each in found.findings))
    else:
        for problem in found.findings:
            out.line(_line(problem))
        warnings = len(found.findings) - found.errors
        out.mention(
            f"{counted(found.notes, 'note')}: {counted(found.errors, 'error')}, "
            f"{counted(warnings, 'warning')}"
        )
    click.get_current_context().exit(1 if found.errors else 0)


def _line(problem: LintFinding) -> str:
    kind = "error" if problem.is_error else "warning"
    level = styled(kind, fg="red" if problem.is_error else "yellow")
    where = f"{problem.file}:{problem.line}" if problem.line else problem.file
    what, fix = shown(problem.what), shown(problem.fix)
    return f"{shown(where)}: {level} {problem.code}: {what}. Fix: {fix}"
