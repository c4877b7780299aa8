"""`perdure status`."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import click

from perdure import StatusSection
from perdure.app.condition import status
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json, caller_in, caller_options
from perdure.surfaces.telling import counted, shown, sized, styled

_WIDTH = 9
_NEWLY = "the next recall brings it up to date"


@click.command("status")
@click.option("--exact", is_flag=True, help="Count every file on the disk, however many they are.")
@as_json()
@caller_options
def status_command(*, exact: bool, as_json: bool, **caller: Any) -> None:  # noqa: ANN401 - see Caller
    """Say what is stored where, and how it stands with it.

    It only looks: no index is made or mended. If a part is broken it says which and how to mend it,
    tells of the others, and ends with 1.
    """
    parts = status(os.environ, caller_in(caller), exact=exact)
    broken = [part for part in parts if part.trouble]
    if as_json:
        out.json(
            {
                "ok": not broken,
                **{part.name: {**part.facts, "trouble": part.trouble or None} for part in parts},
            }
        )
    else:
        for part in parts:
            _tell(part)
    click.get_current_context().exit(1 if broken else 0)


def _tell(part: StatusSection) -> None:
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
    store = f"store {facts['store'][:8]}" if facts["store"] else "no id yet; a save gives it one"
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
    unchecked = f"{_many(facts['unchecked'], unit)} not looked at" if facts["unchecked"] else ""
    if not facts["unrecorded"]:
        return [unchecked or "none that is not indexed"]
    told = f"{_many(facts['unrecorded'], unit)} not indexed yet; the next recall does it"
    return [told, *([unchecked] if unchecked else [])]


def _history(facts: Facts) -> list[str]:
    last = f", the last at {facts['last_change']}" if facts["last_change"] else ""
    return [f"{_many(facts['versions'], 'version')} of texts{last}, in {shown(facts['where'])}"]


def _index(facts: Facts) -> list[str]:
    kind = "by words and meaning" if facts["semantic"] else "by words"
    if not facts["built"]:
        return [f"not made yet; the first recall makes it ({shown(unquote(facts['index']))})"]
    lag = "up to date"
    if facts["behind"]:
        places = facts["places_behind"]
        lag = f"{_many(facts['behind'], 'entry')} behind"
        lag += f", about {_many(places, 'place')}" if places is not None else ""
        lag += f"; {_NEWLY}"
    if facts["places_behind"] == 0:
        lag = "up to date"
    return [f"{_many(facts['places'], 'place')} {kind}, {lag}"]


def _outbox(facts: Facts) -> list[str]:
    return [f"{_many(facts['waiting'], 'event')} waiting, {facts['dead']:,} of them dead"]


def _model(facts: Facts) -> list[str]:
    none = "none" if facts["provider"] == "none" else "none; `perdure models install` gets one"
    return [shown(facts["model"] or none)]


def _llm(facts: Facts) -> list[str]:
    if facts["provider"] == "none":
        return ["none; nobody is ever asked"]
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
