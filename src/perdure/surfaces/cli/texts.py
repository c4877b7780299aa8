"""`perdure history log`, `show`, `diff`, `blame` and `restore`."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import groupby
from typing import Concatenate, ParamSpec

import click

from perdure import CID, Event, Version, VersionLog
from perdure.app import default_request, open_log
from perdure.app.commits import GitCommit, commits_beside
from perdure.dataclass import replace
from perdure.model.request import text_named
from perdure.surfaces import out
from perdure.surfaces.cli.options import (
    OBJECT_PER_LINE,
    Moment,
    as_json,
    at_moment,
    is_number,
    mention_edits,
    parse_cid,
)
from perdure.surfaces.telling import (
    local_date,
    local_time,
    picked,
    plain,
    readable,
    shown,
    utc_time,
)

Rest = ParamSpec("Rest")
_SHORT = 12


def _with_log(command: Callable[Concatenate[VersionLog, Rest], None]) -> Callable[Rest, None]:
    """Give a command the log, after edits of the texts were recorded, and the option not to."""

    @click.option(
        "--no-sweep",
        "sweep",
        flag_value=False,
        default=True,
        help="Don't look for edits made outside Perdure first.",
    )
    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        sweep = kwargs.pop("sweep")
        caller = default_request(os.environ)
        with open_log(os.environ) as log:
            if sweep:
                mention_edits(log.record_edits(), caller)
            elif log.refusal is not None:
                out.mention(f"the texts can't be had: {log.refusal}")
            if (key := kwargs.get("key")) is not None:
                kwargs["key"] = log.find(str(key), caller)
            command(log, *args, **kwargs)

    return run


def _parse_version(text: str) -> int | CID:
    return int(text) if is_number(text) else parse_cid(text)


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
@click.option("--git", "git", is_flag=True, help="With KEY: show the commit that has each version.")
@as_json(OBJECT_PER_LINE)
@_with_log
def log_command(  # noqa: PLR0913 - one for each option
    log: VersionLog,
    key: str | None,
    after: int | None,
    limit: int | None,
    *,
    git: bool,
    as_json: bool,
) -> None:
    """Show what happened, or the versions of KEY.

    The newest come last. Times are local; positions are those of the log. With --git, the commit of
    git whose file has the same bytes is beside each version.
    """
    if git and key is None:
        raise click.UsageError("--git is about one text. Fix: name its KEY.")
    found: Iterable[Event] = log.entries(key, after=after, limit=limit)
    commits: dict[int, GitCommit] = {}
    if git and key is not None:
        found = list(found)
        commits = commits_beside(log, key, found)
    if as_json:
        for event in found:
            commit = commits.get(event.position)
            out.json({**_json(event), **({"git": _commit_json(commit)} if git else {})})
        return
    number = "position" if key is None else "version"
    heads = (number, "time", "actor", "origin", "name", *(["git"] if git else []), "reason")
    rows = (
        _row(event, _commit(commits.get(event.position)) if git else ())
        for event in (found if key else _by_node(found))
    )
    if not out.table(heads, rows):
        out.mention(f"nothing is recorded {f'after {after}' if after else 'yet'}")


def _node_of(event: Event) -> tuple[int, str]:
    folder, _, name = event.key.rpartition("/")
    return event.commit, folder if name.startswith(".") or name == "content.md" else event.key


def _by_node(found: Iterable[Event]) -> Iterator[Event]:
    """Yield the last text of each node that a commit changed; a content before the others."""
    for _, texts in groupby(found, _node_of):
        several = list(texts)
        contents = (each for each in several if each.key.endswith("/content.md"))
        yield replace(next(contents, several[-1]), position=several[-1].position)


def _commit(commit: GitCommit | None) -> tuple[str]:
    if commit is None:
        return ("-",)
    return (f"{commit.hash[:_SHORT]} {local_date(commit.time)} {shown(commit.subject)}",)


def _commit_json(commit: GitCommit | None) -> dict[str, str] | None:
    if commit is None:
        return None
    return {"commit": commit.hash, "time": utc_time(commit.time), "subject": commit.subject}


def _row(event: Event, commit: tuple[str, ...]) -> tuple[str, ...]:
    number = event.number if isinstance(event, Version) else event.position
    reason = shown(event.reason) if event.reason else ""
    if event.unbound:
        reason = f"removed: {reason}" if reason else "removed"
    name = text_named(event.key, default_request(os.environ))
    fields = map(shown, (event.actor, event.origin, name))
    return (str(number), local_time(event.time), *fields, *commit, reason)


def _json(event: Event) -> dict[str, object]:
    number = {"version": event.number} if isinstance(event, Version) else {}
    return {
        "key": event.key,
        **number,
        **picked(event, "position commit"),
        "time": utc_time(event.time),
        **picked(event, "actor origin reason removed=unbound cid derived_from"),
        "more": plain(event.circumstances.more),
    }


@click.command("show")
@click.argument("key")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="By its number.")
@click.option("--cid", type=parse_cid, metavar="CID", help="By its content.")
@at_moment
@as_json()
@_with_log
def show_command(  # noqa: PLR0913 - one for each option
    log: VersionLog,
    key: str,
    version: int | None,
    cid: CID | None,
    at: Moment | None,
    *,
    as_json: bool,
) -> None:
    """Print the text of KEY, byte for byte.

    Without options, that of the last version. On a terminal, control characters are written out.
    """
    if sum(value is not None for value in (version, cid, at)) > 1:
        raise click.UsageError("--version, --cid and --at say the same thing. Fix: give one.")
    found = log.version(key, version or cid, at=at)
    text = log.text(found)
    if as_json:
        out.json({**_json(found), "text": text})
    else:
        out.text(text)


@click.command("diff")
@click.argument("key")
@click.argument("old", type=_parse_version, metavar="[A", required=False)
@click.argument("new", type=_parse_version, metavar="[B]]", required=False)
@as_json()
@_with_log
def diff_command(
    log: VersionLog, key: str, old: int | CID | None, new: int | CID | None, *, as_json: bool
) -> None:
    """Show what changed in KEY from version A to B.

    Without B, up to the last version; without A, from the one before it.
    """
    first, last, changed = log.diff(key, old, new)
    if as_json:
        begin = None if first is None else first.number
        out.json({"key": last.key, "from": begin, "to": last.number, "diff": changed})
    elif changed:
        out.diff(changed)
    else:
        out.mention("no difference")


@click.command("blame")
@click.argument("key")
@as_json(OBJECT_PER_LINE)
@_with_log
def blame_command(log: VersionLog, key: str, *, as_json: bool) -> None:
    """Show which version wrote each line of KEY, and who."""
    blamed = log.blame(key)
    if as_json:
        lines = enumerate(blamed, 1)
        out.json(*({"line": n, "text": line.text, **_json(line.version)} for n, line in lines))
        return
    rows = [(*_writer(line.version), readable(line.text.removesuffix("\n"))) for line in blamed]
    out.table(("version", "date", "actor", "origin", "line"), rows)


def _writer(version: Version) -> tuple[str, ...]:
    who = (shown(version.actor), shown(version.origin))
    return (str(version.number), local_date(version.time), *who)


@click.command("restore")
@click.argument("key")
@click.argument("version", type=_parse_version)
@click.option("--reason", metavar="TEXT", help="Why; it stands in the log.")
@click.option("--force", is_flag=True, help="Replace the file whatever it is now.")
@as_json()
@_with_log
def restore_command(  # noqa: PLR0913 - one for each option
    log: VersionLog, key: str, version: int | CID, reason: str | None, *, force: bool, as_json: bool
) -> None:
    """Write the text of an earlier VERSION of KEY as a new version.

    Nothing of the history is lost by that. If the file is changed by somebody else meanwhile,
    nothing is written.
    """
    made, source, written = log.restore(key, version, reason=reason, force=force)
    name = shown(text_named(key, default_request(os.environ)))
    if as_json:
        out.json({**_json(made), "restored": source.number, "written": written})
    elif written:
        out.line(f"{name}: wrote version {made.number}, the text of version {source.number}")
    else:
        out.line(f"{name}: version {made.number} has that text already; nothing to write")
