"""`make demo`, or `.venv/bin/python -m examples.demo --keep FOLDER`."""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from examples.demo.sessions import OWNER, invented_key
from examples.demo.stage import NotShownError, Say, Stage
from examples.demo.steps import (
    show_blame,
    show_contradiction,
    show_edit,
    show_rebuilding,
    show_recall,
    show_refusals,
    show_rewinding,
    show_saving,
    show_unmerging,
    show_verifying,
)
from perdure.config import load_config
from perdure.errors import ConfigError, PerdureError
from perdure.index.minilm import find_model
from perdure.surfaces import out
from perdure.surfaces.cli import INTERRUPTED, PIPE_CLOSED, cli, discard_output


class Step(NamedTuple):
    title: str
    """What it shows."""
    show: Callable[[Stage], None]


STEPS = (
    Step("Save: half a year of talk becomes plain Markdown; no key, no server", show_saving),
    Step("Recall: ask, and get what holds now, with the place to cite", show_recall),
    Step("Contradiction: what is said later supersedes; both sides are quoted", show_contradiction),
    Step('Rewind: "What did we believe in March?"', show_rewinding),
    Step("Blame: which version wrote each line, and what it changed", show_blame),
    Step("Edit by hand: the file is the memory; the edit is a version too", show_edit),
    Step("Undo: a merge that was wrong is taken out again", show_unmerging),
    Step("Verify: every byte of the history is as it was written", show_verifying),
    Step("Rebuild: the index is deleted, made anew, and gives the same answers", show_rebuilding),
    Step("Refuse: an error names the cause and the fix", show_refusals),
)
_GO_ON = (
    ("init", "perdure init", "choose where your memory is kept"),
    ("save", 'perdure save "I drink tea without milk."', "remember one thing"),
    ("commit", "perdure commit SESSION.jsonl", "keep a conversation, and learn from it"),
    ("import", "perdure import PATH", "take in what other programs remember"),
    ("recall", 'perdure recall "What do I drink?"', "ask"),
    ("why", "perdure why preference/NAME", "see what a memory rests on"),
    ("models", "perdure models install", "also find by meaning"),
    ("install", "perdure install", "give it to your agent"),
    ("mcp", "perdure mcp", "serve it to agents, by MCP"),
    ("doctor", "perdure doctor", "see where your memory is kept"),
)
"""A command, how it is typed, and its purpose; only commands that this version has are shown."""


def main() -> None:
    """Show Perdure at work on half a year of conversations.

    All of it happens in a folder of its own, which is removed again. If a step does not show what
    it says, the demo ends there with exit code 1, and names the step.
    """
    parser = argparse.ArgumentParser("demo", description=main.__doc__)
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep the sample memory in this new folder, to play with",
    )
    try:
        run(out.line, parser.parse_args().keep)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        discard_output()
        sys.exit(PIPE_CLOSED)
    except (NotShownError, OSError) as error:
        sys.exit(f"demo: {error}")


def run(say: Say, keep: Path | None = None) -> None:
    began = monotonic()
    with _folder(keep) as folder:
        say("Perdure keeps the memory of agents as plain Markdown that you own. This is that of a")
        say("small team that builds a tide-table app for sailors: three people and a coding agent.")
        say(f"All happens in {folder}, {'which stays' if keep else 'which is removed at the end'}.")
        stage = Stage(folder, say, invented_key(), has_model=_borrow_model(folder))
        for number, step in enumerate(STEPS, 1):
            say(f"\n{number}. {step.title}")
            _show(number, step, stage)
    say(f"\nAll {len(STEPS)} steps showed what they say, in {monotonic() - began:.0f} seconds.")
    _tell_how_to_go_on(say, keep)


def _show(number: int, step: Step, stage: Stage) -> None:
    try:
        step.show(stage)
    except BrokenPipeError:  # the reader has closed its end
        raise
    except (PerdureError, OSError, LookupError, ValueError) as error:
        raise NotShownError(
            f"step {number} of the demo did not show what it says ({step.title}): {error}. "
            "Fix: install Perdure anew; if that does not help, it is a bug, please report it."
        ) from error


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Give a folder that is new; it is removed, whatever happens, unless it is to be kept."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="perdure-demo-") as folder:
            yield Path(folder)
        return
    if keep.is_file():
        raise NotShownError(f"{keep} is a file. Fix: name a new folder for --keep.")
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise NotShownError(f"{keep} is not empty. Fix: name a new folder for --keep.")
    yield keep.resolve()


def _borrow_model(home: Path) -> bool:
    """Let the demo use the model that this user has installed; say whether there is one."""
    try:
        models = load_config(os.environ).home / "models"
    except ConfigError:  # of a user whose config is none of the demo's business
        return False
    if find_model(models) is None:
        return False
    (home / "models").symlink_to(models)
    return True


def _tell_how_to_go_on(say: Say, keep: Path | None) -> None:
    if keep is None:
        say("Play with it: make demo KEEP=FOLDER")
    else:
        home = shlex.quote(str(keep.resolve()))
        say("The sample memory is yours to play with:")
        say(f'  PERDURE_HOME={home} perdure recall "Who is Olaf?" --user {OWNER}')
    say("Go on with your own:")
    for name, typed, purpose in _GO_ON:
        if name in cli.commands:
            say(f"  {typed:46} {purpose}")
    if shutil.which("perdure") is None:
        command = Path(sys.executable).with_name("perdure")
        if command.is_relative_to(Path.cwd()):
            command = command.relative_to(Path.cwd())
        say(f"Here `perdure` is {command}.")


if __name__ == "__main__":
    main()
