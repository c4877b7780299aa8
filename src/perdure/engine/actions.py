"""Tool calls that are about to be made: what they run, which files they change, what they add.

This is asked at every tool call, nearly always in vain, so it loads little.
"""

import re
from collections.abc import Iterator
from functools import cached_property

from perdure.dataclass import dataclass
from perdure.engine.commands import Command, canonical, commands_in
from perdure.patterns import later

MOST_TEXT = 40_000
"""Characters of what an edit adds that are looked at."""
_MOST_KEYS = 2_000
_TOKEN = later(r"[@A-Za-z_$][\w$@./-]*")
_IMPORT = later(
    r"^\s*(?:import|from|use|require|#include|export .* from|const .*require\(|.*\brequire\().*$",
    re.MULTILINE,
)
_SEPARATED = later(r"[./]")


@dataclass(frozen=True)
class Action:
    tool: str = ""
    command: str = ""
    paths: tuple[str, ...] = ()
    """Relative to the project, where they are in it."""
    added: str = ""
    removed: str = ""

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        return tuple(commands_in(self.command)) if self.command else ()

    @cached_property
    def written(self) -> tuple[tuple[str, ...], ...]:
        """The files that it may change, each as the parts of its path."""
        found = list(self.paths)
        for each in self.commands:
            found += each.outputs
            found += () if each.is_reading or _only_records(each) else each.paths
        return tuple(filter(None, map(parts_of, found)))

    @cached_property
    def imports(self) -> str:
        """The lines of what it adds that import something, and were not there before."""
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
        read = (parts for each in self.commands for path in each.paths if (parts := parts_of(path)))
        run = (parts for each in self.commands if each.path and (parts := parts_of(each.path)))
        for parts in (*self.written, *read, *run):
            last = parts[-1].casefold()
            yield from (part.casefold() for part in parts)
            yield from (f"*{last[at:]}" for at, letter in enumerate(last) if letter in "._-")
            yield "*"


_CHANGING_GIT = frozenset({"rm", "mv", "checkout", "restore", "apply", "switch"})


def _only_records(command: Command) -> bool:
    """Whether git is told of files, and changes none of them."""
    return command.program == "git" and command.words[:1] not in {(w,) for w in _CHANGING_GIT}


def parts_of(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.replace("\\", "/").split("/") if part not in {"", "."})
