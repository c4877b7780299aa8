"""`perdure enforce`."""

import click

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import with_project_memory
from perdure.surfaces.out import picked, shown_words

NOT_BLOCKING = "the rule names nothing that must not be used, so no call can be refused for it"


@node_command("enforce")
@click.option(
    "--text", default="", metavar="STATEMENT", help="Enforce only this statement of the node."
)
@click.option("--off", is_flag=True, help="Stop enforcing it.")
@with_project_memory()
def enforce_command(memory: Memory, node: str, *, text: str, off: bool, as_json: bool) -> None:
    """Refuse tool calls of agents that break a rule.

    NODE may be an id from a briefing or a reminder, such as ~4yeh. Each tool call that uses what
    the rule forbids is refused, and the agent gets the rule as the reason. Rules that are not
    enforced are only shown.
    """
    done = memory.enforce(node, text=text, enforced=not off)
    if as_json:
        out.json(picked(done, "uri statements can_block"))
        return
    if not done.statements:
        out.line(f"no statement of {done.uri} is enforced")
    for each in done.statements:
        out.line(f"enforced: {shown_words(each)}")
    if done.statements and not done.can_block:
        out.mention(NOT_BLOCKING)
