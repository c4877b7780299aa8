"""The code blocks of the documentation, each run in the way of its language.

    python     executed, in one namespace for each document
    pycon      the same, and each answer is compared
    toml       a file; the config must be one that `perdure doctor` can open
    json       a file of JSON lines
    console    commands behind `$ `, run for real, and each answer is compared
    sh         commands, run for real
    text       not run

Words behind the language say more. `title="name"` makes the block a file of that name. `wrong` says
that what the block shows is refused. In an answer, `...` stands for anything.

All of it happens to a user of our own, whose home is shown as `/home/ana`. Two commands are not
what they seem: `make` only says what it would do, and `pip install` stays off the network.
"""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sybil import Document, Example, Region, Sybil

REPOSITORY = Path(__file__).parents[2]
CONFIG = "~/.perdure/config.toml"
SHOWN_HOME = "/home/ana"

_FENCED = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)\n"
    r"(?P<source>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"(?P<settings>(?:\w+=\S* )*)(?P<program>pip install|[\w-]+)(?P<rest>.*)")
_PLAIN_PROGRAMS = frozenset(
    {"cat", "cp", "date", "echo", "perdure", "ls", "mkdir", "mv", "pytest", "python", "rm", "sleep"}
)
_PATIENCE_SECONDS = 240
_PRESERVED_VARIABLES = ("COVERAGE_", "PYTEST_")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    words: frozenset[str]
    title: str | None
    source: str

    @classmethod
    def parse(cls, info: str, source: str) -> "Block":
        language, *rest = shlex.split(info) or [""]
        titles = [word.removeprefix("title=") for word in rest if word.startswith("title=")]
        words = frozenset("title" if word.startswith("title=") else word for word in rest)
        return cls(language, words, titles[0] if titles else None, source)

    @property
    def wrong(self) -> bool:
        return "wrong" in self.words

    def write(self) -> None:
        """Make the block a file below the working folder or the user's home."""
        path = Path(self.title or "").expanduser()
        home = Path(os.environ["HOME"])
        if not path.name or ".." in path.parts or (path.is_absolute() and home not in path.parents):
            raise ValueError(f"a file of the documentation can't be {self.title!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")


Run = Callable[[Block, Example], str | None]
"""Runs a block; returns what is wrong with it, if anything."""


def documentation(root: Path) -> Sybil:
    """Return what finds and runs the blocks of the documents below `root`."""
    return Sybil([_regions], pattern="*.md", path=str(root), fixtures=["user"])


def _regions(document: Document) -> Iterator[Region]:
    for found in _FENCED.finditer(document.text):
        source = re.sub(rf"^{found['indent']}", "", found["source"], flags=re.MULTILINE)
        block = Block.parse(found["info"], source)
        if block.language != "text":
            yield Region(found.start(), found.end(), block, _evaluate)


def _evaluate(example: Example) -> str | None:
    block: Block = example.parsed
    if block.language not in LANGUAGES:
        return f"nobody runs {block.language!r}. Fix: use one of {[*LANGUAGES, 'text']}."
    run, understood = LANGUAGES[block.language]
    if unknown := block.words - understood:
        return f"{block.language} blocks don't understand {sorted(unknown)}"
    return run(block, example)


