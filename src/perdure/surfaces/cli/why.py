"""`perdure why`."""

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from perdure import (
    Anchors,
    FormerNode,
    Memory,
    MergeRecord,
    Provenance,
    Quote,
    SessionEvidence,
    StatementProvenance,
    presentable,
)
from perdure.dataclass import dataclass
from perdure.errors import InvalidUriError
from perdure.model import RelationEdge, Uri, WriteAction
from perdure.model.trust import describe_origins
from perdure.model.values import shortened
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import with_project_memory
from perdure.surfaces.out import (
    counted,
    edges_json,
    local_date,
    local_time,
    picked,
    shown,
    shown_words,
    styled,
    utc_time,
    width_of,
    wrapped,
)

_LEAST_WIDTH = 20
_MOST_VERSIONS = 10
_LONGEST_NAME = 80
_SHORT = 12


@node_command("why")
@with_project_memory()
def why_command(memory: Memory, node: str, *, as_json: bool) -> None:
    """Show the evidence for a memory.

    Prints each statement of a node with the messages that it rests on, and checks whether they are
    still in their sessions, and whether the code that it names in this checkout is unchanged; then
    what the node superseded, what was merged into it, its relations and its versions. Evidence that
    you have no access to is counted, or left out.
    """
    found = memory.why(node)
    for problem in found.problems:
        out.mention(f"problem: {shown(problem)}")
    if as_json:
        out.json(_json(found))
    else:
        when = f" of {local_time(found.updated_at)}" if found.updated_at.timestamp() else ""
        name = memory.name(found.uri)
        out.line(styled(f"{name}, version {found.version}{when}", bold=True))
        for line in _printed(tuple(_tree(memory, found)), ""):
            out.line(line)
    if not found.holds:
        out.mention("some evidence can't be confirmed any more; see the lines marked NOT PROVED")


# ---------------------------------------------------------------- text
@dataclass(frozen=True, slots=True)
class _Branch:
    """A line of a tree, and the lines below it."""

    text: str
    below: tuple["_Branch", ...] = ()
    style: str = ""


def _printed(branches: Sequence[_Branch], before: str) -> Iterator[str]:
    """Yield a tree line by line; on a terminal, wrapped to its width."""
    for branch in branches:
        last = branch is branches[-1]
        under = before + ("    " if last else "│   ")
        first, *rest = _fitted(branch.text, width_of(under))
        yield f"{before}{'└── ' if last else '├── '}{_styled(first, branch.style)}"
        for more in rest:
            yield f"{under if not branch.below else under + '│ '}{_styled(more, branch.style)}"
        yield from _printed(branch.below, under)


def _fitted(text: str, used: int) -> list[str]:
    if not sys.stdout.isatty():
        return [text]
    room = max(_LEAST_WIDTH, shutil.get_terminal_size().columns - used - 2)
    return list(wrapped(room, text)) or [""]


def _styled(text: str, style: str) -> str:
    return styled(text, fg=style) if style else text


def _tree(memory: Memory, found: Provenance) -> Iterator[_Branch]:
    for each in found.superseded_by:
        text = f"no longer holds: superseded by {memory.name(each.uri)}"
        yield _Branch(text, tuple(_reason(each.reason)), "yellow")
    yield from _source(found)
    for claim in found.statements:
        since = f" (since {claim.since})" if claim.since else ""
        yield _Branch(f"{shown_words(claim.text)}{since}", tuple(_evidence(memory, claim)))
    if found.unused_sessions:
        number = counted(found.unused_sessions, "session")
        yield _Branch(f"left out of briefings: shown in {number}, never used")
    yield from _group("superseded", (_former(memory, each) for each in found.superseded))
    undo = "; undo with `perdure unmerge`" if any(each.undoable for each in found.merges) else ""
    yield from _group(f"merged into it{undo}", (_merged(memory, each) for each in found.merges))
    yield from _group("relations", _edges(memory, found))
    yield from _group("versions of its text", _versions(memory, found))


def _group(name: str, branches: Iterable[_Branch]) -> Iterator[_Branch]:
    if below := tuple(branches):
        yield _Branch(name, below)


