"""The program `perdure`. A hook starts without the command line, because agents wait for it."""

import atexit
import gc
import os
import sys

_BETWEEN_LOOKS_FOR_GARBAGE = 50_000
"""Objects; Python itself looks after 700, and starting makes many that all stay."""
_OPTIONS_OF_PEOPLE = frozenset({"--strict", "--help", "-h"})


def main() -> None:
    gc.set_threshold(_BETWEEN_LOOKS_FOR_GARBAGE)
    atexit.register(gc.freeze)  # the system takes all back at once, so nobody needs to look there
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not _OPTIONS_OF_PEOPLE.intersection(words) and sys.stdin:
        from perdure.agents.hooks import run

        run(words[1:])
        sys.stderr.flush()
        os._exit(0)  # the answer is written and all is closed: to unload modules takes 10 ms
    from perdure.surfaces.cli import main

    main()
