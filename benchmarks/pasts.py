"""How long the first question about a moment takes, by how much has changed since.

    python benchmarks/pasts.py [SIZE ...]

SIZE is a number of passages; 1,000, 10,000 and 50,000 if none is given. Notes are added, and the
state before them asked about: once with the index made out of that of the present, once with it
made of nothing, each time with vectors that are kept.
"""

import os
import sys

from recalling.building import built
from recalling.corpus import Corpus
from recalling.memories import StandIn, folder, opened, write
from recalling.pasts import first_questions

SIZES = (1_000, 10_000, 50_000)


def main() -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    for size in map(int, sys.argv[1:] or SIZES):
        print(f"\n{size:,} passages", flush=True)
        corpus, embedder = Corpus(), StandIn()
        with folder() as home, opened(home, embedder) as context:
            write(context, corpus.passages(size))
            built(context, embedder, None)
            first_questions(context, corpus, corpus.questions(2))


if __name__ == "__main__":
    main()
