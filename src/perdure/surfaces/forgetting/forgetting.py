"""`forget`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, TypedDict, Unpack

import click

from perdure.app import open_history, open_signing_key
from perdure.artifacts.keys import PublicKey
from perdure.engine.erasing.plan import Forgotten
from perdure.engine.erasing.receipts import Receipt, differences
from perdure.errors import ProofError
from perdure.model.values import JSON
from perdure.surfaces.asking import ONE_OBJECT, as_json, ask_first, without_asking
from perdure.surfaces.forgetting.telling import erased_json, plan_json, planned, stays, told_of
from perdure.surfaces.history.files import reading, writing
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import counted, mention, shown, tell_json, tell_line

_LONGEST = 1 << 28


class Wishes(TypedDict):
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
@as_json(ONE_OBJECT)
@with_memory
def forget_command(
    memory: Memory, node: str | None, *, as_json: bool, **wishes: Unpack[Wishes]
) -> None:
    """Put away what nobody is to find; or erase it.

    NODE may be a folder, sessions/ID or users/ID: all that is in it goes. Without --erase it is
    archived, and `perdure unarchive` brings it back. With --erase its files, all its versions and
    all that was derived from them are removed, and a signed receipt says so. users/ID is a person,
    with their sessions.
    """
    if wishes["verify"] is not None:
        _verify(wishes["verify"], wishes["key"], as_json=as_json)
        return
    if node is None:
        raise click.UsageError("Missing NODE. Fix: say what is to be forgotten.")
    if wishes["receipt"] is not None and not wishes["erase"]:
        raise click.UsageError("only what is erased has a receipt. Fix: add --erase.")
    uri = str(memory.place(node))
    if wishes["erase"]:
        _erase(memory, uri, wishes, as_json=as_json)
    else:
        _archive(memory, uri, wishes, as_json=as_json)


def _archive(memory: Memory, uri: str, wishes: Wishes, *, as_json: bool) -> None:
    verb = memory.context.memory.on_behalf_of(memory.request).forget
    done = verb(uri, reason=wishes["reason"], dry_run=wishes["dry_run"])
    if as_json:
        tell_json({"archived": list(done.archived), "before": list(done.before)})
        return
    said = "would be archived" if wishes["dry_run"] else "is archived"
    for each in done.archived:
        tell_line(f"{shown(each)} {said}")
    for each in done.before:
        tell_line(f"{shown(each)} was archived before")
    mention("`perdure unarchive NODE` brings it back; --erase removes it for good")


def _erase(memory: Memory, uri: str, wishes: Wishes, *, as_json: bool) -> None:
    verb = memory.context.memory.on_behalf_of(memory.request).forget
    would = verb(uri, erase=True, dry_run=True)
    plan = would.plan
    if plan is None or plan.is_empty or wishes["dry_run"]:
        _tell_plan(would, as_json=as_json)
        return
    if not wishes["yes"]:
        ask_first("\n".join(planned(plan)), "nothing was erased")
    with _copied(wishes["receipt"]) as copy:
        done = verb(uri, erase=True, reason=wishes["reason"])
        if copy is not None and done.erased is not None:
            copy.write(done.erased.receipt.to_text().encode())
    _tell_erased(done, wishes, as_json=as_json)


@contextmanager
def _copied(path: str | None) -> Iterator[BinaryIO | None]:
    """Yield a file for the receipt, if one was asked for; refuse before anything is erased."""
    if path is None:
        yield None
    else:
        with writing(path, force=False) as file:
            yield file


def _tell_plan(would: Forgotten, *, as_json: bool) -> None:
    if would.plan is None:
        raise AssertionError
    if as_json:
        tell_json({"erased": None, "plan": plan_json(would.plan)})
    elif would.plan.is_empty:
        tell_line("nothing is left to erase")
        for line in stays(would.plan):
            mention(line)
    else:
        for line in planned(would.plan):
            tell_line(line)


def _tell_erased(done: Forgotten, wishes: Wishes, *, as_json: bool) -> None:
    erased = done.erased
    if erased is None:  # somebody else erased it since we asked
        _tell_plan(done, as_json=as_json)
        return
    if as_json:
        plan = None if done.plan is None else plan_json(done.plan)
        tell_json({"erased": erased_json(erased), "plan": plan})
        return
    for line in told_of(erased):
        tell_line(line)
    tell_line(f"receipt {shown(wishes['receipt'] or str(erased.path))}")


# ---------------------------------------------------------------- receipts
def _verify(path: str, key: str | None, *, as_json: bool) -> None:
    with reading(path) as file:
        data = file.read(_LONGEST + 1)
    public = open_signing_key(os.environ).public if key is None else PublicKey.parse(key.strip())
    try:
        receipt = Receipt.from_text(data.decode())
    except UnicodeDecodeError as error:
        raise ProofError("a receipt is JSON, and this is not. Fix: copy it whole.") from error
    said = receipt.verify(public)
    with open_history(os.environ) as history:
        found = list(differences(said, history, public))
    if as_json:
        tell_json({"signed": True, "said": said, "differences": found})
    else:
        _tell_said(said)
        for each in found:
            tell_line(f"but {shown(each)}")
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
    tell_line(f"signed: {names} was erased at {shown(str(told.get('time')))}")
    tell_line(f"    {counted(count, 'content')}, by {shown(str(told.get('by')))}")
