"""A candidate found in a session, and the plan of what to write for it."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError
from perdure.model.node import ContextNode
from perdure.model.request import check_owner_space
from perdure.model.uri import PROFILE, Uri, check_slug
from perdure.model.values import (
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    bounded,
    fraction,
    frozen,
    shown,
    utc_time,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateMemory:
    """What may be worth remembering, with `quote` and `speaker` as its evidence."""

    category: str
    content: str
    slug: str = ""
    """Empty for the profile only."""
    abstract: str = ""
    overview: str = ""
    confidence: float = 1.0
    owner_space: str
    when: datetime | None = None
    """When it held or happened."""
    who: tuple[str, ...] = ()
    where: str = ""
    quote: str = ""
    speaker: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_slug(self.category, "a category")
        if self.slug != "" or self.category != PROFILE:
            check_slug(self.slug)
        check_owner_space(self.owner_space)
        put = object.__setattr__
        limits = {
            "content": MAX_CONTENT,
            "abstract": MAX_ABSTRACT,
            "overview": MAX_OVERVIEW,
            "quote": MAX_OVERVIEW,
            "where": MAX_ABSTRACT,
            "speaker": MAX_ABSTRACT,
        }
        for name, limit in limits.items():
            put(self, name, bounded(getattr(self, name), limit, name))
        if not self.content.strip():
            raise InvalidValueError("a candidate is empty. Fix: give it content.")
        put(self, "who", _people(self.who))
        put(self, "confidence", fraction(self.confidence, "confidence"))
        put(self, "metadata", frozen(self.metadata, "metadata"))
        if self.when is not None:
            put(self, "when", utc_time(self.when, "time"))


def _people(names: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)):
        raise InvalidValueError(f"who is {shown(names)}. Fix: give a tuple of names.")
    return tuple(bounded(each, MAX_ABSTRACT, "name of who it is about") for each in names)


class WriteAction(Enum):
    CREATE = "create"
    MERGE = "merge"
    APPEND = "append"
    SKIP = "skip"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What to do with a candidate, and why.

    To create, merge or append, `node` is what to write; its version is the condition. To skip or
    archive there is none, and nothing is superseded.
    """

    action: WriteAction
    uri: str
    reason: str
    node: ContextNode | None = None
    former: tuple[ContextNode, ...] = ()
    """The superseded nodes, which are written in the same commit, and lead to `uri`."""
    doubted: tuple[ContextNode, ...] = ()
    """Nodes whose statements are marked as perhaps outdated, written in the same commit."""
    same: str = ""
    """The equal statement, if there was one."""

    def __post_init__(self) -> None:
        if not isinstance(self.action, WriteAction):
            raise InvalidValueError(f"{shown(self.action)} is not an action. Fix: use WriteAction.")
        if not Uri.parse(self.uri).is_node:
            raise InvalidValueError(f"{self.uri!a} is a folder. Fix: plan for a node.")
        if not isinstance(self.node, ContextNode | None):
            raise InvalidValueError(f"{shown(self.node)} is not a node. Fix: give a ContextNode.")
        writes = self.action in {WriteAction.CREATE, WriteAction.MERGE, WriteAction.APPEND}
        if writes != (self.node is not None):
            raise InvalidValueError(
                f"to {self.action.value} {'needs a' if writes else 'takes no'} node. "
                "Fix: give a node to write, and only then."
            )
        if self.former and not writes:
            raise InvalidValueError(
                f"to {self.action.value} supersedes nothing. Fix: leave `former` empty."
            )
        if self.node is not None and self.node.uri != self.uri:
            raise InvalidValueError(
                f"the plan is for {self.uri!a}, its node is {self.node.uri!a}. Fix: plan for one."
            )
        creates = self.action is WriteAction.CREATE
        if self.node is not None and creates != (self.node.version == 1):
            raise InvalidValueError(
                f"to {self.action.value} a node of version {self.node.version} is impossible. "
                "Fix: a new node has version 1, a merged one comes from `revised`."
            )
        object.__setattr__(self, "reason", bounded(self.reason, MAX_OVERVIEW, "reason"))
