"""Every command of the tree, and arguments to try it with."""

from collections.abc import Iterator
from dataclasses import dataclass

import click

from perdure.surfaces.cli import cli


@dataclass(frozen=True)
class Found:
    """A command that does something, and the words that name it."""

    words: tuple[str, ...]
    command: click.Command

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def arguments(self) -> list[click.Argument]:
        return [each for each in self.command.params if isinstance(each, click.Argument)]

    @property
    def options(self) -> list[click.Option]:
        return [each for each in self.command.params if isinstance(each, click.Option)]

    @property
    def is_required(self) -> int:
        return sum(each.required for each in self.arguments)

    def has(self, option: str) -> bool:
        return any(option in each.opts for each in self.options)


def commands(group: click.Group = cli, words: tuple[str, ...] = ()) -> Iterator[Found]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield Found((*words, name), command)


COMMANDS = tuple(commands())
