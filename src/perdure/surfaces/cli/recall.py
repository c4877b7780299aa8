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
from perdure.surfaces.out import coloured, counted, local_time, picked, shown, styled, wrapped

_MODEL_MENTIONED = "models-mentioned"
"""A marker file in the home: the hint that no model is installed is printed once."""
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
@click.option(
    "--top", type=click.IntRange(1, 1000), default=10, help="Return at most N hits. Default: 10."
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="Print Markdown for a prompt, of at most this many tokens.",
)
@at_moment
@click.option(
    "--valid-at",
    type=parse_time,
    metavar="TIME",
    help="Only statements that held then, whenever they were written.",
)
@click.option("--category", metavar="NAME", help="Only memories of this category.")
@click.option("--all-projects", is_flag=True, help="Search other projects, too; hits name theirs.")
@click.option("--explain", is_flag=True, help="Show how each hit was found and scored.")
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
    """Search memory for an answer to a question.

    Compares words and, if a model is installed, meanings. Each hit names its node, so that you can
    cite it. Superseded statements are marked, and come after their successors. In a project, its
    memories come first, then those of no project; those of other projects are left out.
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
            _explain_on_stderr(memory, result)
    else:
        _print(memory, result, explain=explain)
    _mention(memory, result, budget)


def _print(memory: Memory, result: RecallResult, *, explain: bool) -> None:
    words = _pattern(result.words)
    for number, hit in enumerate(result.hits, 1):
        out.write(
            "".join(f"{line}\n" for line in _lines(memory, number, hit, words, explain=explain))
        )
    if explain:
        for step in result.trace:
            out.line(f"{styled(step.name, bold=True)}: {shown(step.text)}")


def _explain_on_stderr(memory: Memory, result: RecallResult) -> None:
    """Explain the hits on stderr, so that the explanation stays out of a prompt."""
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
        out.mention("no hits")
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
        again = "" if lag.next_retry is None else f" from {local_time(lag.next_retry)} on"
        changes = counted(lag.retrying, "change")
        out.mention(f"note: {changes} could not be indexed, and will be tried again{again}")
    if lag.dead:
        failed = f"note: {counted(lag.dead, 'change')} could not be indexed after all retries"
        out.mention(f"{failed}. Fix: see `perdure outbox dead`, then run `perdure outbox requeue`")


def _is_new(mark: Path) -> bool:
    """Create a marker file; return False if it existed."""
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
    terms = ", ".join(f"{name} {value:.3f}" for name, value in hit.score_terms.items())
    yield f"score {hit.score:.3f} = {terms}"
    yield f"cid {hit.cid}"


def _snippet(text: str, words: re.Pattern[str] | None) -> Iterator[str]:
    """Yield a few lines of a snippet around the words; on a terminal, wrapped to its width."""
    lines = [line for line in text.split("\n") if line.strip()]
    if coloured():
        width = max(_NARROWEST, shutil.get_terminal_size().columns - len(_INDENT))
        lines = [part for line in lines for part in wrapped(width, shown(line))]
    before = -1
    for at in _best_lines(lines, words):
        yield from [_MORE] if at > before + 1 else []
        yield lines[at]
        before = at
    yield from [_MORE] if before < len(lines) - 1 else []


def _best_lines(lines: Sequence[str], words: re.Pattern[str] | None) -> list[int]:
    """Return which lines to show: each with a word that no earlier line has, then those nearby."""
    seen: set[str] = set()
    matching: list[int] = []
    for at, line in enumerate(lines if words else ()):
        found = {match.casefold() for match in words.findall(line)} if words else set()
        if found - seen:
            matching.append(at)
            seen |= found
    near = {at: min((abs(at - each) for each in matching), default=at) for at in range(len(lines))}
    others = sorted(near.keys() - set(matching), key=lambda at: (near[at], at))
    return sorted([*matching, *others][:_MOST_LINES])


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    stems = "|".join(re.escape(word[: max(3, len(word) - 2)]) for word in words)
    return re.compile(rf"\b(?:{stems})\w*", re.IGNORECASE) if stems else None


def _highlighted(line: str, words: re.Pattern[str] | None) -> str:
    if words is None or not coloured():
        return line
    return words.sub(lambda found: styled(found[0], bold=True, fg="yellow"), line)


def _json(result: RecallResult, *, explain: bool) -> dict[str, object]:
    answer: dict[str, object] = {
        **picked(result, "query semantic index_lag left_out"),
        "withheld": result.withheld,
        "hints": [picked(hint, "kind text") for hint in result.hints],
        "hits": [picked(hit, _OF_A_HIT) for hit in result.hits],
    }
    if result.context:
        answer |= {"context": result.context, "tokens": result.tokens}
    if explain:
        answer["trace"] = [{"step": step.name, "text": step.text} for step in result.trace]
    return answer
