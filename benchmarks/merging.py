"""How well the judge of merges tells statements apart, on pairs that were labelled by hand.

    python benchmarks/merging.py [--misses] [--check]

Of the two halves, `tune` is what the judge was built on, and `held` what it is measured on. With
--misses the pairs that it judged otherwise than their label are shown, of the tuned half only. With
--check the exit code says whether every goal was met.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from perdure.engine.learn.judge import Agreement, compare

SET = Path(__file__).parents[1] / "tests" / "data" / "statements.json"
HALVES = ("tune", "held")
LABELS = tuple(verdict.value for verdict in Agreement)
APART, SAME = 1.0, 0.08
Judged = list[tuple[dict[str, str], str]]


def judged(half: str) -> Judged:
    pairs = [pair for pair in json.loads(SET.read_text(encoding="utf-8")) if pair["half"] == half]
    return [(pair, compare(pair["old"], pair["new"]).agreement.value) for pair in pairs]


def share(right: int, of: int) -> str:
    return f"{right / of:5.3f} ({right} of {of})" if of else "    - (none)"


def figures(found: Judged) -> tuple[float, float]:
    """Print both figures, and return them."""
    apart = [verdict != "same" for pair, verdict in found if pair["label"] != "same"]
    same = [verdict == "same" for pair, verdict in found if pair["label"] == "same"]
    print(f"  must not merge, kept apart  {share(sum(apart), len(apart))}, goal {APART}")
    print(f"  same, found                 {share(sum(same), len(same))}, goal {SAME}")
    return sum(apart) / len(apart), sum(same) / len(same)


def confusion(found: Judged) -> None:
    counted = Counter((pair["label"], verdict) for pair, verdict in found)
    print(f"\n  {'label':14}" + "".join(f"{'-> ' + verdict:>16}" for verdict in LABELS))
    for label in LABELS:
        print(f"  {label:14}" + "".join(f"{counted[label, verdict]:16}" for verdict in LABELS))


def kinds(found: Judged) -> None:
    """Print for each kind how many pairs were kept apart, and how many found the same."""
    print(f"\n  {'kind':16}{'kept apart':>14}{'found same':>14}")
    for kind in sorted({pair["kind"] for pair, _ in found}):
        of_kind = [
            (pair["label"] == "same", said == "same")
            for pair, said in found
            if pair["kind"] == kind
        ]
        apart = [not said for is_same, said in of_kind if not is_same]
        same = [said for is_same, said in of_kind if is_same]
        told = [f"{sum(each)}/{len(each)}" if each else "-" for each in (apart, same)]
        print(f"  {kind:16}{told[0]:>14}{told[1]:>14}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="show what the tuned half misses")
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    options = parser.parse_args()
    reached = []
    for half in HALVES:
        found = judged(half)
        print(f"\n{half}: {len(found)} pairs")
        apart, same = figures(found)
        reached.append(apart >= APART and same >= SAME)
        confusion(found)
        kinds(found)
        if options.misses and half == "tune":
            for pair, verdict in found:
                if verdict != pair["label"]:
                    print(f"  {pair['id']}: {pair['old']} | {pair['new']} -> {verdict}")
    return int(options.check and not all(reached))


if __name__ == "__main__":
    raise SystemExit(main())
