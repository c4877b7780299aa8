"""`perdure review`."""

import click

from perdure import Memory
from perdure.model.trust import describe_origins
from perdure.model.values import shortened
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, with_project_memory
from perdure.surfaces.cli.remember import print_remembered
from perdure.surfaces.out import counted, picked, shown_words

_LONGEST = 160
_ACTIONS = ("list", "accept", "edit", "reject", "judge")
_FIELDS = "id text kind score session_id message project origins reason? uri?"


@click.command("review")
@click.argument("action", type=click.Choice(_ACTIONS), default="list")
@click.argument("candidates", nargs=-1, metavar="[ID]...")
@click.option("--text", default="", help="Store this text instead, with accept or edit.")
@click.option(
    "--kind", default="", help="rule, decision, rejected, preference, fact, command, task."
)
@with_project_memory(OBJECT_PER_LINE)
def review_command(  # noqa: PLR0913 - an option each
    memory: Memory, action: str, candidates: tuple[str, ...], *, text: str, kind: str, as_json: bool
) -> None:
    """Accept or reject sentences of your sessions as memories.

    Lists candidates: sentences of your sessions in this project that may be worth remembering and
    that no rule has stored, the likeliest first. Accept them by their ids, edit them first, or
    reject them; rejected ones are never proposed again. Candidates from a web page, another MCP
    server or a paste are labelled, and stored as facts unless you give --kind. `judge` asks the
    configured language model about up to 20 of the others: it stores some, and the rest stay in the
    list. Listed first are statements whose branch is gone and was never merged: accept keeps one
    for this branch too, reject forgets it.
    """
    if action == "list":
        _list(memory, as_json=as_json)
        return
    if action == "judge":
        _judge(memory, as_json=as_json)
        return
    if not candidates:
        raise click.UsageError("Missing ID. Fix: take one from `perdure review`.")
    if text and (len(candidates) > 1 or action == "reject"):
        raise click.UsageError("--text needs one candidate. Fix: accept one at a time.")
    for each in candidates:
        if action == "reject":
            gone = memory.reject(each)
            if as_json:
                out.json(picked(gone, _FIELDS))
            else:
                done = "forgotten" if gone.uri else "never proposed again"
                out.line(f"{done}: {shown_words(gone.text)}")
            continue
        words = text or (_edited(memory, each) if action == "edit" else "")
        print_remembered(memory.accept(each, text=words, kind=kind), as_json=as_json)


def _judge(memory: Memory, *, as_json: bool) -> None:
    done = memory.judge_candidates()
    for each in done.remembered:
        print_remembered(each, as_json=as_json)
    if not as_json:
        left = counted(len(done.refused) + done.waiting, "candidate")
        out.mention(f"{counted(len(done.remembered), 'statement')} stored; {left} left for you")


def _edited(memory: Memory, id_: str) -> str:
    found = next(
        (each for each in memory.candidates(limit=10_000) if each.id.startswith(id_)), None
    )
    text = click.edit(found.text) if found else None
    return " ".join(text.split()) if text else ""


def _list(memory: Memory, *, as_json: bool) -> None:
    found = memory.candidates()
    for each in found:
        if as_json:
            out.json(picked(each, _FIELDS))
        else:
            text = shortened(" ".join(each.text.split()), _LONGEST)
            why = f" (remove it? {shown_words(each.reason)})" if each.reason else ""
            out.line(f"{each.id}  {each.kind:10}  {shown_words(text)}{why}")
            if each.origins:
                out.line(f"{'':14}not your own words: the session {describe_origins(each.origins)}")
    if not as_json:
        out.mention(f"{counted(len(found), 'candidate')}; `perdure review accept ID` stores one")
