"""`perdure history`. Its commands are imported when they are asked for; no other one pays."""

import click

from perdure.surfaces.lazy import Commands, Later

_COMMANDS = {
    "log": ("reading", "Show what happened, or the versions of KEY."),
    "show": ("reading", "Print the text of KEY, byte for byte."),
    "diff": ("reading", "Show what changed in KEY from version A to B."),
    "blame": ("reading", "Show which version wrote each line of KEY, and who."),
    "restore": ("restoring", "Write the text of an earlier VERSION of KEY as a new version."),
    "verify": ("verifying", "Look at every byte, and say what is damaged."),
    "prove": ("proving", "Prove that KEY had its text, and since when."),
    "gc": ("sweeping", "Erase content that was withdrawn, for good."),
    "adopt": ("adopting", "Take over the history of a memory that was moved or renamed."),
}
_SECTIONS = {
    "Commands": {
        name: Later(f"{__name__}.{module}:{name}_command", told)
        for name, (module, told) in _COMMANDS.items()
    }
}


@click.group(cls=Commands, sections=_SECTIONS)
def history() -> None:
    """See, compare, restore and prove every version of every text.

    KEY names a text by its place in the memory: notes/plan.md. VERSION is a number that `log KEY`
    shows. A moment is a date (2026-03-01, all of that day), a time (2026-03-01T10:00:00Z; without
    a zone, in UTC) or a position that `log` shows.
    """