def _reason(reason: str) -> Iterator[_Branch]:
    if reason:
        yield _Branch(shown_words(reason))


def _source(found: Provenance) -> Iterator[_Branch]:
    if found.source:
        yield _Branch(f"imported from {shown(found.source)}")
    if found.kind.value == "session":
        yield _Branch(f"a session, word for word: {counted(found.messages, 'message')}")
        if found.origins:
            yield _Branch(f"it {describe_origins(found.origins)}")
    elif found.kind.value == "document":
        yield _Branch("a document; it rests on no session")


# ---------------------------------------------------------------- evidence
def _evidence(memory: Memory, claim: StatementProvenance) -> Iterator[_Branch]:
    if not claim.extracted:
        by_hand = "written by hand; it rests on no session"
        yield _Branch(f"imported from {shown(claim.line)}" if claim.line else by_hand)
        return
    yield _Branch(_origin(claim))
    yield from _checked(claim)
    for each in claim.evidence:
        yield from _quotes(memory, each)
    if claim.out_of_reach:
        yield _Branch(f"evidence that you have no access to: {claim.out_of_reach}")


def _origin(claim: StatementProvenance) -> str:
    sure = f", confidence {claim.confidence:.0%}" if claim.confidence is not None else ""
    when = f", last stated {local_date(claim.when)}" if claim.when else ""
    topic = f", topic {shown(claim.topic)}" if claim.topic else ""
    origin = (
        f"stated by the {claim.by}" if claim.by and not claim.evidence else "learned from sessions"
    )
    if claim.confidence is None and not claim.by:
        origin = "a message of a session"
    return f"{origin}{sure}{when}{topic}"


def _checked(claim: StatementProvenance) -> Iterator[_Branch]:
    if claim.anchors is None:
        return
    verdict = claim.verdict
    state = verdict.state if verdict else "not checked, because this is not its checkout"
    more = (verdict.held_back or verdict.note) if verdict else ""
    code = shown(", ".join(_code(claim.anchors))) or "no code"
    yield _Branch(f"names {code}: {state}{f' ({shown(more)})' if more else ''}")
    branch, commit = claim.anchors.branch, claim.anchors.commit
    if commit:
        on = f"on the branch {shown(branch)}, " if branch else ""
        yield _Branch(f"stated {on}at the commit {shown(commit[:_SHORT])}")


def _code(anchors: Anchors) -> Iterator[str]:
    for span in anchors.spans:
        yield f"{span.symbol} in {span.path}" if span.symbol else span.path
    for command in anchors.commands:
        yield f"{command.text} of {command.path}"


def _quotes(memory: Memory, each: SessionEvidence) -> Iterator[_Branch]:
    try:
        session = memory.name(str(Uri(memory.caller.account_id, ("sessions", each.session))))
    except InvalidUriError:  # the evidence was edited
        session = shortened(shown(each.session), _LONGEST_NAME)
    for quote in each.quotes:
        yield _quoted(quote, shown_words(each.speaker), session)
    if each.wording:
        yield _Branch(f"understood as: {shown_words(each.wording)}")
    if each.origins:
        yield _Branch(f"the session {describe_origins(each.origins)}")


def _quoted(quote: Quote, speaker: str, session: str) -> _Branch:
    text, place = f'{speaker}: "{shown_words(quote.text)}"', f"{session}, message {quote.message}"
    if quote.holds:
        return _Branch(f"{text} ({place}: found there)", style="green")
    return _Branch(f"NOT PROVED: {text} ({place}: {quote.trouble})", style="red")


# ---------------------------------------------------------------- history
def _former(memory: Memory, former: FormerNode) -> _Branch:
    start = f"from {former.valid_from.date().isoformat()} " if former.valid_from else ""
    end = f"until {former.valid_until.date().isoformat()}" if former.valid_until else ""
    held = f"held {f'{start}{end}'.strip()}; " if start or end else ""
    return _Branch(
        f"{shown_words(former.text)} ({held}{memory.name(former.uri)})",
        (
            *_reason(former.reason),
            *(branch for claim in former.statements for branch in _evidence(memory, claim)),
            *(_former(memory, each) for each in former.superseded),
        ),
    )


