"""What a node remembers of its merges, so that each can be undone."""

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.model import ContextNode
from perdure.model.values import JSON

MERGES = "merges"
_MOST = 50
"""So many merges can be undone one by one; beyond that there is the history."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge: the version that it made, and what went into it.

    Its parents are the version before, and the statement. Both are kept: the one in history, the
    other with what it rests on.
    """

    version: int
    action: str
    statement: str
    """The CID of what was said."""
    into: str = ""
    """The CID of the statement that says the same, if there was one."""
    session: str = ""
    former: tuple[str, ...] = ()
    """Where that is which it superseded."""

    def as_json(self) -> dict[str, JSON]:
        told: dict[str, JSON] = {
            "version": self.version,
            "action": self.action,
            "statement": self.statement,
            "into": self.into,
            "session": self.session,
            "former": self.former,
        }
        return {name: value for name, value in told.items() if value not in ("", ())}


def merges_of(node: ContextNode) -> list[Merge]:
    """Return the merges of a node, the oldest first."""
    told = node.metadata.get(MERGES)
    listed = told if isinstance(told, Sequence) and not isinstance(told, str) else ()
    return [merge for merge in map(_merge, listed) if merge is not None]


def with_merge(node: ContextNode, merge: Merge) -> dict[str, JSON]:
    return as_metadata([*merges_of(node), merge])


def as_metadata(merges: Sequence[Merge]) -> dict[str, JSON]:
    return {MERGES: [each.as_json() for each in merges[-_MOST:]] or None}


def _merge(told: JSON) -> Merge | None:
    match told:
        case {"version": int(version), "action": str(action), "statement": str(cid), **rest}:
            into, session, former = (rest.get(name) for name in ("into", "session", "former"))
            uris = former if isinstance(former, Sequence) and not isinstance(former, str) else ()
            return Merge(
                version,
                action,
                cid,
                into if isinstance(into, str) else "",
                session if isinstance(session, str) else "",
                tuple(each for each in uris if isinstance(each, str)),
            )
    return None
