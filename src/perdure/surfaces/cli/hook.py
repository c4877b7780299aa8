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
    """Answer an event of an agent's session.

    WORDS are the event, such as session-start, then --agent NAME, --strict (report errors),
    --foreground (store the session before the hook ends) and --seconds N. The agent's JSON is read
    from stdin.
    """
    run(words)
