"""What is printed of a session that was committed, or would be."""

from collections.abc import Iterable, Iterator

from perdure.engine.saving.outcome import Outcome, Planned, SessionCommit
from perdure.engine.validate.texts import presentable
from perdure.errors import InvalidUriError
from perdure.model import Uri
from perdure.surfaces.cli.secrets import mention_number_masked
from perdure.surfaces.nodes.opening import Memory
from perdure.surfaces.saving.words import said
from perdure.surfaces.telling import counted, mention, tell_diff, tell_line, tell_table

_WRITTEN = (Outcome.CREATED, Outcome.MERGED, Outcome.APPENDED)
_MOST_LEFT_OUT = 20
_SUPERSEDED = "superseded"
_NOTHING_FOUND = "nothing was learned from it"
_NOTHING_NEW = "it was committed before; nothing changed"


# ---------------------------------------------------------------- for people
def tell_commit(memory: Memory, done: SessionCommit) -> None:
    tell_line(_archived(memory, done))
    tell_line(_counts(done))
    _tell_masked(done)
    _tell_left_out(done)
    _tell_failures(done)
    rows = [
        row for each in done.plans if each.outcome in _WRITTEN for row in _rows(memory, done, each)
    ]
    for outcome, name, text in rows:
        tell_line(f"  {outcome:10}  {name}  {text}")
    if rows:
        mention(f"`perdure why {rows[0][1]}` says what it rests on")


def tell_plan(memory: Memory, done: SessionCommit) -> None:
    mention("nothing is written; this is what would be")
    tell_line(_archived(memory, done))
    tell_line(_counts(done))
    _tell_masked(done)
    _tell_left_out(done)
    rows = [
        (each.outcome.value, f"{each.candidate.confidence:g}", _name(memory, each.uri), _why(each))
        for each in done.plans
    ]
    if rows:
        tell_line("")
        tell_table(("outcome", "sure", "memory", "what was said, and why it goes there"), rows)
    for change in done.changes:
        if change.diff:
            tell_line("")
            tell_diff(change.diff)


def _archived(memory: Memory, done: SessionCommit) -> str:
    name = memory.name(Uri(memory.request.account_id, ("sessions", done.session_id)))
    replaced = f", in place of {done.replaced}" if done.replaced else ""
    return f"{name}: {counted(done.messages, 'message')}, {done.added} of them new{replaced}"


def _counts(done: SessionCommit) -> str:
    if not done.extracted:
        return _NOTHING_FOUND if done.added else _NOTHING_NEW
    named = {**done.counts, _SUPERSEDED: done.superseded}
    told = [f"{number} {name}" for name, number in named.items() if number]
    return ", ".join(told)


def _rows(memory: Memory, done: SessionCommit, plan: Planned) -> Iterator[tuple[str, str, str]]:
    """Yield what a plan made of a candidate, and of what that superseded."""
    yield plan.outcome.value, _name(memory, plan.uri), said(plan.candidate.content)
    texts = {each.uri: each.after for each in done.changes}
    for uri in plan.superseded:
        yield _SUPERSEDED, _name(memory, uri), said(texts.get(uri, ""))


def _tell_masked(done: SessionCommit) -> None:
    """Say in which messages secrets were masked, as citations count them, and of which kind."""
    told = [f"message {each.message} ({', '.join(each.kinds)})" for each in done.masked_messages]
    mention_number_masked(done.masked, told)


def _tell_left_out(done: SessionCommit) -> None:
    for each in done.left_out[:_MOST_LEFT_OUT]:
        mention(f"not kept of message {each.message + 1}: {said(each.what)}: {said(each.why)}")
    if len(done.left_out) > _MOST_LEFT_OUT:
        mention(f"and {len(done.left_out) - _MOST_LEFT_OUT:,} more")


def _tell_failures(done: SessionCommit) -> None:
    for each in done.plans:
        if each.outcome is Outcome.FAILED:
            mention(f"not kept: {said(each.candidate.content)}: {said(each.reason)}")


def _why(plan: Planned) -> str:
    return f"{said(plan.candidate.content)} {said(plan.reason)}"


def _name(memory: Memory, uri: str) -> str:
    """Return the short name of a place; nothing of none."""
    try:
        return memory.name(Uri.parse(uri)) if uri else ""
    except InvalidUriError:
        return ""


# ---------------------------------------------------------------- for programs
def as_json(done: SessionCommit, left_out: Iterable[str], *, dry_run: bool) -> dict[str, object]:
    return {
        "session": done.session_id,
        "uris": list(done.uris),
        "messages": done.messages,
        "added": done.added,
        "replaced": done.replaced,
        "dry_run": dry_run,
        "left_out": list(left_out),
        "not_kept": [
            {"message": each.message, "what": presentable(each.what), "why": presentable(each.why)}
            for each in done.left_out
        ],
        "counts": {**done.counts, _SUPERSEDED: done.superseded},
        "masked": {
            "secrets": done.masked,
            "messages": [
                {"message": each.message, "kinds": list(each.kinds)}
                for each in done.masked_messages
            ],
        },
        "plans": [_plan_json(each) for each in done.plans],
        "changes": [
            {"uri": each.uri, "before": each.before, "after": each.after, "diff": each.diff}
            for each in done.changes
        ],
    }


def _plan_json(plan: Planned) -> dict[str, object]:
    candidate = plan.candidate
    return {
        "outcome": plan.outcome.value,
        "uri": plan.uri or None,
        "category": candidate.category,
        "content": presentable(candidate.content),
        "quote": presentable(candidate.quote),
        "speaker": presentable(candidate.speaker),
        "confidence": candidate.confidence,
        "reason": presentable(plan.reason),
        "superseded": list(plan.superseded),
    }
