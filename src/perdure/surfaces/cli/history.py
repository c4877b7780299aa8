"""`perdure history`: the versions of texts. `prove` has a module of its own."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import groupby
from typing import Concatenate, ParamSpec

import click

from perdure import CID, Event, Garbage, VerificationReport, Version, VersionLog
from perdure.app import default_request, open_log
from perdure.app.git_commits import GitCommit, find_commits
from perdure.dataclass import replace
from perdure.model.request import text_named
from perdure.surfaces import out
from perdure.surfaces.cli.options import (
    OBJECT_PER_LINE,
    Moment,
    as_json,
    ask_first,
    at_moment,
    is_number,
    mention_edits,
    parse_cid,
    parse_moment,
    without_asking,
)
from perdure.surfaces.out import (
    counted,
    local_date,
    local_time,
    picked,
    plain,
    readable,
    shown,
    sized,
    utc_time,
)

Rest = ParamSpec("Rest")
_SHORT = 12


def _with_log(command: Callable[Concatenate[VersionLog, Rest], None]) -> Callable[Rest, None]:
    """Give a command the log, after edits of texts were recorded, and the option --no-sweep."""

    @click.option(
        "--no-sweep",
        "sweep",
        flag_value=False,
        default=True,
        help="Don't record edits made outside Perdure first.",
    )
    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        sweep = kwargs.pop("sweep")
        caller = default_request(os.environ)
        with open_log(os.environ) as log:
            if sweep:
                mention_edits(log.record_edits(), caller)
            elif log.refusal is not None:
                out.mention(f"the texts can't be opened: {log.refusal}")
            if (key := kwargs.get("key")) is not None:
                kwargs["key"] = log.find(str(key), caller)
            command(log, *args, **kwargs)

    return run


def _parse_version(text: str) -> int | CID:
    return int(text) if is_number(text) else parse_cid(text)


# ---------------------------------------------------------------- log
@click.command("log")
@click.argument("key", required=False)
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show only entries after this number of the first column.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show at most N entries: the last ones or, with --after, the first ones after it.",
)
@click.option("--git", "git", is_flag=True, help="Show the Git commit of each version of KEY.")
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

    The newest come last. Times are local; positions are those of the log. With --git, each version
    is shown with the Git commit whose file has the same bytes.
    """
    if git and key is None:
        raise click.UsageError("--git needs a KEY. Fix: name the KEY of one text.")
    found: Iterable[Event] = log.entries(key, after=after, limit=limit)
    commits: dict[int, GitCommit] = {}
    if git and key is not None:
        found = list(found)
        commits = find_commits(log, key, found)
    if as_json:
        for event in found:
            commit = commits.get(event.position)
            out.json({**_event_json(event), **({"git": _commit_json(commit)} if git else {})})
        return
    number = "position" if key is None else "version"
    heads = (number, "time", "actor", "origin", "name", *(["git"] if git else []), "reason")
    rows = (
        _event_row(event, _commit(commits.get(event.position)) if git else ())
        for event in (found if key else _by_node(found))
    )
    if not out.table(heads, rows):
        out.mention(f"nothing is recorded {f'after {after}' if after else 'yet'}")


def _node_of(event: Event) -> tuple[int, str]:
    folder, _, name = event.key.rpartition("/")
    return event.commit, folder if name.startswith(".") or name == "content.md" else event.key


def _by_node(found: Iterable[Event]) -> Iterator[Event]:
    """Yield one event for each node that a commit changed: its content's, else its last text's."""
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


def _event_row(event: Event, commit: tuple[str, ...]) -> tuple[str, ...]:
    number = event.number if isinstance(event, Version) else event.position
    reason = shown(event.reason) if event.reason else ""
    if event.unbound:
        reason = f"removed: {reason}" if reason else "removed"
    name = text_named(event.key, default_request(os.environ))
    fields = map(shown, (event.actor, event.origin, name))
    return (str(number), local_time(event.time), *fields, *commit, reason)


def _event_json(event: Event) -> dict[str, object]:
    number = {"version": event.number} if isinstance(event, Version) else {}
    return {
        "key": event.key,
        **number,
        **picked(event, "position commit"),
        "time": utc_time(event.time),
        **picked(event, "actor origin reason removed=unbound cid derived_from"),
        "more": plain(event.circumstances.more),
    }


