"""How much of what is worth remembering is found without a model, and how much else.

    python -m benchmarks.extraction [FOLDER] [--verbose]

Prints precision and recall for each category, over labelled conversations: those that the rules
were made with, and those that were held back. With --verbose it lists what was wrong or missed.
"""

import argparse
from pathlib import Path

from perdure.engine.learn.extractors import (
    EntityEventExtractor,
    PreferenceExtractor,
    ProfileExtractor,
)
from perdure.engine.learn.extractors import ProcedureExtractor
from tests.support.extract.scoring import Score, conversations, score

CONVERSATIONS = Path(__file__).parents[1] / "tests" / "data" / "conversations"
EXTRACTORS = (
    ProfileExtractor(),
    PreferenceExtractor(),
    EntityEventExtractor(),
    ProcedureExtractor(),
)


def shown(name: str, found: Score, category: str = "") -> str:
    chosen = [category] if category else found.categories
    counts = (
        sum(part[each] for each in chosen) for part in (found.right, found.wrong, found.missed)
    )
    right, wrong, missed = counts
    precision, recall = found.precision(*chosen), found.recall(*chosen)
    return f"  {name:12} {precision:9.3f} {recall:7.3f} {right:6} {wrong:6} {missed:7}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=CONVERSATIONS)
    parser.add_argument("--half", choices=("tune", "held"), help="only one of both halves")
    parser.add_argument("--verbose", action="store_true", help="list what was wrong or missed")
    options = parser.parse_args()
    for half in [options.half] if options.half else ["tune", "held"]:
        given = conversations(options.folder, half)
        found = score(EXTRACTORS, given)
        print(f"{half}: {len(given)} conversations")
        print(f"  {'':12} precision  recall  right  wrong  missed")
        for category in found.categories:
            print(shown(category, found, category))
        print(shown("all", found))
        if options.verbose:
            print(*(f"    {line}" for line in found.told), sep="\n")


if __name__ == "__main__":
    main()
