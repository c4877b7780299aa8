"""Tool calls: the shell commands that they run, the files that they change, the text they add.

And the failures of shell commands: a signature that recognises them, and the command that fixed
them. The exit status decides whether a command failed, never its output. The hook at each tool call
loads this module, so it imports little.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from posixpath import normpath
from typing import NamedTuple

from perdure.dataclass import dataclass, replace
from perdure.patterns import later


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOST = 8_000
"""Characters of a command that are read."""
_MOST_COMMANDS = 40
_DEEPEST = 3
SHELLS = frozenset(
    {
        *("Bash", "bash", "shell", "exec_command", "local_shell", "shell_command"),
        *("run_shell_command", "container.exec", "run_in_terminal", "run_terminal_cmd"),
    }
)
"""The names that agents have for the tool that runs a command."""
_ALIASES = {
    "npx": "npm",
    "pnpx": "pnpm",
    "bunx": "bun",
    "uvx": "uv",
    "pip3": "pip",
    "python3": "python",
    "nodejs": "node",
    "docker-compose": "docker",
    "yarnpkg": "yarn",
}
PROGRAMS = word_set(
    "npm npx pnpm pnpx yarn bun bunx deno pip pip3 pipenv poetry uv conda virtualenv pyenv "
    "nvm git gh docker docker-compose podman kubectl helm terraform tofu ansible cargo rustc "
    "rustup pytest tox nox jest vitest mocha playwright cypress eslint prettier biome tsc "
    "webpack vite rollup esbuild turbo lerna mypy ruff flake8 pylint pyright isort gradle mvn "
    "maven bundle bundler rake composer php artisan dotnet brew apt apt-get curl wget sed awk "
    "perl psql mysql sqlite3 redis-cli mongosh aws gcloud heroku vercel netlify flyctl ssh scp "
    "rsync sudo chmod chown rm mkdir rspec rubocop golangci-lint gofmt ctest cmake ninja bazel "
    "pre-commit husky alembic prisma supabase firebase wrangler task-master expo uvx"
)
"""Programs whose names are not English words."""
EXECUTED = word_set(
    "make go just node python python3 ruby bash sh zsh test black find watch time cat less more "
    "kill touch cp mv ls cd grep rg head tail sort next nest rails flask django act air task nx "
    "changeset storybook tsx ng vue ember swift xcodebuild flutter dart mix elixir zig"
)
"""Programs whose names count only where they are marked as code, or run."""
_WRAPPERS = word_set(
    "sudo env time nohup nice command exec builtin xargs doas stdbuf timeout watch then do else "
    "if while until ! {"
)
_RUNNERS = frozenset({"npx", "bunx", "pnpx", "uvx"})
_RUN_BY = {
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "dlx"),
    ("yarn", "exec"),
    ("npm", "exec"),
    ("bun", "x"),
    ("bundle", "exec"),
    ("docker", "run"),
    ("nix", "run"),
}
_INSTALLS = frozenset({"install", "add", "i", "require", "get"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "fish"})
READING = word_set(
    "cat ls head tail less more grep rg egrep fgrep find fd tree wc stat file diff cmp which "
    "type pwd echo printf cd test jq yq du df ps env printenv whoami date sleep true false read "
    "open bat awk sort uniq cut nl od xxd realpath dirname basename column tr history man"
)
_READING_GIT = word_set(
    "status diff log show blame grep branch remote fetch ls-files rev-parse describe"
)
_LONG = {"-f": "--force", "-A": "--all"}
_ASSIGNED = later(r"[A-Za-z_]\w*=")
_CHANGING = word_set("touch rm mv cp mkdir rmdir tee truncate ln chmod chown")
"""Programs whose arguments are all paths."""
_VALUED = {"sudo": "-u -g", "env": "-u -C", "timeout": "-s -k", "nice": "-n", "xargs": "-I -n -P"}
"""Flags of wrappers that a value follows."""
_QUOTED = later(r"""'[^']*'|\\.|"(?:\\.|[^"\\])*"|`[^`]*`|\$\([^()]*\)""", re.DOTALL)
_SUBSTITUTED = later(r"`([^`]*)`|\$\(([^()]*)\)")
_PRINTED = later(r"\s*(?:echo|printf|which|command -v)((?: +[\w./@:+-]+)+)\s*")
_VARIABLE = later(r"\$\{?(\w+)\}?")
_PATHLIKE = later(r"[\w.@~*-]*/[\w./@~*-]*|[\w.*-]+\.[A-Za-z][\w]{0,9}|\.\w+|[A-Z]{4,}\w*")


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One program that a shell runs, with its arguments."""

    program: str
    """Its name as written, without its folder."""
    words: tuple[str, ...]
    """The arguments that are not flags."""
    flags: frozenset[str] = frozenset()
    path: str = ""
    """The program, if it is named by a path."""
    outputs: tuple[str, ...] = ()
    """The files that its output is redirected to."""
    under: str = ""
    """The program that runs it: `uv` in `uv run pytest`."""
    folder: str = ""
    """Where it runs, relative to the folder of the whole line, if that is known."""

    @property
    def is_reading(self) -> bool:
        if self.program == "git":
            return bool(self.words) and self.words[0] in _READING_GIT
        is_edited = self.program == "sed" and not {"-i", "--in-place"} & self.flags
        return self.program in READING or is_edited

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that it installs, without their versions."""
        if not self.words or self.words[0] not in _INSTALLS:
            return ()
        return tuple(re.sub(r"(?<=.)[@=<>~!\[].*$", "", each) for each in self.words[1:])

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names, relative to the folder of the whole line."""
        is_changing = self.program in _CHANGING
        found = (each for each in self.words if is_changing or _PATHLIKE.fullmatch(each))
        return tuple(_placed(self.folder, each) for each in found)


def canonical(program: str) -> str:
    """Return the name by which a program is compared: `npm` for `npx`."""
    name = program.rpartition("/")[2].casefold() if program.startswith(("/", "./")) else program
    return _ALIASES.get(name.casefold(), name.casefold())


def is_path(text: str) -> bool:
    return "/" in text.rstrip("/") or text.endswith("/") or "*." in text or text.startswith("./")


def words_in(text: str) -> list[str]:
    """Return the words of a command line; splits at white space if a quote is not closed."""
    try:
        return shlex.split(text[:MOST], comments=False)
    except ValueError:
        return text[:MOST].split()


def flags_in(words: list[str] | tuple[str, ...]) -> frozenset[str]:
    """Return the flags of a command, without their values; `-xz` gives `-x` and `-z`."""
    found: set[str] = set()
    for word in words:
        if not word.startswith("-") or word in {"-", "--"}:
            continue
        flag = word.partition("=")[0]
        is_joined = re.fullmatch(r"-[A-Za-z]{2,4}", flag) is not None
        found |= {f"-{letter}" for letter in flag[1:]} if is_joined else {flag}
    return frozenset(_LONG.get(flag, flag) for flag in found)


class _Words(NamedTuple):
    words: list[str]
    outputs: list[str]
    opened: int = 0
    """The opened parentheses before it, minus the closed ones."""


def commands_in(line: str, depth: int = 0) -> list[ShellCommand]:
    """Return the programs that a command line runs, also inside of `bash -c`.

    Substitutes a variable or a command only if the line itself defines its value.
    """
    found: list[ShellCommand] = []
    folders = [""]
    values: dict[str, str] = {}

    def value(variable: re.Match[str]) -> str:
        return values.get(variable[1], variable[0])

    for given, outputs, opened in _simple(line[:MOST]):
        if len(found) >= _MOST_COMMANDS:
            break
        folders += folders[-1:] * opened
        del folders[max(1, len(folders) + min(opened, 0)) :]
        folder = folders[-1]
        words = [_VARIABLE.sub(value, each) for each in given]
        assigned = [each.partition("=") for each in words[words[:1] == ["export"] :]]
        if all(name.isidentifier() and mark for name, mark, _ in assigned):
            values |= {name: value for name, _, value in assigned}
        first, *others = [*_commands(words, depth)] or [ShellCommand("", ())]
        first = replace(first, outputs=tuple(_placed(folder, each) for each in outputs))
        found += [replace(each, folder=_placed(folder, each.folder)) for each in (first, *others)]
        match words:
            case ["cd" | "pushd", to] if "$" not in to and to != "-":
                folders[-1] = _placed(folder, to)
    return found


def _placed(folder: str, path: str) -> str:
    """Return a relative path joined to a folder."""
    return normpath(f"{folder}/{path}") if folder and path[:1] not in {"/", "~"} else path


def _simple(line: str) -> Iterator[_Words]:
    """Yield the words of each simple command, without here documents."""
    text = re.sub(r"\\\n", " ", line)
    document = re.search(r"<<-?\s*['\"]?(\w+)['\"]?", text)
    if document:  # the input of a program is not run
        end = re.search(rf"^\s*{document[1]}\s*$", text[document.end() :], re.MULTILINE)
        rest = text[document.end() + end.end() :] if end else ""
        first = text[document.end() :].partition("\n")[0]
        text = f"{text[: document.start()]} {first}\n{rest}"
    inner: list[str] = []
    for _ in range(_DEEPEST):
        text = _QUOTED.sub(lambda one: _substituted(one[0], inner), text)
    for each in (text, *inner):
        yield from _separated(each)


def _substituted(quoted: str, inner: list[str]) -> str:
    """Return a quoted text after command substitution, and add the commands to `inner`."""

    def put_in(one: re.Match[str]) -> str:
        command = one[1] if one[2] is None else one[2]
        printed = _PRINTED.fullmatch(command)
        inner.extend([] if printed else [command])
        return printed[1].strip() if printed else "$"

    return quoted if quoted[0] in "'\\" else _SUBSTITUTED.sub(put_in, quoted)


def _separated(text: str) -> Iterator[_Words]:
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    found = _Words([], [])
    is_output = False
    try:
        for token in lexer:
            marks = set(token)
            if marks and marks <= set(";&|()"):
                yield found
                found = _Words([], [], token.count("(") - token.count(")"))
            elif marks and marks <= set("<>&"):
                is_output = ">" in marks
                continue
            elif is_output:
                found.outputs.append(token)
            else:
                found.words.append(token)
            is_output = False
    except ValueError:  # a quote that is not closed
        if not found.words:
            found.words.extend(text.split())
    yield found


def _commands(words: list[str], depth: int) -> Iterator[ShellCommand]:
    """Yield the programs that a simple command runs: itself, and those that it wraps."""
    rest = _unwrapped(words)
    if not rest:
        return
    program = rest[0].rpartition("/")[2]
    arguments = rest[1:]
    scripts = [" ".join(arguments)] if program == "eval" else []
    if program in _SHELLS:
        scripts = [each for flag, each in pairwise(arguments) if re.fullmatch(r"-\w*c", flag)]
    if scripts and depth < _DEEPEST:
        yield from commands_in(scripts[0], depth + 1)
        return
    folder = ""
    while program == "git" and arguments and arguments[0] in {"-C", "-c"}:
        folder = arguments[1] if arguments[:1] == ["-C"] and arguments[1:] else folder
        arguments = arguments[2:]
    plain = tuple(each for each in arguments if not each.startswith("-"))
    path = rest[0] if "/" in rest[0] else ""
    yield ShellCommand(program, plain, flags_in(arguments), path, folder=folder)
    yield from _run_by(program, arguments, plain, depth)


def _unwrapped(words: list[str]) -> list[str]:
    rest, valued = list(words), ""
    while rest and (
        _ASSIGNED.match(rest[0])
        or rest[0] in _WRAPPERS
        or rest[0].startswith(("-", "+"))
        or (re.fullmatch(r"[\d.]+[smhd]?", rest[0]) and len(rest) > 1)
    ):
        valued = _VALUED.get(rest[0], valued)
        del rest[: 2 if rest[0] in valued.split() else 1]
    return rest


def _run_by(
    program: str, arguments: list[str], plain: tuple[str, ...], depth: int
) -> Iterator[ShellCommand]:
    """Yield the program that another one runs: `npx jest`, `uv run pytest`, `python -m pip`."""
    if depth >= _DEEPEST:
        return
    if program in _RUNNERS:
        inner = _after_flags(arguments)
    elif plain and (canonical(program), plain[0]) in _RUN_BY:
        inner = _after_flags(arguments[arguments.index(plain[0]) + 1 :])
    elif canonical(program) == "python" and "-m" in arguments[:3]:
        inner = arguments[arguments.index("-m") + 1 :]
    else:
        return
    for each in _commands(inner, depth + 1):
        yield replace(each, under=canonical(program))


def _after_flags(arguments: list[str]) -> list[str]:
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest.pop(0)
    return rest


MOST_TEXT = 40_000
"""Characters of an added text that are read."""
_MOST_KEYS = 2_000
_TOKEN = later(r"[@A-Za-z_$][\w$@./-]*")
_IMPORT = later(
    r"^\s*(?:import|from|use|require|#include|export .* from|const .*require\(|.*\brequire\().*$",
    re.MULTILINE,
)
_SEPARATED = later(r"[./]")


@dataclass(frozen=True)
class AgentAction:
    tool: str = ""
    command: str = ""
    paths: tuple[str, ...] = ()
    """Relative to the project, if they are in it."""
    added: str = ""
    removed: str = ""

    @cached_property
    def commands(self) -> tuple[ShellCommand, ...]:
        return tuple(commands_in(self.command)) if self.command else ()

    @cached_property
    def written(self) -> tuple[tuple[str, ...], ...]:
        """The files that it may change, each as the segments of its path."""
        found = list(self.paths)
        for each in self.commands:
            found += each.outputs
            found += () if each.is_reading or _only_records(each) else each.paths
        return tuple(filter(None, map(path_segments, found)))

    @cached_property
    def imports(self) -> str:
        """The added lines that import something, and were not there before."""
        lines = _IMPORT.findall(self.added[:MOST_TEXT])
        return "\n".join(line for line in lines if line not in self.removed)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The words by which an index finds sentences that may be about it."""
        found = {self.tool.casefold(), *self._keys_of_commands(), *self._keys_of_paths()}
        for token in _TOKEN.findall(self.added[:MOST_TEXT]):
            found.add(token.casefold())
            found.update(part.casefold() for part in _SEPARATED.split(token))
            if len(found) > _MOST_KEYS:
                break
        return frozenset(found - {""})

    def _keys_of_commands(self) -> Iterator[str]:
        for each in self.commands:
            yield canonical(each.program)
            yield each.program.casefold()
            yield from (word.casefold() for word in each.packages)
            yield from (word.casefold() for word in each.words[:12])

    def _keys_of_paths(self) -> Iterator[str]:
        named = (path for each in self.commands for path in (*each.paths, each.path))
        for path in (*self.written, *filter(None, map(path_segments, named))):
            last = path[-1].casefold()
            yield from (part.casefold() for part in path)
            yield from (f"*{last[at:]}" for at, letter in enumerate(last) if letter in "._-")
            yield "*"


