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
from perdure.surfaces.cli.options import STDIN, mention_number_masked, with_project_memory
from perdure.surfaces.lazy import INTERRUPTED
from perdure.surfaces.telling import counted, picked, shown, shown_words

_FAILED = "what was said is kept. Fix: mend what stands in the way, then commit it --again."
_MOST_FAULTS = 20
_LONG = 200
"""Messages; so many are learned from at a time."""
_WRITTEN = (Outcome.CREATED, Outcome.MERGED, Outcome.APPENDED)
_SUPERSEDED = "superseded"
_NOTHING_FOUND = "nothing was learned from it"
_NOTHING_NEW = "it was committed before; nothing changed"


class Options(TypedDict):
    no_extract: bool
    dry_run: bool
    again: bool
    min_confidence: float | None
    lenient: bool


@click.command("commit")
@click.argument("session_file", metavar="SESSION.jsonl")
@click.option("--no-extract", is_flag=True, help="Keep what was said, and learn nothing from it.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--again", is_flag=True, help="Learn from all messages, not only from new ones.")
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Learn only what is at least so sure; 0.6.",
)
@click.option("--lenient", is_flag=True, help="Pass over what no message can hold.")
@with_project_memory()
def commit_command(
    memory: Memory, session_file: str, *, as_json: bool, **options: Unpack[Options]
) -> None:
    """Keep a conversation, and learn from it.

    SESSION.jsonl has a message on each line, {"role": "user", "content": "..."}, perhaps with name
    and time, or as OpenAI and Anthropic have it; or it is one JSON list of them. If it is -, that
    is read from stdin. The id of the session is that of --session, else the name of the file. The
    same again changes nothing, more messages are added, and a last answer that differs is replaced.
    """
    session = memory.caller.session_id or _named(session_file)
    source = sys.stdin.buffer if session_file == STDIN else Path(session_file)
    talk = read_conversation(source, lenient=options["lenient"])
    _refuse_holes(talk)
    if talk.left_out:
        names = ", ".join(map(briefly, talk.left_out[:_MOST_FAULTS]))
        out.mention(f"passed over, for no message has it: {names}")
    done = _committed(memory, session, talk, options)
    if as_json:
        out.json(_json(done, talk.left_out, dry_run=options["dry_run"]))
    elif options["dry_run"]:
        _tell_plan(memory, done)
    else:
        _tell_commit(memory, done)
    if done.failed:
        out.mention(_FAILED)
        raise click.exceptions.Exit(1)


def _named(session_file: str) -> str:
    if session_file == STDIN:
        raise click.UsageError("what comes on stdin has no name. Fix: add --session ID.")
    return session_id_for(session_file)


def _refuse_holes(talk: ConversationFile) -> None:
    """Refuse a conversation of which something is missing: it would be taken for whole."""
    for fault in talk.faults[:_MOST_FAULTS]:
        more = ", or add --lenient to pass it over." if fault.is_passable else ""
        out.mention(f"refused: {shown(str(fault))}{more}")
    if len(talk.faults) > _MOST_FAULTS:
        out.mention(f"and {len(talk.faults) - _MOST_FAULTS:,} more")
    if talk.faults:
        raise InvalidValueError(
            f"{counted(len(talk.faults), 'message')} can't be read; nothing was committed. "
            "Fix: see above, then commit again."
        )
    if not talk.messages:
        raise InvalidValueError(
            'there are no messages. Fix: write one on each line: {"role": "user", "content": '
            '"..."}.'
        )


def _committed(
    memory: Memory, session: str, talk: ConversationFile, options: Options
) -> SessionCommit:
    dry_run = options["dry_run"]
    is_long = len(talk.messages) > _LONG
    try:
        with out.progress("learning") if is_long else nullcontext() as progressed:
            return memory.commit_session(
                talk.messages,
                session_id=session,
                extract=not options["no_extract"],
                min_confidence=options["min_confidence"],
                dry_run=dry_run,
                again=options["again"],
                progress=progressed,
            )
    except AccessDeniedError as error:
        raise AccessDeniedError(
            f"the session {session[:80]!a} is out of your reach. Fix: if it is another "
            "conversation, name it with --session ID."
        ) from error
    except KeyboardInterrupt:
        out.mention(
            "stopped; nothing was written"
            if dry_run
            else "stopped; what is done is kept. Fix: run the same command again, and it goes on."
        )
        raise click.exceptions.Exit(INTERRUPTED) from None


