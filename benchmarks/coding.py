"""Recall, briefing and prompts on real coding sessions with labels.

    python benchmarks/coding.py FOLDER [--models FOLDER]

FOLDER has sessions (`*.json`: project, started, messages) and `labels.json` (items worth keeping,
and questions with their gold messages), as `shared/data/sessions_dev`. All projects are in one
memory; what a later session said is never counted. FTS5 over the same project's user messages
stands beside.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import perdure
from labelled import Data, Place, Question, UserMessages, briefing_then, is_useful, new_home
from perdure import Memory
from perdure.engine.prompts import relevant_lines
from perdure.model.speech import speech_of
from perdure.model.uri import slug_of

DEPTH = 400


# ---------------------------------------------------------------- recall
def recalled(data: Data, memory: Memory, question: Question) -> list[tuple[Place, ...]]:
    """Return what each hit rests on, of what was said before the question; each message once."""
    hits = memory.recall(question.text, top_k=DEPTH, project=question.project).hits
    found: dict[object, tuple[Place, ...]] = {}
    for hit in hits:
        places = tuple(each for each in hit.evidence if data.is_before(each[0], question))
        if places:
            found.setdefault(places[0] if hit.session_id else (hit.uri, hit.snippet), places)
    return list(found.values())


def searched(data: Data, question: Question) -> list[tuple[Place, ...]]:
    """Return what FTS5 finds in the user's messages of the same project."""
    kept = UserMessages()
    for name, session in data.sessions.items():
        if session["project"] == question.project and data.is_before(name, question):
            kept.add(name, session["messages"])
    return [(place,) for place, _ in kept.found(question.text)]


def shares(found: Sequence[tuple[Place, ...]], question: Question) -> tuple[float, float]:
    five, ten = (question.gold.intersection(chain(*found[:top])) for top in (5, 10))
    return len(five) / len(question.gold), len(ten) / len(question.gold)


def tell(name: str, figures: Sequence[tuple[float, float]]) -> None:
    five, ten = (100 * statistics.mean(each) for each in zip(*figures, strict=True))
    print(f"{name:44} n={len(figures)}  R@5 {five:.1f}  R@10 {ten:.1f}")


def measure_recall(data: Data, memory: Memory) -> None:
    ours, plain, first = [], [], Counter[str]()
    for question in data.questions():
        found = recalled(data, memory, question)
        ours.append(shares(found, question))
        plain.append(shares(searched(data, question), question))
        for name, at in chain(*found[:10]):
            session = data.sessions[name]
            message = session["messages"][at]
            first["wrong project"] += session["project"] != question.project
            first[speech_of(message["role"], message["content"]).kind.value] += 1
    tell("Perdure, in the project", ours)
    tell("FTS5, the project's user messages", plain)
    print(f"the first ten rest on {dict(first)}")


# ---------------------------------------------------------------- at a prompt
class Prompted(NamedTuple):
    """What the lines for one prompt are worth."""

    lines: int
    gold: int
    """Those of a message that matters for this very prompt."""
    items: int
    """Those, and the ones of a message that states something worth keeping."""


def prompted(data: Data, memory: Memory, question: Question, project: str) -> Prompted:
    """Ask as a hook does, before the session of the question was kept."""
    found = memory.recall(question.text, top_k=24, project=project)
    lines = relevant_lines(found.hits, found.words, lambda _: False)[1:]
    texts = {line.key for line in lines}
    places = {
        place
        for hit in found.hits
        if any(text in " ".join(hit.snippet.split()) for text in texts)
        for place in hit.evidence
    }
    stated = {
        (name, at)
        for name, row in data.labels.items()
        for item in row["items"]
        for at in item["messages"]
    }
    gold, good = len(places & question.gold), len(places & (question.gold | stated))
    return Prompted(len(lines), min(gold, len(lines)), min(good, len(lines)))


def tell_prompts(own: Sequence[Prompted], other: Sequence[Prompted]) -> None:
    lines, gold, items = (statistics.mean(each) for each in zip(*own, strict=True))
    silent = statistics.mean(not each.lines for each in other)
    print(
        f"at a prompt: n={len(own)}, {lines:.2f} lines, {gold:.2f} of them gold, {items:.2f} gold "
        f"or a labelled item; silent for {100 * silent:.0f} % of {len(other)} prompts of others"
    )


# ---------------------------------------------------------------- briefing
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path)
    asked = parser.parse_args()
    data = Data.read(asked.folder)
    with new_home(asked.models) as home, perdure.open(home=home) as memory:
        briefings: list[tuple[int, int, float]] = []
        own: list[Prompted] = []
        other: list[Prompted] = []
        questions = list(data.questions())
        kept: set[str] = set()
        for name, session in data.sessions.items():
            for each in questions:
                if each.started == session["started"]:
                    own.append(prompted(data, memory, each, each.project))
                    projects = sorted(kept - {each.project})
                    other += [prompted(data, memory, each, project) for project in projects]
            briefings += _kept(data, memory, name)
            kept.add(session["project"])
        measure_recall(data, memory)
        tell_prompts(own, other)
    useful, given, size = (statistics.mean(each) for each in zip(*briefings, strict=True))
    print(
        f"briefing, where 7 items and more could be known: n={len(briefings)}, {given:.1f} lines, "
        f"{useful:.1f} of them labelled items, {size:.0f} tokens (four characters each)"
    )


def _kept(data: Data, memory: Memory, name: str) -> list[tuple[int, int, float]]:
    """Keep a session; before that, return how its briefing fares: useful lines, lines, tokens."""
    session = data.sessions[name]
    known = list(data.items(session["project"], session["started"]))
    found = []
    if name in data.labels and len(known) >= 7:  # noqa: PLR2004 - what a briefing should have
        now = datetime.fromisoformat(session["started"])
        made = briefing_then(memory, (slug_of(session["project"]),), now)
        useful = [is_useful(data, item.evidence, item.text) for item in made.items]
        found.append((sum(useful), len(useful), len(made.text) / 4))
    memory.commit_session(session["messages"], session_id=name, project=session["project"])
    return found


if __name__ == "__main__":
    main()
