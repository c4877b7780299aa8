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
from perdure.surfaces.cli.options import (
    NAMES,
    ask_first,
    new_file,
    read_signed_file,
    with_memory,
    with_reason,
    without_asking,
)
from perdure.surfaces.out import counted, picked, shown, sized

_MOST_BYTES = 1 << 28
_MOST = 10


class ForgetOptions(TypedDict):
    erase: bool
    dry_run: bool
    yes: bool
    reason: str
    receipt: str | None
    verify: str | None
    key: str | None


@click.command("forget", epilog=NAMES)
@click.argument("node", required=False)
@click.option("--erase", is_flag=True, help="Erase it from the history as well, for good.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@with_reason
@click.option("--receipt", metavar="FILE", help="Write the signed receipt to FILE, too.")
@click.option("--verify", metavar="RECEIPT", help="Check a receipt, and that it still holds.")
@click.option("--key", metavar="PUBLICKEY", help="The key that signed RECEIPT. Default: yours.")
@without_asking
@with_memory()
def forget_command(
    memory: Memory, node: str | None, *, as_json: bool, **options: Unpack[ForgetOptions]
) -> None:
    """Archive a memory and hide its words, or erase it.

    NODE may be a folder, sessions/ID or users/ID, with everything in it; users/ID is a person, with
    their sessions. It may also be an id from a briefing (~abcd), or a sentence in quotes, which is
    hidden wherever it occurs. Without --erase, NODE is archived, its words are hidden in your
    sessions, including later ones, and `perdure unarchive` undoes it. With --erase, its files, all
    its versions and everything derived from them are removed, and a signed receipt attests it.
    """
    if options["verify"] is not None:
        _verify(memory, options["verify"], options["key"], as_json=as_json)
        return
    if node is None:
        raise click.UsageError("Missing NODE. Fix: name what to forget.")
    if options["receipt"] is not None and not options["erase"]:
        raise click.UsageError("--receipt needs --erase. Fix: add --erase.")
    if options["erase"]:
        _erase(memory, node, options, as_json=as_json)
    else:
        _archive(memory, node, options, as_json=as_json)


def _archive(memory: Memory, node: str, options: ForgetOptions, *, as_json: bool) -> None:
    what = memory.forget_target(node)
    done = memory.forget(what, reason=options["reason"], dry_run=options["dry_run"])
    if as_json:
        out.json(
            {
                **picked(done, "archived before=archived_before also left=untouched"),
                "hidden": asdict(done.hidden),
            }
        )
        return
    state = "would be archived" if options["dry_run"] else "is archived"
    for each in done.archived:
        out.line(f"{shown(each)} {state}")
    for each in done.archived_before:
        out.line(f"{shown(each)} was already archived")
    _print_hidden(done, dry_run=options["dry_run"])
    if not (done.archived or done.archived_before):
        if not (done.hidden.sessions or done.also):
            out.line("nothing contains it any more")
        more = f"; `perdure forget {what} --erase` erases it for good" if "#" in what else ""
        out.mention(f"`perdure remember TEXT` undoes it{more}")
        return
    out.mention("`perdure unarchive NODE` undoes it; --erase erases it for good")


def _print_hidden(done: ForgetReport, *, dry_run: bool) -> None:
    hidden, would = done.hidden, "would be " if dry_run else ""
    where = [
        f"{counted(hidden.sentences, 'sentence')} in {counted(hidden.messages, 'message')}",
        counted(hidden.titles, "title"),
    ]
    found = " and ".join(each for each in where if not each.startswith("0 "))
    if found:
        out.line(f"{would}hidden: {found} of {counted(hidden.sessions, 'session')}")
    for uri in done.also:
        out.line(f"{would}archived, or without the sentence: {shown(uri)}, which has it too")
    for uri in done.untouched:
        out.line(f"stays: {shown(uri)} has it too, among other text")


def _erase(memory: Memory, node: str, options: ForgetOptions, *, as_json: bool) -> None:
    would = memory.forget(node, erase=True, dry_run=True)
    plan = would.plan
    if plan is None or plan.is_empty or options["dry_run"]:
        _print_plan(would, as_json=as_json)
        return
    if not options["yes"]:
        ask_first("\n".join(planned(plan)), "nothing was erased")
    path = options["receipt"]
    with nullcontext() if path is None else new_file(path, force=False) as copy:
        done = memory.forget(node, erase=True, reason=options["reason"])
        if copy is not None and done.erased is not None:
            copy.write(done.erased.receipt.to_text().encode())
    _print_erased(done, options, as_json=as_json)


def _print_plan(would: ForgetReport, *, as_json: bool) -> None:
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
        _print_hidden(would, dry_run=True)


def _print_erased(done: ForgetReport, options: ForgetOptions, *, as_json: bool) -> None:
    erased = done.erased
    if erased is None:  # another process erased it since the plan
        _print_plan(done, as_json=as_json)
        return
    if as_json:
        plan = None if done.plan is None else plan_json(done.plan)
        hidden = asdict(done.hidden)
        out.json({"erased": erased_json(erased), "plan": plan, "hidden": hidden})
        return
    for line in erasure_lines(erased):
        out.line(line)
    _print_hidden(done, dry_run=False)
    out.line(f"receipt {shown(options['receipt'] or str(erased.path))}")


def _verify(memory: Memory, path: str, key: str | None, *, as_json: bool) -> None:
    receipt, found = memory.verify_receipt(read_signed_file(path, "receipt", _MOST_BYTES), key)
    if as_json:
        out.json({"signed": True, "receipt": receipt, "differences": list(found)})
    else:
        _print_receipt(receipt)
        for each in found:
            out.line(f"but {shown(each)}")
    if found:
        raise ProofError(
            f"the receipt is signed, but the memory has {counted(len(found), 'difference')}. "
            "Fix: see above; erase again what is still there."
        )


def _print_receipt(receipt: Mapping[str, JSON]) -> None:
    uris, contents = receipt.get("uris"), receipt.get("contents")
    names = ", ".join(shown(str(each)) for each in uris) if isinstance(uris, list) else "-"
    count = len(contents) if isinstance(contents, list) else 0
    out.line(f"signed: {names} was erased at {shown(str(receipt.get('time')))}")
    out.line(f"    {counted(count, 'content')}, by {shown(str(receipt.get('by')))}")


# ---------------------------------------------------------------- plans and erasures
def planned(plan: ErasurePlan) -> Iterator[str]:
    """Yield what is erased, then what stays although it has the same text."""
    yield f"will be erased for good: {', '.join(map(shown, plan.uris))}"
    if plan.owner_space:
        yield "    with every memory and every session that is or was theirs"
    yield from _some("former path", plan.former)
    yield from _some("file", plan.files)
    yield (
        f"    {counted(plan.versions, 'version')} in history, "
        f"{counted(len(plan.contents), 'content')} of {sized(plan.size)}"
    )
    yield from (f"    {what}: {count}" for what, count in plan.derived.items() if count)
    yield from stays(plan)
    yield "stays: its names, times and digests in the log; backups and copies elsewhere"


def stays(plan: ErasurePlan) -> Iterator[str]:
    for each in plan.shared:
        yield f"stays: the content {each.cid}, which {_holder(each.key)} has too"
    yield from _moved(plan.moved)
    for quotation in plan.quotations:
        yield f"stays: {shown(quotation.uri)} has the same text in its {quotation.where}"
    for uri in plan.referrers:
        yield f"stays: {shown(uri)} has a link to it, which will lead nowhere"
    for other in plan.elsewhere:
        yield f"stays: {shown(other)}"
    for name in plan.names[:_MOST]:
        yield f"stays: the name {shown(name)} in the log, which has words of the text"
    if len(plan.names) > _MOST:
        yield f"stays: {counted(len(plan.names) - _MOST, 'more name')} of that kind"


def _holder(key: str | None) -> str:
    return shown(key) if key else "another account"


def _moved(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for old, new in pairs:
        yield f"stays: what was at {shown(old)} and is at {shown(new)} now"


def erasure_lines(erased: ErasureReport) -> Iterator[str]:
    """Yield what was erased, then what was not, because something else has it."""
    uris = ", ".join(map(shown, erased.uris))
    what = f"{counted(erased.versions, 'version')}, {counted(len(erased.contents), 'content')}"
    if erased.contents or not (erased.shared or erased.moved):
        yield f"{uris} is erased: {what}"
    else:
        yield f"{uris} is removed, and no content is erased: all of it is elsewhere, too"
    for each in erased.shared:
        yield f"retained, because {_holder(each.key)} has it: {each.cid}"
    yield from _moved(erased.moved)


def _some(noun: str, keys: Sequence[str]) -> Iterator[str]:
    yield from (f"    {noun} {shown(key)}" for key in keys[:_MOST])
    if len(keys) > _MOST:
        yield f"    and {counted(len(keys) - _MOST, 'more ' + noun)}"


def plan_json(plan: ErasurePlan) -> dict[str, object]:
    return {
        **picked(plan, "uris former owner_space files versions contents bytes=size derived"),
        **picked(plan, "leading=referrers elsewhere names withheld"),
        "retained": [picked(each, "cid key") for each in plan.shared],
        "moved": [{"from": old, "to": new} for old, new in plan.moved],
        "quoted": [picked(each, "uri file=where") for each in plan.quotations],
    }


def erased_json(erased: ErasureReport) -> dict[str, object]:
    return {
        **picked(erased, "versions contents derived receipt=path"),
        "retained": [picked(each, "cid key") for each in erased.shared],
        "moved": [{"from": old, "to": new} for old, new in erased.moved],
    }
