"""`perdure index`."""

from dataclasses import asdict

import click

from perdure import IndexProof, ListedIndex, Memory
from perdure.errors import DamageError
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.cli.caller import with_memory
from perdure.surfaces.telling import (
    counted,
    mention,
    progress,
    shown,
    sized,
    tell_json,
    tell_line,
    tell_table,
)

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
    found = memory.index.status()
    facts = {k: v for k, v in asdict(found).items() if k not in {"indexes", "hints"}}
    if as_json:
        tell_json({**facts, "indexes": [_listed_json(each) for each in found.indexes]})
        return
    tell_table(("what", "is"), ((name, shown(str(value))) for name, value in facts.items()))
    tell_line("")
    tell_table(("places", "size", "finished", "answers", "index"), map(_listed_row, found.indexes))
    for hint in found.hints:
        mention(hint.text)
    if not found.hints and (found.behind or not found.built):
        mention("the next recall brings it up to date, or `perdure index rebuild` now")


def _listed_row(each: ListedIndex) -> tuple[str, ...]:
    finished, answers = str(each.position > 0), str(each.answers)
    return f"{each.places:,}", sized(each.size), finished, answers, shown(each.name)


def _listed_json(each: ListedIndex) -> dict[str, object]:
    return {
        "index": each.name,
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
    with progress("indexing") as show:
        done = memory.index.rebuild(progress=show)
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
    with progress("comparing") as show:
        proof = memory.index.verify(heal=heal, progress=show)
    if as_json:
        tell_json(_json(proof, healed=heal))
    else:
        _tell(proof, healed=heal)
    if proof.notes:
        names = ", ".join(map(memory.name, proof.notes[:_MOST_NAMED]))
        more = "" if len(proof.notes) <= _MOST_NAMED else ", …"
        number = counted(len(proof.notes), "text")
        mention(
            f"{number} in no index, being no node yet: {names}{more}. "
            "Fix: run `perdure repair --apply`"
        )
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
    gone = memory.index.prune()
    if as_json:
        tell_json({"removed": [{"index": name, "bytes": size} for name, size in gone]})
        return
    for name, size in gone:
        tell_line(f"removed {shown(name)}, {sized(size)}")
    if not gone:
        tell_line("there is nothing to remove")


def _tell(proof: IndexProof, *, healed: bool) -> None:
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


def _json(proof: IndexProof, *, healed: bool) -> dict[str, object]:
    return {
        "ok": proof.holds,
        "healed": healed and not proof.holds,
        "root": proof.root,
        "places": proof.places,
        "records": proof.records,
        "differences": [{"uri": d.uri, "kind": d.kind.value} for d in proof.differences],
        "failed": dict(proof.failed),
        "damage": proof.damage or None,
        "notes": list(proof.notes),
    }
