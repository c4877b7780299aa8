"""`perdure completion`, and the completion of node names."""

import os
import re
from collections.abc import Callable
from itertools import islice

import click

from perdure.surfaces import out

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
_PROGRAM = "perdure"
_VARIABLE = "_PERDURE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_MOST = 500
_PLAIN = re.compile(r"[\w.@%+=/-]+")
"""Names that need no quoting in a shell. Others are not completed."""


def node_names(ctx: click.Context, _: object, incomplete: str) -> list[str]:
    """Return the names of nodes and folders that begin with what was typed."""
    return _names(ctx, incomplete)


def folder_names(ctx: click.Context, _: object, incomplete: str) -> list[str]:
    return [name for name in _names(ctx, incomplete) if name.endswith("/")]


def archived_names(ctx: click.Context, _: object, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, archived=True)


def _names(ctx: click.Context, typed: str, *, archived: bool = False) -> list[str]:
    from perdure.app.memory_reader import completions
    from perdure.surfaces.cli.options import Caller, caller_in

    try:
        options = {name: ctx.params.get(name) for name in Caller.__annotations__}
        caller = caller_in({**options, "session": options["session"] or ""})
        found = completions(os.environ, caller, typed, archived=archived)
        return list(islice(filter(_PLAIN.fullmatch, found), _MOST))
    except Exception:  # noqa: BLE001 - an error must not interrupt someone who types
        return []


def node_command(
    name: str, *, complete: Completer = node_names, cls: type[click.Command] | None = None
) -> Callable[[Callable[..., object]], click.Command]:
    """Return the decorator of a command whose first argument is a node."""
    from perdure.surfaces.cli.options import NAMES

    def decorated(command: Callable[..., object]) -> click.Command:
        argument = click.argument("node", shell_complete=complete)
        return click.command(name, cls=cls or click.Command, epilog=NAMES)(argument(command))

    return decorated


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print a script that completes commands, options and node names in a shell.

    \b
    bash: eval "$(perdure completion bash)" in ~/.bashrc; it needs bash 4.4
    zsh:  eval "$(perdure completion zsh)" in ~/.zshrc, after compinit
    fish: perdure completion fish > ~/.config/fish/completions/perdure.fish
    """  # noqa: D301 - click's mark for lines that it must not wrap
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"{shell} is not known. Fix: use one of {', '.join(SHELLS)}.")
    script = completion(click.Command(_PROGRAM), {}, _PROGRAM, _VARIABLE)
    out.write(script.source_template % script.source_vars())
