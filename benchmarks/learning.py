"""Measure what is learned from labelled sessions, and fit the weights of the net.

usage: python benchmarks/learning.py SESSIONS [--fit] [--missed] [--written]

SESSIONS is a folder of sessions with labels.json. The net is fitted leave-one-repository-out: the
candidates of a repository are found with weights that never saw it. `--fit` then fits on all and
writes `weights.json`. What the rules write is judged by the verdicts of `learned.json`, which has
ids and hashes only; `--written` lists what has no verdict yet, to be judged by hand: durable, if it
is right and of use in a later session, understood without its conversation; trivial or wrong else.
"""

import argparse
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perdure.engine.learn import prose
from perdure.engine.learn.extractors import RuleStatement, rule_statements
from perdure.engine.learn.prose import user_sentences
from perdure.engine.session_commit import LEAST_CONFIDENCE
from perdure.model.values import comparison_key

STOP = frozenset(
    (  # noqa: SIM905 - lines, not a column
        "a an the is are was were be been being am do does did have has had of to in on at for "
        "with by from and or not no what which who whom whose when where why how i you he she it "
        "we they me him her us them my your his its our their this that these those as if then "
        "than so would could should can will shall may might must about into over after before up "
        "down out also please lets let use used using make makes"
    ).split()
)
VERDICTS = Path(__file__).with_name("learned.json")
WEIGHTS = Path(prose.__file__).with_name("weights.json")
MOST_OF = 0.6
MOST = 20
"""Candidates of one session at most."""
PER_SESSION = 6.8
"""Candidates per labelled session in fitting; unseen repositories have about one more."""
RIDGE = 1.0
LEAST = 0.8
"""The durable precision from which a rule is kept."""


@dataclass(frozen=True)
class Session:
    name: str
    project: str
    messages: Sequence[Mapping[str, object]]
    items: Sequence[Mapping[str, object]]
    labelled: bool


def load(folder: Path) -> list[Session]:
    labels = {row["session"]: row for row in json.loads((folder / "labels.json").read_text())}
    found = []
    for path in sorted(folder.glob("*.json")):
        if path.name == "labels.json":
            continue
        told = json.loads(path.read_text())
        messages = [{"role": each["role"], "content": each["content"]} for each in told["messages"]]
        row = labels.get(told["session"])
        items = row["items"] if row else ()
        found.append(Session(told["session"], told["project"], messages, items, row is not None))
    return found


# ---------------------------------------------------------------- whether an item was found
def stems(text: str) -> set[str]:
    words = (word for word in re.findall(r"[a-z0-9_]+", text.lower()) if len(word) > 1)
    return {re.sub(r"(?:ing|ed|es|s)$", "", w) if w[4:] else w for w in words if w not in STOP}


def hits(item: Mapping[str, Any], message: int, text: str) -> bool:
    """Whether a sentence has an item: it is of its message, and shares most of its words."""
    if message not in item["messages"]:
        return False
    if comparison_key(item["quote"]) in comparison_key(text):
        return True
    has = stems(text)
    wanted = (stems(item["quote"]), stems(item["statement"]))
    return any(len(want & has) / max(1, len(want)) >= MOST_OF for want in wanted)


# ---------------------------------------------------------------- fitting
def rows(sessions: Iterable[Session]) -> tuple[list[dict[str, float]], list[int]]:
    given, wanted = [], []
    for session in sessions:
        for sentence in user_sentences(session.messages):
            given.append(prose.features(sentence))
            wanted.append(
                int(any(hits(each, sentence.message, sentence.text) for each in session.items))
            )
    return given, wanted


def fit(sessions: Sequence[Session]) -> prose.Weights:
    """Fit by logistic regression with a ridge, and cut where the sessions have enough each."""
    given, wanted = rows(each for each in sessions if each.labelled)
    names = sorted({name for row in given for name in row})
    table = np.array([[1.0, *(row.get(name, 0.0) for name in names)] for row in given])
    target = np.array(wanted, dtype=float)
    weights = np.zeros(table.shape[1])
    ridge = np.diag([0.0] + [RIDGE] * len(names))
    for _ in range(30):
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (chance - target) + ridge @ weights
        bend = (table * (chance * (1 - chance))[:, None]).T @ table + ridge
        weights -= np.linalg.solve(bend, slope)
    model = prose.Weights(
        round(float(weights[0]), 3),
        {name: round(float(w), 3) for name, w in zip(names, weights[1:], strict=True)},
        0.0,
        MOST,
    )
    labelled = [each for each in sessions if each.labelled]
    return prose.Weights(model.bias, model.features, threshold(labelled, model), MOST)


def threshold(sessions: Sequence[Session], model: prose.Weights) -> float:
    """Return the score above which sessions have PER_SESSION candidates on average."""
    kept = sorted(
        (found.score for each in sessions for found in prose.candidates(each.messages, model)),
        reverse=True,
    )
    most = int(PER_SESSION * len(sessions))
    return round(kept[most] if len(kept) > most else 0.0, 4)


