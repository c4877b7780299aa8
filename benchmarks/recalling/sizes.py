"""One memory of each size, and everybody who is asked about it."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine.memory import Memory
from perdure.index.contract import Embedder
from recalling.building import Built, built, tell_what_dominates
from recalling.corpus import Corpus, Note, Session
from recalling.memories import ACCOUNT, StandIn, folder, of_account, opened, write
from recalling.models import of_a_question
from recalling.peers import PLAIN, peers, plain_fts5
from recalling.readers import throughput
from recalling.timing import Ask, Goal, Taken, in_turns

HYBRID, WORDS = "perdure, hybrid", "perdure, words only"
QUESTIONS = 100
_COMMITS = 10
_PAST = 40
"""So many questions are asked about the past."""
_PROFILED = 1_000
_READ = 10_000
LARGE = 100_000
_TIMES_PLAIN, _TIMES_MEDIAN, _TIMES_FASTER, _TIMES_PRESENT = 4.0, 3.0, 20.0, 1.5
_IN_ACCOUNT, _ASKED = 1_000, 5
_WORDS_GOALS = {1_000: 15.0, 10_000: 3.0, 100_000: 1.3}


@dataclass(frozen=True, slots=True)
class AtSize:
    """What was measured at one size."""

    size: int
    taken: Mapping[str, Taken]
    built: Built
    commit: float
    """Seconds to commit one more session."""


def measured(size: int, model: Embedder | None) -> tuple[AtSize, list[Goal]]:
    """Write a memory, build its indexes, ask everybody; print and return what came of it.

    Some goals are for the largest size only.
    """
    is_large = size >= LARGE
    corpus, embedder = Corpus(), StandIn()
    said = list(corpus.passages(size))
    questions = corpus.questions(QUESTIONS)
    with folder() as home, ExitStack() as stack:
        hybrid, seconds = _written(home, (embedder, model if is_large else None), said, stack)
        words = _lexical(home, stack)
        texts = [text for each in said for text in each.texts]
        asked: dict[str, Ask] = {HYBRID: hybrid.memory.recall, WORDS: words.recall}
        rare = corpus.questions(QUESTIONS, rare=True)
        others = peers(texts, [*questions, *rare], home, embedder)
        taken = in_turns(asked | others, questions, hurried=others.keys() - {PLAIN})
        goals = _told(size, taken, of_a_question(model) if model else 0.0, check=is_large)
        _tell_of_rare_words(in_turns({**asked, PLAIN: others[PLAIN]}, rare))
        goals += _told_building(seconds, len(texts), check=is_large)
        if size == _PROFILED:
            tell_what_dominates(hybrid)
        if size == _READ:
            goals += [throughput(home, questions), *_past(hybrid, corpus, questions)]
        commit = _committing(hybrid.memory, corpus)
        print(f"  commit a session of 20 messages {commit * 1e3:.1f} ms", flush=True)
    return AtSize(size, taken, seconds, commit), goals


def words_alone(size: int) -> tuple[Mapping[str, Taken], Goal]:
    """Ask a memory that compares words, and plain FTS5; count the CPU time of this thread."""
    corpus = Corpus()
    said = list(corpus.passages(size))
    questions = corpus.questions(QUESTIONS)
    with folder() as home, opened(home) as context:
        write(context, said)
        context.indexes.configured.follower.rebuild(ACCOUNT)
        texts = [text for each in said for text in each.texts]
        memory = of_account(context, ACCOUNT)
        asked = {WORDS: memory.recall, PLAIN: plain_fts5(texts, questions, home)}
        taken = in_turns(asked, questions, clock=time.thread_time)
    times = taken[WORDS].p50 / taken[PLAIN].p50
    for name, each in taken.items():
        print(f"  {name:24} {each} of CPU  {each.p50 / taken[PLAIN].p50:7.1f}x", flush=True)
    return taken, Goal(f"words / plain FTS5, CPU, {size:,} passages", times, _WORDS_GOALS[size])


def _written(
    home: Path,
    models: tuple[StandIn, Embedder | None],
    said: Sequence[Session | Note],
    stack: ExitStack,
) -> tuple[Context, Built]:
    context = stack.enter_context(opened(home, models[0]))
    begun = time.perf_counter()
    write(context, said)
    print(f"  nodes written in {time.perf_counter() - begun:.1f} s", flush=True)
    return context, built(context, *models)


def _lexical(home: Path, stack: ExitStack, account: str = ACCOUNT) -> Memory:
    context = stack.enter_context(opened(home))
    context.indexes.configured.follower.rebuild(account)
    return of_account(context, account)


def _told(size: int, taken: Mapping[str, Taken], question: float, *, check: bool) -> list[Goal]:
    plain = taken[PLAIN]
    for name, each in taken.items():
        print(f"  {name:24} {each}  {each.p50 / plain.p50:7.1f}x plain FTS5", flush=True)
    hybrid = taken[HYBRID]
    budget = _TIMES_PLAIN * plain.p50 + question
    print(f"  one embedding of a question {question * 1e3:.1f} ms")
    shown = f"{(hybrid.p50 + question) * 1e3:.1f} ms, budget {budget * 1e3:.1f} ms"
    print(f"  hybrid p50 with one embedding {shown}")
    tail = Goal(f"hybrid p99 / p50, {size:,} passages", hybrid.p99 / hybrid.p50, _TIMES_MEDIAN)
    share = Goal(
        "hybrid p50 with an embedding / (4 x FTS5 + it)", (hybrid.p50 + question) / budget, 1
    )
    return [share, tail] if check else [tail]


def _tell_of_rare_words(taken: Mapping[str, Taken]) -> None:
    for name, each in taken.items():
        ratio = each.p50 / taken[PLAIN].p50
        print(f"  {name:24} {each}  {ratio:7.1f}x plain FTS5, rare words", flush=True)


def _told_building(each: Built, passages: int, *, check: bool) -> list[Goal]:
    first = each.with_model(passages)
    print(
        f"  first build {each.first:.1f} s with the stand-in, {each.stand_in:.1f} s of it its own; "
        f"rebuild {each.again:.1f} s"
    )
    if each.passage:
        print(f"  {each.passage * 1e3:.1f} ms a passage with MiniLM: {first:.0f} s, extrapolated")
    faster = first / each.again
    goal = Goal("first build with a model / rebuild", faster, _TIMES_FASTER, at_least=True)
    return [goal] if check and each.passage else []


def _past(context: Context, corpus: Corpus, questions: Sequence[str]) -> list[Goal]:
    """Ask about a state that is past, for the first time and again."""
    memory, history = context.memory, context.recorded.history
    state = IndexState(0, history.position())
    _committing(memory, corpus, "later")
    begun = time.perf_counter()
    memory.recall(questions[0], at=state)
    print(f"  as of a past state, for the first time {time.perf_counter() - begun:.2f} s")
    asked: dict[str, Ask] = {
        "present": memory.recall,
        "past": lambda question: memory.recall(question, at=state),
    }
    taken = in_turns(asked, questions[:_PAST])
    print(f"  then {taken['past']}; the present {taken['present']}")
    ratio = taken["past"].p50 / taken["present"].p50
    return [Goal("as of a state asked before / present", ratio, _TIMES_PRESENT)]


def _committing(memory: Memory, corpus: Corpus, prefix: str = "more") -> float:
    """Return the seconds that one more session takes to be kept and indexed."""
    begun = time.perf_counter()
    for number in range(_COMMITS):
        session = corpus.session(f"{prefix}{number}")
        memory.commit_session(session.messages, session_id=session.id, extract=False)
    return (time.perf_counter() - begun) / _COMMITS


def hundred_accounts(accounts: int) -> None:
    """Ask about accounts among many; an index is a file for each, and is made of those asked."""
    corpus, embedder = Corpus(), StandIn()
    names = [f"account-{number}" for number in range(accounts)]
    with folder() as home, ExitStack() as stack:
        hybrid = stack.enter_context(opened(home, embedder))
        words = stack.enter_context(opened(home))
        for name in names:
            write(hybrid, corpus.passages(_IN_ACCOUNT), name)
        for name in names[:_ASKED]:
            hybrid.indexes.configured.follower.rebuild(name)
            words.indexes.configured.follower.rebuild(name)
        asked: dict[str, Ask] = {
            f"{HYBRID}, one account": of_account(hybrid, names[0]).recall,
            f"{WORDS}, one account": of_account(words, names[0]).recall,
            f"{HYBRID}, {_ASKED} in turns": _each_in_turn(hybrid, names[:_ASKED]),
        }
        taken = in_turns(asked, corpus.questions(QUESTIONS))
    for name, each in taken.items():
        print(f"  {name:36} {each}")


def _each_in_turn(context: Context, names: Sequence[str]) -> Ask:
    memories = cycle([of_account(context, name) for name in names])
    return lambda question: next(memories).recall(question)
