"""The process seam for shells: `python -m perdure.process`."""

import atexit
import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

from perdure.errors import PerdureError

_GC_THRESHOLD = 50_000
"""Objects; Python's default is 700, and the start creates many objects that stay."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb: the answer goes to stdout, a reason to stderr.

    An absent memory is not a failure: the answer is empty, and the exit code 0.
    """
    gc.set_threshold(_GC_THRESHOLD)
    atexit.register(gc.freeze)  # the system frees everything at once
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="replace")
    argv = sys.argv[1:] if arguments is None else list(arguments)
    given = _parser(argv[0] if argv else "").parse_args(argv)
    ask: Callable[[Namespace], tuple[str, str]] = given.ask
    try:
        answer, reason = ask(given)
    except (PerdureError, OSError) as error:
        _mention(str(error))
        return 1
    if reason:
        _mention(reason)
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except BrokenPipeError:  # the caller has read enough
        sys.stdout = None  # no error at exit
    return 0


def _mention(text: str) -> None:
    line = " ".join(text.split())
    sys.stderr.write(f"perdure: {''.join(c if c.isprintable() else '?' for c in line)}\n")


def _recall_here(given: Namespace) -> tuple[str, str]:
    from perdure.process.here import recall_with_reason  # noqa: PLC0415 - each verb loads only what it needs

    return recall_with_reason(_context(given), given.query, given.limit)


def _state_path(given: Namespace) -> tuple[str, str]:
    from perdure.process.plan_path import find_plan_path  # noqa: PLC0415 - as before

    path, reason = find_plan_path({**_context(given), "plan": given.plan}, given.which)
    return f"{path}\n", reason


def _offer_save_here(given: Namespace) -> tuple[str, str]:
    import json  # noqa: PLC0415 - as before

    from perdure.process.here import offer_with_reason  # noqa: PLC0415 - as before

    candidate = {"kind": given.kind, "slug": given.slug, "body": _body(given.body_file)}
    for name in ("confidence", "confidence_reason"):
        if getattr(given, name) is not None:
            candidate[name] = getattr(given, name)
    candidates, reason = offer_with_reason(_context(given), candidate)
    return json.dumps(candidates, indent=2, ensure_ascii=False) + "\n", reason


def _body(file: str | None) -> str:
    if file is None:
        return ""
    if file == "-":
        return sys.stdin.buffer.read().decode(errors="replace")
    with open(file, "rb") as opened:  # noqa: PTH123 - as a shell names it
        return opened.read().decode(errors="replace")


def _context(given: Namespace) -> dict[str, object]:
    return {"cwd": given.cwd, "phase": getattr(given, "phase", None)}


def _parser(verb: str) -> ArgumentParser:
    """Return a parser for the arguments of one verb; for an unknown one, of all verbs."""
    parser = ArgumentParser("python -m perdure.process", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name in [verb] if verb in _VERBS else _VERBS:
        summary, ask, arguments = _VERBS[name]
        added = verbs.add_parser(name, help=summary, description=summary)
        added.set_defaults(ask=ask)
        for argument, settings in arguments.items():
            added.add_argument(argument, **settings)
    return parser


Settings = dict[str, Any]
_CWD: Settings = {"help": "the folder of the project; the default is the working directory"}
_VERBS: dict[str, tuple[str, Callable[[Namespace], tuple[str, str]], dict[str, Settings]]] = {
    "recall-here": (
        "print the memories for the work in this folder",
        _recall_here,
        {
            "--cwd": _CWD,
            "--phase": {
                "help": "what is being done: setup, plan, review, ...; the default is work"
            },
            "--query": {"help": "a query; without one, the notes of the project are printed"},
            "--limit": {"help": "the maximum of tokens; the default is the phase's", "type": int},
        },
    ),
    "state-path": (
        "print the path of the plan, or of its progress",
        _state_path,
        {
            "which": {"choices": ("plan", "progress")},
            "--cwd": _CWD,
            "--plan": {"help": "the name of a plan; the default is the active one"},
        },
    ),
    "offer-save-here": (
        "print what would be saved, without saving it",
        _offer_save_here,
        {
            "--cwd": _CWD,
            "--phase": {"help": "what is being done"},
            "--kind": {"help": "what it is: decision, preference, ...", "required": True},
            "--slug": {"help": "its name", "required": True},
            "--body-file": {"help": "the text; - is stdin"},
            "--confidence": {"help": "how sure you are"},
            "--confidence-reason": {"help": "why"},
        },
    ),
}


if __name__ == "__main__":
    sys.exit(main())
