"""`perdure hook`."""

import click

from perdure.agents.hooks import run


@click.command(
    "hook",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def hook_command(words: tuple[str, ...]) -> None:
    """Answer an agent at a turn of its session.

    WORDS are the event, such as session-start, then --agent NAME, --strict (tell what goes wrong,
    and how), --foreground (keep the session before it ends) and --seconds N. The agent's JSON is
    read from stdin.
    """
    run(words)
