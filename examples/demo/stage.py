"""Where the demo happens: a folder, the commands that are typed there, and what must be seen."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.demo.sessions import OWNER
from perdure.errors import PerdureError
from perdure.surfaces.out import counted, cut_to, wrapped

Say = Callable[[str], object]

MEMORIES = "memory"
"""Where Mara's memories are, in the folder of the demo."""
SESSIONS = f"{MEMORIES}/Sessions"
_INDENT = "   "
_WIDTH = 116
_MOST_LINES = 12
_MOST_WORDS = 60
_NOT_OURS = ("MEMORY_VAULT_PATH", "COLUMNS")
"""Variables that would lead a command to the user's own memory, or change its output."""


class NotShownError(PerdureError, AssertionError):
    """The demo does not show what it says."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command line answered."""

    typed: str
    answer: str
    remarks: str = ""
    """The text on stderr: notes, and errors."""

    @property
    def text(self) -> str:
        return self.answer + self.remarks

    def json(self) -> Any:  # noqa: ANN401 - whatever a command answers
        return json.loads(self.answer)


@dataclass(frozen=True, slots=True)
class Stage:
    folder: Path
    """Perdure's home, and the home of the demo's user."""
    say: Say
    secret: str
    has_model: bool
    moments: dict[str, str] = field(default_factory=dict)
    """The position of the log at the end of each month."""

    # ------------------------------------------------------------ typing
    @property
    def environ(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        home = str(self.folder)
        mine = {"HOME": home, "PERDURE_HOME": home, "USER": OWNER}
        return {**ours, **mine, "NO_COLOR": "1", "PYTHONUTF8": "1"}

    def type(self, *words: str, only: Iterable[str] = (), code: int = 0) -> Answer:
        """Run a command line, show what was typed and answered, and return that.

        With `only`, no other lines are shown than those with one of these words.
        """
        answer = self.run(*words, code=code)
        self.say(f"{_INDENT}$ {answer.typed}")
        wanted = tuple(only)
        lines = [line for line in answer.answer.splitlines() if line.strip()]
        shown = [line for line in lines if not wanted or any(word in line for word in wanted)]
        for line in shown[:_MOST_LINES]:
            self.say(f"{_INDENT}{cut_to(_WIDTH, line)}".rstrip())
        if left_out := len(lines) - len(shown[:_MOST_LINES]):
            self.remark(f"and {counted(left_out, 'line')} more")
        for remark in answer.remarks.splitlines():
            for line in wrapped(_WIDTH, remark):
                self.tell(line)
        return answer

    def show_file(self, file: str) -> Answer:
        text = (self.folder / file).read_text(encoding="utf-8")
        self.tell(f"$ cat {file}")
        for line in text.splitlines():
            self.tell(line)
        return Answer(f"cat {file}", text)

    def run(self, *words: str, code: int = 0) -> Answer:
        """Run a command line in a process of its own; it must end with this code."""
        done = subprocess.run(  # noqa: S603 - it is this program
            [sys.executable, "-c", "from perdure.surfaces.start import main; main()", *words],
            env=self.environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        typed = f"perdure {shlex.join(words)}".replace(self.secret, f"{self.secret[:4]}...")
        if done.returncode != code:
            said = " ".join(f"{done.stdout} {done.stderr}".split()[-_MOST_WORDS:])
            raise NotShownError(f"`{typed}` ended with {done.returncode}, not with {code}: {said}")
        return Answer(typed, done.stdout, done.stderr)

    # ------------------------------------------------------------ telling
    def remark(self, text: str) -> None:
        self.say(f"{_INDENT}({text})")

    def tell(self, text: str) -> None:
        self.say(f"{_INDENT}{text}")

    # ------------------------------------------------------------ claiming
    def sees(self, answer: Answer, *words: str) -> None:
        """Fail unless all of it is in an answer."""
        for each in words:
            self.holds(f"`{answer.typed}` says {each!r}", is_so=each in answer.text)

    def sees_no(self, answer: Answer, *words: str) -> None:
        for each in words:
            self.holds(f"`{answer.typed}` does not say {each!r}", is_so=each not in answer.text)

    def holds(self, claim: str, *, is_so: bool) -> None:
        """Fail unless something is so."""
        if not is_so:
            raise NotShownError(f"it should be so that {claim}, and it is not")
