"""`completion`."""

import click
from click.shell_completion import get_completion_class

from perdure.surfaces.telling import tell

_PROGRAM = "perdure"
_VARIABLE = "_PERDURE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print what makes a shell complete commands, options and names of nodes.

    \b
    bash: eval "$(perdure completion bash)" in ~/.bashrc; it needs bash 4.4
    zsh:  eval "$(perdure completion zsh)" in ~/.zshrc, after compinit
    fish: perdure completion fish > ~/.config/fish/completions/perdure.fish
    """  # noqa: D301 - click's mark for lines that are not to be wrapped
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"{shell} is not known. Fix: use one of {', '.join(SHELLS)}.")
    script = completion(click.Command(_PROGRAM), {}, _PROGRAM, _VARIABLE)
    tell(script.source_template % script.source_vars())
