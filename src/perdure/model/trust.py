"""Which sessions of agents may use memory and contribute to it, and the origins of their words."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import NamedTuple

from perdure.dataclass import dataclass

INTERNAL = "PERDURE_INTERNAL"
"""Set for processes that Perdure starts itself, whose hooks do nothing."""
WEB, MCP, PASTED = "web", "mcp", "pasted"
ORIGINS = {
    WEB: "read web pages",
    MCP: "read results of other MCP servers",
    PASTED: "was given pasted text",
    "tool": "read files or output of tools",
}
"""What a session did that may bring in the words of others; `tool` is for single sentences."""

# Compiled when used: every hook imports this module.
_WEB_TOOLS = (
    r"(?i)(?:web_?(?:fetch|search|run)|google_web_search|fetch(?:_url)?|browser?(?:[_-]\w+)?)"
    r"(?:_call)?"
)
_DOWNLOADS = r"(?i)\b(?:curl|wget|lynx|w3m|http|xh)\b[^\n;&|]*\bhttps?://"
_LOOPBACK = r"(?i)https?://(?:localhost|127\.0\.0\.1|\[::1\])\b"
_OWN = r"(?i)mcp__(?:plugin_)?perdure(?:_perdure)?__"


def is_own_tool(tool: str) -> bool:
    """Whether a tool is one of Perdure's, whose results are already remembered."""
    return bool(re.match(_OWN, tool))


def origin_of(tool: str, asked: str = "") -> str:
    """Return the origin of a tool's result: web or mcp; empty for this machine."""
    if tool.startswith("mcp__"):
        return "" if is_own_tool(tool) else MCP
    if re.fullmatch(_WEB_TOOLS, tool):
        return WEB
    return WEB if re.search(_DOWNLOADS, re.sub(_LOOPBACK, "", asked)) else ""


def describe_origins(origins: Sequence[str]) -> str:
    """Return a description of origins: `read web pages, was given pasted text`."""
    return ", ".join(ORIGINS[each] for each in ORIGINS if each in origins)


class PrivacySwitch(NamedTuple):
    """Private mode was switched on or off at a time, outside of the messages."""

    time: datetime
    is_on: bool


class OptOut(Enum):
    OFF = "PERDURE_OFF is set"
    EXCLUDED = "its folder is excluded in the config"
    NO_USE = "use is switched off"
    NO_CONTRIBUTION = "contribute is switched off"
    HEADLESS = "it is a headless or CI run"
    PRIVATE = "the session is private"


FIXES = {
    OptOut.OFF: "unset PERDURE_OFF",
    OptOut.EXCLUDED: "change exclude in [agents] of the config",
    OptOut.NO_USE: "set use in [agents] of the config, or PERDURE_USE=1",
    OptOut.NO_CONTRIBUTION: "set contribute in [agents] of the config, or PERDURE_CONTRIBUTE=1",
    OptOut.HEADLESS: "set headless = true in [agents] of the config, or PERDURE_CONTRIBUTE=1",
    OptOut.PRIVATE: "the user ends that with `/private off` or `perdure private off`",
}


@dataclass(frozen=True, slots=True)
class FolderRule:
    """The settings of sessions in the folders of one glob; None is the general setting."""

    glob: str
    use: bool | None = None
    contribute: bool | None = None
    headless: bool | None = None


@dataclass(frozen=True, slots=True)
class AgentSettings:
    use: bool = True
    contribute: bool = True
    headless: bool = False
    """Whether runs without a user contribute, too."""
    exclude: tuple[str, ...] = ()
    """Globs of folders whose sessions neither use memory nor contribute to it."""
    folders: tuple[FolderRule, ...] = ()
    """The first one that matches a folder applies."""

    def excludes(self, folder: str) -> bool:
        return bool(folder) and any(_matches(glob, folder) for glob in self.exclude)

    def uses(self, folder: str) -> bool:
        return self._of(folder, "use", default=self.use)

    def contributes(self, folder: str) -> bool:
        return self._of(folder, "contribute", default=self.contribute)

    def contributes_headless(self, folder: str) -> bool:
        return self._of(folder, "headless", default=self.headless)

    def _of(self, folder: str, name: str, *, default: bool) -> bool:
        found = next((each for each in self.folders if _matches(each.glob, folder)), None)
        value = getattr(found, name) if found else None
        return default if value is None else value

    def refusal(self, folder: str, *, is_headless: bool, is_named: bool = False) -> OptOut | None:
        """Return why a session may not contribute; None if it may.

        One that the user named, or allowed for the run, is refused only if its folder is excluded.
        """
        if self.excludes(folder):
            return OptOut.EXCLUDED
        if is_named:
            return None
        if not self.contributes(folder):
            return OptOut.NO_CONTRIBUTION
        if is_headless and not self.contributes_headless(folder):
            return OptOut.HEADLESS
        return None


def expand_home(glob: str, environ: Mapping[str, str]) -> str:
    """Return a glob with a leading `~` replaced by the user's home."""
    home = environ.get("HOME", "")
    return f"{home}{glob[1:]}" if home and (glob == "~" or glob.startswith("~/")) else glob


def _matches(glob: str, folder: str) -> bool:
    """Whether a glob matches a folder, or one above it."""
    return bool(_pattern(glob).fullmatch(folder.rstrip("/") or "/"))


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob: `*` matches within a name, `**` across names."""
    patterns = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = re.split(r"(\*\*/|/\*\*\Z|\*\*|\*|\?)", glob.rstrip("/"))
    body = "".join(patterns.get(each, re.escape(each)) for each in tokens)
    return re.compile(f"{body}(?:/.*)?", re.DOTALL | re.IGNORECASE)


def resolved_folder(folder: str) -> str:
    """Return a folder with its links resolved; an invalid path is returned unchanged."""
    return os.path.realpath(folder) if folder and "\0" not in folder else folder
