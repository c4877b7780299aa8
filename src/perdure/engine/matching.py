"""Which sentence is about which tool call."""

import re
from fnmatch import fnmatchcase

from perdure.dataclass import dataclass
from perdure.engine.actions import Action, parts_of
from perdure.engine.commands import Command, canonical
from perdure.engine.directives import COMMAND, PATH, Directive, Name, package_of
from perdure.patterns import later

_FIRST_WORDS = 4
"""Words of a command among which its subcommands are: flags may have values before them."""
_SHAPED = later(r"[a-z][A-Z]|\w[.:(_]\w?|\(\)|^@")
"""What a word looks like that is code and nothing else: `console.log`, `useEffect`."""


@dataclass(frozen=True, slots=True)
class Match:
    name: str
    """What it names that is about to be used."""
    breaks: bool
    """Whether it says not to use that; else it is about it."""


def matches(directive: Directive, action: Action) -> Match | None:
    """Return why a sentence is about a tool call; None if it is not, or the call follows it."""
    for name in directive.wrong:
        if _uses(name, action, directive.right):
            return Match(_shown(name), breaks=True)
    for name in directive.about:
        is_followed = name.kind == COMMAND and name.words[0] != "git"  # `make test` is as it says
        if not is_followed and _uses(name, action):
            return Match(_shown(name), breaks=False)
    return None


def follows(directive: Directive, action: Action) -> bool:
    return any(_uses(name, action) for name in directive.right)


def _shown(name: Name) -> str:
    return "/".join(name.words) if name.kind == PATH else " ".join(name.words)


# ---------------------------------------------------------------- one name
def _uses(name: Name, action: Action, right: tuple[Name, ...] = ()) -> bool:
    if name.kind == PATH:
        return _changes(name, action)
    if name.kind == COMMAND:
        return any(
            _runs(name, each) and name.flags <= each.flags and not _is_covered(name, each, right)
            for each in action.commands
        )
    return _has_word(name, action)


def _is_covered(name: Name, command: Command, right: tuple[Name, ...]) -> bool:
    """Whether what is run is what a sentence allows: `python3`, or `uv run pytest`."""
    return any(
        _runs(each, command, exactly=True) and each.flags <= command.flags
        if canonical(each.words[0]) == canonical(name.words[0])
        else bool(command.under) and canonical(each.words[0]) == command.under
        for each in right
        if each.kind == COMMAND and each != name
    )


def _runs(name: Name, command: Command, *, exactly: bool = False) -> bool:
    program, *subs = name.words
    if exactly or canonical(program) != program.casefold():  # who says npx does not mean npm
        is_same = program.casefold() == command.program.casefold()
    else:
        is_same = canonical(program) == canonical(command.program)
    if not is_same:
        return False
    rest = iter(command.words[: len(subs) if program == "git" else _FIRST_WORDS])
    return all(any(word == sub for word in rest) for sub in subs)


def _changes(name: Name, action: Action) -> bool:
    if name.verb == "commit":
        git = [each for each in action.commands if each.program == "git" and not each.is_reading]
        return any(_is_in(name, parts_of(path)) for each in git for path in each.words[1:])
    if name.verb == "read":
        words = (word for each in action.commands for word in (each.path, *each.words))
        return any(_is_in(name, parts) for word in words if (parts := parts_of(word)))
    return any(_is_in(name, parts) for parts in action.written)


def _is_in(name: Name, parts: tuple[str, ...]) -> bool:
    """Whether a path is what a name says, or in it: by whole parts, whatever its case."""
    wanted = tuple(part.casefold() for part in name.words)
    given = tuple(part.casefold() for part in parts)
    if len(wanted) == 1 and "*" in wanted[0]:
        return any(fnmatchcase(part, wanted[0]) for part in given[-1:])
    wanted = tuple(part for part in wanted if part != "**")
    while wanted and wanted[-1] == "*":
        wanted = wanted[:-1]
    size = len(wanted)
    return any(
        all(fnmatchcase(part, want) for part, want in zip(given[at:], wanted, strict=False))
        for at in range(len(given) - size + 1)
    ) and bool(size)


def _has_word(name: Name, action: Action) -> bool:
    """Whether a package is installed or imported, a program run, or a word of code added."""
    word, package = name.words[0].casefold(), package_of(name)
    if name.words[0] == action.tool:
        return True
    for each in action.commands:
        installed = {one.casefold() for one in each.packages}
        if package in installed or each.program.casefold() == word:
            return True
    quoted = re.escape(package)
    if re.search(rf"(?<![\w.@-]){quoted}(?![\w-])", action.imports, re.IGNORECASE):
        return True
    code = name.words[0].removesuffix(")")
    is_code = name.is_code and _SHAPED.search(name.words[0]) and len(package) > 3  # noqa: PLR2004
    return bool(is_code) and action.added.count(code) > action.removed.count(code)
