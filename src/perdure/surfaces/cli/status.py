"""`perdure status`."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import click

from perdure import StatusSection
from perdure.app.health import status
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json, caller_in, caller_options
from perdure.surfaces.out import counted, shown, sized, styled

_WIDTH = 9
_FIX = "the next recall updates it"


@click.command("status")
@click.option("--exact", is_flag=True, help="Count every file on disk, however many there are.")
@as_json()
@caller_options
def status_command(*, exact: bool, as_json: bool, **caller: Any) -> None:  # noqa: ANN401 - see Caller
    """Show what is stored where, and whether it is healthy.

    Changes nothing, and builds or repairs no index. If a part is broken, shows its fix and the
    status of the other parts, and exits with 1.
    """
    sections = status(os.environ, caller_in(caller), exact=exact)
    broken = [each for each in sections if each.trouble]
    if as_json:
        out.json(
            {
                "ok": not broken,
                **{part.name: {**part.facts, "trouble": part.trouble or None} for part in sections},
            }
        )
    else:
        for part in sections:
            _print(part)
    click.get_current_context().exit(1 if broken else 0)


def _print(part: StatusSection) -> None:
    if part.trouble:
        bad = styled("FAIL", fg="red", bold=True)
        out.line(f"{part.name:{_WIDTH}} {bad} {shown(part.trouble)}")
        return
    first, *rest = _SENTENCES[part.name](part.facts)
    out.line(f"{part.name:{_WIDTH}} {first}")
    for line in rest:
        out.line(f"{'':{_WIDTH}} {line}")
    if part.name == "outbox" and part.facts["dead"]:
        out.mention("`perdure outbox dead` lists those that failed too often")


Facts = Mapping[str, Any]


def _config(facts: Facts) -> list[str]:
    return [shown(facts["file"] or f"none; `perdure init` writes one into {facts['home']}")]


def _storage(facts: Facts) -> list[str]:
    where = f" at {shown(facts['where'])}" if facts["where"] else ""
    store = f"store {facts['store'][:8]}" if facts["store"] else "no id yet; a save creates it"
    return [f"{facts['backend']}{where}, chosen by {facts['chosen_by']}", store]


def _nodes(facts: Facts) -> list[str]:
    more = "more than " if facts["more_resources"] else ""
    first = (
        f"{_many(facts['memories'], 'memory')}, {_many(facts['sessions'], 'session')}, "
        f"{more}{_many(facts['resources'], 'resource')}"
    )
    return [first, *(f"{shown(name)} {count:,}" for name, count in facts["categories"].items())]


def _edits(facts: Facts) -> list[str]:
    unit = facts["unit"]
    unchecked = f"{_many(facts['unchecked'], unit)} not checked" if facts["unchecked"] else ""
    if not facts["unrecorded"]:
        return [unchecked or "all indexed"]
    pending = f"{_many(facts['unrecorded'], unit)} not indexed yet; the next recall does it"
    return [pending, *([unchecked] if unchecked else [])]


def _history(facts: Facts) -> list[str]:
    last = f", the last at {facts['last_change']}" if facts["last_change"] else ""
    return [f"{_many(facts['versions'], 'version')} of texts{last}, in {shown(facts['where'])}"]


def _index(facts: Facts) -> list[str]:
    kind = "by words and meaning" if facts["semantic"] else "by words"
    if not facts["built"]:
        return [f"not built yet; the first recall builds it ({shown(unquote(facts['index']))})"]
    places, lag = facts["places_behind"], "up to date"
    if facts["behind"] and places != 0:
        about = "" if places is None else f", about {_many(places, 'place')}"
        lag = f"{_many(facts['behind'], 'entry')} behind{about}; {_FIX}"
    return [f"{_many(facts['places'], 'place')} {kind}, {lag}"]


def _outbox(facts: Facts) -> list[str]:
    return [f"{_many(facts['waiting'], 'event')} waiting, {facts['dead']:,} of them dead"]


def _model(facts: Facts) -> list[str]:
    none = "none" if facts["provider"] == "none" else "none; see `perdure models install`"
    return [shown(facts["model"] or none)]


def _llm(facts: Facts) -> list[str]:
    if facts["provider"] == "none":
        return ["none"]
    spent = f"{facts['tokens_today']:,} of {facts['tokens_per_day']:,} tokens today (UTC)"
    named = [facts["provider"], *([shown(facts["model"])] if facts["model"] else [])]
    lines = [f"{', '.join(named)}: {spent}"]
    if "runs_today" in facts:
        lines.append(f"background: {facts['runs_today']:,} of {facts['runs_per_day']:,} runs today")
    return lines


def _disk(facts: Facts) -> list[str]:
    rows = [(name, tier) for name, tier in facts.items() if tier["bytes"]]
    if not rows:
        return ["nothing yet"]
    return [f"{name:{_WIDTH}} {_size(tier)}" for name, tier in rows]


def _size(tier: Facts) -> str:
    return sized(tier["bytes"]) if tier["whole"] else f"more than {sized(tier['bytes'])}; --exact"


def _many(number: int, noun: str) -> str:
    return f"{number:,}{counted(number, noun).removeprefix(str(number))}"


_SENTENCES = {
    "config": _config,
    "storage": _storage,
    "nodes": _nodes,
    "edits": _edits,
    "history": _history,
    "index": _index,
    "outbox": _outbox,
    "model": _model,
    "llm": _llm,
    "disk": _disk,
}
