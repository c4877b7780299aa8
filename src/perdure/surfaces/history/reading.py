"""`log`, `show`, `diff` and `blame`."""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Unpack

import click

from perdure.artifacts import CID, lines
from perdure.errors import AbsentError
from perdure.storage import Locator
from perdure.storage.history import Event, History, Version
from perdure.surfaces.asking import OBJECT_PER_LINE, ONE_OBJECT, as_json
from perdure.surfaces.history.asking import Which, choose, choosing_version, parse_version
from perdure.surfaces.history.opening import Memory, with_memory
from perdure.surfaces.history.telling import shown_reason, told_event
from perdure.surfaces.telling import (
    local_date,
    local_time,
    mention,
    readable,
    shown,
    tell_diff,
    tell_json,
    tell_table,
    tell_text,
)


# ---------------------------------------------------------------- log
@click.command("log")
@click.argument("key", required=False)
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only what comes after this number of the first column.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most so many: the last ones or, with --after, the first ones after it.",
)
@as_json(OBJECT_PER_LINE)
@with_memory
def log_command(
    memory: Memory, key: str | None, after: int | None, limit: int | None, *, as_json: bool
) -> None:
    """Show what happened, or the versions of KEY.

    The newest come last. Times are local; positions are those of the log.
    """
    found = _events(memory, key, after or 0)
    if limit is not None:
        found = deque(found, limit) if after is None else islice(found, limit)
    if as_json:
        for event in found:
            tell_json(told_event(event))
    else:
        number = "position" if key is None else "version"
        told = tell_table((number, "time", "actor", "origin", "key", "reason"), map(_row, found))
        if not told:
            mention(f"nothing is recorded {f'after {after}' if after else 'yet'}")


def _events(memory: Memory, key: str | None, after: int) -> Iterable[Event]:
    if key is None:
        return memory.history.changes(after)
    return memory.versions(key)[after:]


def _row(event: Event) -> tuple[str, ...]:
    number = event.number if isinstance(event, Version) else event.position
    told = map(shown, (event.actor, event.origin, event.key))
    return (str(number), local_time(event.time), *told, shown_reason(event))


# ---------------------------------------------------------------- show
@click.command("show")
@click.argument("key")
@choosing_version
@as_json(ONE_OBJECT)
@with_memory
def show_command(memory: Memory, key: str, *, as_json: bool, **which: Unpack[Which]) -> None:
    """Print the text of KEY, byte for byte.

    Without options, that of the last version. On a terminal, control characters are written out.
    """
    version = choose(memory.history, memory.versions(key), which)
    if version is None:
        raise AbsentError(
            f"nothing was at {key!a} at that time. Fix: `perdure history log {key}` shows since "
            "when there is."
        )
    text = memory.history.text(version)
    if as_json:
        tell_json({**told_event(version), "text": text})
    else:
        tell_text(text)


# ---------------------------------------------------------------- diff
@click.command("diff")
@click.argument("key")
@click.argument("old", type=parse_version, metavar="[A", required=False)
@click.argument("new", type=parse_version, metavar="[B]]", required=False)
@as_json(ONE_OBJECT)
@with_memory
def diff_command(
    memory: Memory, key: str, old: int | CID | None, new: int | CID | None, *, as_json: bool
) -> None:
    """Show what changed in KEY from version A to B.

    Without B, up to the last version; without A, from the one before it.
    """
    locator, versions = Locator(key), memory.versions(key)
    last = versions[-1] if new is None else memory.history.version(locator, new)
    first = memory.history.version(locator, old) if old is not None else _before(last, versions)
    changed = _diff(memory.history, first, last)
    if as_json:
        begin = None if first is None else first.number
        tell_json({"key": locator.key, "from": begin, "to": last.number, "diff": changed})
    elif changed:
        tell_diff(changed)
    else:
        mention("no difference")


def _before(last: Version, versions: list[Version]) -> Version | None:
    return versions[last.number - 2] if last.number > 1 else None


def _diff(history: History, first: Version | None, last: Version) -> str:
    if first is not None:
        return history.diff(Locator(last.key), first, last)
    text = "" if last.unbound else history.text(last)
    return lines.diff("", text, old_name="/dev/null", new_name=f"{last.key}\tversion {last.number}")


# ---------------------------------------------------------------- blame
@click.command("blame")
@click.argument("key")
@as_json(OBJECT_PER_LINE)
@with_memory
def blame_command(memory: Memory, key: str, *, as_json: bool) -> None:
    """Show which version wrote each line of KEY, and who."""
    last = memory.versions(key)[-1]
    if last.unbound:
        raise AbsentError(
            f"{key!a} was removed by version {last.number}, so it has no lines. Fix: `perdure "
            f"history restore {key} {max(1, last.number - 1)}` brings it back."
        )
    blamed = memory.history.blame(Locator(key))
    if as_json:
        tell_json(
            *(
                {"line": number, "text": line.text, **told_event(line.version)}
                for number, line in enumerate(blamed, 1)
            )
        )
        return
    rows = [(*_writer(line.version), readable(line.text.removesuffix("\n"))) for line in blamed]
    tell_table(("version", "date", "actor", "origin", "line"), rows)


def _writer(version: Version) -> tuple[str, ...]:
    who = (shown(version.actor), shown(version.origin))
    return (str(version.number), local_date(version.time), *who)
