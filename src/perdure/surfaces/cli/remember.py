"""`perdure remember`."""

import click

from perdure import Memory, RememberResult
from perdure.surfaces import out
from perdure.surfaces.cli.options import mention_lifted, with_project_memory
from perdure.surfaces.telling import picked, shown_words


@click.command("remember")
@click.argument("text")
@click.option(
    "--kind",
    default="fact",
    help="rule, decision, rejected, preference, fact (the default), command, task or person.",
)
@click.option(
    "--replaces", multiple=True, metavar="NODE", help="What it replaces: a node, or its words."
)
@click.option("--enforce", is_flag=True, help="Refuse tool calls of agents that break it.")
@with_project_memory()
def remember_command(  # noqa: PLR0913 - an argument for each option
    memory: Memory,
    text: str,
    *,
    kind: str,
    replaces: tuple[str, ...],
    enforce: bool,
    as_json: bool,
) -> None:
    """Keep one statement.

    It becomes one with a statement that says the same. What it replaces or contradicts ends; where
    that is not certain, both are kept, and the older one says since when it may be outdated.
    """
    done = memory.remember(text, kind=kind, replaces=replaces)
    tell(done, as_json=as_json)
    if enforce:
        enforced = memory.enforce(done.uri, text=done.text)
        if not enforced.can_block:
            out.mention("it names nothing that is not to be used, so no call can be refused for it")


def tell(done: RememberResult, *, as_json: bool) -> None:
    if as_json:
        out.json(picked(done, "uri text outcome merged_with replaced doubted lifted"))
        return
    out.line(f"{done.outcome} {done.uri}: {shown_words(done.text)}")
    if done.merged_with and done.merged_with != done.text:
        out.line(f"one with: {shown_words(done.merged_with)}")
    for each in done.replaced:
        out.line(f"no longer holds: {shown_words(each)}")
    for each in done.doubted:
        out.line(f"may be outdated: {shown_words(each)}")
    mention_lifted(done.lifted)
