"""The review queue: candidates that no rule wrote, for the user to accept, edit or reject.

Candidates are found in the sessions each time, so that what was forgotten there is not proposed.
Kept is only what was decided, and what a model was asked about: hashes of the words, so that
nothing is proposed, or asked, twice.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.context.draft import Draft
from perdure.context.files import said_at
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.engine.freshness import stated_in
from perdure.engine.learn import net
from perdure.engine.learn.evidence import support_of, text_of, texts_of
from perdure.engine.learn.rules import written
from perdure.engine.learn.statements import statements
from perdure.engine.sessions import Sessions, list_sessions
from perdure.errors import InvalidValueError, NodeNotFoundError
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.anchors import Checkout, Stated
from perdure.model.values import words_key
from perdure.storage import Locator

REVIEWED = ".reviewed"
JUDGED = ".judged"
MOST_SESSIONS = 50
"""So many sessions are looked at, newest first."""
_DIGEST = 12


@dataclass(frozen=True, slots=True)
class Pending:
    """A sentence that may be worth keeping, and where it is."""

    id: str
    text: str
    kind: str
    score: float
    session_id: str
    message: int
    start: int
    end: int
    project: str = ""
    reason: str = ""
    """Why a statement that is kept already is offered for removal; empty for a new one."""
    uri: str = ""
    """The node of such a statement."""


def id_of(text: str) -> str:
    """Return the name of a sentence: the same for the same words."""
    return hashlib.sha256(words_key(text).encode()).hexdigest()[:_DIGEST]


_SECONDS = 2.0


def abandoned(checkout: Checkout, nodes: Iterable[ContextNode]) -> Iterator[Pending]:
    """Yield the statements whose branch is gone and was never merged, with the reason."""
    found = [(node, each) for node in nodes for each in _anchored(node)]
    verdicts = checkout.checked([each for _, each in found], _SECONDS)
    for (node, each), verdict in zip(found, verdicts, strict=True):
        if verdict.is_abandoned:
            id_ = id_of(f"{node.uri} {each.text}")
            rest = 0, 0, len(each.text), node.project, verdict.held_back, node.uri
            yield Pending(id_, each.text, each.kind or "fact", 1.0, "", *rest)


def _anchored(node: ContextNode) -> Iterator[Stated]:
    support = support_of(node)
    for each in statements(node.content) if support else ():
        if each.cid in support and support[each.cid].all_anchors:
            yield stated_in(node, each.text, support[each.cid])


class Review:
    """The queue of one caller."""

    def __init__(self, nodes: Nodes, reader: NodeReader, ctx: RequestContext) -> None:
        self._nodes = nodes
        self._reader = reader
        self._ctx = ctx

    def pending(self, most: int, project: str = "") -> list[Pending]:
        """Return the candidates of a project's newest sessions or of all, the likeliest first."""
        infos = list_sessions(self._reader, self._ctx)
        newest = [info.id for info in infos if project in {"", info.project}][:MOST_SESSIONS]
        return self._of_sessions(newest, self._noted(REVIEWED))[:most]

    def unjudged(
        self, project: str = "", before: datetime | None = None, ended: Collection[str] = ()
    ) -> list[Pending]:
        """Return the candidates that no model was asked about, the likeliest first.

        With `before`, only those of sessions whose last message is older, or which `ended`.
        """
        infos = list_sessions(self._reader, self._ctx)
        newest = [info for info in infos if project in {"", info.project}][:MOST_SESSIONS]
        over = [e.id for e in newest if before is None or e.date < before or e.id in ended]
        return self._of_sessions(over, self._noted(REVIEWED) | self._noted(JUDGED))

    def _of_sessions(self, sessions: Iterable[str], known: Collection[str]) -> list[Pending]:
        found: dict[str, Pending] = {}
        for each in (candidate for id_ in sessions for candidate in self._of_session(id_)):
            if each.id not in known:
                found.setdefault(each.id, each)
        return sorted(found.values(), key=lambda each: -each.score)

    def find(self, id_: str, offered: Sequence[Pending] = ()) -> Pending:
        """Return one candidate by its id, or by the beginning of it; it may be one of `offered`."""
        all_ = (*offered, *self.pending(10_000))
        found = [each for each in all_ if id_ and each.id.startswith(id_)]
        if len(found) != 1:
            what = "several candidates are" if found else "no candidate is"
            raise InvalidValueError(f"{what} called {id_[:80]!a}. Fix: run `perdure review`.")
        return found[0]

    def _of_session(self, session: str) -> Iterator[Pending]:
        place = Uri(self._ctx.account_id, ("sessions", session))
        try:
            messages = Sessions(self._nodes).messages(place, self._ctx)
            first = self._reader.read_node(str(place.child("messages")), self._ctx)
        except NodeNotFoundError:
            return
        project = text_of(first.metadata.get("project"))
        known = {each.key for each in written(messages)}
        for each in net.candidates(messages):
            sentence = each.sentence
            if sentence.key not in known:
                yield Pending(
                    id_of(sentence.text),
                    sentence.text,
                    each.kind,
                    round(each.score, 3),
                    session,
                    sentence.message,
                    sentence.start,
                    sentence.end,
                    project,
                )

    # ------------------------------------------------------------ what was decided
    def decide(self, *texts: str) -> Callable[[Draft], None]:
        """Return the plan to note that sentences were accepted or rejected."""
        return self._note(REVIEWED, texts)

    def _note(self, name: str, texts: Iterable[str]) -> Callable[[Draft], None]:
        new, file = {id_of(text) for text in texts}, self._file(name)

        def plan(draft: Draft) -> None:
            found = said_at(file, self._reader.backend.read)
            known = _ids(found)
            if not new <= known:
                draft.put(file, json.dumps(sorted(known | new), indent=0) + "\n", found)

        return plan

    def reject(self, *texts: str) -> None:
        """Note that sentences are not worth keeping; they are never proposed again."""
        self._nodes.because("review").exchange((), (), self._ctx, also=self.decide(*texts))

    def note_judged(self, *texts: str) -> None:
        """Note that a model was asked about sentences; they stay in the queue for the user."""
        plan = self._note(JUDGED, texts)
        self._nodes.because("judged by a model").exchange((), (), self._ctx, also=plan)

    def _noted(self, name: str) -> frozenset[str]:
        return frozenset(_ids(said_at(self._file(name), self._reader.backend.read)))

    def _file(self, name: str) -> Locator:
        return self._reader.file(Uri(self._ctx.account_id, ("users", self._ctx.user_id)), name)


def _ids(found: object) -> set[str]:
    try:
        return set(texts_of(json.loads(text_of(found) or "[]")))
    except ValueError:
        return set()
