"""Failures of shell commands: a signature that recognises them, and the command that fixed them.

The exit status decides whether a command failed, never its output.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from perdure.dataclass import dataclass
from perdure.engine.tool_calls import ShellCommand, canonical, commands_in
from perdure.patterns import later

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
