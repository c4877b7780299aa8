"""`perdure enforce`."""

import click

from perdure import Enforcement, Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import with_project_memory
from perdure.surfaces.telling import picked, shown_words


@node_command("enforce")
@click.option("--text", default="", metavar="STATEMENT", help="Only this statement of the node.")
@click.option("--off", is_flag=True, help="Do not enforce it any more.")
@with_project_memory()
def enforce_command(memory: Memory, node: str, *, text: str, off: bool, as_json: bool) -> None:
    """Let agents not break a rule.

    NODE may be an id of a briefing or of a reminder, as ~4yeh. A tool call that uses what the rule
    says not to use is refused then, each time, and the agent gets the rule as the reason. Without
    this, a rule is only shown.
    """
    tell(memory.enforce(node, text=text, enforced=not off), as_json=as_json)


def tell(done: Enforcement, *, as_json: bool) -> None:
    if as_json:
        out.json(picked(done, "uri statements can_block"))
        return
    if not done.statements:
        out.line(f"nothing of {done.uri} is enforced")
    for each in done.statements:
        out.line(f"enforced: {shown_words(each)}")
    if done.statements and not done.can_block:
        out.mention("it names nothing that is not to be used, so no call can be refused for it")
