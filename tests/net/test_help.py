"""The help of every command is as recorded."""

from collections.abc import Iterator

import click
from click.testing import CliRunner

from perdure.surfaces.cli import cli
from tests.net.recording import same_as_recorded

_COLUMNS = "100"


def _words(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words that name each command, groups before what is in them."""
    yield above
    context = click.Context(group)
    for name in sorted({*group.list_commands(context), *group.commands}):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _words(command, (*above, name))
        else:
            yield (*above, name)


def _help(words: tuple[str, ...]) -> str:
    runner = CliRunner(env={"COLUMNS": _COLUMNS, "NO_COLOR": "1"})
    result = runner.invoke(cli, [*words, "--help"], prog_name="perdure")
    assert result.exit_code == 0, (words, result.output)
    return f"$ {' '.join(('perdure', *words, '--help'))}\n{result.output}"


def test_help_of_every_command_is_as_recorded() -> None:
    same_as_recorded("help.txt", "\n".join(_help(words) for words in _words(cli)))
