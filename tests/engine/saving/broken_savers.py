"""Saving with one fault each. Every one of them is caught by a test beside this file."""

# ruff: noqa: ANN401 - what is broken takes whatever the whole one takes
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perdure.context.draft import Marks
from perdure.context.nodes import Nodes
from perdure.engine import node_writes, sessions
from perdure.engine.learn import merging, naming
from perdure.engine.saving import saving
from perdure.engine.saving.saving import Ahead, Saving, Window
from perdure.engine.sessions import Sessions
from perdure.model import ContextNode, RequestContext
from perdure.safety import secrets, texts
from perdure.safety.texts import Safe

Patch = pytest.MonkeyPatch


def forgets_how_far_it_was(patch: Patch) -> None:
    patch.setattr(Marks, "read", lambda *_: "")
    patch.setattr(Marks, "moved", lambda *_: lambda _draft: None)


def marks_what_it_has_not_learned(patch: Patch) -> None:
    patch.setattr(Ahead, "nodes", lambda _: [])


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
    patch.setattr(texts, "masked", lambda text: (text, []))


def keeps_names(patch: Patch) -> None:
    whole = secrets.masked
    patch.setattr(texts, "masked", lambda text: whole(text) if " " in text else (text, []))


def compares_to_the_letter(patch: Patch) -> None:
    def common(before: Sequence[Any], said: Sequence[Any]) -> int:
        pairs = zip(before, said, strict=False)
        return next((at for at, (one, other) in enumerate(pairs) if one != other), len(before))

    patch.setattr(sessions, "common", common)


def trusts_slugs(patch: Patch) -> None:
    patch.setattr(node_writes, "refuse_secrets", lambda *_, **__: None)


def saves_whatever_it_is_given(patch: Patch) -> None:
    patch.setattr(node_writes, "safe", lambda content, told, _policy: Safe(content, dict(told), ()))


def believes_what_nobody_said(patch: Patch) -> None:
    patch.setattr(saving, "verified", lambda candidates, _messages: (list(candidates), []))


def is_sure_of_everything(patch: Patch) -> None:
    whole = Saving.__init__

    def begin(self: Saving, *args: Any, **named: Any) -> None:
        whole(self, *args, **named)
        object.__setattr__(self._wishes, "least_confidence", 0.0)

    patch.setattr(Saving, "__init__", begin)


def writes_on_a_dry_run(patch: Patch) -> None:
    whole = Sessions.archive

    def archive(self: Any, *args: Any, **_named: Any) -> Any:
        return whole(self, *args, dry_run=False)

    patch.setattr(Sessions, "archive", archive)


def starts_from_the_first_message_again(patch: Patch) -> None:
    patch.setattr(Window, "placed", lambda _, candidates: list(candidates))


def forgets_who_spoke(patch: Patch) -> None:
    patch.setattr(Window, "indexes", property(lambda self: list(range(self.start, self.end))))


def does_not_look_at_its_own_plans(patch: Patch) -> None:
    patch.setattr(Ahead, "at", lambda self, place, ctx: self._known.at(place, ctx))


def writes_over_what_was_put_away(patch: Patch) -> None:
    patch.setattr(saving.KnownNodes, "taken", lambda *_: False)


def learns_what_it_knows(patch: Patch) -> None:
    patch.setattr(saving, "learned_from", lambda _mark, _said: 0)
    patch.setattr(sessions, "learned_from", lambda _mark, _said: 0)


def learns_before_it_keeps(patch: Patch) -> None:
    whole = Saving.commit

    def commit(
        self: Saving, messages: Any, session_id: str, ctx: RequestContext, **named: Any
    ) -> Any:
        said = list(messages)
        for extractor in self._extractors:
            extractor.extract(said, ctx)
        return whole(self, said, session_id, ctx, **named)

    patch.setattr(Saving, "commit", commit)


def learns_for_whoever_came_first(patch: Patch) -> None:
    whole = naming.place_of

    def place_of(candidate: Any, account: str) -> Any:
        kind = candidate.owner_space.partition(":")[0]
        return whole(replace(candidate, owner_space=f"{kind}:ana"), account)

    patch.setattr(merging, "place_of", place_of)


def drops_what_it_supersedes(patch: Patch) -> None:
    whole = Ahead.nodes

    def nodes(self: Ahead) -> Sequence[ContextNode]:
        return [node for node in whole(self) if "/former/" not in node.uri]

    patch.setattr(Ahead, "nodes", nodes)
