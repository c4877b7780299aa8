"""`index`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

from perdure.engine.building import Progress
from perdure.engine.upkeep import Proof
from perdure.errors import DamageError
from perdure.model import Uri
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.opening import Memory, demand_governing, with_memory
from perdure.surfaces.telling import (
    animated,
    counted,
    mention,
    shown,
    sized,
    tell_json,
    tell_line,
    tell_table,
)

if TYPE_CHECKING:
    from perdure.app.shelf import Listed

_MAY = "look after its index"
_MOST_NAMED = 3


@click.group("index")
def index_command() -> None:
    """Look after the index by which memories are found.

    It is derived from your memories: whatever happens to it, it can be made again.
    """


@index_command.command("status")
@as_json(ONE_OBJECT)
@with_memory
def _status(memory: Memory, *, as_json: bool) -> None:
    """Say what the index is made of, and how far it is behind."""
    demand_governing(memory, _MAY)
    indexes, account = memory.context.indexes, memory.request.account_id
    following = indexes.upkeep.following
    waiting = memory.context.outbox.list_unfinished(account)
    told = {
        "index": unquote(indexes.name),
        "semantic": indexes.embedder is not None,
        "built": following.index.cursor(account) > 0,
        "position": following.index.cursor(account),
        "newest": memory.context.recorded.history.position(),
        "places": len(following.index.stamps(account)),
        "behind": len(following.behind(account)),
        "waiting": len(waiting),
        "dead": sum(event.status.value == "dead" for _, event in waiting),
    }
    present, listed = indexes.present(account), indexes.listed(account)
    if as_json:
        tell_json({**told, "indexes": [_listed_json(each) for each in listed]})
        return
    tell_table(("what", "is"), ((name, shown(str(value))) for name, value in told.items()))
    tell_line("")
    tell_table(("places", "size", "finished", "answers", "index"), map(_listed_row, listed))
    if present.meanwhile:
        for hint in present.hints():
            mention(hint.text)
    elif told["behind"] or not told["built"]:
        mention("the next recall brings it up to date, or `perdure index rebuild` now")


def _listed_row(each: "Listed") -> tuple[str, ...]:
    finished, answers = str(each.position > 0), str(each.answers)
    return f"{each.places:,}", sized(each.size), finished, answers, shown(unquote(each.name))


def _listed_json(each: "Listed") -> dict[str, object]:
    return {
        "index": unquote(each.name),
        "places": each.places,
        "bytes": each.size,
        "finished": each.position > 0,
        "answers": each.answers,
    }


@index_command.command("rebuild")
@as_json(ONE_OBJECT)
@with_memory
def _rebuild(memory: Memory, *, as_json: bool) -> None:
    """Throw the index away and make it again.

    Vectors that were made before are not made again.
    """
    demand_governing(memory, _MAY)
    upkeep, account = memory.context.indexes.upkeep, memory.request.account_id
    with _progress(sum(1 for _ in upkeep.places(account)), "indexing") as progress:
        done = upkeep.rebuild(account, progress)
    failed = {uri: str(error) for uri, error in done.failed.items()}
    if as_json:
        tell_json({"indexed": len(done.places), "position": done.position, "failed": failed})
    else:
        tell_line(f"indexed {counted(len(done.places), 'place')}")
    for uri, error in failed.items():
        mention(f"left out: {uri}: {shown(error)}")


@index_command.command("verify")
@click.option("--heal", is_flag=True, help="Make right what is not.")
@as_json(ONE_OBJECT)
@with_memory
def _verify(memory: Memory, *, heal: bool, as_json: bool) -> None:
    """Prove that the index holds what your memories say, and nothing else.

    Every record is made again and compared. The root is one digest of all that the index should
    hold: it is the same wherever the memories and the model are the same.
    """
    demand_governing(memory, _MAY)
    upkeep, account = memory.context.indexes.upkeep, memory.request.account_id
    with suppress(DamageError):  # that is found below
        memory.context.memory.for_caller(memory.request).settle()  # what is only behind is right
    with _progress(sum(1 for _ in upkeep.places(account)), "comparing") as progress:
        proof = upkeep.verify(account, heal=heal, progress=progress)
    notes = [note.uri for note in memory.context.repair.notes(memory.request)]
    if as_json:
        tell_json({**_json(proof, healed=heal), "notes": notes})
    else:
        _tell(proof, healed=heal)
    if notes:
        names = ", ".join(memory.name(Uri.parse(uri)) for uri in notes[:_MOST_NAMED])
        more = "" if len(notes) <= _MOST_NAMED else ", …"
        no_nodes = f"{counted(len(notes), 'text')} in no index, being no node yet: {names}{more}"
        mention(f"{no_nodes}. Fix: run `perdure repair --apply`")
    if not proof.holds and not heal:
        wrong = f"differs in {counted(len(proof.differences), 'place')}"
        raise DamageError(
            f"the index {'is damaged' if proof.damage else wrong}. "
            "Fix: run `perdure index verify --heal`."
        )


@index_command.command("prune")
@as_json(ONE_OBJECT)
@with_memory
def _prune(memory: Memory, *, as_json: bool) -> None:
    """Remove the indexes of other models, once they answer no more.

    It is for all accounts. The index of the model that is configured stays, and so does one that
    answers until that is made. Vectors stay too: who goes back to a model does not pay again.
    """
    demand_governing(memory, _MAY)
    gone = memory.context.indexes.prune()
    if as_json:
        tell_json({"removed": [{"index": unquote(name), "bytes": size} for name, size in gone]})
        return
    for name, size in gone:
        tell_line(f"removed {shown(unquote(name))}, {sized(size)}")
    if not gone:
        tell_line("there is nothing to remove")


def _tell(proof: Proof, *, healed: bool) -> None:
    for difference in proof.differences:
        tell_line(f"{difference.kind.value}: {difference.uri}")
    if proof.damage:
        tell_line(f"damaged: {shown(proof.damage)}")
    for uri, error in proof.failed:
        mention(f"left out: {uri}: {shown(error)}")
    if proof.holds:
        records = counted(proof.records, "record")
        tell_line(f"ok: {records} of {counted(proof.places, 'place')}, root {proof.root}")
    elif healed:
        done = f"healed {counted(len(proof.differences), 'place')}"
        tell_line(f"{'made anew' if proof.damage else done}, root {proof.root}")


def _json(proof: Proof, *, healed: bool) -> dict[str, object]:
    return {
        "ok": proof.holds,
        "healed": healed and not proof.holds,
        "root": proof.root,
        "places": proof.places,
        "records": proof.records,
        "differences": [{"uri": d.uri, "kind": d.kind.value} for d in proof.differences],
        "failed": dict(proof.failed),
        "damage": proof.damage or None,
    }


@contextmanager
def _progress(length: int, label: str) -> Iterator[Progress]:
    """Show on stderr how far it is, if somebody looks."""
    if not animated():
        yield lambda _: None
        return
    with click.progressbar(range(length), label=label, file=sys.stderr) as bar:
        yield bar.update
