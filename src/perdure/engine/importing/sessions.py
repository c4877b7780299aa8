"""Conversations become sessions: their messages, and a note that says where they came from."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from perdure.context.nodes import Nodes
from perdure.engine.importing.contract import Conversation, Said
from perdure.engine.importing.standing import SOURCE_DIGEST, State, Verbs, known_at, origin
from perdure.engine.importing.texts import stable_name
from perdure.engine.sessions import ORIGIN, Sessions, clean_title
from perdure.engine.validate.texts import count_masked
from perdure.engine.validate.validating import kept_messages, same
from perdure.errors import NodeExistsError
from perdure.model import ContextNode, Uri
from perdure.model.transcript import Message

_COUNT = "source_messages"


class SessionImporter:
    """Archives conversations. One that grew is continued; one that differs is left alone."""

    def __init__(self, memory: Verbs, nodes: Nodes, *, learn: bool = False) -> None:
        self._memory = memory
        self._nodes = nodes
        self._learn = learn
        self.learned: Counter[str] = Counter()
        """What came of learning from them."""
        self.masked = 0
        """How many secrets were masked in what is new, in titles too."""

    def put(self, item: Conversation, *, dry_run: bool) -> State:
        session_id = stable_name(item.source, item.source_id)
        place = Uri(self._memory.caller.account_id, ("sessions", session_id))
        ctx = replace(self._memory.caller, session_id=session_id)
        note = known_at(self._nodes, place.child(ORIGIN), ctx)
        state = self._state(item, place, note)
        title = clean_title(item.title if item.title.split() else f"Session {place.name}")
        wanted = _note(item, place, title.text)
        titled = note is not None and note.content == wanted.content
        if not dry_run and (state is not State.SAME or self._learn):
            done = self._memory.commit_session(
                item.messages, session_id=session_id, extract=self._learn
            )
            self.learned += Counter(done.counts)
            self.masked += done.masked
        if state is State.SAME and titled:
            return state
        if not dry_run:
            self._write(wanted, note, state)
            self.masked += count_masked(title.notes)
        return State.CHANGED if state is State.SAME and note is not None else state

    def _state(self, item: Conversation, place: Uri, note: ContextNode | None) -> State:
        """Say how the messages stand to those that are there; `NodeExistsError` if they differ."""
        count = note.metadata.get(_COUNT) if note is not None else None
        if note is not None and isinstance(count, int):
            common = _digest(item.messages[:count])
            if count <= len(item.messages) and common == note.metadata.get(SOURCE_DIGEST):
                return State.SAME if count == len(item.messages) else State.CHANGED
        before = self._before(place)
        said = kept_messages(item.messages)
        if not same(before, said):
            raise NodeExistsError(
                f"the session {place.name[:80]!a} is there with other messages. It was left alone. "
                "Fix: move or delete it, and import again."
            )
        if len(said) <= len(before):
            return State.SAME
        return State.CHANGED if before else State.NEW

    def _before(self, place: Uri) -> list[Message]:
        """Return the messages that the session has, each put together from its pieces."""
        ctx = replace(self._memory.caller, session_id=place.name)
        return Sessions(self._nodes).messages(place, ctx)

    def _write(self, wanted: ContextNode, note: ContextNode | None, state: State) -> None:
        """Write the note, when the messages are there; it says how many of them were imported."""
        if note is not None:
            fewer = state is State.SAME
            metadata = {} if fewer else dict(wanted.metadata)
            wanted = note.revised(
                content=wanted.content, abstract=wanted.abstract, metadata=metadata
            )
        ctx = replace(self._memory.caller, session_id=wanted.place.session)
        self._nodes.because("import").write_node(wanted, ctx)


def _note(item: Conversation, place: Uri, title: str) -> ContextNode:
    metadata = {
        **origin(item, ""),
        SOURCE_DIGEST: _digest(item.messages),
        _COUNT: len(item.messages),
        "source_created_at": item.created_at or None,
        "source_updated_at": item.updated_at or None,
        "date": item.created_at or None,
    }
    return ContextNode(
        uri=str(place.child(ORIGIN)),
        content=f"# {title}\n\nImported from {item.source}.\n",
        abstract=title,
        metadata=metadata,
    )


def _digest(messages: Sequence[Said]) -> str:
    """Return one hash of messages; those of a beginning have another."""
    hashed = sha256()
    for said in messages:
        hashed.update(json.dumps(dict(said), sort_keys=True).encode())
        hashed.update(b"\n")
    return hashed.hexdigest()
