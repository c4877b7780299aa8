"""Imports into a real memory, for tests."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from perdure.app import Context
from perdure.model import RequestContext, Role
from perdure.storage import Locator
from perdure.testing.importer import laid_out
from perdure.transfer.imports import FORMATS, Importer, ImportOptions, ImportReport
from perdure.transfer.items import ItemState
from perdure.transfer.source import ImportSource
from tests.transfer import samples
from tests.transfer.samples import as_json, as_lines

OWNER = RequestContext("local", "ana", role=Role.ROOT)

EVERYTHING: Mapping[str, samples.Files] = {
    "chatgpt": {
        "conversations.json": as_json(
            [
                samples.chatgpt(
                    "boat",
                    *(samples.ASKED, samples.ANSWERED, samples.NOTED, samples.LISTED),
                    current="l",
                ),
                samples.chatgpt("sail", samples.INSTRUCTED, samples.WIND, current="s"),
            ]
        )
    },
    "claude": {
        "conversations.json": as_json([samples.BREAD, samples.CAKE]),
        "projects.json": as_json([samples.BAKERY]),
        "memories.json": as_json([samples.CLAUDE_MEMORY]),
    },
    "claude-code": {
        "3f.jsonl": as_lines(samples.CODE),
        "4a.jsonl": as_lines(samples.OTHER_CODE),
    },
    "codex": {"rollout-a.jsonl": as_lines(samples.ROLLOUT)},
    "mem0": {
        "mem0.json": as_json(
            {"results": [samples.TEA, samples.MOVED], "relations": [samples.DRINKS]}
        )
    },
    "specstory": {"2026-03-02_10-00Z-sort.md": samples.STORY.encode()},
    "basic-memory": samples.BASIC,
    "letta": {"pilot.af": as_json(samples.PILOT), "archive.json": as_json([samples.PASSAGE])},
    "rules": samples.RULES,
    "mcp-memory": {"memory.json": as_lines([samples.OWNS, samples.ANA, samples.REX])},
    "markdown": samples.NOTES,
}
"""One made-up source for each format."""

Make = Callable[..., Importer]


def take(  # noqa: PLR0913 - each test names what it is about
    context: Context,
    folder: Path,
    name: str,
    *,
    options: ImportOptions | None = None,
    make: Make = Importer,
    ctx: RequestContext = OWNER,
) -> ImportReport:
    """Import a folder of this format."""
    memory = context.memory.for_caller(ctx)
    importing = make(memory, context.nodes, context.relations, options)
    with closing(ImportSource(folder)) as source:
        return importing.run(FORMATS[name], source)


def run_import(
    context: Context, place: Path, name: str, files: samples.Files, **more: object
) -> ImportReport:
    """Import these files, laid out anew."""
    for old in sorted(place.rglob("*"), reverse=True):
        old.rmdir() if old.is_dir() else old.unlink()
    return take(context, laid_out(place, files), name, **more)  # type: ignore[arg-type]


def counted(report: ImportReport) -> dict[str, dict[str, int]]:
    """Return how many there were of each kind in each state, without those that are none."""
    return {
        kind: {state.value: counts[state] for state in ItemState if counts[state]}
        for kind, counts in report.counts.items()
    }


def position(context: Context) -> int:
    return context.recorded.history.position()


def contents(context: Context) -> dict[str, str]:
    """Return all texts of a memory, by their keys, without the times in them."""
    history = context.recorded.history
    names = history.store.catalogue.names("", history.position())
    return {
        name: context.reader.backend.read(Locator(name)) for name in names if name.endswith(".md")
    }
