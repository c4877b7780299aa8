"""Where a node comes from, as a tree that people read."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.engine.why.provenance import Claim, Former, Kind, Merged, Provenance, Quote, Said
from perdure.errors import InvalidUriError
from perdure.model import Action, RelationEdge, Uri
from perdure.model.values import shortened
from perdure.storage.history import Version
from perdure.surfaces.nodes.describing import day, time
from perdure.surfaces.nodes.opening import Memory
from perdure.surfaces.saving.words import said
from perdure.surfaces.telling import counted, local_time, shown, styled, width_of, wrapped

_LEAST_WIDTH = 20
_MOST_VERSIONS = 10
_LONGEST_NAME = 80
_HANDS = "written by hand; no conversation is behind it"
_NO_LONGER = "it no longer holds"


@dataclass(frozen=True, slots=True)
class Twig:
    """A line of a tree, and what hangs from it."""

    text: str
    below: tuple["Twig", ...] = ()
    style: str = ""


def lines(tree: Twig) -> Iterator[str]:
    """Yield a tree line by line; on a terminal, no line is wider than that is."""
    yield styled(tree.text, bold=True)
    yield from _hanging(tree.below, "")


def _hanging(twigs: Sequence[Twig], before: str) -> Iterator[str]:
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
class Reasons:
    """Puts into words where a node comes from."""

    memory: Memory
    found: Provenance

    def tree(self) -> Twig:
        found = self.found
        parts = (
            *self._ended(),
            *self._origin(),
            *(self._claim(each) for each in found.claims),
            *_part("it superseded", [self._former(each) for each in found.superseded]),
            *_part(self._merges(), [self._merged(each) for each in found.merges]),
            *_part("relations", [*self._edges()]),
            *_part("versions of its text", [*self._versions()]),
        )
        head = f"{self._name(found.uri)}, version {found.version} of {time(found.updated_at)}"
        return Twig(head, parts)

    # ------------------------------------------------------------ what it is
    def _ended(self) -> Iterator[Twig]:
        for each in self.found.superseded_by:
            why = (Twig(said(each.reason)),) if each.reason else ()
            yield Twig(f"{_NO_LONGER}: superseded by {self._name(each.uri)}", why, "yellow")

    def _origin(self) -> Iterator[Twig]:
        if self.found.source:
            yield Twig(f"imported from {shown(self.found.source)}")
        if self.found.kind is Kind.SESSION:
            number = counted(self.found.messages, "message")
            yield Twig(f"what was said, word for word: {number}; memories rest on it")
        elif self.found.kind is Kind.DOCUMENT:
            yield Twig("a document; no conversation is behind it")

    # ------------------------------------------------------------ statements
    def _claim(self, claim: Claim) -> Twig:
        since = f" (since {claim.since})" if claim.since else ""
        return Twig(f"{said(claim.text)}{since}", tuple(self._grounds(claim)))

    def _grounds(self, claim: Claim) -> Iterator[Twig]:
        if not claim.extracted:
            yield Twig(_HANDS)
            return
        yield Twig(_learned(claim))
        for each in claim.said:
            yield from self._said(each)
        if claim.out_of_reach:
            places = counted(claim.out_of_reach, "place")
            yield Twig(f"said in {places} out of your reach")

    def _said(self, each: Said) -> Iterator[Twig]:
        for quote in each.quotes:
            yield _quoted(quote, said(each.speaker), self._session(each.session))
        if each.wording:
            yield Twig(f"understood as: {said(each.wording)}")

    # ------------------------------------------------------------ before, and since
    def _former(self, former: Former) -> Twig:
        why = (Twig(said(former.reason)),) if former.reason else ()
        grounds = (twig for claim in former.claims for twig in self._grounds(claim))
        more = (self._former(each) for each in former.superseded)
        text = f"{said(former.text)} ({_held(former)}{self._name(former.uri)})"
        return Twig(text, (*why, *grounds, *more))

    def _merges(self) -> str:
        can = any(each.undoable for each in self.found.merges)
        return f"what went into it{'; `perdure unmerge` takes it out' if can else ''}"

    def _merged(self, merged: Merged) -> Twig:
        when = f" of {time(merged.when)}" if merged.when else ""
        what = f'"{said(merged.text)}"' if merged.text else "something that is no longer there"
        undoable = " (can be undone)" if merged.undoable else ""
        return Twig(f"version {merged.version}{when}: {self._did(merged)} {what}{undoable}")

    def _did(self, merged: Merged) -> str:
        if merged.former:
            return f"put in the place of {', '.join(map(self._name, merged.former))}:"
        return "said again:" if merged.action == Action.MERGE.value else "added:"

    def _edges(self) -> Iterator[Twig]:
        for edge in self.found.edges:
            yield Twig(f"leads to {self._related(edge, edge.to_uri)}")
        for edge in self.found.incoming:
            yield Twig(f"led to by {self._related(edge, edge.from_uri)}")

    def _related(self, edge: RelationEdge, uri: str) -> str:
        why = f": {said(edge.reason)}" if edge.reason else ""
        return f"{self._name(uri)}, {shown(edge.relation_type)} {edge.weight:g}{why}"

    def _versions(self) -> Iterator[Twig]:
        earlier = len(self.found.versions) - _MOST_VERSIONS
        if earlier > 0:
            key = shown(self.memory.key(Uri.parse(self.found.uri)))
            yield Twig(f"{earlier} earlier; `perdure history log {key}` lists them")
        for version in self.found.versions[-_MOST_VERSIONS:]:
            yield Twig(_version(version))
        if self.found.unrecorded:
            yield Twig("edited by hand since, and not recorded yet")

    def _session(self, session: str) -> str:
        try:
            place = Uri(self.memory.request.account_id, ("sessions", session))
        except InvalidUriError:  # somebody wrote that by hand
            return shortened(shown(session), _LONGEST_NAME)
        return self.memory.name(place)

    def _name(self, uri: str) -> str:
        return self.memory.name(Uri.parse(uri))


def _part(name: str, twigs: Sequence[Twig]) -> Iterator[Twig]:
    if twigs:
        yield Twig(name, tuple(twigs))


def _learned(claim: Claim) -> str:
    sure = f", {claim.confidence:.0%} sure" if claim.confidence is not None else ""
    when = f", last said {day(claim.when)}" if claim.when else ""
    topic = f", topic {shown(claim.topic)}" if claim.topic else ""
    return f"learned from what was said{sure}{when}{topic}"


def _quoted(quote: Quote, speaker: str, session: str) -> Twig:
    text, place = f'{speaker}: "{said(quote.text)}"', f"{session}, message {quote.message}"
    if quote.holds:
        return Twig(f"{text} ({place}: found there)", style="green")
    return Twig(f"NOT PROVED: {text} ({place}: {quote.trouble})", style="red")


def _held(former: Former) -> str:
    start = f"from {_date(former.valid_from)} " if former.valid_from else ""
    end = f"until {_date(former.valid_until)}" if former.valid_until else ""
    held = f"{start}{end}".strip()
    return f"held {held}; " if held else ""


def _date(moment: datetime) -> str:
    return moment.date().isoformat()


def _version(version: Version) -> str:
    who = shown(version.actor or version.origin)
    why = f", {said(version.reason)}" if version.reason else ""
    what = "removed" if version.cid is None else str(version.cid)
    return f"{version.number}  {local_time(version.time)}  {who}{why}  {what}"
