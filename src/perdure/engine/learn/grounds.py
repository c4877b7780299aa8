"""What a node keeps of its statements: what they rest on, and how they were merged.

`metadata["statements"]` has an entry for each statement that was extracted, by its CID. What
somebody wrote by hand has none: the page itself, and its history, are all there is to it.
`metadata["merges"]` has an entry for each merge, so that it can be undone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.engine.learn.evidence import Evidence, evidence_of
from perdure.model import CandidateMemory, ContextNode
from perdure.model.values import JSON, read_moment

STATEMENTS = "statements"
_SHARED = "agent:"
MOST_SAID = 16
"""So many sayings of one statement are kept with it; more would prove nothing more."""


@dataclass(frozen=True, slots=True)
class Saying:
    """Where it was said: the words, the message, the session.

    What belongs to an agent, whom several users share, says neither the words nor who spoke them.
    Whoever may read the session finds both there.
    """

    session: str
    evidence: tuple[Evidence, ...]
    speaker: str = ""
    wording: str = ""
    """What it was merged from, if that was worded otherwise than the statement is."""

    @property
    def key(self) -> tuple[str, int]:
        return self.session, self.evidence[0].message

    @property
    def is_withheld(self) -> bool:
        return not self.speaker and not any(each.quote for each in self.evidence)

    def withheld(self) -> "Saying":
        silent = tuple(replace(each, quote="") for each in self.evidence)
        return replace(self, evidence=silent, speaker="")

    def as_json(self) -> dict[str, JSON]:
        told: dict[str, JSON] = {
            "session": self.session,
            "evidence": [each.as_json() for each in self.evidence],
            "speaker": self.speaker,
        }
        return {**told, "wording": self.wording} if self.wording else told


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a statement rests on."""

    when: datetime | None = None
    """When it was last said."""
    confidence: float = 1.0
    topic: str = ""
    said: tuple[Saying, ...] = ()
    kind: str = ""
    """Rule, decision, rejected, preference, fact, command or task; empty if nobody told."""
    by: str = ""
    """Who said it, where no message is kept that shows it: the user, or the agent."""

    @classmethod
    def of(cls, candidate: CandidateMemory, session: str) -> "Grounds":
        topic, kind, by = (_text(candidate.metadata.get(name)) for name in ("topic", "kind", "by"))
        if by and not candidate.metadata.get("evidence"):
            return cls(candidate.when, candidate.confidence, topic, (), kind, by)
        saying = Saying(session, evidence_of(candidate), candidate.speaker)
        if candidate.owner_space.startswith(_SHARED):
            saying = saying.withheld()
        return cls(candidate.when, candidate.confidence, topic, (saying,), kind, by)

    def joined(self, other: "Grounds") -> "Grounds":
        """Return what both rest on; each place once."""
        said = {each.key: each for each in (*other.said, *self.said)}
        times = [each for each in (self.when, other.when) if each is not None]
        return replace(
            self,
            when=max(times, default=None),
            confidence=max(self.confidence, other.confidence),
            topic=self.topic or other.topic,
            kind=self.kind or other.kind,
            by=self.by or other.by,
            said=tuple(said[key] for key in sorted(said)),
        )

    def said_in(self, session: str) -> bool:
        return any(each.session == session for each in self.said)

    def as_json(self) -> dict[str, JSON]:
        told: dict[str, JSON] = {
            "when": self.when.isoformat() if self.when else None,
            "confidence": self.confidence,
            "topic": self.topic or None,
            "kind": self.kind or None,
            "by": self.by or None,
            "said": [each.as_json() for each in self.said],
        }
        return {name: value for name, value in told.items() if value is not None}


def grounds_of(node: ContextNode) -> dict[str, Grounds]:
    """Return what the statements of a node rest on, by their CIDs; what can't be read is not."""
    told = node.metadata.get(STATEMENTS)
    if not isinstance(told, Mapping):
        return {}
    return {cid: _grounds(each) for cid, each in told.items() if isinstance(each, Mapping)}


def as_metadata(grounds: Mapping[str, Grounds]) -> dict[str, JSON]:
    return {STATEMENTS: {cid: grounds[cid].as_json() for cid in sorted(grounds)} or None}


def _grounds(told: Mapping[str, JSON]) -> Grounds:
    confidence = told.get("confidence")
    return Grounds(
        read_moment(told.get("when")),
        float(confidence) if isinstance(confidence, int | float) else 1.0,
        _text(told.get("topic")),
        tuple(filter(None, map(_saying, _listed(told.get("said"))))),
        _text(told.get("kind")),
        _text(told.get("by")),
    )


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _saying(told: JSON) -> Saying | None:
    match told:
        case {"session": str(session), "evidence": evidence, "speaker": str(speaker), **rest}:
            found = tuple(filter(None, map(_evidence, _listed(evidence))))
            wording = rest.get("wording")
            said = wording if isinstance(wording, str) else ""
            return Saying(session, found, speaker, said) if found else None
    return None


def _evidence(told: JSON) -> Evidence | None:
    match told:
        case {"message": int(message), "cid": str(cid), "quote": str(quote)}:
            return Evidence(message, cid, quote)
    return None


def _listed(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


# ---------------------------------------------------------------- merges
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
    return merges_as_metadata([*merges_of(node), merge])


def merges_as_metadata(merges: Sequence[Merge]) -> dict[str, JSON]:
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
