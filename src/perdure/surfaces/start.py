"""The program `perdure`. A hook starts without the command line, because an agent waits for it."""

import atexit
import gc
import os
import sys

_GC_THRESHOLD = 50_000
"""Allocations between collections; Python's own 700 is too eager for a short process."""
_CLI_OPTIONS = frozenset({"--strict", "--help", "-h"})


def main() -> None:
    gc.set_threshold(_GC_THRESHOLD)
    atexit.register(gc.freeze)  # the process ends, so collecting its objects would be wasted
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not _CLI_OPTIONS.intersection(words) and sys.stdin:
        from perdure.agents.hooks import run

        run(words[1:])
        sys.stderr.flush()
        os._exit(0)  # the answer is written and all is closed: to unload modules takes 10 ms
    from perdure.surfaces.cli import main

    main()
