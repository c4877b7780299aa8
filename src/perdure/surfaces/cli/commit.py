"""`perdure commit`."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

import click

from perdure import (
    CandidateResult,
    ConversationFile,
    Memory,
    Outcome,
    SessionCommit,
    presentable,
    read_conversation,
    session_id_for,
)
from perdure.errors import AccessDeniedError, InvalidUriError, InvalidValueError
from perdure.model import Uri
from perdure.model.values import shown as briefly
from perdure.surfaces import out
from perdure.surfaces.cli import INTERRUPTED
from perdure.surfaces.cli.options import STDIN, mention_number_masked, with_project_memory
from perdure.surfaces.out import counted, picked, shown, shown_words

_FAILED = "the messages are stored. Fix: solve the problems above, then commit with --again."
_MOST_FAULTS = 20
_BATCH = 200
"""How many messages are learned from at a time."""
_WRITTEN = (Outcome.CREATED, Outcome.MERGED, Outcome.APPENDED)
_SUPERSEDED = "superseded"
_NOTHING_FOUND = "nothing was learned"
_NOTHING_NEW = "already committed; nothing changed"


class CommitArguments(TypedDict):
    no_extract: bool
    dry_run: bool
    again: bool
    min_confidence: float | None
    lenient: bool


@click.command("commit")
@click.argument("session_file", metavar="SESSION.jsonl")
@click.option("--no-extract", is_flag=True, help="Store the messages, and learn nothing.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--again", is_flag=True, help="Learn from all messages, not only from new ones.")
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Learn only statements with at least this confidence. Default: 0.6.",
)
@click.option("--lenient", is_flag=True, help="Skip what can't be stored in a message.")
@with_project_memory()
def commit_command(
    memory: Memory, session_file: str, *, as_json: bool, **options: Unpack[CommitArguments]
) -> None:
    """Store a conversation and learn from it.

    SESSION.jsonl has one message per line, {"role": "user", "content": "..."}, optionally with
    name and time, or in the format of OpenAI or Anthropic; or it is one JSON list of messages. If
    it is -, the messages are read from stdin. The session's id is that of --session, else the name
    of the file. The same messages again change nothing, new ones are added, and a last answer that
    differs is replaced.
    """
    session = memory.caller.session_id or _named(session_file)
    source = sys.stdin.buffer if session_file == STDIN else Path(session_file)
    conversation = read_conversation(source, lenient=options["lenient"])
    _refuse_faults(conversation)
    if conversation.left_out:
        names = ", ".join(map(briefly, conversation.left_out[:_MOST_FAULTS]))
        out.mention(f"ignored, because no message has such a field: {names}")
    done = _committed(memory, session, conversation, options)
    if as_json:
        out.json(_json(done, conversation.left_out, dry_run=options["dry_run"]))
    elif options["dry_run"]:
        _print_plan(memory, done)
    else:
        _print_commit(memory, done)
    if done.failed:
        out.mention(_FAILED)
        raise click.exceptions.Exit(1)


def _named(session_file: str) -> str:
    if session_file == STDIN:
        raise click.UsageError("messages from stdin need a session id. Fix: add --session ID.")
    return session_id_for(session_file)


def _refuse_faults(conversation: ConversationFile) -> None:
    """Refuse a conversation with an unreadable message: it would be stored as if complete."""
    for fault in conversation.faults[:_MOST_FAULTS]:
        more = ", or add --lenient to skip it." if fault.is_passable else ""
        out.mention(f"refused: {shown(str(fault))}{more}")
    if len(conversation.faults) > _MOST_FAULTS:
        out.mention(f"and {len(conversation.faults) - _MOST_FAULTS:,} more")
    if conversation.faults:
        raise InvalidValueError(
            f"{counted(len(conversation.faults), 'message')} can't be read; nothing was "
            "committed. Fix: see above, then commit again."
        )
    if not conversation.messages:
        raise InvalidValueError(
            'there are no messages. Fix: write one on each line: {"role": "user", "content": '
            '"..."}.'
        )


def _committed(
    memory: Memory, session: str, conversation: ConversationFile, options: CommitArguments
) -> SessionCommit:
    dry_run = options["dry_run"]
    is_long = len(conversation.messages) > _BATCH
    try:
        with out.progress("learning") if is_long else nullcontext() as progressed:
            return memory.commit_session(
                conversation.messages,
                session_id=session,
                extract=not options["no_extract"],
                min_confidence=options["min_confidence"],
                dry_run=dry_run,
                again=options["again"],
                progress=progressed,
            )
    except AccessDeniedError as error:
        raise AccessDeniedError(
            f"you have no access to the session {session[:80]!a}. Fix: if this is another "
            "conversation, name it with --session ID."
        ) from error
    except KeyboardInterrupt:
        out.mention(
            "stopped; nothing was written"
            if dry_run
            else "stopped; finished parts are stored. Fix: run the same command again to continue."
        )
        raise click.exceptions.Exit(INTERRUPTED) from None


# ---------------------------------------------------------------- text
def _print_summary(memory: Memory, done: SessionCommit) -> None:
    name = memory.name(str(Uri(memory.caller.account_id, ("sessions", done.session_id))))
    replaced = f", in place of {done.replaced}" if done.replaced else ""
    out.line(f"{name}: {counted(done.messages, 'message')}, {done.added} of them new{replaced}")
    out.line(_counts(done))
    places = [f"message {each.message} ({', '.join(each.kinds)})" for each in done.masked_messages]
    mention_number_masked(done.masked, places)
    for each in done.left_out[:_MOST_FAULTS]:
        what = f"{shown_words(each.what)}: {shown_words(each.why)}"
        out.mention(f"left out of message {each.message + 1}: {what}")
    if len(done.left_out) > _MOST_FAULTS:
        out.mention(f"and {len(done.left_out) - _MOST_FAULTS:,} more")
    if done.hidden:
        out.mention(f"hidden, because you forgot it: {counted(done.hidden, 'sentence')}")


def _print_commit(memory: Memory, done: SessionCommit) -> None:
    _print_summary(memory, done)
    for each in done.plans:
        if each.outcome is Outcome.FAILED:
            content = shown_words(each.candidate.content)
            out.mention(f"not stored: {content}: {shown_words(each.reason)}")
    rows = [
        row for each in done.plans if each.outcome in _WRITTEN for row in _rows(memory, done, each)
    ]
    for outcome, name, text in rows:
        out.line(f"  {outcome:10}  {name}  {text}")
    if rows:
        out.mention(f"`perdure why {rows[0][1]}` shows its evidence")


def _print_plan(memory: Memory, done: SessionCommit) -> None:
    out.mention("dry run: nothing was written")
    _print_summary(memory, done)
    rows = [
        (
            each.outcome.value,
            f"{each.candidate.confidence:g}",
            _name(memory, each.uri),
            f"{shown_words(each.candidate.content)} {shown_words(each.reason)}",
        )
        for each in done.plans
    ]
    if rows:
        out.line("")
        out.table(("outcome", "confidence", "memory", "statement and reason"), rows)
    for change in done.changes:
        if change.diff:
            out.line("")
            out.diff(change.diff)


def _counts(done: SessionCommit) -> str:
    if not done.extracted:
        return _NOTHING_FOUND if done.added else _NOTHING_NEW
    counts = {**done.counts, _SUPERSEDED: done.superseded}
    return ", ".join(f"{number} {name}" for name, number in counts.items() if number)


def _rows(
    memory: Memory, done: SessionCommit, plan: CandidateResult
) -> Iterator[tuple[str, str, str]]:
    yield plan.outcome.value, _name(memory, plan.uri), shown_words(plan.candidate.content)
    texts = {each.uri: each.after for each in done.changes}
    for uri in plan.superseded:
        yield _SUPERSEDED, _name(memory, uri), shown_words(texts.get(uri, ""))


def _name(memory: Memory, uri: str) -> str:
    """Return the short name of a node, or an empty text if there is none."""
    try:
        return memory.name(uri) if uri else ""
    except InvalidUriError:
        return ""


# ---------------------------------------------------------------- JSON
def _json(done: SessionCommit, left_out: Iterable[str], *, dry_run: bool) -> dict[str, object]:
    return {
        **picked(done, "session=session_id uris messages added replaced hidden"),
        "dry_run": dry_run,
        "left_out": list(left_out),
        "not_stored": [
            {"message": each.message, "what": presentable(each.what), "why": presentable(each.why)}
            for each in done.left_out
        ],
        "counts": {**done.counts, _SUPERSEDED: done.superseded},
        "masked": {
            "secrets": done.masked,
            "messages": [picked(each, "message kinds") for each in done.masked_messages],
        },
        "plans": [_plan_json(each) for each in done.plans],
        "changes": [picked(each, "uri before after diff") for each in done.changes],
    }


def _plan_json(plan: CandidateResult) -> dict[str, object]:
    candidate = plan.candidate
    return {
        **picked(plan, "outcome uri? superseded"),
        **picked(candidate, "category confidence"),
        **{name: presentable(getattr(candidate, name)) for name in ("content", "quote", "speaker")},
        "reason": presentable(plan.reason),
    }
