"""`perdure index`."""

import click

from perdure import IndexProof, Memory
from perdure.dataclass import asdict
from perdure.errors import DamageError
from perdure.surfaces import out
from perdure.surfaces.cli.options import with_memory
from perdure.surfaces.out import counted, picked, shown, sized

_MOST_NAMED = 3


@click.group("index")
def index_command() -> None:
    """Show, rebuild and verify the search index.

    It is derived from your memories, and can always be built again.
    """


@index_command.command("status")
@with_memory()
def _status(memory: Memory, *, as_json: bool) -> None:
    """Show what the index contains, and how far it is behind."""
    found = memory.index.status()
    facts = {k: v for k, v in asdict(found).items() if k not in {"indexes", "hints"}}
    if as_json:
        indexes = [
            {**picked(each, "index=name places bytes=size answers"), "finished": each.position > 0}
            for each in found.indexes
        ]
        out.json({**facts, "indexes": indexes})
        return
    out.table(("what", "is"), ((name, shown(str(value))) for name, value in facts.items()))
    out.line("")
    rows = (
        (f"{i.places:,}", sized(i.size), str(i.position > 0), str(i.answers), shown(i.name))
        for i in found.indexes
    )
    out.table(("places", "size", "finished", "answers", "index"), rows)
    for hint in found.hints:
        out.mention(hint.text)
    if not found.hints and (found.behind or found.unrecorded or not found.built):
        out.mention("the next recall brings it up to date, or `perdure index rebuild` now")


@index_command.command("rebuild")
@with_memory()
def _rebuild(memory: Memory, *, as_json: bool) -> None:
    """Discard the index and build it again.

    Vectors are computed only for texts that have none yet.
    """
    with out.progress("indexing") as show:
        done = memory.index.rebuild(progress=show)
    failed = {uri: str(error) for uri, error in done.failed.items()}
    out.answer(
        {"indexed": len(done.places), "position": done.position, "failed": failed},
        f"indexed {counted(len(done.places), 'place')}",
        as_json=as_json,
    )
    for uri, error in failed.items():
        out.mention(f"left out: {uri}: {shown(error)}")


@index_command.command("verify")
@click.option("--heal", is_flag=True, help="Correct records that differ.")
@click.option("--quick", is_flag=True, help="Compare log and stamps only; read no record or text.")
@with_memory()
def _verify(memory: Memory, *, heal: bool, quick: bool, as_json: bool) -> None:
    """Prove that the index matches your memories.

    Builds every record again and compares it. The root is a digest of everything that the index
    should contain: it is the same wherever the memories and the model are the same. With --quick,
    the answer says what was not compared.
    """
    if heal and quick:
        raise click.UsageError("--heal compares every record. Fix: leave out --quick.")
    with out.progress("comparing") as show:
        proof = memory.index.verify(heal=heal, quick=quick, progress=show)
    if as_json:
        out.json(_json(proof, healed=heal))
    else:
        _print(proof, healed=heal)
    if proof.notes:
        names = ", ".join(map(memory.name, proof.notes[:_MOST_NAMED]))
        more = "" if len(proof.notes) <= _MOST_NAMED else ", …"
        number = counted(len(proof.notes), "text")
        out.mention(
            f"{number} without a node, and so not indexed: {names}{more}. "
            "Fix: run `perdure repair --apply`"
        )
    if not proof.holds and not heal:
        wrong = f"differs in {counted(len(proof.differences), 'place')}"
        raise DamageError(
            f"the index {'is damaged' if proof.damage else wrong}. "
            "Fix: run `perdure index verify --heal`."
        )


@index_command.command("prune")
@with_memory()
def _prune(memory: Memory, *, as_json: bool) -> None:
    """Remove the indexes of other models that are no longer used.

    Applies to all accounts. The index of the configured model stays, and so does an older one that
    answers until the new one is built. Vectors stay too, so that going back to a model is cheap.
    """
    gone = memory.index.prune()
    if as_json:
        out.json({"removed": [{"index": name, "bytes": size} for name, size in gone]})
        return
    for name, size in gone:
        out.line(f"removed {shown(name)}, {sized(size)}")
    if not gone:
        out.line("there is nothing to remove")


def _print(proof: IndexProof, *, healed: bool) -> None:
    for difference in proof.differences:
        out.line(f"{difference.kind.value}: {difference.uri}")
    if proof.damage:
        out.line(f"damaged: {shown(proof.damage)}")
    for uri, error in proof.failed:
        out.mention(f"left out: {uri}: {shown(error)}")
    if proof.unrecorded:
        out.line(f"edited, not recorded: {counted(proof.unrecorded, 'text')}")
    if proof.not_compared:
        if proof.holds:
            out.line(f"ok: {counted(proof.places, 'place')}, none behind the log")
        out.mention(f"not compared: {proof.not_compared}")
        return
    if proof.holds:
        records = counted(proof.records, "record")
        out.line(f"ok: {records} of {counted(proof.places, 'place')}, root {proof.root}")
    elif healed:
        done = f"healed {counted(len(proof.differences), 'place')}"
        out.line(f"{'rebuilt' if proof.damage else done}, root {proof.root}")


def _json(proof: IndexProof, *, healed: bool) -> dict[str, object]:
    return {
        **picked(proof, "ok=holds root places records damage? notes not_compared?"),
        "healed": healed and not proof.holds,
        "differences": [picked(each, "uri kind") for each in proof.differences],
        "failed": dict(proof.failed),
    }
