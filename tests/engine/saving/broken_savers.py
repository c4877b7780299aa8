"""Session commits with one fault each. Every one of them is caught by a test beside this file."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perdure.context.nodes import Nodes, SessionMarks
from perdure.engine import node_writes, session_commit, sessions
from perdure.engine.learn import policies, slugs
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.session_commit import MessageWindow, SessionCommitter
from perdure.engine.sessions import Sessions
from perdure.model import ContextNode, RequestContext
from perdure.safety import secrets, validation
from perdure.safety.validation import SafeText

# ruff: noqa: ANN401 - what is broken takes whatever the whole one takes


Patch = pytest.MonkeyPatch


def forgets_how_far_it_was(patch: Patch) -> None:
    patch.setattr(SessionMarks, "read", lambda *_: "")
    patch.setattr(SessionMarks, "moved", lambda *_: lambda _draft: None)


def marks_what_it_has_not_learned(patch: Patch) -> None:
    patch.setattr(KnownMemory, "planned", lambda _: [])


def marks_in_a_commit_of_its_own(patch: Patch) -> None:
    whole = Nodes.exchange

    def exchange(
        self: Nodes,
        nodes: Iterable[ContextNode],
        without: Any,
        ctx: RequestContext,
        also: Any = None,
    ) -> None:
        if also is not None:
            whole(self, (), (), ctx, also)
        whole(self, nodes, without, ctx)

    patch.setattr(Nodes, "exchange", exchange)


def writes_one_memory_after_the_other(patch: Patch) -> None:
    whole = Nodes.exchange

    def exchange(
        self: Nodes,
        nodes: Iterable[ContextNode],
        without: Any,
        ctx: RequestContext,
        also: Any = None,
    ) -> None:
        if also is None:
            whole(self, nodes, without, ctx)
            return
        for node in sorted(nodes, key=lambda node: "/former/" in node.uri):
            whole(self, [node], (), ctx)
        whole(self, (), without, ctx, also)

    patch.setattr(Nodes, "exchange", exchange)


def keeps_secrets(patch: Patch) -> None:
    patch.setattr(validation, "mask", lambda text: (text, []))


def keeps_names(patch: Patch) -> None:
    whole = secrets.mask
    patch.setattr(validation, "mask", lambda text: whole(text) if " " in text else (text, []))


def compares_to_the_letter(patch: Patch) -> None:
    def common(before: Sequence[Any], given: Sequence[Any]) -> int:
        pairs = zip(before, given, strict=False)
        return next((at for at, (one, other) in enumerate(pairs) if one != other), len(before))

    patch.setattr(sessions, "shared_prefix", common)


def trusts_slugs(patch: Patch) -> None:
    patch.setattr(node_writes, "refuse_secrets", lambda *_, **__: None)


def saves_whatever_it_is_given(patch: Patch) -> None:
    patch.setattr(
        node_writes,
        "make_safe",
        lambda content, metadata, _policy: SafeText(content, dict(metadata), ()),
    )


def accepts_unverified_candidates(patch: Patch) -> None:
    patch.setattr(session_commit, "verified", lambda candidates, _messages: (list(candidates), []))


def is_sure_of_everything(patch: Patch) -> None:
    whole = SessionCommitter.__init__

    def begin(self: SessionCommitter, *args: Any, **named: Any) -> None:
        whole(self, *args, **named)
        object.__setattr__(self._options, "least_confidence", 0.0)

    patch.setattr(SessionCommitter, "__init__", begin)


def writes_on_a_dry_run(patch: Patch) -> None:
    whole = Sessions.archive

    def archive(self: Any, *args: Any, **_named: Any) -> Any:
        return whole(self, *args, dry_run=False)

    patch.setattr(Sessions, "archive", archive)


def starts_from_the_first_message_again(patch: Patch) -> None:
    patch.setattr(MessageWindow, "placed", lambda _, candidates: list(candidates))


def forgets_who_spoke(patch: Patch) -> None:
    patch.setattr(
        MessageWindow, "indexes", property(lambda self: list(range(self.start, self.end)))
    )


def does_not_look_at_its_own_plans(patch: Patch) -> None:
    patch.setattr(KnownMemory, "at", lambda self, place, ctx: self._stored_at(str(place), ctx))


def writes_over_what_was_put_away(patch: Patch) -> None:
    patch.setattr(KnownMemory, "taken", lambda *_: False)


def learns_what_it_knows(patch: Patch) -> None:
    patch.setattr(session_commit, "learned_count", lambda *_: 0)
    patch.setattr(sessions, "learned_count", lambda *_: 0)


def learns_before_it_keeps(patch: Patch) -> None:
    whole = SessionCommitter.commit

    def commit(
        self: SessionCommitter, messages: Any, session_id: str, ctx: RequestContext, **named: Any
    ) -> Any:
        listed = list(messages)
        for extractor in self._extractors:
            extractor.extract(listed, ctx)
        return whole(self, listed, session_id, ctx, **named)

    patch.setattr(SessionCommitter, "commit", commit)


def learns_for_the_first_user(patch: Patch) -> None:
    whole = slugs.place_of

    def place_of(candidate: Any, account: str) -> Any:
        kind = candidate.owner_space.partition(":")[0]
        return whole(replace(candidate, owner_space=f"{kind}:ana"), account)

    patch.setattr(policies, "place_of", place_of)


def drops_what_it_supersedes(patch: Patch) -> None:
    whole = KnownMemory.planned

    def nodes(self: KnownMemory) -> Sequence[ContextNode]:
        return [node for node in whole(self) if "/former/" not in node.uri]

    patch.setattr(KnownMemory, "planned", nodes)
