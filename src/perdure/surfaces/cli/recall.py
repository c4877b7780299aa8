"""`perdure recall`."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from perdure import HintKind, Hit, Memory, RecallResult
from perdure.surfaces import out
from perdure.surfaces.cli.options import (
    Moment,
    at_moment,
    index_first,
    parse_time,
    with_project_memory,
)
from perdure.surfaces.telling import coloured, counted, local_time, picked, shown, styled, wrapped

_MODEL_MENTIONED = "told-of-models"
"""A file in the home: the hint that no model is installed is printed once."""
_INDENT = "   "
_MORE = "…"
_LAPSED = "does not hold"
_MOST_LINES = 6
_NARROWEST = 40
_OF_A_HIT = (
    "uri cid title date snippet score score_terms lines speaker? session_id? message_indexes "
    "category? project? owner_space valid_from valid_until holds"
)


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
@click.option("--all-projects", is_flag=True, help="Of other projects, too; each hit says which.")
@click.option("--explain", is_flag=True, help="Say how each hit was found.")
@with_project_memory()
def recall_command(  # noqa: PLR0913, PLR0917 - an option each
    memory: Memory,
    question: str,
    top: int,
    budget: int | None,
    at: Moment | None,
    valid_at: str | None,
    category: str | None,
    *,
    all_projects: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Find what memory has to say to a question.

    What is remembered is compared by its words and, if a model is installed, by its meaning. Each
    hit says where it stands, so that it can be cited. What holds no longer comes after what
    superseded it, and is marked. In a project, its memories come first, then those of no project;
    those of other projects are left out.
    """
    index_first(memory)
    result = memory.recall(
        question,
        top_k=top,
        budget_tokens=budget,
        at=at,
        valid_at=valid_at,
        filters={} if category is None else {"category": category},
        projects="all" if all_projects else None,
    )
    if as_json:
        out.json(_json(result, explain=explain))
    elif budget is not None:
        out.text(result.context)
        if explain:
            _explain_beside(memory, result)
    else:
        _tell(memory, result, explain=explain)
    _mention(memory, result, budget)


def _tell(memory: Memory, result: RecallResult, *, explain: bool) -> None:
    words = _pattern(result.words)
    for number, hit in enumerate(result.hits, 1):
        out.tell(
            "".join(f"{line}\n" for line in _lines(memory, number, hit, words, explain=explain))
        )
    if explain:
        for step in result.trace:
            out.line(f"{styled(step.name, bold=True)}: {shown(step.text)}")


def _explain_beside(memory: Memory, result: RecallResult) -> None:
    """Explain the hits on stderr, so that it does not get into a prompt."""
    for number, hit in enumerate(result.hits, 1):
        out.mention(f"{number:>2} {_cited(memory, hit)}")
        for line in _explained(hit):
            out.mention(_INDENT + line)
    for step in result.trace:
        out.mention(f"{step.name}: {shown(step.text)}")


def _mention(memory: Memory, result: RecallResult, budget: int | None) -> None:
    if result.left_out:
        found = result.left_out + len(result.hits)
        out.mention(f"note: {result.left_out} of {found} hits did not fit into {budget} tokens")
    elif not result.hits:
        out.mention("nothing was found")
    for hint in result.hints:
        if hint.kind is not HintKind.NO_MODEL or _is_new(memory.home / _MODEL_MENTIONED):
            out.mention(f"note: {shown(hint.text)}")
    if result.index_lag:
        _mention_lag(memory, result.index_lag)


def _mention_lag(memory: Memory, index_lag: int) -> None:
    lag = memory.lag()
    if behind := max(0, index_lag - lag.retrying - lag.dead):
        changes = counted(behind, "change")
        out.mention(f"note: {changes} not in the index yet. Fix: run `perdure worker --once`")
    if lag.retrying:
        again = "" if lag.next_retry is None else f", from {local_time(lag.next_retry)} on"
        changes = counted(lag.retrying, "change")
        out.mention(f"note: {changes} failed to get into the index, to be tried again{again}")
    if lag.dead:
        failed = f"note: {counted(lag.dead, 'change')} failed too often to get into the index"
        out.mention(f"{failed}. Fix: see `perdure outbox dead`, then run `perdure outbox requeue`")


def _is_new(mark: Path) -> bool:
    """Create a mark; return whether it was not there before, or can't be created."""
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
    mark += f" · {shown(hit.project)}" if hit.project not in {"", memory.project} else ""
    yield f"{number:>2} {styled(shown(hit.about), bold=hit.holds, dim=not hit.holds)}{mark}"
    for line in _snippet(hit.snippet, words):
        yield _INDENT + _highlighted(shown(line), words)
    yield _INDENT + styled(_cited(memory, hit), fg="blue")
    if explain:
        yield from (_INDENT + line for line in _explained(hit))
    yield ""


def _cited(memory: Memory, hit: Hit) -> str:
    return f"{memory.name(hit.uri)} {hit.where}".rstrip()


def _explained(hit: Hit) -> Iterator[str]:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in hit.score_terms.items())
    yield f"score {hit.score:.3f} = {parts}"
    yield f"cid {hit.cid}"


def _snippet(text: str, words: re.Pattern[str] | None) -> Iterator[str]:
    """Yield a few lines of a snippet, those with the words; on a terminal, wrapped to its width."""
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
    seen: set[str] = set()
    telling: list[int] = []
    for at, line in enumerate(lines if words else ()):
        found = {match.casefold() for match in words.findall(line)} if words else set()
        if found - seen:
            telling.append(at)
            seen |= found
    near = {at: min((abs(at - each) for each in telling), default=at) for at in range(len(lines))}
    others = sorted(near.keys() - set(telling), key=lambda at: (near[at], at))
    return sorted([*telling, *others][:_MOST_LINES])


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    stems = "|".join(re.escape(word[: max(3, len(word) - 2)]) for word in words)
    return re.compile(rf"\b(?:{stems})\w*", re.IGNORECASE) if stems else None


def _highlighted(line: str, words: re.Pattern[str] | None) -> str:
    if words is None or not coloured():
        return line
    return words.sub(lambda found: styled(found[0], bold=True, fg="yellow"), line)


def _json(result: RecallResult, *, explain: bool) -> dict[str, object]:
    answer: dict[str, object] = {
        **picked(result, "query semantic index_lag left_out withheld"),
        "hints": [picked(hint, "kind text") for hint in result.hints],
        "hits": [picked(hit, _OF_A_HIT) for hit in result.hits],
    }
    if result.context:
        answer |= {"context": result.context, "tokens": result.tokens}
    if explain:
        answer["trace"] = [picked(step, "step=name text") for step in result.trace]
    return answer
