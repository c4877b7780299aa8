"""`perdure remember`."""

import click

from perdure import Memory, RememberResult
from perdure.surfaces import out
from perdure.surfaces.cli.enforce import NOT_BLOCKING
from perdure.surfaces.cli.options import mention_lifted, with_project_memory
from perdure.surfaces.out import picked, shown_words


@click.command("remember")
@click.argument("text")
@click.option(
    "--kind",
    default="fact",
    help="rule, decision, rejected, preference, fact (the default), command, task or person.",
)
@click.option(
    "--replaces",
    multiple=True,
    metavar="NODE",
    help="The node, or the words, that it replaces. Repeatable.",
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
    """Store one statement.

    It is merged with a statement of the same meaning. A statement that it replaces or contradicts
    is superseded; if the contradiction is not certain, both stay, and the older one is marked as
    possibly outdated.
    """
    done = memory.remember(text, kind=kind, replaces=replaces)
    print_remembered(done, as_json=as_json)
    if enforce and not memory.enforce(done.uri, text=done.text).can_block:
        out.mention(NOT_BLOCKING)


def print_remembered(done: RememberResult, *, as_json: bool) -> None:
    if as_json:
        out.json(picked(done, "uri text outcome merged_with replaced doubted lifted"))
        return
    out.line(f"{done.outcome} {done.uri}: {shown_words(done.text)}")
    if done.merged_with and done.merged_with != done.text:
        out.line(f"merged with: {shown_words(done.merged_with)}")
    for each in done.replaced:
        out.line(f"no longer holds: {shown_words(each)}")
    for each in done.doubted:
        out.line(f"may be outdated: {shown_words(each)}")
    mention_lifted(done.lifted)