# ---------------------------------------------------------------- versions
@click.command("show")
@click.argument("key")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="The version number.")
@click.option("--cid", type=parse_cid, metavar="CID", help="The CID of the version's content.")
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

    Without options, prints the last version. On a terminal, control characters are escaped.
    """
    if sum(value is not None for value in (version, cid, at)) > 1:
        raise click.UsageError("--version, --cid and --at exclude each other. Fix: give one.")
    found = log.version(key, version or cid, at=at)
    text = log.text(found)
    if as_json:
        out.json({**_event_json(found), "text": text})
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

    B defaults to the last version, and A to the one before it.
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
        out.json(
            *({"line": n, "text": line.text, **_event_json(line.version)} for n, line in lines)
        )
        return
    rows = [(*_writer(line.version), readable(line.text.removesuffix("\n"))) for line in blamed]
    out.table(("version", "date", "actor", "origin", "line"), rows)


def _writer(version: Version) -> tuple[str, ...]:
    who = (shown(version.actor), shown(version.origin))
    return (str(version.number), local_date(version.time), *who)


@click.command("restore")
@click.argument("key")
@click.argument("version", type=_parse_version)
@click.option("--reason", metavar="TEXT", help="Record this reason in the log.")
@click.option("--force", is_flag=True, help="Replace the file, whatever it contains now.")
@as_json()
@_with_log
def restore_command(  # noqa: PLR0913 - one for each option
    log: VersionLog, key: str, version: int | CID, reason: str | None, *, force: bool, as_json: bool
) -> None:
    """Write the text of an earlier VERSION of KEY as a new version.

    No version is lost. If another process changes the file at the same time, nothing is written.
    """
    newest, source, written = log.restore(key, version, reason=reason, force=force)
    name = shown(text_named(key, default_request(os.environ)))
    if as_json:
        out.json({**_event_json(newest), "restored": source.number, "written": written})
    elif written:
        out.line(f"{name}: wrote version {newest.number}, the text of version {source.number}")
    else:
        out.line(f"{name}: version {newest.number} already has that text; nothing was written")


# ---------------------------------------------------------------- verify and gc
@click.command("verify")
@as_json()
@click.pass_context
def verify_command(context: click.Context, *, as_json: bool) -> None:
    """Check every byte of the history for damage.

    Works even where the history can't be opened. Exits with 1 if anything is damaged.
    """
    with open_log(os.environ, texts=False) as log, out.progress("verifying") as show:
        verified = log.verify(show)
    for cut in verified.cuts:
        out.mention(f"cut off: an unfinished commit, {sized(cut.length)} in {cut.segment}")
    if as_json:
        out.json(_verified_json(verified))
    else:
        _print_verified(verified)
    context.exit(0 if verified.ok else 1)


def _print_verified(verified: VerificationReport) -> None:
    report = verified.report
    for fault in report.faults:
        out.line(f"damaged: {fault.cid or f'after entry {fault.position}'}")
        out.line(f"    {shown(fault.what)}, in {fault.where}")
        for each in verified.versions_of(fault):
            out.line(f"    it is version {each.version} of {shown(each.key)}")
    checked = (
        f"{counted(report.commits, 'commit')}, {counted(report.entries, 'entry')}, "
        f"{counted(report.contents, 'content')}, {sized(report.size)}"
    )
    if verified.ok:
        intact = f"{checked}; every byte is as it was written"
        out.line(f"ok: {intact if report.commits else 'nothing is recorded yet'}")
        return
    out.line(f"FAIL: {counted(len(report.faults), 'fault')}; intact: {checked}")
    if verified.refusal:
        out.line(f"the history can't be opened: {verified.refusal}")
    else:
        out.line(f"Fix: restore {str(verified.folder)!a} from a backup.")


def _verified_json(verified: VerificationReport) -> dict[str, object]:
    faults = [
        {
            **picked(fault, "what where position cid"),
            "versions": [each._asdict() for each in verified.versions_of(fault)],
        }
        for fault in verified.report.faults
    ]
    return {
        "ok": verified.ok,
        "opens": not verified.refusal,
        **picked(verified, "refusal? folder"),
        **picked(verified.report, "commits entries contents bytes=size position"),
        "faults": faults,
    }


@click.command("gc")
@click.option(
    "--before",
    type=parse_moment,
    metavar="MOMENT",
    help="Give up every state before this date, time or position.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be erased, and erase nothing.")
@without_asking
@as_json()
def gc_command(before: Moment | None, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase withdrawn content for good.

    Versions are never erased. Content under a tombstone is erased once no retained state shows it;
    with --before, states before that moment are no longer retained.
    """
    with open_log(os.environ, texts=False) as log:
        found = log.plan_gc(before)
        sentence = _sentence(found, "would erase")
        if found.is_empty:
            sentence = f"nothing to erase; every state since position {found.horizon} is retained"
        elif not dry_run:
            if not yes:
                plan = _sentence(found, "this will erase")
                ask_first(f"{plan}. This can't be undone.", "nothing was erased")
            found = log.gc(found)
            sentence = _sentence(found, "erased")
    if as_json:
        cids = [str(cid) for cid in found.cids]
        counts = {"horizon": found.horizon, "contents": len(cids), "bytes": found.size}
        out.json({"done": not dry_run, **counts, "cids": cids})
    else:
        out.line(sentence)


def _sentence(found: Garbage, verb: str) -> str:
    number = len(found.cids)
    what = f"{counted(number, 'content')}, {sized(found.size)}" if number else "nothing"
    if found.time is None:
        return f"{verb} {what}"
    states = f"states before position {found.horizon} ({local_time(found.time)})"
    return f"{verb} {what}; {states} can no longer be read"