_CHANGING_GIT = frozenset({"rm", "mv", "checkout", "restore", "apply", "switch"})


def _only_records(command: ShellCommand) -> bool:
    """Whether a git command names files without changing them."""
    return command.program == "git" and command.words[:1] not in {(w,) for w in _CHANGING_GIT}


def path_segments(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.replace("\\", "/").split("/") if part not in {"", "."})


# ---------------------------------------------------------------- failures
MAX_OUTPUT = 100_000
"""Characters of an output that are read: half of them at its start, half at its end."""
_MAX_LINES = 3
_LONGEST_LINE = 300
_FEWEST_WORDS = 2
_SIGNALLED = 128
"""From this exit status on, a signal ended the command: an interrupt, or a time limit."""

_ANSI = later(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\r(?!\n)")
_TELLING = later(
    r"error|exception|fail|cannot|can't|could not|not found|no such|denied|unable|undefined|"
    r"unexpected|missing|refused|invalid|fatal|panic|unknown|unresolved|conflict|required|"
    r"\bE[A-Z]{3,}\b|mismatch|expected|does not exist|not installed|unsupported|timed out",
    re.IGNORECASE,
)
_HEADER = later(r"(?:Error: )?Exit [cC]ode:? \d+\s*$|\s*(?:at|File) \S+.*:\d+|\s*\^+\s*$|\s*\d+ \|")
"""Lines without the cause of an error: the status, a stack frame, a mark below a line."""
_LABEL = later(r"\s*(?:Output|Stdout|Stderr): ")
"""Some agents put it before an output."""
_MASKS = (
    (later(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)]+", re.IGNORECASE), "URL"),
    (later(r"(?:\b[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+[\w.@~+-]*(?::\d+)*"), "PATH"),
    (later(r"\b\d{4}-\d\d-\d\d[T ]?[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?\b"), "TIME"),
    (later(r"\b(?:0x)?(?=[0-9a-f]*\d)[0-9a-f]{6,}\b(?:-[0-9a-f]{4,})*", re.IGNORECASE), "HEX"),
    (later(r"(?<=\W)(?:tmp|temp)[\w.-]*\b", re.IGNORECASE), "TEMP"),
    (later(r"\d+(?:[.:,]\d+)*"), "N"),
)


def signature(output: str) -> str:
    """Return a digest that identifies a failure on any machine at any time; empty if none can.

    Paths, numbers, times and hashes are ignored. The digest reveals no word of the output.
    """
    half = MAX_OUTPUT // 2
    text = output if len(output) <= MAX_OUTPUT else f"{output[:half]}\n{output[-half:]}"
    lines = [_masked(line) for line in _error_lines(_ANSI.sub("", text))]
    words = [word for line in lines for word in re.findall(r"[^\W\d_]{3,}", line)]
    if len(set(words) - {"url", "path", "time", "hex", "temp"}) < _FEWEST_WORDS:
        return ""
    return sha256("\n".join(dict.fromkeys(lines)).encode(errors="replace")).hexdigest()[:8]


def _error_lines(text: str) -> list[str]:
    """Return the lines that name an error; if none does, the last lines."""
    lines = [line for line in text.splitlines() if line.strip() and not _HEADER.match(line)]
    found = [line for line in lines if _TELLING.search(line[:_LONGEST_LINE])]
    return found[:_MAX_LINES] if found else lines[-2:]


def _masked(line: str) -> str:
    text = _LABEL.sub("", line[:_LONGEST_LINE])
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return " ".join(text.casefold().split())


def is_failure(status: int) -> bool:
    """Whether an exit status is that of a command that failed, and was not ended by a signal."""
    return 0 < status < _SIGNALLED


def fix_name(signature: str) -> str:
    """Return the name under which an index has what fixed a failure."""
    return f"!{signature}"


# ---------------------------------------------------------------- in sessions
_OUTCOME = later(r"\[(?:failed sig=(?P<sig>[0-9a-f]{8})|worked)\] \$ (?P<command>[^\n]+)")
FAILED_MARK = "[failed sig="
_FOLLOWED = 12
"""Look for the fix of a failure in this many commands after it."""
CUT = "…"


def failed_mark(output: str, command: str) -> str:
    """Return the mark of a failed command in a session, which precedes its output; or empty."""
    name = signature(output)
    return f"{FAILED_MARK}{name}] $ {command}\n" if name and command else ""


def worked_mark(command: str) -> str:
    return f"[worked] $ {command}"


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The outcome of a command in a session; a message of the user has no command."""

    message: int
    command: str = ""
    signature: str = ""
    """Empty if it worked."""


@dataclass(frozen=True, slots=True)
class FailureFix:
    """A failure, and a later command that worked."""

    signature: str
    failed: str
    """The program that failed."""
    fix: str
    message: int


def outcome_in(content: str) -> tuple[str, str] | None:
    """Return the signature and command of a message that begins with a mark; else None."""
    found = _OUTCOME.match(content)
    return (found["sig"] or "", found["command"]) if found else None


def fix_text(command: str) -> str:
    """Return the text that shows an agent the command that worked after the same failure."""
    return f"this failed the same way; what worked then: `{command}`."


def fixes_in(contents: Iterable[str]) -> Iterator[str]:
    """Yield the texts that could be shown of the commands that worked in a session."""
    found = filter(None, map(outcome_in, contents))
    return (fix_text(command) for failed, command in found if not failed)


def pairs_in(outcomes: Sequence[CommandOutcome]) -> Iterator[FailureFix]:
    """Yield the failures of a session whose fix is certain."""
    for at, failed in enumerate(outcomes):
        if not failed.signature:
            continue
        worked: list[CommandOutcome] = []
        for each in outcomes[at + 1 :]:
            if not each.command or each.signature == failed.signature or len(worked) >= _FOLLOWED:
                break
            if not each.signature:
                worked.append(each)
        fix = _fix_of(failed.command, worked)
        if fix is not None and may_suggest(fix.command):
            program = program_of(failed.command)
            yield FailureFix(failed.signature, program, fix.command, fix.message)


def _fix_of(command: str, worked: Sequence[CommandOutcome]) -> CommandOutcome | None:
    """Return the outcome that fixed a command: the last change before it worked, or a variant."""
    again = next((at for at, each in enumerate(worked) if each.command == command), None)
    if again is not None:
        changing = [each for each in worked[:again] if may_fix(each.command)]
        return changing[-1] if changing else None
    kinds = _kinds(command)
    return next((each for each in worked if kinds & _kinds(each.command)), None)


def _kinds(command: str) -> set[tuple[str, str]]:
    """Return the programs of a command line that change something, with their subcommands."""
    return {
        (canonical(each.program), each.words[0] if each.words else "")
        for each in commands_in(command)
        if each.program and not each.is_reading
    }


def may_fix(command: str) -> bool:
    """Whether a command may have fixed something: it does more than read."""
    return any(each.program and not each.is_reading for each in commands_in(command))


def program_of(command: str) -> str:
    """Return the main program of a command line: the first that does more than read."""
    found = [each for each in commands_in(command) if each.program]
    changing = [each for each in found if not each.is_reading]
    return canonical((changing or found)[0].program) if found else ""


_DESTROYING = later(
    r"\b(?:drop|truncate)\s+(?:table|database|schema)\b|\bdelete\s+from\b|\bmkfs|\bdd\s+.*\bof=|"
    r"\|\s*(?:sudo\s+)?(?:ba|z)?sh\b|\bprune\b|--hard\b|\bfilter-branch\b|--no-verify\b|\bsudo\b|"
    r"drop_table|\[secret: |\w*(?:token|secret|passw|api_?key|access_?key)\w*\s*=|\s-p\S",
    re.IGNORECASE,
)
_DESTROYERS = frozenset(
    {"rm", "rmdir", "shred", "kill", "pkill", "killall", "dd", "mkfs", "dropdb", "truncate", "mv"}
)
_DESTROYING_WORDS = frozenset(
    {"destroy", "purge", "uninstall", "wipe", "flushall", "dropdb", "delete", "drop", "rm", "reset"}
)
_DESTROYING_GIT = frozenset({"reset", "clean", "restore", "checkout"})


def may_suggest(command: str) -> bool:
    """Whether a command that worked may be shown: it is not truncated, and destroys nothing."""
    if CUT in command or _DESTROYING.search(command):
        return False
    return not any(map(_destroys, commands_in(command)))


def _destroys(command: ShellCommand) -> bool:
    words, flags = command.words, command.flags
    if command.program in _DESTROYERS or _DESTROYING_WORDS.intersection(words[:4]):
        return True
    if command.program != "git" or not words:
        return command.program in {"chmod", "chown"} and "-R" in flags
    is_forced = words[0] == "push" and any(flag.startswith("--force") for flag in flags)
    is_deleted = words[0] in {"branch", "tag", "stash"} and bool(flags & {"-D", "-d", "--delete"})
    return is_forced or is_deleted or words[0] in _DESTROYING_GIT or "drop" in words[:2]
