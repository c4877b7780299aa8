"""`recall`."""

import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import click

from perdure.engine.recall.planning import plan
from perdure.engine.recall.recalling import DID_NOT_FIT, NO_MODEL
from perdure.engine.recall.result import Hit, RecallResult
from perdure.model import EventStatus, Uri
from perdure.surfaces.asking import ONE_OBJECT, Moment, as_json, at_moment, parse_time, state_at
from perdure.surfaces.nodes.describing import stamp, time
from perdure.surfaces.nodes.opening import Memory, with_memory
from perdure.surfaces.telling import (
    coloured,
    counted,
    mention,
    shown,
    styled,
    tell,
    tell_json,
    tell_line,
    tell_text,
    wrapped,
)

_TOLD_OF_MODELS = "told-of-models"
"""A file in the home, of one who knows that there could be a model."""
_INDENT = "   "
_MORE = "…"
_LAPSED = "does not hold"
_MOST_LINES = 6
_NARROWEST = 40
_WORDS_OF_AN_ORDER = 3


@click.command("recall")
@click.argument("question")
@click.option("--top", type=click.IntRange(1, 1000), default=10, help="How many hits; 10.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="Print Markdown for a prompt, of so many tokens at the most.",
)
@at_moment
@click.option(
    "--valid-at",
    type=parse_time,
    metavar="TIME",
    help="Only what held then, whenever it was written.",
)
@click.option("--category", metavar="NAME", help="Only memories of this category.")
@click.option("--explain", is_flag=True, help="Say how each hit was found.")
@as_json(ONE_OBJECT)
@with_memory
def recall_command(  # noqa: PLR0913, PLR0917 - an option each
    memory: Memory,
    question: str,
    top: int,
    budget: int | None,
    at: Moment | None,
    valid_at: date | None,
    category: str | None,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    """Find what memory has to say to a question.

    What is remembered is compared by its words and, if a model is installed, by its meaning. Each
    hit says where it stands, so that it can be cited. What holds no longer comes after what
    superseded it, and is marked.
    """
    state = None
    if at is not None:
        from perdure.surfaces.noticing import record_edits  # noqa: PLC0415 - who looks back pays

        record_edits(memory.context.recorded)
        state = state_at(memory.context.recorded.history, at)
    result = memory.context.memory.on_behalf_of(memory.request).recall(
        question,
        top_k=top,
        budget_tokens=budget,
        at=state,
        valid_at=valid_at,
        filters={} if category is None else {"category": category},
    )
    if as_json:
        tell_json(_json(result, explain=explain))
    elif budget is not None:
        tell_text(result.context)
        if explain:
            _explain_beside(memory, result)
    else:
        _tell(memory, result, explain=explain)
    _mention(memory, result)


def _tell(memory: Memory, result: RecallResult, *, explain: bool) -> None:
    words = _words(result.query)
    for number, hit in enumerate(result.hits, 1):
        tell("".join(f"{line}\n" for line in _lines(memory, number, hit, words, explain=explain)))
    if explain:
        for step in result.trace:
            tell_line(f"{styled(step.name, bold=True)}: {shown(step.told)}")


def _explain_beside(memory: Memory, result: RecallResult) -> None:
    """Say how the hits were found where it does not get into a prompt."""
    for number, hit in enumerate(result.hits, 1):
        mention(f"{number:>2} {_cited(memory, hit)}")
        for line in _explained(hit):
            mention(_INDENT + line)
    for step in result.trace:
        mention(f"{step.name}: {shown(step.told)}")


def _mention(memory: Memory, result: RecallResult) -> None:
    if not result.hits and not any(DID_NOT_FIT in note for note in result.notes):
        mention("nothing was found")
    for note in result.notes:
        if note != NO_MODEL or _is_news(memory.context.config.home / _TOLD_OF_MODELS):
            mention(f"note: {shown(note)}")
    if result.index_lag:
        _mention_lag(memory, result.index_lag)


def _mention_lag(memory: Memory, lag: int) -> None:
    """Say what helps: changes that failed wait for their time, or for somebody."""
    unfinished = memory.context.outbox.list_unfinished(memory.request.account_id)
    reaches = memory.request.reaches
    failed = [e for _, e in unfinished if e.retry_count and reaches(e.owner_space)]
    dead = [event for event in failed if event.status is EventStatus.DEAD]
    if behind := max(0, lag - len(failed)):
        changes = counted(behind, "change")
        mention(f"note: {changes} not in the index yet. Fix: run `perdure worker --once`")
    if waiting := len(failed) - len(dead):
        next_times = [event.next_retry_at for event in failed if event not in dead]
        soonest = min(filter(None, next_times), default=None)
        again = "" if soonest is None else f", from {time(soonest)} on"
        changes = counted(waiting, "change")
        mention(f"note: {changes} failed to get into the index, to be tried again{again}")
    if dead:
        changes = counted(len(dead), "change")
        told = f"note: {changes} failed too often to get into the index"
        mention(f"{told}. Fix: see `perdure outbox dead`, then run `perdure outbox requeue`")


def _is_news(mark: Path) -> bool:
    """Whether somebody is told for the first time; where no mark can be left, always."""
    try:
        mark.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _lines(
    memory: Memory, number: int, hit: Hit, words: re.Pattern[str] | None, *, explain: bool
) -> Iterator[str]:
    mark = "" if hit.holds else f" · {styled(_LAPSED, fg='red')}"
    yield f"{number:>2} {styled(shown(_about(hit)), bold=hit.holds, dim=not hit.holds)}{mark}"
    for line in _snippet(hit.snippet, words):
        yield _INDENT + _highlighted(shown(line), words)
    yield _INDENT + styled(_cited(memory, hit), fg="blue")
    if explain:
        yield from (_INDENT + line for line in _explained(hit))
    yield ""


def _about(hit: Hit) -> str:
    """Return title, day and speaker. Anybody can call themselves an order; then it is marked."""
    if len(hit.speaker.split()) < _WORDS_OF_AN_ORDER:
        return hit.about
    from perdure.engine.validate.texts import (  # noqa: PLC0415 - who has a long name pays
        presentable_line,
    )

    return " · ".join(map(presentable_line, hit.told))


def _cited(memory: Memory, hit: Hit) -> str:
    return f"{memory.name(Uri.parse(hit.uri))} {hit.where}".rstrip()


def _explained(hit: Hit) -> Iterator[str]:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in hit.parts.items())
    yield f"score {hit.score:.3f} = {parts}"
    yield f"cid {hit.cid}"


