"""A glance at the index: whether memory may have something to say to a tool call.

It opens nothing that could write, and loads little: at nearly every call the answer is no.
"""

import os
from collections.abc import Collection, Container, Iterator, Mapping
from typing import TYPE_CHECKING

from perdure.app.reading import Reading, open_to_read
from perdure.engine.actions import Action
from perdure.harness.projects import identity_at
from perdure.index.account.schema import read_naming

if TYPE_CHECKING:
    from perdure.model.values import JSON

_MOST = 200


def may_remind(action: Action, cwd: str, shown: Container[str]) -> bool:
    """Whether a rule may be about a tool call; if nobody can tell, it may."""
    reading = open_to_read(os.environ)
    if reading.waiting(1) != []:  # the index is behind
        return True
    from perdure.engine.occasions import of_action

    names, fits = of_action(action)
    found = _payloads(reading, cwd, action.keys | names)
    if not found:
        return found is None
    from perdure.engine.directives import directive_in
    from perdure.engine.matching import matches

    return any(
        (is_enforced or text not in shown)
        and (matches(directive_in(text, kind), action) or fits(text))
        for payload in found
        for text, kind, is_enforced in _stated(payload)
    )


def may_fix(signature: str, cwd: str) -> bool:
    """Whether a failure of this signature may have been fixed before; as `may_remind`."""
    reading = open_to_read(os.environ)
    return reading.waiting(1) != [] or _payloads(reading, cwd, [signature]) != []


def _payloads(reading: Reading, cwd: str, names: Collection[str]) -> "list[dict[str, JSON]] | None":
    """Return what is noted for the project of a folder that has one of these names."""
    identity = identity_at(cwd) if cwd else ""
    aliases = reading.aliases()
    project = aliases.project(identity) if identity else ""
    projects = (project, *aliases.names(project), "") if project else ("",)
    databases = reading.databases()
    if len(databases) != 1:  # a new model's index is being made, or there is none
        return None
    return read_naming(databases[0], projects, names, _MOST)


def _stated(payload: "Mapping[str, JSON]") -> Iterator[tuple[str, str, bool]]:
    """Yield the statements and sentences of a note: text, kind, and whether it is enforced."""
    for name in ("stated", "directed", "occasions"):
        rows = payload.get(name)
        for row in rows if isinstance(rows, list) else ():
            match row:
                case {"bare": str() as text, "kind": str() as kind}:
                    yield text, kind, row.get("enforced") is True
                case [str() as text, *_]:
                    yield text, "", False
