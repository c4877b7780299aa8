"""`perdure forget`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TypedDict, Unpack

import click

from perdure import ErasurePlan, ErasureReport, ForgetReport, Memory
from perdure.dataclass import asdict
from perdure.errors import ProofError
from perdure.model.values import JSON
from perdure.surfaces import out
from perdure.surfaces.cli.files import read_signed, writing
from perdure.surfaces.cli.options import NAMES, ask_first, with_memory, without_asking
from perdure.surfaces.telling import counted, picked, shown, sized

_LONGEST = 1 << 28
_MOST = 10


class Options(TypedDict):
    erase: bool
    dry_run: bool
    yes: bool
    reason: str
    receipt: str | None
    verify: str | None
    key: str | None


@click.command("forget", epilog=NAMES)
@click.argument("node", required=False)
@click.option("--erase", is_flag=True, help="Remove it from history as well, for good.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--reason", metavar="TEXT", default="", help="Why; it stays in the history.")
@click.option("--receipt", metavar="FILE", help="Write the signed receipt there, too.")
@click.option("--verify", metavar="RECEIPT", help="Check a receipt, and that it still holds.")
@click.option("--key", metavar="PUBLICKEY", help="Of who signed it; yours.")
@without_asking
@with_memory()
def forget_command(
    memory: Memory, node: str | None, *, as_json: bool, **options: Unpack[Options]
) -> None:
    """Put away what nobody is to find; or erase it.

    NODE may be a folder, sessions/ID or users/ID: all that is in it goes. It may be an id of a
    briefing (~abcd), or a sentence in quotes: all that says so is hidden. Without --erase it is
    archived, its words are hidden in your sessions, also in those to come, and `perdure unarchive`
    brings it back. With --erase its files, all its versions and
    all that was derived from them are removed, and a signed receipt says so. users/ID is a person,
    with their sessions.
    """
    if options["verify"] is not None:
        _verify(memory, options["verify"], options["key"], as_json=as_json)
        return
    if node is None:
        raise click.UsageError("Missing NODE. Fix: say what is to be forgotten.")
    if options["receipt"] is not None and not options["erase"]:
        raise click.UsageError("only what is erased has a receipt. Fix: add --erase.")
    if options["erase"]:
        _erase(memory, node, options, as_json=as_json)
    else:
        _archive(memory, node, options, as_json=as_json)


def _archive(memory: Memory, node: str, options: Options, *, as_json: bool) -> None:
    what = memory.meant(node)
    done = memory.forget(what, reason=options["reason"], dry_run=options["dry_run"])
    if as_json:
        out.json(
            {
                **picked(done, "archived before=archived_before also left=untouched"),
                "hidden": asdict(done.hidden),
            }
        )
        return
    said = "would be archived" if options["dry_run"] else "is archived"
    for each in done.archived:
        out.line(f"{shown(each)} {said}")
    for each in done.archived_before:
        out.line(f"{shown(each)} was archived before")
    _tell_hidden(done, dry_run=options["dry_run"])
    if not (done.archived or done.archived_before):
        if not (done.hidden.sessions or done.also):
            out.line("nothing says it any more")
        more = f"; `perdure forget {what} --erase` removes it for good" if "#" in what else ""
        out.mention(f"`perdure remember TEXT` lets it be known again{more}")
        return
    out.mention("`perdure unarchive NODE` brings it back; --erase removes it for good")


def _tell_hidden(done: ForgetReport, *, dry_run: bool) -> None:
    hidden, would = done.hidden, "would be " if dry_run else ""
    where = [
        f"{counted(hidden.sentences, 'sentence')} in {counted(hidden.messages, 'message')}",
        counted(hidden.titles, "title"),
    ]
    said = " and ".join(each for each in where if not each.startswith("0 "))
    if said:
        out.line(f"{would}hidden: {said} of {counted(hidden.sessions, 'session')}")
    for uri in done.also:
        out.line(f"{would}archived, or without it: {shown(uri)}, which said the same")
    for uri in done.untouched:
        out.line(f"stays: {shown(uri)} says it too, among other things")


def _erase(memory: Memory, node: str, options: Options, *, as_json: bool) -> None:
    would = memory.forget(node, erase=True, dry_run=True)
    plan = would.plan
    if plan is None or plan.is_empty or options["dry_run"]:
        _tell_plan(would, as_json=as_json)
        return
    if not options["yes"]:
        ask_first("\n".join(planned(plan)), "nothing was erased")
    path = options["receipt"]
    with nullcontext() if path is None else writing(path, force=False) as copy:
        done = memory.forget(node, erase=True, reason=options["reason"])
        if copy is not None and done.erased is not None:
            copy.write(done.erased.receipt.to_text().encode())
    _tell_erased(done, options, as_json=as_json)


def _tell_plan(would: ForgetReport, *, as_json: bool) -> None:
    if would.plan is None:
        raise AssertionError
    if as_json:
        out.json({"erased": None, "plan": plan_json(would.plan)})
    elif would.plan.is_empty:
        out.line("nothing is left to erase")
        for line in stays(would.plan):
            out.mention(line)
    else:
        for line in planned(would.plan):
            out.line(line)
        _tell_hidden(would, dry_run=True)


def _tell_erased(done: ForgetReport, options: Options, *, as_json: bool) -> None:
    erased = done.erased
    if erased is None:  # somebody else erased it since we asked
        _tell_plan(done, as_json=as_json)
        return
    if as_json:
        plan = None if done.plan is None else plan_json(done.plan)
        hidden = asdict(done.hidden)
        out.json({"erased": erased_json(erased), "plan": plan, "hidden": hidden})
        return
    for line in told_of(erased):
        out.line(line)
    _tell_hidden(done, dry_run=False)
    out.line(f"receipt {shown(options['receipt'] or str(erased.path))}")


def _verify(memory: Memory, path: str, key: str | None, *, as_json: bool) -> None:
    said, found = memory.verify_receipt(read_signed(path, "receipt", _LONGEST), key)
    if as_json:
        out.json({"signed": True, "said": said, "differences": list(found)})
    else:
        _tell_said(said)
        for each in found:
            out.line(f"but {shown(each)}")
    if found:
        raise ProofError(
            f"the receipt is signed, but {counted(len(found), 'thing')} here "
            f"{'is' if len(found) == 1 else 'are'} otherwise. Fix: see above; erase again what is "
            "still there."
        )


def _tell_said(told: Mapping[str, JSON]) -> None:
    uris, contents = told.get("uris"), told.get("contents")
    names = ", ".join(shown(str(each)) for each in uris) if isinstance(uris, list) else "-"
    count = len(contents) if isinstance(contents, list) else 0
    out.line(f"signed: {names} was erased at {shown(str(told.get('time')))}")
    out.line(f"    {counted(count, 'content')}, by {shown(str(told.get('by')))}")


# ---------------------------------------------------------------- what is printed
def planned(plan: ErasurePlan) -> Iterator[str]:
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


def stays(plan: ErasurePlan) -> Iterator[str]:
    for kept in plan.shared:
        who = shown(kept.key) if kept.key else "another account"
        yield f"stays: the content {kept.cid}, which {who} has too"
    yield from moved(plan.moved)
    for quoted in plan.quotations:
        yield f"stays: {shown(quoted.uri)} says the same in its {quoted.where}"
    for uri in plan.referrers:
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


def told_of(erased: ErasureReport) -> Iterator[str]:
    """Yield what was erased, then who still has what was not."""
    uris = ", ".join(map(shown, erased.uris))
    what = f"{counted(erased.versions, 'version')}, {counted(len(erased.contents), 'content')}"
    if erased.contents or not (erased.shared or erased.moved):
        yield f"{uris} is erased: {what}"
    else:
        yield f"{uris} is removed, and no content is erased: all of it is elsewhere, too"
    for kept in erased.shared:
        who = shown(kept.key) if kept.key else "another account"
        yield f"kept, because {who} has it: {kept.cid}"
    yield from moved(erased.moved)


def _some(noun: str, keys: Sequence[str]) -> Iterator[str]:
    yield from (f"    {noun} {shown(key)}" for key in keys[:_MOST])
    if len(keys) > _MOST:
        yield f"    and {counted(len(keys) - _MOST, 'more ' + noun)}"


def plan_json(plan: ErasurePlan) -> dict[str, object]:
    return {
        **picked(plan, "uris former owner_space files versions contents bytes=size derived"),
        **picked(plan, "leading=referrers elsewhere names withheld"),
        "kept": [picked(kept, "cid key") for kept in plan.shared],
        "moved": [{"from": old, "to": new} for old, new in plan.moved],
        "quoted": [picked(each, "uri file=where") for each in plan.quotations],
    }


def erased_json(erased: ErasureReport) -> dict[str, object]:
    return {
        **picked(erased, "versions contents derived receipt=path"),
        "kept": [picked(kept, "cid key") for kept in erased.shared],
        "moved": [{"from": old, "to": new} for old, new in erased.moved],
    }
