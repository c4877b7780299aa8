"""`install`."""

import difflib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import click

from perdure.config import load_config
from perdure.errors import ConfigError, InvalidValueError
from perdure.surfaces.asking import ask_first
from perdure.surfaces.install.agents import AGENTS, Wanted, program, wanted_by
from perdure.surfaces.install.editing import is_stale, with_entries, without_entries
from perdure.surfaces.install.files import Found, digest
from perdure.surfaces.install.receipts import Receipt, Receipts
from perdure.surfaces.telling import mention, shown, tell_diff, tell_line

_HINTS = {
    "claude-code": "start Claude Code anew; `/hooks` and `/mcp` show it",
    "codex": "start Codex anew, and let it trust the hooks: `/hooks` and `/mcp` show it",
    "cursor": "start Cursor anew; its settings show the server and the hook",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What a file is to be made."""

    found: Found
    content: bytes | None
    """None removes it."""
    receipt: Receipt | None
    """None forgets the one that there is."""

    @property
    def is_any(self) -> bool:
        return self.content != self.found.content

    def diff(self) -> str:
        """Return what would change, without the secrets that are in it."""
        from perdure.engine.validate.secrets import masked

        name = str(self.found.path)
        old, new = ((each or b"").decode() for each in (self.found.content, self.content))
        lines = difflib.unified_diff(
            masked(old)[0].splitlines(), masked(new)[0].splitlines(), name, name, n=1, lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


@click.command("install")
@click.argument("agent", type=click.Choice(AGENTS))
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@click.option("--uninstall", is_flag=True, help="Take back what was added, and nothing else.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
def install_command(agent: str, *, dry_run: bool, uninstall: bool, yes: bool) -> None:
    """Tell a coding agent of memory, in its own config.

    Adds the MCP server and hooks to the files of your user; all else in them stays as it is, to the
    letter. Shows first what will change, and keeps a backup. Twice is once.
    """
    home = load_config(os.environ).home
    receipts = Receipts(home, agent)
    files = wanted_by(agent, os.environ, program())
    plan = _removed if uninstall else _added
    changes = [change for change in (plan(receipts, each) for each in files) if change.is_any]
    if not changes:
        done = "is not there, and nothing was" if uninstall else "is there already, and nothing was"
        mention(f"it {done} changed")
        return
    for change in changes:
        if told := change.diff():
            tell_diff(told)
    if dry_run:
        mention("nothing is written; this is what would be")
        return
    if not yes:
        ask_first("this changes files of your agent, as shown above", "nothing was written")
    with _alone(home):
        for line in _done(receipts, changes):
            tell_line(line)
    mention("start it anew" if uninstall else f"now {_HINTS[agent]}")
    if not uninstall and find_spec("mcp") is None:
        mention("note: the server needs an extra. Fix: pip install '.[mcp]' from a checkout")


def _done(receipts: Receipts, changes: list[Change]) -> Iterator[str]:
    for change in changes:
        path = change.found.path
        if change.receipt is not None:
            receipts.put(path, change.receipt)
        change.found.replace(change.content)
        if change.receipt is None:
            receipts.forget(path)
        backup = receipts.backup(path)
        kept = f"; as it was, it is in {shown(str(backup))}" if backup.exists() else ""
        yield f"{'removed' if change.content is None else 'wrote'} {shown(str(path))}{kept}"


# ---------------------------------------------------------------- plans
def _added(receipts: Receipts, wanted: Wanted) -> Change:
    found = Found.at(wanted.path)
    with _about(found.path):
        stale = is_stale(found.text, wanted)
        text = without_entries(found.text, wanted, ()) if stale else found.text
        added = with_entries(text, wanted)
    content = found.encoded(added.text)
    before = receipts.get(found.path)
    made = added.made if before is None else tuple({*added.made, *before.made})
    if before is not None and before.undoes(found.content):
        if not stale:
            return Change(found, found.content, before)
        return Change(found, content, replace(before, after=digest(content), made=made))
    is_exact = not added.was_partly_there and not stale
    receipt = Receipt(found.content, is_exact, digest(content), made)
    unchanged = added.text == found.text
    return Change(found, found.content if unchanged else content, receipt)


def _removed(receipts: Receipts, wanted: Wanted) -> Change:
    found = Found.at(wanted.path)
    receipt = receipts.get(found.path)
    if receipt is not None and receipt.undoes(found.content):
        return Change(found, receipt.before, None)
    with _about(found.path):
        text = without_entries(found.text, wanted, () if receipt is None else receipt.made)
    content = found.content if text == found.text else found.encoded(text)
    return Change(found, content, None)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Let a refusal say which file it is about, and that nothing happened."""
    try:
        yield
    except InvalidValueError as error:
        raise ConfigError(
            f"{str(path)!a} can't be changed: {error}. Nothing was written. Fix: mend it there, "
            "and run this again."
        ) from error


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let nobody else of us change config files meanwhile."""
    folder = home / "installed"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
