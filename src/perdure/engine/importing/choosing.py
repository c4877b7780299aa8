"""Which format some files have."""

from collections.abc import Mapping

from perdure.engine.importing.contract import Format
from perdure.engine.importing.formats.chatgpt import ChatGpt
from perdure.engine.importing.formats.claude import Claude
from perdure.engine.importing.formats.claude_code import ClaudeCode
from perdure.engine.importing.formats.codex import Codex
from perdure.engine.importing.formats.markdown import Markdown
from perdure.engine.importing.formats.mcp_memory import McpMemory
from perdure.engine.importing.formats.mem0 import Mem0
from perdure.engine.importing.sources import Source
from perdure.errors import UnreadableSourceError
from perdure.plugins import Group, create, offered

_EVERY: tuple[Format, ...] = (
    ChatGpt(),
    Claude(),
    ClaudeCode(),
    Codex(),
    Mem0(),
    McpMemory(),
    Markdown(),
)
FORMATS: Mapping[str, Format] = {each.name: each for each in _EVERY}


def import_formats() -> tuple[str, ...]:
    """Return the names of all formats: ours, then those that installed packages offer."""
    return (*FORMATS, *sorted(offered(Group.IMPORTER) - FORMATS.keys()))


def format_named(name: str) -> Format:
    """Return a format of ours, or one that an installed package offers; else `PluginError`."""
    if name in FORMATS:
        return FORMATS[name]
    return create(Group.IMPORTER, name, Format)  # type: ignore[type-abstract] # only for isinstance


def detected(source: Source) -> Format:
    """Return the format that files look like; if that is none, or several, they are refused.

    Formats of installed packages are tried when none of ours fits.
    """
    found = [each for each in _EVERY if each.detect(source)]
    if not found:
        others = map(format_named, import_formats()[len(FORMATS) :])
        found = [each for each in others if each.detect(source)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found or _EVERY)
    what = "looks like several formats" if found else "looks like nothing that can be imported"
    raise UnreadableSourceError(
        f"{str(source.path)!a} {what}. Fix: say with --format what it is: {names}."
    )
