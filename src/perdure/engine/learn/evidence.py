"""Evidence: the words of messages that statements rest on, verified, and how nodes store them.

A candidate has its evidence in `metadata["evidence"]`: a list of mappings with `message`, `cid` and
`quote`. The first is the statement itself, and has the candidate's `quote` and `speaker`.

A node has an entry in `metadata["statements"]` for each learned statement, by its CID; what its
owner wrote by hand has none. `metadata["merges"]` has an entry for each merge, so that it can be
undone.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from perdure.artifacts import CID
from perdure.dataclass import asdict, dataclass, replace
from perdure.errors import EvidenceError
from perdure.model import CandidateMemory, ContextNode, RequestContext
from perdure.model.anchors import Anchors, anchors_of
from perdure.model.transcript import Message
from perdure.model.values import JSON, count, shown
from perdure.times import read_time


@dataclass(frozen=True, slots=True)
class Evidence:
    message: int
    cid: str
    quote: str

    def as_json(self) -> dict[str, JSON]:
        return asdict(self)


def cid_of(content: str) -> str:
    return str(CID.of(content.encode()))


def evidence_of(candidate: CandidateMemory) -> tuple[Evidence, ...]:
    """Return the evidence of a candidate; raises `EvidenceError` if it has none."""
    listed = _listed(candidate.metadata.get("evidence"))
    if not listed:
        raise EvidenceError(
            f"the candidate {shown(candidate.content)} has no evidence. "
            'Fix: list the words that it rests on in metadata["evidence"].'
        )
    found = tuple(map(_evidence, listed))
    for each in found:
        count(each.message, "message of an evidence")
    return found


Messages = Sequence[Mapping[str, object]]


def metadata_of(evidence: Iterable[Evidence], topic: str, ctx: RequestContext) -> dict[str, JSON]:
    """Return the metadata that the candidates of all extractors have."""
    found: dict[str, JSON] = {"evidence": [each.as_json() for each in evidence]}
    more: dict[str, JSON] = {"topic": topic, "session_id": ctx.session_id}
    return found | {name: value for name, value in more.items() if value}


def with_anchors(candidate: CandidateMemory, anchors: Anchors | None) -> CandidateMemory:
    if anchors is None:
        return candidate
    return replace(candidate, metadata={**candidate.metadata, "anchors": anchors.as_json()})


def verified(
    candidates: Iterable[CandidateMemory], messages: Messages
) -> tuple[list[CandidateMemory], list[tuple[CandidateMemory, str]]]:
    """Return the candidates whose evidence is right, and the refused ones, each with a reason."""
    session = [Message.from_mapping(each) for each in messages]
    accepted: list[CandidateMemory] = []
    refused: list[tuple[CandidateMemory, str]] = []
    for candidate in candidates:
        try:
            check_evidence(candidate, session)
        except EvidenceError as error:
            refused.append((candidate, str(error)))
        else:
            accepted.append(candidate)
    return accepted, refused


def check_evidence(candidate: CandidateMemory, session: Sequence[Message]) -> None:
    """Raise `EvidenceError` unless each quote is in its message, character by character."""
    found = evidence_of(candidate)
    for each in found:
        _check_words(each, session)
    first = found[0]
    if candidate.quote != first.quote:
        raise _unfounded(candidate.quote, "is not the quote of its first evidence")
    if candidate.speaker != session[first.message].speaker:
        raise _unfounded(candidate.speaker, f"is not the speaker of message {first.message}")


def _check_words(evidence: Evidence, session: Sequence[Message]) -> None:
    at, quote = evidence.message, evidence.quote
    if at >= len(session):
        raise _unfounded(quote, f"is quoted from message {at}, which does not exist")
    content = session[at].content
    if evidence.cid != cid_of(content):
        raise _unfounded(quote, f"is quoted from another text than message {at}")
    if not quote.strip() or quote not in content:
        raise _unfounded(quote, f"is not in message {at}")


def _unfounded(what: str, why: str) -> EvidenceError:
    return EvidenceError(f"{shown(what)} {why}. Fix: quote the message character by character.")


def _evidence(given: JSON) -> Evidence:
    match given:
        case {"message": int(message), "cid": str(cid), "quote": str(quote), **rest} if not rest:
            return Evidence(message, cid, quote)
    raise EvidenceError(f"{shown(given)} is not evidence. Fix: give message, cid and quote.")


def _listed(value: object) -> Sequence[JSON]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def text_of(value: object) -> str:
    """Return a value of metadata that should be a text; empty if it is not one."""
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> tuple[str, ...]:
    return tuple(filter(None, map(text_of, _listed(value))))


STATEMENTS = "statements"
_SHARED = "agent:"
MOST_MENTIONS = 16
"""Store at most this many mentions of one statement; more would prove nothing more."""
_MOST_BRANCHES = 4
"""Store the newest anchors of this many branches for a statement without a message."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One session in which a statement was made.

    A statement of an agent, which several users share, has neither the words nor their speaker.
    A caller who may read the session finds both there.
    """

    session: str
    evidence: tuple[Evidence, ...]
    speaker: str = ""
    wording: str = ""
    """The words of the candidate that was merged, if they differ from the statement."""
    anchors: Anchors | None = None
    """The files and branches that it names, as the checkout had them then."""

    @property
    def key(self) -> tuple[str, int]:
        return self.session, self.evidence[0].message

    @property
    def is_withheld(self) -> bool:
        return not self.speaker and not any(each.quote for each in self.evidence)

    def withheld(self) -> "Mention":
        """Return the mention without its words and its speaker."""
        evidence = tuple(replace(each, quote="") for each in self.evidence)
        return replace(self, evidence=evidence, speaker="", anchors=None)

    def as_json(self) -> dict[str, JSON]:
        found: dict[str, JSON] = {
            "session": self.session,
            "evidence": [each.as_json() for each in self.evidence],
            "speaker": self.speaker,
        }
        anchors = self.anchors.as_json() if self.anchors else None
        more: dict[str, JSON] = {"wording": self.wording, "anchors": anchors}
        return found | {name: value for name, value in more.items() if value}


@dataclass(frozen=True, slots=True)
class Support:
    """What a learned statement rests on."""

    when: datetime | None = None
    confidence: float = 1.0
    topic: str = ""
    mentions: tuple[Mention, ...] = ()
    kind: str = ""
    """Rule, decision, rejected, preference, fact, command or task; empty if unknown."""
    by: str = ""
    """Who stated it by a tool, without a message that shows it: `user` or `agent`."""
    anchors: tuple[Anchors, ...] = ()
    """As `Mention.anchors`, for each time that it was stated without a message."""

    @classmethod
    def of(cls, candidate: CandidateMemory, session: str) -> "Support":
        topic, kind, by = (
            text_of(candidate.metadata.get(name)) for name in ("topic", "kind", "by")
        )
        anchors = anchors_of(candidate.metadata.get("anchors"))
        is_shared = candidate.owner_space.startswith(_SHARED)
        if not by or candidate.metadata.get("evidence"):
            mention = Mention(session, evidence_of(candidate), candidate.speaker, anchors=anchors)
            mentions = (mention.withheld() if is_shared else mention,)
            return cls(candidate.when, candidate.confidence, topic, mentions, kind, by)
        own = (anchors,) if anchors and not is_shared else ()
        return cls(candidate.when, candidate.confidence, topic, (), kind, by, own)

    @property
    def all_anchors(self) -> tuple[Anchors, ...]:
        """The anchors of all mentions and of statements without a message, the newest last."""
        found = (*(each.anchors for each in self.mentions), *self.anchors)
        return tuple(sorted(filter(None, found), key=lambda each: each.date))

    def joined(self, other: "Support") -> "Support":
        """Return the union of both; each mention once."""
        found = {each.key: each for each in (*other.mentions, *self.mentions)}
        branches = {each.branch: each for each in (*self.anchors, *other.anchors)}
        newest = sorted(branches.values(), key=lambda each: each.date)[-_MOST_BRANCHES:]
        return replace(
            self,
            when=max((each for each in (self.when, other.when) if each), default=None),
            confidence=max(self.confidence, other.confidence),
            topic=self.topic or other.topic,
            kind=self.kind or other.kind,
            by=self.by or other.by,
            mentions=tuple(found[key] for key in sorted(found)),
            anchors=tuple(newest),
        )

    def as_json(self) -> dict[str, JSON]:
        found: dict[str, JSON] = {
            "when": self.when.isoformat() if self.when else None,
            "confidence": self.confidence,
            "topic": self.topic or None,
            "kind": self.kind or None,
            "by": self.by or None,
            "said": [each.as_json() for each in self.mentions],
            "anchors": [each.as_json() for each in self.anchors] or None,
        }
        return {name: value for name, value in found.items() if value is not None}


def support_of(node: ContextNode) -> dict[str, Support]:
    """Return the support of the statements of a node, by CID; ignores malformed entries."""
    found = node.metadata.get(STATEMENTS)
    if not isinstance(found, Mapping):
        return {}
    return {cid: _support(each) for cid, each in found.items() if isinstance(each, Mapping)}


def as_metadata(support: Mapping[str, Support]) -> dict[str, JSON]:
    return {STATEMENTS: {cid: support[cid].as_json() for cid in sorted(support)} or None}


def _support(given: Mapping[str, JSON]) -> Support:
    confidence = given.get("confidence")
    return Support(
        read_time(given.get("when")),
        float(confidence) if isinstance(confidence, int | float) else 1.0,
        text_of(given.get("topic")),
        tuple(filter(None, map(_mention, _listed(given.get("said"))))),
        text_of(given.get("kind")),
        text_of(given.get("by")),
        tuple(filter(None, map(anchors_of, _listed(given.get("anchors"))))),
    )


def _mention(given: JSON) -> Mention | None:
    match given:
        case {"session": str(session), "evidence": evidence, "speaker": str(speaker), **rest}:
            try:
                found = tuple(map(_evidence, _listed(evidence)))
            except EvidenceError:
                return None
            more = text_of(rest.get("wording")), anchors_of(rest.get("anchors"))
            return Mention(session, found, speaker, *more) if found else None
    return None


ENFORCED = "enforced"
"""In metadata: the CIDs of the statements that the user of a node enforces."""


def enforced_in(node: ContextNode) -> frozenset[str]:
    return frozenset(texts_of(node.metadata.get(ENFORCED)))


MERGES = "merges"
_MOST_MERGES = 50
"""Store at most this many merges, which can be undone one by one; history has older ones."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The version of a node that a merge created, and the statement that it merged.

    Its parents are the version before, which is in history, and the statement, which is stored with
    its support.
    """

    version: int
    action: str
    statement: str
    """The CID of the new statement."""
    into: str = ""
    """The CID of the statement that says the same, if there was one."""
    session: str = ""
    former: tuple[str, ...] = ()
    """The URIs of the nodes that it superseded."""

    def as_json(self) -> dict[str, JSON]:
        return {name: value for name, value in asdict(self).items() if value not in ("", ())}


def merges_of(node: ContextNode) -> list[Merge]:
    """Return the merges of a node, the oldest first."""
    found = map(_merge, _listed(node.metadata.get(MERGES)))
    return [merge for merge in found if merge is not None]


def merges_as_metadata(merges: Sequence[Merge]) -> dict[str, JSON]:
    return {MERGES: [each.as_json() for each in merges[-_MOST_MERGES:]] or None}


def _merge(given: JSON) -> Merge | None:
    match given:
        case {"version": int(version), "action": str(action), "statement": str(cid), **rest}:
            into, session = text_of(rest.get("into")), text_of(rest.get("session"))
            former = texts_of(rest.get("former"))
            return Merge(version, action, cid, into, session, former)
    return None
