"""What breaks pages, superseding or unmerging. The name says the fault."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from perdure.context.nodes import Nodes
from perdure.engine import restore
from perdure.engine.learn import merge, policies, statements
from perdure.engine.learn.evidence import Merge, Support
from perdure.engine.learn.merge import Ending
from perdure.engine.learn.statements import Statement
from perdure.engine.restore import Unmerger
from perdure.model import ContextNode, RequestContext, WritePlan

Patch = pytest.MonkeyPatch
Known = Mapping[str, Support]
Nodelist = Sequence[ContextNode]


# ---------------------------------------------------------------- pages
def reads_lines_as_python_does(patch: Patch) -> None:
    class Lines:
        @staticmethod
        def finditer(content: str, start: int) -> Iterator[re.Match[str]]:
            return re.compile(r"[^\n\x0b\x0c\x85\u2028]*[\n\x0b\x0c\x85\u2028]|.+").finditer(
                content, start
            )

    patch.setattr(statements, "_LINE", Lines)


def reads_items_in_code(patch: Patch) -> None:
    patch.setattr(statements, "_FENCE", re.compile(r"(?!)(?P<fence>)"))


def reads_items_in_comments(patch: Patch) -> None:
    patch.setattr(statements, "_COMMENT", re.compile(r"(?!)"))


def reads_headings_as_statements(patch: Patch) -> None:
    patch.setattr(statements, "_UNDERLINE", re.compile(r"(?!)"))


def reads_properties_as_statements(patch: Patch) -> None:
    patch.setattr(statements, "_PROPERTIES", re.compile(r"(?!)"))


def ends_items_at_gaps(patch: Patch) -> None:
    patch.setattr(statements, "_BELOW_A_GAP", re.compile(r"(?!)"))


def leaves_the_gap(patch: Patch) -> None:
    patch.setattr(statements, "_closed", lambda head, tail: (head, tail))


def cuts_one_character_more(patch: Patch) -> None:
    whole = statements.without

    def without(content: str, gone: Statement) -> str:
        return whole(content, replace(gone, end=min(gone.end + 2, len(content))))

    patch.setattr(statements, "without", without)


def rewrites_the_node(patch: Patch) -> None:
    def inserted(content: str, new: str, before: Statement | None = None) -> str:
        del before
        stands = statements.statements(content)
        return "".join(statements.item(each.text, each.since) for each in stands) + new

    patch.setattr(statements, "inserted", inserted)


def looks_at_no_neighbours(patch: Patch) -> None:
    def joined(content: str, cut: tuple[int, int], new: str) -> str:
        return content[: cut[0]] + new + content[cut[1] :].removeprefix("\n")

    patch.setattr(statements, "_joined", joined)


def names_statements_by_their_letters(patch: Patch) -> None:
    patch.setattr(statements, "cid_of", lambda text: text)


def always_draws_a_dash(patch: Patch) -> None:
    patch.setattr(statements, "is_break", lambda _line: False)


# ---------------------------------------------------------------- superseding
def supersedes_without_a_trace(patch: Patch) -> None:
    whole = merge.changed

    def changed(  # noqa: PLR0913 - as the real one
        page: ContextNode,
        content: str,
        grounds: Known,
        merge: Merge,
        *,
        reason: str,
        former: object = (),
    ) -> WritePlan:
        del former
        return whole(page, content, grounds, merge, reason=reason)

    patch.setattr(merge, "changed", changed)


def leads_nowhere(patch: Patch) -> None:
    whole = merge._former

    def former(page: ContextNode, gone: Statement, known: Known, until: Ending) -> ContextNode:
        return replace(whole(page, gone, known, until), relations=())

    patch.setattr(merge, "_former", former)


def says_not_how_long_it_held(patch: Patch) -> None:
    patch.setattr(merge, "VALID_UNTIL", "ended")


def believes_the_last_it_hears(patch: Patch) -> None:
    patch.setattr(merge, "_stated_at", lambda page, *_: page.created_at.replace(year=1970))


def says_not_since_when(patch: Patch) -> None:
    patch.setattr(merge, "_since", lambda content, *_: content)


# ---------------------------------------------------------------- unmerging
def forgets_what_was_superseded(patch: Patch) -> None:
    patch.setattr(Unmerger, "_before", lambda *_: None)
    patch.setattr(restore, "_item", lambda _former: "")


def leaves_what_was_superseded(patch: Patch) -> None:
    whole = Nodes.exchange

    def exchange(self: Nodes, nodes: Nodelist, _without: object, ctx: RequestContext) -> None:
        whole(self, nodes, (), ctx)

    patch.setattr(Nodes, "exchange", exchange)


def overwrites_what_came_after(patch: Patch) -> None:
    whole = Unmerger._before

    def before(
        self: Unmerger, page: ContextNode, merge: Merge, formers: Nodelist, ctx: RequestContext
    ) -> ContextNode | None:
        last = replace(merge, version=page.version)
        alone = {**page.metadata, "merges": [last.as_json()]}
        return whole(self, replace(page, metadata=alone), last, formers, ctx)

    patch.setattr(Unmerger, "_before", before)


def keeps_nothing_apart(patch: Patch) -> None:
    patch.setattr(restore, "_marked", lambda before, *_: before)


def appends_what_was_taken_apart(patch: Patch) -> None:
    for module in (merge, policies):
        patch.setattr(module, "separated_cids", lambda _page: frozenset())


def loses_the_proof(patch: Patch) -> None:
    patch.setattr(restore, "as_metadata", lambda _grounds: {"statements": None})


def forgets_the_merges_before(patch: Patch) -> None:
    patch.setattr(restore, "merges_as_metadata", lambda _merges: {"merges": None})


def overwrites_what_is_apart(patch: Patch) -> None:
    patch.setattr(statements, "inserted", lambda content, _new: content)


def reads_only_what_is_there(patch: Patch) -> None:
    def read(self: Unmerger, ctx: RequestContext, uri: str) -> ContextNode:
        return self._nodes.read_node(uri, ctx)

    patch.setattr(Unmerger, "_read", read)


def puts_it_back_where_it_was_edited(patch: Patch) -> None:
    whole = Unmerger._before

    def before(
        self: Unmerger, page: ContextNode, merge: Merge, _formers: object, ctx: RequestContext
    ) -> ContextNode | None:
        return whole(self, page, merge, (), ctx)

    patch.setattr(Unmerger, "_before", before)


def tells_of_late_news_as_of_others(patch: Patch) -> None:
    patch.setattr(restore, "_says", lambda *_: False)