# ---------------------------------------------------------------- measuring
def measure(
    sessions: Sequence[Session], models: Mapping[str, prose.Weights]
) -> tuple[str, list[tuple[object, ...]]]:
    counts: list[tuple[int, bool]] = []
    got, everything = Counter[str](), Counter[str]()
    missed: list[tuple[object, ...]] = []
    for session in sessions:
        found = prose.candidates(session.messages, models[session.project])
        counts.append((len(found), session.labelled))
        for item in session.items:
            hit = any(hits(item, each.sentence.message, each.sentence.text) for each in found)
            if not hit:
                missed.append((session.name, item["messages"], item["quote"]))
            for group in ("all", str(item["said"]), str(item["kind"]), session.project):
                got[group] += hit
                everything[group] += 1
    count = sum(each for each, _ in counts)
    of_labelled = [each for each, labelled in counts if labelled]
    lines = [
        f"candidates: {count} of {len(sessions)} sessions, {count / len(sessions):.2f} each",
        f"of each labelled session: {sum(of_labelled) / len(of_labelled):.2f}",
    ]
    for group in sorted(everything, key=lambda name: (name != "user explicit", name)):
        share = 100 * got[group] / everything[group]
        lines.append(f"{group:16} {got[group]:3} of {everything[group]:3}  {share:.1f} %")
    return "\n".join(lines), missed


# ---------------------------------------------------------------- what the rules write
def digest(found: RuleStatement) -> str:
    return hashlib.sha256(found.key.encode()).hexdigest()[:16]


def of_rules(session: Session) -> list[RuleStatement]:
    """Return what is written without being asked: what is sure enough."""
    return [
        each for each in rule_statements(session.messages) if each.confidence >= LEAST_CONFIDENCE
    ]


def judged(sessions: Sequence[Session]) -> tuple[str, list[str]]:
    """Return how what the rules write was judged, and what was not."""
    verdicts = {(s, m, h): verdict for s, m, h, _, verdict in json.loads(VERDICTS.read_text())}
    by_rule: dict[str, Counter[str]] = defaultdict(Counter)
    unjudged, got, items = [], 0, sum(len(each.items) for each in sessions)
    for session in sessions:
        found = of_rules(session)
        for each in found:
            verdict = verdicts.get((session.name, each.message, digest(each)), "unjudged")
            by_rule[each.rule][verdict] += 1
            by_rule["all"][verdict] += 1
            if verdict == "unjudged":
                row = (session.name, each.message, digest(each), each.rule, each.text)
                unjudged.append(json.dumps(row))
        got += sum(any(hits(item, w.message, w.text) for w in found) for item in session.items)
    lines = [f"rules write {got} of {items} items ({100 * got / items:.1f} %)"]
    for rule, count in sorted(by_rule.items(), key=lambda each: -each[1].total()):
        share = count["durable"] / max(1, count.total() - count["unjudged"])
        lines.append(f"{rule:12} {share:.2f} durable  {dict(count)}")
    return "\n".join(lines), unjudged


def transferred(sessions: Sequence[Session]) -> str:
    """Return how rules do in a repository that were chosen by what they wrote in the others.

    Kept for a repository are the rules that wrote something elsewhere, with a durable precision of
    at least LEAST. A rule that fits one repository only counts for nothing.
    """
    verdicts = {(s, m, h): verdict for s, m, h, _, verdict in json.loads(VERDICTS.read_text())}
    wrote: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for session in sessions:
        for each in of_rules(session):
            verdict = verdicts.get((session.name, each.message, digest(each)), "unjudged")
            wrote[each.rule].append((session.project, verdict))
    got = items = right = count = 0
    lines = []
    for left in sorted({each.project for each in sessions}):
        kept = set()
        for rule, found in wrote.items():
            elsewhere = [verdict == "durable" for project, verdict in found if project != left]
            if elsewhere and sum(elsewhere) / len(elsewhere) >= LEAST:
                kept.add(rule)
        own = [each for each in sessions if each.project == left]
        mine = {e.name: [w for w in of_rules(e) if w.rule in kept] for e in own}
        hit = sum(
            any(hits(item, w.message, w.text) for w in mine[each.name])
            for each in own
            for item in each.items
        )
        of = sum(len(each.items) for each in own)
        judged_here = [v for rule in kept for project, v in wrote[rule] if project == left]
        durable = judged_here.count("durable")
        got, items, right, count = got + hit, items + of, right + durable, count + len(judged_here)
        lines.append(f"{left:16} {hit:3} of {of:3} items, {durable} of {len(judged_here)} durable")
    alone = sorted(rule for rule, found in wrote.items() if len({p for p, _ in found}) == 1)
    lines.append(
        f"{'all':16} {got:3} of {items:3} items ({100 * got / items:.1f} %), "
        f"{right} of {count} durable ({right / max(1, count):.2f})"
    )
    return "\n".join([*lines, f"rules that wrote in one repository only: {', '.join(alone)}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sessions", type=Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--written", action="store_true")
    asked = parser.parse_args()
    sessions = load(asked.sessions)
    projects = {each.project for each in sessions}
    models = {left: fit([each for each in sessions if each.project != left]) for left in projects}
    report, missed = measure(sessions, models)
    print("leave one repository out\n" + report)
    if asked.missed:
        for each in missed:
            print(*each)
    report, unjudged = judged(sessions)
    print("\n" + report)
    print("\nrules chosen without the repository\n" + transferred(sessions))
    if asked.written:
        print("\n".join(unjudged))
    if asked.fit:
        model = fit(sessions)
        told = {
            "provenance": "logistic regression, benchmarks/learning.py --fit on sessions_dev: "
            f"{len(sessions)} sessions of {len(projects)} repositories; each figure "
            "of the docs was fitted without the repository it was measured on",
            "bias": model.bias,
            "threshold": model.threshold,
            "most": model.most,
            "features": model.features,
        }
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in told.items()]
        WEIGHTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
