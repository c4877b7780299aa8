"""`perdure why`."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

from perdure import (
    Anchors,
    FormerNode,
    Memory,
    MergeRecord,
    Provenance,
    Quote,
    SessionEvidence,
    StatementProvenance,
    Version,
    presentable,
)
from perdure.dataclass import dataclass
from perdure.errors import InvalidUriError
from perdure.model import Action, RelationEdge, Uri
from perdure.model.trust import told_origins
from perdure.model.values import shortened
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import with_project_memory
from perdure.surfaces.telling import (
    counted,
    local_date,
    local_time,
    picked,
    shown,
    shown_words,
    styled,
    told_edges,
    utc_time,
    width_of,
    wrapped,
)

_LEAST_WIDTH = 20
_MOST_VERSIONS = 10
_LONGEST_NAME = 80
_SHORT = 12
_HANDS = "written by hand; no conversation is behind it"
_NO_LONGER = "it no longer holds"


@node_command("why")
@with_project_memory()
def why_command(memory: Memory, node: str, *, as_json: bool) -> None:
    """Say why memory says what it says.

    Prints each statement of a node with the words that it rests on, and looks whether they are
    still where they were said, and whether the code that it names in this checkout is still as it
    was; then what it superseded, what went into it, its relations and its versions. What you may
    not see is counted, or not told of at all.
    """
    found = memory.why(node)
    for problem in found.problems:
        out.mention(f"problem: {shown(problem)}")
    if as_json:
        out.json(_json(found))
    else:
        tree = _Reasons(memory, found).tree()
        out.line(styled(tree.text, bold=True))
        for line in _hanging(tree.below, ""):
            out.line(line)
    if not found.holds:
        out.mention("some of it can't be proved any more; see what is marked NOT PROVED")


# ---------------------------------------------------------------- for people
@dataclass(frozen=True, slots=True)
class _Twig:
    """A line of a tree, and what hangs from it."""

    text: str
    below: tuple["_Twig", ...] = ()
    style: str = ""


def _hanging(twigs: Sequence[_Twig], before: str) -> Iterator[str]:
    """Yield a tree line by line; on a terminal, no line is wider than that is."""
    for twig in twigs:
        last = twig is twigs[-1]
        under = before + ("    " if last else "│   ")
        first, *rest = _fitted(twig.text, width_of(under))
        yield f"{before}{'└── ' if last else '├── '}{_styled(first, twig.style)}"
        for more in rest:
            yield f"{under if not twig.below else under + '│ '}{_styled(more, twig.style)}"
        yield from _hanging(twig.below, under)


def _fitted(text: str, used: int) -> list[str]:
    if not sys.stdout.isatty():
        return [text]
    room = max(_LEAST_WIDTH, shutil.get_terminal_size().columns - used - 2)
    return list(wrapped(room, text)) or [""]


def _styled(text: str, style: str) -> str:
    return styled(text, fg=style) if style else text


@dataclass(frozen=True, slots=True)
class _Reasons:
    memory: Memory
    found: Provenance

    def tree(self) -> _Twig:
        found = self.found
        parts = (
            *self._ended(),
            *self._origin(),
            *(self._claim(each) for each in found.statements),
            *self._left_out(),
            *_part("it superseded", [self._former(each) for each in found.superseded]),
            *_part(self._merges(), [self._merged(each) for each in found.merges]),
            *_part("relations", [*self._edges()]),
            *_part("versions of its text", [*self._versions()]),
        )
        when = f" of {local_time(found.updated_at)}" if found.updated_at.timestamp() else ""
        version = f"version {found.version}{when}"
        return _Twig(f"{self.memory.name(found.uri)}, {version}", parts)

    # ------------------------------------------------------------ what it is
    def _ended(self) -> Iterator[_Twig]:
        for each in self.found.superseded_by:
            why = (_Twig(shown_words(each.reason)),) if each.reason else ()
            yield _Twig(f"{_NO_LONGER}: superseded by {self.memory.name(each.uri)}", why, "yellow")

    def _origin(self) -> Iterator[_Twig]:
        if self.found.source:
            yield _Twig(f"imported from {shown(self.found.source)}")
        if self.found.kind.value == "session":
            number = counted(self.found.messages, "message")
            yield _Twig(f"what was said, word for word: {number}; memories rest on it")
            if self.found.origins:
                yield _Twig(f"it {told_origins(self.found.origins)}")
        elif self.found.kind.value == "document":
            yield _Twig("a document; no conversation is behind it")

    def _left_out(self) -> Iterator[_Twig]:
        if self.found.unused_sessions:
            number = counted(self.found.unused_sessions, "session")
            yield _Twig(f"left out of briefings: shown in {number}, never used")

    # ------------------------------------------------------------ statements
    def _claim(self, claim: StatementProvenance) -> _Twig:
        since = f" (since {claim.since})" if claim.since else ""
        return _Twig(f"{shown_words(claim.text)}{since}", tuple(self._grounds(claim)))

    def _grounds(self, claim: StatementProvenance) -> Iterator[_Twig]:
        if not claim.extracted:
            yield _Twig(f"imported from {shown(claim.line)}" if claim.line else _HANDS)
            return
        yield _Twig(_learned(claim))
        yield from _checked(claim)
        for each in claim.evidence:
            yield from self._said(each)
        if claim.out_of_reach:
            places = counted(claim.out_of_reach, "place")
            yield _Twig(f"said in {places} out of your reach")

    def _said(self, each: SessionEvidence) -> Iterator[_Twig]:
        for quote in each.quotes:
            yield _quoted(quote, shown_words(each.speaker), self._session(each.session))
        if each.wording:
            yield _Twig(f"understood as: {shown_words(each.wording)}")
        if each.origins:
            yield _Twig(f"the session {told_origins(each.origins)}")

    # ------------------------------------------------------------ before, and since
    def _former(self, former: FormerNode) -> _Twig:
        why = (_Twig(shown_words(former.reason)),) if former.reason else ()
        grounds = (twig for claim in former.statements for twig in self._grounds(claim))
        more = (self._former(each) for each in former.superseded)
        text = f"{shown_words(former.text)} ({_held(former)}{self.memory.name(former.uri)})"
        return _Twig(text, (*why, *grounds, *more))

    def _merges(self) -> str:
        can = any(each.undoable for each in self.found.merges)
        return f"what went into it{'; `perdure unmerge` takes it out' if can else ''}"

    def _merged(self, merged: MergeRecord) -> _Twig:
        when = f" of {local_time(merged.when)}" if merged.when else ""
        what = (
            f'"{shown_words(merged.text)}"' if merged.text else "something that is no longer there"
        )
        undoable = " (can be undone)" if merged.undoable else ""
        return _Twig(f"version {merged.version}{when}: {self._did(merged)} {what}{undoable}")

    def _did(self, merged: MergeRecord) -> str:
        if merged.former:
            return f"put in the place of {', '.join(map(self.memory.name, merged.former))}:"
        return "said again:" if merged.action == Action.MERGE.value else "added:"

    def _edges(self) -> Iterator[_Twig]:
        for edge in self.found.edges:
            yield _Twig(f"leads to {self._related(edge, edge.to_uri)}")
        for edge in self.found.incoming:
            yield _Twig(f"led to by {self._related(edge, edge.from_uri)}")

    def _related(self, edge: RelationEdge, uri: str) -> str:
        why = f": {shown_words(edge.reason)}" if edge.reason else ""
        return f"{self.memory.name(uri)}, {shown(edge.relation_type)} {edge.weight:g}{why}"

    def _versions(self) -> Iterator[_Twig]:
        earlier = len(self.found.versions) - _MOST_VERSIONS
        if earlier > 0:
            key = shown(self.memory.key(self.found.uri))
            yield _Twig(f"{earlier} earlier; `perdure history log {key}` lists them")
        for version in self.found.versions[-_MOST_VERSIONS:]:
            yield _Twig(_version(version))
        if self.found.unrecorded:
            yield _Twig("edited by hand since, and not recorded yet")

    def _session(self, session: str) -> str:
        try:
            place = Uri(self.memory.caller.account_id, ("sessions", session))
        except InvalidUriError:  # somebody wrote that by hand
            return shortened(shown(session), _LONGEST_NAME)
        return self.memory.name(str(place))


def _part(name: str, twigs: Sequence[_Twig]) -> Iterator[_Twig]:
    if twigs:
        yield _Twig(name, tuple(twigs))


def _learned(claim: StatementProvenance) -> str:
    sure = f", {claim.confidence:.0%} sure" if claim.confidence is not None else ""
    when = f", last said {local_date(claim.when)}" if claim.when else ""
    topic = f", topic {shown(claim.topic)}" if claim.topic else ""
    is_kept = claim.by and not claim.evidence
    origin = f"stated by the {claim.by}" if is_kept else "learned from what was said"
    if claim.confidence is None and not claim.by:
        origin = "a message of a session"
    return f"{origin}{sure}{when}{topic}"


def _checked(claim: StatementProvenance) -> Iterator[_Twig]:
    if claim.anchors is None:
        return
    verdict = claim.verdict
    state = verdict.state if verdict else "not checked, for this is not its checkout"
    more = (verdict.held_back or verdict.note) if verdict else ""
    named = shown(", ".join(_code(claim.anchors))) or "no code"
    yield _Twig(f"names {named}: {state}{f' ({shown(more)})' if more else ''}")
    branch, commit = claim.anchors.branch, claim.anchors.commit
    if commit:
        on = f"on the branch {shown(branch)}, " if branch else ""
        yield _Twig(f"made {on}at the commit {shown(commit[:_SHORT])}")


def _code(anchors: Anchors) -> Iterator[str]:
    for span in anchors.spans:
        yield f"{span.symbol} in {span.path}" if span.symbol else span.path
    for command in anchors.commands:
        yield f"{command.text} of {command.path}"


def _quoted(quote: Quote, speaker: str, session: str) -> _Twig:
    text, place = f'{speaker}: "{shown_words(quote.text)}"', f"{session}, message {quote.message}"
    if quote.holds:
        return _Twig(f"{text} ({place}: found there)", style="green")
    return _Twig(f"NOT PROVED: {text} ({place}: {quote.trouble})", style="red")


def _held(former: FormerNode) -> str:
    start = f"from {_date(former.valid_from)} " if former.valid_from else ""
    end = f"until {_date(former.valid_until)}" if former.valid_until else ""
    held = f"{start}{end}".strip()
    return f"held {held}; " if held else ""


def _date(moment: datetime) -> str:
    return moment.date().isoformat()


def _version(version: Version) -> str:
    who = shown(version.actor or version.origin)
    why = f", {shown_words(version.reason)}" if version.reason else ""
    what = "removed" if version.cid is None else str(version.cid)
    return f"{version.number}  {local_time(version.time)}  {who}{why}  {what}"


# ---------------------------------------------------------------- for programs
def _json(found: Provenance) -> dict[str, object]:
    return {
        **picked(
            found,
            "uri title kind version created_at updated_at holds messages source? unused_sessions",
        ),
        "statements": [_claim_json(each) for each in found.statements],
        "merges": [_merged_json(each) for each in found.merges],
        "superseded": [_former_json(each) for each in found.superseded],
        "superseded_by": [picked(each, "uri reason") for each in found.superseded_by],
        "edges": told_edges(found.edges),
        "incoming": told_edges(found.incoming),
        "versions": [_version_json(each) for each in found.versions],
        "unrecorded": found.unrecorded,
        **({"origins": list(found.origins)} if found.origins else {}),
    }


def _claim_json(claim: StatementProvenance) -> dict[str, object]:
    return {
        **picked(claim, "cid extracted when confidence topic? by? out_of_reach"),
        "text": presentable(claim.text),
        "since": claim.since.isoformat() if claim.since else None,
        "holds": claim.holds if claim.extracted else None,
        "evidence": [_said_json(each) for each in claim.evidence],
        **({"line": claim.line} if claim.line else {}),
        **({"anchors": claim.anchors.as_json()} if claim.anchors else {}),
        **({"verdict": picked(claim.verdict, "state note held_back")} if claim.verdict else {}),
    }


def _said_json(each: SessionEvidence) -> dict[str, object]:
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


def _merged_json(merged: MergeRecord) -> dict[str, object]:
    said = picked(merged, "version action statement? time=when former undoable")
    return {**said, "text": presentable(merged.text) or None}


def _former_json(former: FormerNode) -> dict[str, object]:
    return {
        **picked(former, "uri reason valid_from valid_until"),
        "text": presentable(former.text),
        "statements": [_claim_json(each) for each in former.statements],
        "superseded": [_former_json(each) for each in former.superseded],
    }


def _version_json(version: Version) -> dict[str, object]:
    said = picked(version, "version=number actor origin reason cid")
    return {**said, "time": utc_time(version.time)}