@contextmanager
def user_of_our_own(place: Path) -> Iterator[None]:
    """Make this process one of a user with an empty home in the empty folder `place`."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in os.environ:
            if not variable.startswith(_PRESERVED_VARIABLES):
                patch.delenv(variable)
        for name in ("home", "work", "site"):
            (place / name).mkdir()
        scripts = Path(sys.executable).parent
        patch.setenv("HOME", str(place / "home"))
        patch.setenv("PATH", f"{scripts}{os.pathsep}{os.defpath}")
        patch.setenv("PYTHONPATH", str(place / "site"))
        patch.chdir(place / "work")
        yield


# ---------------------------------------------------------------- one for each language


def _run_python(block: Block, example: Example) -> str | None:
    if block.title is not None:
        block.write()
        return None
    code = compile("\n" * example.line + block.source, example.path, "exec", dont_inherit=True)
    example.namespace.setdefault("__name__", "__main__")
    exec(code, example.namespace)  # noqa: S102 - our own documentation
    return None


def _run_session(block: Block, example: Example) -> str | None:
    example.namespace.setdefault("__name__", "__main__")
    session = doctest.DocTestParser().get_doctest(
        block.source, {}, example.path, example.path, example.line
    )
    if not session.examples:
        return "nothing in it is typed behind >>>"
    session.globs = example.namespace
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(session, out=told.append, clear_globs=False)
    return "".join(told)


def _check_file(block: Block, _: Example) -> str | None:
    if block.title is None:
        return f'say which file it is: toml title="{CONFIG}"'
    block.write()
    if not block.wrong:
        tables = tomllib.loads(block.source)
        _make_vault(tables)
    return _run("perdure doctor", wrong=block.wrong) if block.title == CONFIG else None


def _check_json(block: Block, _: Example) -> str | None:
    if block.title is None:
        return 'say which file it is: json title="talk.jsonl"'
    block.write()
    for line in block.source.splitlines():
        json.loads(line)
    return None


def _make_vault(tables: dict[str, object]) -> None:
    match tables:
        case {"storage": {"vault": {"path": str(path)}}}:
            vault = Path(path).expanduser()
            if Path(os.environ["HOME"]) not in vault.parents:
                raise ValueError(f"a vault of the documentation lies below ~, not at {path}")
            vault.mkdir(parents=True, exist_ok=True)


def _run_console(block: Block, _: Example) -> str | None:
    before, *typed = re.split(r"^\$ ", block.source, flags=re.MULTILINE)
    if before.strip() or not typed:
        return "a console block starts with a command behind '$ '"
    for entry in typed:
        command, answer = f"{entry}\n".split("\n", 1)
        if fault := _run(command, answer.strip(), wrong=block.wrong):
            return fault
    return None


def _run_commands(block: Block, _: Example) -> str | None:
    commands = [line for line in block.source.splitlines() if line.strip()]
    if not commands:
        return "there is no command in it"
    return next(filter(None, map(_run, commands)), None)


LANGUAGES: dict[str, tuple[Run, frozenset[str]]] = {
    "python": (_run_python, frozenset({"title"})),
    "pycon": (_run_session, frozenset()),
    "toml": (_check_file, frozenset({"title", "wrong"})),
    "json": (_check_json, frozenset({"title"})),
    "console": (_run_console, frozenset({"wrong"})),
    "sh": (_run_commands, frozenset()),
}

# ---------------------------------------------------------------- commands


def _run(command: str, answer: str | None = None, *, wrong: bool = False) -> str | None:
    """Run a command; return what is wrong with its exit code or, if one is given, its answer."""
    done = subprocess.run(
        ("/bin/sh", "-c", _safe(command)),
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    told = done.stdout.replace(os.environ["HOME"], SHOWN_HOME).strip()
    if (done.returncode != 0) is not wrong:
        return f"{command!r} ended with {done.returncode} and said:\n{told}"
    if answer is None or doctest.OutputChecker().check_output(answer, told, doctest.ELLIPSIS):
        return None
    return f"{command!r} was expected to say:\n{answer}\n\nbut said:\n{told}"


def _safe(command: str) -> str:
    parsed = _COMMAND.fullmatch(command.strip())
    program = parsed["program"] if parsed else None
    if parsed is None or program not in {*_PLAIN_PROGRAMS, "make", "pip install"}:
        raise ValueError(f"the documentation may not run {command!r}")
    if program == "make":
        program = f"make --dry-run --directory={shlex.quote(str(REPOSITORY))}"
    if program == "pip install":
        options = "--quiet --no-index --no-deps --no-build-isolation"
        target = shlex.quote(os.environ["PYTHONPATH"])
        program = f"{shlex.quote(sys.executable)} -m pip install {options} --target={target}"
    return f"{parsed['settings']}{program}{parsed['rest']}"


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**ours, "PYTEST_ADDOPTS": "-p no:cacheprovider", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