def _snippet(text: str, words: re.Pattern[str] | None) -> Iterator[str]:
    """Yield a few lines of a snippet, those with the words; on a terminal, no wider than it."""
    lines = [line for line in text.split("\n") if line.strip()]
    if coloured():
        width = max(_NARROWEST, shutil.get_terminal_size().columns - len(_INDENT))
        lines = [part for line in lines for part in wrapped(width, shown(line))]
    before = -1
    for at in _most_telling(lines, words):
        yield from [_MORE] if at > before + 1 else []
        yield lines[at]
        before = at
    yield from [_MORE] if before < len(lines) - 1 else []


def _most_telling(lines: Sequence[str], words: re.Pattern[str] | None) -> list[int]:
    """Return which lines to show: each with a word that no line before has, then those near."""
    said: set[str] = set()
    telling: list[int] = []
    for at, line in enumerate(lines if words else ()):
        found = {match.casefold() for match in words.findall(line)} if words else set()
        if found - said:
            telling.append(at)
            said |= found
    near = {at: min((abs(at - each) for each in telling), default=at) for at in range(len(lines))}
    others = sorted(near.keys() - set(telling), key=lambda at: (near[at], at))
    return sorted([*telling, *others][:_MOST_LINES])


def _words(question: str) -> re.Pattern[str] | None:
    """Return what finds the words of a question, and others that begin as they do."""
    words = plan(question, datetime.now(UTC)).words
    stems = "|".join(re.escape(word[: max(3, len(word) - 2)]) for word in words)
    return re.compile(rf"\b(?:{stems})\w*", re.IGNORECASE) if stems else None


def _highlighted(line: str, words: re.Pattern[str] | None) -> str:
    if words is None or not coloured():
        return line
    return words.sub(lambda found: styled(found[0], bold=True, fg="yellow"), line)


def _json(result: RecallResult, *, explain: bool) -> dict[str, object]:
    told: dict[str, object] = {
        "query": result.query,
        "semantic": result.semantic,
        "index_lag": result.index_lag,
        "notes": list(result.notes),
        "hits": [_json_of(hit) for hit in result.hits],
    }
    if result.context:
        told |= {"context": result.context, "tokens": result.tokens}
    if explain:
        told["trace"] = [{"step": step.name, "told": step.told} for step in result.trace]
    return told


def _json_of(hit: Hit) -> dict[str, object]:
    return {
        "uri": hit.uri,
        "cid": hit.cid,
        "title": hit.title,
        "date": _stamp(hit.date),
        "snippet": hit.snippet,
        "score": hit.score,
        "parts": dict(hit.parts),
        "lines": hit.lines,
        "speaker": hit.speaker or None,
        "session_id": hit.session_id or None,
        "message_indexes": list(hit.message_indexes),
        "category": hit.category or None,
        "owner_space": hit.owner_space,
        "valid_from": _stamp(hit.valid_from),
        "valid_until": _stamp(hit.valid_until),
        "holds": hit.holds,
    }


def _stamp(time: datetime | None) -> str | None:
    return None if time is None else stamp(time)