# ---------------------------------------------------------------- for people
def _tell_commit(memory: Memory, done: SessionCommit) -> None:
    out.line(_archived(memory, done))
    out.line(_counts(done))
    _tell_masked(done)
    _tell_left_out(done)
    _tell_failures(done)
    rows = [
        row for each in done.plans if each.outcome in _WRITTEN for row in _rows(memory, done, each)
    ]
    for outcome, name, text in rows:
        out.line(f"  {outcome:10}  {name}  {text}")
    if rows:
        out.mention(f"`perdure why {rows[0][1]}` says what it rests on")


def _tell_plan(memory: Memory, done: SessionCommit) -> None:
    out.mention("nothing is written; this is what would be")
    out.line(_archived(memory, done))
    out.line(_counts(done))
    _tell_masked(done)
    _tell_left_out(done)
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
        out.table(("outcome", "sure", "memory", "what was said, and why it goes there"), rows)
    for change in done.changes:
        if change.diff:
            out.line("")
            out.diff(change.diff)


def _archived(memory: Memory, done: SessionCommit) -> str:
    name = memory.name(str(Uri(memory.caller.account_id, ("sessions", done.session_id))))
    replaced = f", in place of {done.replaced}" if done.replaced else ""
    return f"{name}: {counted(done.messages, 'message')}, {done.added} of them new{replaced}"


def _counts(done: SessionCommit) -> str:
    if not done.extracted:
        return _NOTHING_FOUND if done.added else _NOTHING_NEW
    named = {**done.counts, _SUPERSEDED: done.superseded}
    told = [f"{number} {name}" for name, number in named.items() if number]
    return ", ".join(told)


def _rows(
    memory: Memory, done: SessionCommit, plan: CandidateResult
) -> Iterator[tuple[str, str, str]]:
    yield plan.outcome.value, _name(memory, plan.uri), shown_words(plan.candidate.content)
    texts = {each.uri: each.after for each in done.changes}
    for uri in plan.superseded:
        yield _SUPERSEDED, _name(memory, uri), shown_words(texts.get(uri, ""))


def _tell_masked(done: SessionCommit) -> None:
    told = [f"message {each.message} ({', '.join(each.kinds)})" for each in done.masked_messages]
    mention_number_masked(done.masked, told)


def _tell_left_out(done: SessionCommit) -> None:
    for each in done.left_out[:_MOST_FAULTS]:
        what = f"{shown_words(each.what)}: {shown_words(each.why)}"
        out.mention(f"not kept of message {each.message + 1}: {what}")
    if len(done.left_out) > _MOST_FAULTS:
        out.mention(f"and {len(done.left_out) - _MOST_FAULTS:,} more")
    if done.hidden:
        out.mention(f"kept back, because you forgot it: {counted(done.hidden, 'sentence')}")


def _tell_failures(done: SessionCommit) -> None:
    for each in done.plans:
        if each.outcome is Outcome.FAILED:
            out.mention(
                f"not kept: {shown_words(each.candidate.content)}: {shown_words(each.reason)}"
            )


def _name(memory: Memory, uri: str) -> str:
    """Return the short name of a place; nothing of none."""
    try:
        return memory.name(uri) if uri else ""
    except InvalidUriError:
        return ""


# ---------------------------------------------------------------- for programs
def _json(done: SessionCommit, left_out: Iterable[str], *, dry_run: bool) -> dict[str, object]:
    return {
        **picked(done, "session=session_id uris messages added replaced hidden"),
        "dry_run": dry_run,
        "left_out": list(left_out),
        "not_kept": [
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
