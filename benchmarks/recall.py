"""How much of what answers a question is found, against plain peers on the same texts.

    python benchmarks/recall.py DATA [--only locomo|longmemeval] [--conversations N]
        [--models FOLDER] [--rows FILE] [--check]

DATA is a folder with locomo_dev.json and longmemeval_oracle_dev.json. The sessions of a set go into
one memory through `commit_session`, and each question is asked with `recall`. No language model
takes part. R@k is the share of a question's evidence among the first k, turn by turn or session by
session. Differences under two points are noise.
"""

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import perdure
from conversations import Asked, Corpus, Turn, locomo, longmemeval
from perdure.engine.memory import Memory
from perdure.engine.recall.question import parse_question
from perdure.index.contract import Embedder
from perdure.index.minilm import MiniLMEmbedder, require_model

NOW = datetime(2026, 1, 1, tzinfo=UTC)

TOP = 10
NOISE = 2.0
PARAPHRASED = 0.8
DEEP = 400
"""So many turns are asked for, so that ten sessions are among them."""

Ranking = list[Turn]
Ranker = Callable[[Asked], Ranking]

GOALS = {
    "LoCoMo": {"turn": 18.0, "session": 6.0, "1 multi-hop": 10.0},
    "LongMemEval": {"turn": 5.0, "session": 3.0},
}


@dataclass(frozen=True, slots=True)
class Row:
    """How a ranking did on a question."""

    ranker: str
    kind: str
    turn: float
    session: float
    every_turn: float


# ---------------------------------------------------------------- plain peers
class PlainText:
    """One row for each turn in FTS5, any of the content words, by BM25."""

    def __init__(self, corpus: Corpus) -> None:
        self._turns = [turn for turn, _ in corpus.turns()]
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
        rows = (
            (number, f"{m.get('name') or m['role']}: {m['content']}")
            for number, (_, m) in enumerate(corpus.turns())
        )
        self._db.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", rows)

    def __call__(self, asked: Asked) -> Ranking:
        words = parse_question(asked.question, NOW).words
        match = " OR ".join(f'"{word}"' for word in words)
        query = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 400"
        return [self._turns[row] for (row,) in self._db.execute(query, (match,))]


class PlainVectors:
    """One vector for each turn, by cosine."""

    def __init__(self, corpus: Corpus, embedder: Embedder) -> None:
        import numpy as np  # noqa: PLC0415 - only where there is a model

        self._turns = [turn for turn, _ in corpus.turns()]
        self._embedder = embedder
        texts = [f"{m.get('name') or m['role']}: {m['content']}" for _, m in corpus.turns()]
        self._matrix = np.array(embedder.embed_texts(texts), dtype="float32")
        self._numpy = np

    def __call__(self, asked: Asked) -> Ranking:
        vector = self._numpy.array(self._embedder.embed_texts([asked.question])[0], "float32")
        order = self._numpy.argsort(-(self._matrix @ vector), kind="stable")[:400]
        return [self._turns[row] for row in order]


def fused(*rankers: Ranker) -> Ranker:
    """Return the equal fusion of rankings by their ranks, with the usual constant of 60."""

    def rank(asked: Asked) -> Ranking:
        scores: dict[Turn, float] = defaultdict(float)
        for ranker in rankers:
            for place, turn in enumerate(ranker(asked)):
                scores[turn] += 1 / (60 + place)
        return sorted(scores, key=lambda turn: -scores[turn])

    return rank


def asking(memory: Memory) -> Ranker:
    def rank(asked: Asked) -> Ranking:
        hits = memory.recall(asked.question, top_k=DEEP).hits
        return [(hit.session_id, index) for hit in hits for index in hit.message_indexes]

    return rank


# ---------------------------------------------------------------- measuring
def measured(name: str, ranker: Ranker, questions: Iterable[Asked]) -> list[Row]:
    rows = []
    for asked in questions:
        ranking = ranker(asked)
        turns = set(ranking[:TOP])
        sessions = list(dict.fromkeys(session for session, _ in ranking))[:TOP]
        wanted = {session for session, _ in asked.evidence}
        share = len(asked.evidence & turns) / len(asked.evidence)
        found = len(wanted.intersection(sessions)) / len(wanted)
        rows.append(Row(name, asked.kind, share, found, float(share == 1)))
    return rows