def _merged(memory: Memory, merged: MergeRecord) -> _Branch:
    when = f" of {local_time(merged.when)}" if merged.when else ""
    what = f'"{shown_words(merged.text)}"' if merged.text else "a statement that is gone"
    did = "repeated:" if merged.action == WriteAction.MERGE.value else "added:"
    if merged.former:
        did = f"replaced {', '.join(map(memory.name, merged.former))} with:"
    undoable = " (can be undone)" if merged.undoable else ""
    return _Branch(f"version {merged.version}{when}: {did} {what}{undoable}")


def _edges(memory: Memory, found: Provenance) -> Iterator[_Branch]:
    for edge in found.edges:
        yield _Branch(f"to {_related(memory, edge, edge.to_uri)}")
    for edge in found.incoming:
        yield _Branch(f"from {_related(memory, edge, edge.from_uri)}")


def _related(memory: Memory, edge: RelationEdge, uri: str) -> str:
    why = f": {shown_words(edge.reason)}" if edge.reason else ""
    return f"{memory.name(uri)}, {shown(edge.relation_type)} {edge.weight:g}{why}"


def _versions(memory: Memory, found: Provenance) -> Iterator[_Branch]:
    earlier = len(found.versions) - _MOST_VERSIONS
    if earlier > 0:
        yield _Branch(
            f"{earlier} earlier; see `perdure history log {shown(memory.key(found.uri))}`"
        )
    for version in found.versions[-_MOST_VERSIONS:]:
        who = shown(version.actor or version.origin)
        why = f", {shown_words(version.reason)}" if version.reason else ""
        what = "removed" if version.cid is None else str(version.cid)
        yield _Branch(f"{version.number}  {local_time(version.time)}  {who}{why}  {what}")
    if found.unrecorded:
        yield _Branch("edited since; the edit is not recorded yet")


# ---------------------------------------------------------------- JSON
def _json(found: Provenance) -> dict[str, object]:
    return {
        **picked(
            found,
            "uri title kind version created_at updated_at holds messages source? unused_sessions",
        ),
        "statements": [_claim_json(each) for each in found.statements],
        "merges": [
            {
                **picked(each, "version action statement? time=when former undoable"),
                "text": presentable(each.text) or None,
            }
            for each in found.merges
        ],
        "superseded": [_former_json(each) for each in found.superseded],
        "superseded_by": [picked(each, "uri reason") for each in found.superseded_by],
        "edges": edges_json(found.edges),
        "incoming": edges_json(found.incoming),
        "versions": [
            {
                **picked(each, "version=number actor origin reason cid"),
                "time": utc_time(each.time),
            }
            for each in found.versions
        ],
        "unrecorded": found.unrecorded,
        **({"origins": list(found.origins)} if found.origins else {}),
    }


def _claim_json(claim: StatementProvenance) -> dict[str, object]:
    return {
        **picked(claim, "cid extracted when confidence topic? by? out_of_reach"),
        "text": presentable(claim.text),
        "since": claim.since.isoformat() if claim.since else None,
        "holds": claim.holds if claim.extracted else None,
        "evidence": [_evidence_json(each) for each in claim.evidence],
        **({"line": claim.line} if claim.line else {}),
        **({"anchors": claim.anchors.as_json()} if claim.anchors else {}),
        **({"verdict": picked(claim.verdict, "state note held_back")} if claim.verdict else {}),
    }


def _evidence_json(each: SessionEvidence) -> dict[str, object]:
    return {
        "session": each.session,
        "speaker": presentable(each.speaker),
        "wording": presentable(each.wording) or None,
        **({"origins": list(each.origins)} if each.origins else {}),
        "quotes": [
            {**picked(quote, "message holds trouble?"), "quote": presentable(quote.text)}
            for quote in each.quotes
        ],
    }


def _former_json(former: FormerNode) -> dict[str, object]:
    return {
        **picked(former, "uri reason valid_from valid_until"),
        "text": presentable(former.text),
        "statements": [_claim_json(each) for each in former.statements],
        "superseded": [_former_json(each) for each in former.superseded],
    }
