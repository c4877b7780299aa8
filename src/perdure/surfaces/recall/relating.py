"""`related`."""

from collections.abc import Iterator
from shlex import quote

import click

from perdure.app.places import Counted
from perdure.engine.related.relating import Related, Sources, Suggestion, sampled
from perdure.engine.worker import Worker
from perdure.model import Uri
from perdure.surfaces.asking import OBJECT_PER_LINE, as_json
from perdure.surfaces.nodes.completing import node_names
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import mention, shown, tell_json, tell_line

_SAMPLE = 200


@click.command("related", epilog=NAMES)
@click.argument("node", required=False, shell_complete=node_names)
@click.option("--top", type=click.IntRange(1, 1000), default=10, help="At most so many; 10.")
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=_SAMPLE,
    help=f"Without NODE: for so many of your notes; {_SAMPLE}.",
)
@as_json(OBJECT_PER_LINE)
@with_memory
def related_command(
    memory: Memory, node: str | None, top: int, sample: int, *, as_json: bool
) -> None:
    """Suggest links between notes that have none yet.

    For NODE, or for some of all notes, it looks which others are about the same: by words and
    meaning, by whom they speak of, by the conversation that they come from, and by the notes
    between them; and says why. It relates nothing: it prints the command that does.
    """
    place = None if node is None else memory.node_place(node)
    if place is not None:
        memory.node(place)
    related, notes = _opened(memory)
    if place is not None:
        found = related.of(str(place), top)
    else:
        every = list(Counted(memory.reader, memory.request).memories())
        found = related.among(list(sampled(every, sample)), top)
        if len(every) > sample:
            notes.append(f"looked at {sample:,} of {len(every):,} notes; --sample looks at more")
    if as_json:
        tell_json(*map(_json, found))
    else:
        for each in found:
            for line in _lines(memory, each):
                tell_line(line)
        if not found:
            mention("no links are missing, as far as can be seen")
    for note in notes:
        mention(f"note: {note}")


def _opened(memory: Memory) -> tuple[Related, list[str]]:
    """Return who suggests, with an index that is up to date; and what is to be said of it."""
    context, account = memory.context, memory.request.account_id
    present = context.indexes.present(account)
    Worker(context.outbox, present.following).work(account)
    embedder = None if present.meanwhile else context.indexes.embedder
    sources = Sources(memory.reader, memory.relations, present.following.index, embedder)
    notes = [] if embedder is not None else ["only words were compared, and no meanings"]
    return Related(sources, memory.request), notes


def _lines(memory: Memory, each: Suggestion) -> Iterator[str]:
    one, other = (memory.name(Uri.parse(uri)) for uri in (each.uri, each.to))
    yield f"{shown(one)} and {shown(other)}  {each.score:.2f}"
    for reason in each.reasons:
        yield f"    {shown(reason.said)}"
    yield f"    perdure relate {quote(one)} {quote(other)} --type related_to"


def _json(each: Suggestion) -> dict[str, object]:
    return {
        "uri": each.uri,
        "to": each.to,
        "score": each.score,
        "reasons": [
            {"kind": reason.kind.value, "weight": round(reason.weight, 3), "said": reason.said}
            for reason in each.reasons
        ],
        "command": ["perdure", "relate", each.uri, each.to, "--type", "related_to"],
    }