@contextmanager
def remembered(corpus: Corpus, models: Path | None) -> Iterator[Memory]:
    """Give a memory of all sessions of a corpus; with a model, if a folder has one."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as home:
        provider = "none" if models is None else "minilm"
        Path(home, "config.toml").write_text(f'[embedding]\nprovider = "{provider}"\n')
        if models is not None:
            Path(home, "models").symlink_to(models.absolute())
        with perdure.open(home=home) as memory:
            start = time.perf_counter()
            for session, messages in corpus.sessions.items():
                memory.commit_session(messages, session_id=session, extract=False)
            spent = time.perf_counter() - start
            print(
                f"  {len(corpus.sessions)} sessions kept and indexed in {spent:.0f} s", flush=True
            )
            yield memory


def means(rows: Sequence[Row], kind: str | None = None) -> tuple[int, float, float, float]:
    """Return the number of rows, and the means of turn, session and every turn, in per cent."""
    of_kind = [row for row in rows if kind in (None, row.kind)]
    shares = ([getattr(row, name) for row in of_kind] for name in ("turn", "session", "every_turn"))
    turn, session, every = (100 * statistics.fmean(share) for share in shares)
    return len(of_kind), turn, session, every


def told(rows: dict[str, list[Row]]) -> None:
    kinds = sorted({row.kind for row in next(iter(rows.values()))})
    for kind in (None, *kinds):
        print(f"  {kind or 'all questions'}")
        plain = means(rows["plain FTS5"], kind)
        for name, of_ranker in rows.items():
            n, turn, session, every = means(of_ranker, kind)
            gain = f"{turn - plain[1]:+6.1f} {session - plain[2]:+6.1f}"
            print(
                f"    {name:22} n {n:4}  turn R@10 {turn:5.1f}  session R@10 {session:5.1f}"
                f"  all@10 {every:5.1f}  against FTS5 {gain}"
            )


def missed(corpus: str, rows: dict[str, list[Row]], ours: str) -> list[str]:
    """Return the goals that were missed."""
    problems = []
    for what, goal in GOALS[corpus].items():
        kind = what if what in _kinds(rows) else None
        column = 2 if what == "session" else 1
        gain = means(rows[ours], kind)[column] - means(rows["plain FTS5"], kind)[column]
        if gain < goal:
            problems.append(
                f"{corpus} {what}: {gain:+.1f} points above plain FTS5, goal {goal:+.1f}"
            )
    if "perdure, words only" in rows and ours != "perdure, words only":
        for kind in _kinds(rows):
            lost = means(rows["perdure, words only"], kind)[1] - means(rows[ours], kind)[1]
            if lost > NOISE:
                problems.append(f"{corpus} {kind}: the model costs {lost:.1f} points")
    return problems


def _kinds(rows: dict[str, list[Row]]) -> set[str]:
    return {row.kind for row in next(iter(rows.values()))}


def _embedder(models: Path) -> Embedder:
    return MiniLMEmbedder(require_model(models))


def compared(corpus: Corpus, models: Path | None) -> dict[str, list[Row]]:
    """Return how every ranker did on every question of a corpus."""
    plain = PlainText(corpus)
    rows = {"plain FTS5": measured("plain FTS5", plain, corpus.questions)}
    with remembered(corpus, None) as memory:
        name = "perdure, words only"
        rows[name] = measured(name, asking(memory), corpus.questions)
    if models is not None:
        vectors = PlainVectors(corpus, _embedder(models))
        rows["vectors alone"] = measured("vectors alone", vectors, corpus.questions)
        both = fused(plain, vectors)
        rows["equal RRF"] = measured("equal RRF", both, corpus.questions)
        with remembered(corpus, models) as memory:
            rows["perdure"] = measured("perdure", asking(memory), corpus.questions)
    return rows


def _rank(memory: Memory, question: str, uri: str) -> int:
    found = [hit.uri for hit in memory.recall(question, top_k=TOP).hits]
    return found.index(uri) if uri in found else TOP


def paraphrased(models: Path) -> list[str]:
    """Print how often a memory is found first by a question that has none of its words."""
    written = json.loads((Path(__file__).parent / "paraphrases.json").read_text())
    wanted = {each["memory"]: each["question"] for each in written["questions"]}
    print(f"Paraphrases: {len(wanted)} questions without a word of their memories")
    at: dict[int, float] = {}
    for name, of_model in (("words only", None), ("perdure", models)):
        with remembered(Corpus("paraphrases"), of_model) as memory:
            places = {
                each["id"]: memory.save(each["text"], category="note", slug=each["slug"])
                for each in written["memories"]
            }
            first = [_rank(memory, question, places[id_]) for id_, question in wanted.items()]
        at = {k: sum(rank < k for rank in first) / len(first) for k in (1, 3, TOP)}
        print(f"    {name:22} " + "  ".join(f"hit@{k} {share:.3f}" for k, share in at.items()))
    return [] if at[1] >= PARAPHRASED else [f"paraphrases: hit@1 {at[1]:.3f}, goal {PARAPHRASED}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=["locomo", "longmemeval", "paraphrases"])
    parser.add_argument("--conversations", type=int, help="of LoCoMo, the first so many only")
    parser.add_argument("--models", type=Path, help="a folder in which the model is installed")
    parser.add_argument("--rows", type=Path, help="write a line of JSON for each question there")
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    options = parser.parse_args()
    sets: dict[str, Callable[[], Corpus]] = {
        "locomo": lambda: locomo(options.data / "locomo_dev.json", options.conversations),
        "longmemeval": lambda: longmemeval(options.data / "longmemeval_oracle_dev.json"),
    }
    problems: list[str] = []
    for name, load in sets.items():
        if options.only not in (None, name):
            continue
        corpus = load()
        turns = sum(map(len, corpus.sessions.values()))
        print(f"{corpus.name}: {len(corpus.sessions)} sessions, {turns} turns", flush=True)
        rows = compared(corpus, options.models)
        told(rows)
        problems += missed(corpus.name, rows, next(reversed(rows)))
        if options.rows:
            with options.rows.open("a") as file:
                for row in (row for of_ranker in rows.values() for row in of_ranker):
                    file.write(json.dumps({"set": corpus.name, **asdict(row)}) + "\n")
    if options.models and options.only in (None, "paraphrases"):
        problems += paraphrased(options.models)
    for problem in problems:
        print(f"missed: {problem}")
    return int(options.check and bool(problems))


if __name__ == "__main__":
    sys.exit(main())
