"""What is said of an erasure, before and after."""

from collections.abc import Iterable, Iterator, Sequence

from perdure.engine.erasing.plan import Erased, Plan
from perdure.surfaces.telling import counted, shown, sized

_MOST = 10


def planned(plan: Plan) -> Iterator[str]:
    """Yield what goes, then what stays although it says the same."""
    yield f"goes for good: {', '.join(map(shown, plan.uris))}"
    if plan.owner_space:
        yield "    with every memory and every session that is or was theirs"
    yield from _some("with what it was at", plan.former)
    yield from _some("file", plan.files)
    yield (
        f"    {counted(plan.versions, 'version')} in history, "
        f"{counted(len(plan.contents), 'content')} of {sized(plan.size)}"
    )
    yield from (f"    {what}: {count}" for what, count in plan.derived.items() if count)
    yield from stays(plan)
    yield "stays: its names, times and digests in the log; backups and what others copied"


def stays(plan: Plan) -> Iterator[str]:
    """Yield what stays although it says the same."""
    for kept in plan.kept:
        who = shown(kept.key) if kept.key else "another account"
        yield f"stays: the content {kept.cid}, which {who} has too"
    yield from moved(plan.moved)
    for quoted in plan.quoted:
        yield f"stays: {shown(quoted.uri)} says the same in its {quoted.where}"
    for uri in plan.leading:
        yield f"stays: {shown(uri)} leads to it, and then nowhere"
    for other in plan.elsewhere:
        yield f"stays: {shown(other)}"
    for name in plan.names[:_MOST]:
        yield f"stays: the name {shown(name)} in the log, which is made of its words"
    if len(plan.names) > _MOST:
        yield f"stays: {counted(len(plan.names) - _MOST, 'more name')} of that kind"


def moved(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for old, new in pairs:
        yield f"stays: what was at {shown(old)} and lives at {shown(new)} now"


def told_of(erased: Erased) -> Iterator[str]:
    """Yield what was erased, then who still has what was not."""
    uris = ", ".join(map(shown, erased.uris))
    what = f"{counted(erased.versions, 'version')}, {counted(len(erased.contents), 'content')}"
    if erased.contents or not (erased.kept or erased.moved):
        yield f"{uris} is erased: {what}"
    else:
        yield f"{uris} is removed, and no content is erased: all of it is elsewhere, too"
    for kept in erased.kept:
        who = shown(kept.key) if kept.key else "another account"
        yield f"kept, because {who} has it: {kept.cid}"
    yield from moved(erased.moved)


def _some(noun: str, keys: Sequence[str]) -> Iterator[str]:
    yield from (f"    {noun} {shown(key)}" for key in keys[:_MOST])
    if len(keys) > _MOST:
        yield f"    and {counted(len(keys) - _MOST, 'more ' + noun)}"


def plan_json(plan: Plan) -> dict[str, object]:
    return {
        "uris": list(plan.uris),
        "former": list(plan.former),
        "owner_space": plan.owner_space,
        "files": list(plan.files),
        "versions": plan.versions,
        "contents": [str(cid) for cid in plan.contents],
        "bytes": plan.size,
        "derived": dict(plan.derived),
        "kept": [{"cid": str(kept.cid), "key": kept.key} for kept in plan.kept],
        "moved": [{"from": old, "to": new} for old, new in plan.moved],
        "quoted": [{"uri": each.uri, "file": each.where} for each in plan.quoted],
        "leading": list(plan.leading),
        "elsewhere": list(plan.elsewhere),
        "names": list(plan.names),
        "withheld": plan.withheld,
    }


def erased_json(erased: Erased) -> dict[str, object]:
    return {
        "versions": erased.versions,
        "contents": [str(cid) for cid in erased.contents],
        "kept": [{"cid": str(kept.cid), "key": kept.key} for kept in erased.kept],
        "moved": [{"from": old, "to": new} for old, new in erased.moved],
        "derived": dict(erased.derived),
        "receipt": str(erased.path),
    }
