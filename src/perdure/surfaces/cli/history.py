"""`perdure history`: its commands are imported when they run."""

import click

from perdure.surfaces.cli.group import LazyCommand, LazyGroup

_COMMANDS = {
    "log": ("texts", "Show what happened, or the versions of KEY."),
    "show": ("texts", "Print the text of KEY, byte for byte."),
    "diff": ("texts", "Show what changed in KEY from version A to B."),
    "blame": ("texts", "Show which version wrote each line of KEY, and who."),
    "restore": ("texts", "Write the text of an earlier VERSION of KEY as a new version."),
    "verify": ("verify", "Look at every byte, and say what is damaged."),
    "prove": ("prove", "Prove that KEY had its text, and since when."),
    "gc": ("gc", "Erase content that was withdrawn, for good."),
}
_SECTIONS = {
    "Commands": {
        name: LazyCommand(f"{__package__}.{module}:{name}_command", told)
        for name, (module, told) in _COMMANDS.items()
    }
}


@click.group("history", cls=LazyGroup, sections=_SECTIONS)
def history_command() -> None:
    """See, compare, restore and prove every version of every text.

    KEY names a text by its place in the memory: notes/plan.md. VERSION is a number that `log KEY`
    shows. A moment is a date (2026-03-01, all of that day), a time (2026-03-01T10:00:00Z; without
    a zone, in UTC) or a position that `log` shows.
    """
