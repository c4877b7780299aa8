"""Where memories come from: what they rest on, whether that is still there, and who may know."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import (
    Evidence,
    Mention,
    Merge,
    Support,
    as_metadata,
    cid_of,
    merges_as_metadata,
)
from perdure.engine.provenance import ProvenanceKind, Quote, StatementProvenance
from perdure.errors import AccessDeniedError, NodeNotFoundError
from perdure.model import SUPERSEDED_BY, ContextNode, RelationEdge, RequestContext
from tests.engine.remembering import ADMIN, ANA, of, opened

pytestmark = pytest.mark.usefixtures("agfs")

MEMORIES = "ctx://local/users/ana/memories"
PROFILE = f"{MEMORIES}/profile"
MAKE_TEST = "ctx://local/agents/default/skills/make-test"
SKILL = "ctx://local/agents/default/skills/deploy"
BERLIN = {
    "role": "user",
    "name": "Ana",
    "content": "I live in Berlin.",
    "time": "2026-03-02T10:00:00Z",
}
LISBON = {**BERLIN, "content": "I moved: I live in Lisbon now.", "time": "2026-05-02T10:00:00Z"}
BEN = RequestContext("local", "ben")
"""Of the same account and agent as Ana; her sessions are none of his."""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        of(context).commit_session([BERLIN], session_id="march")
        yield context


def moved(context: Context) -> None:
    of(context).commit_session([LISBON], session_id="may")


def only(
    context: Context, uri: str = PROFILE, request: RequestContext = ANA
) -> StatementProvenance:
    (statement,) = of(context, request).why(uri).statements
    return statement


def file_of(tmp_path: Path, key: str) -> Path:
    return tmp_path / ".perdure" / "memory" / "accounts" / "local" / key / "content.md"


class TestEvidence:
    def test_a_statement_has_the_words_it_rests_on(self, context: Context) -> None:
        statement = only(context)

        assert statement.text == "Ana lives in Berlin."
        assert statement.extracted
        assert statement.when == datetime(2026, 3, 2, 10, tzinfo=UTC)
        assert (statement.confidence, statement.topic, statement.since) == (0.9, "home", None)
        (evidence,) = statement.evidence
        assert (evidence.session, evidence.speaker, evidence.wording) == ("march", "Ana", "")
        assert evidence.quotes == (Quote(0, "I live in Berlin"),)
        assert statement.holds

    def test_every_repetition_is_evidence(self, context: Context) -> None:
        of(context).commit_session([BERLIN], session_id="april")

        assert [each.session for each in only(context).evidence] == ["april", "march"]

    def test_a_message_that_was_changed_proves_nothing(
        self, context: Context, tmp_path: Path
    ) -> None:
        messages = file_of(tmp_path, "sessions/march/messages")
        messages.write_text(messages.read_text().replace("live", "lived"))

        statement = only(context)

        assert [q.trouble for q in statement.evidence[0].quotes] == [
            "the message was changed since"
        ]
        assert not statement.holds
        assert not of(context).why(PROFILE).holds

    def test_a_session_that_is_gone_proves_nothing(self, context: Context) -> None:
        context.nodes.delete_node("ctx://local/sessions/march/messages", ANA)

        statement = only(context, request=ADMIN)

        assert [q.trouble for q in statement.evidence[0].quotes] == [
            "the session does not exist any more"
        ]

    @pytest.mark.parametrize(
        ("evidence", "trouble"),
        [
            (Evidence(7, cid_of("I live in Berlin."), "Berlin"), "the session has no message 7"),
            (Evidence(-1, cid_of("I live in Berlin."), "Berlin"), "the session has no message -1"),
            (Evidence(0, cid_of("I live in Berlin."), "Rome"), "the message does not contain this"),
            (Evidence(0, cid_of("I live in Rome."), "Rome"), "the message was changed since"),
            (Evidence(0, cid_of("I live in Berlin."), " "), "the message does not contain this"),
        ],
    )
    def test_words_that_are_not_in_their_message_prove_nothing(
        self, context: Context, evidence: Evidence, trouble: str
    ) -> None:
        uri = f"{MEMORIES}/entity/rome"
        write(context, uri, "Ana lives in Rome.", Mention("march", (evidence,), "Ana"))

        (quote,) = only(context, uri).evidence[0].quotes

        assert quote.trouble.startswith(trouble)

    def test_words_of_another_speaker_prove_nothing(self, context: Context) -> None:
        evidence = Evidence(0, cid_of("I live in Berlin."), "I live in Berlin")
        uri = f"{MEMORIES}/entity/tom"
        write(context, uri, "Tom lives in Berlin.", Mention("march", (evidence,), "Tom"))

        assert only(context, uri).evidence[0].quotes[0].trouble == "another speaker wrote this"

    @pytest.mark.parametrize("session", ["", "no-such", "x" * 500])
    def test_a_session_that_never_was_proves_nothing(self, context: Context, session: str) -> None:
        saying = Mention(session, (Evidence(0, cid_of("x"), "x"),), "Ana")
        uri = f"{MEMORIES}/entity/rome"
        write(context, uri, "Ana lives in Rome.", saying)

        assert not only(context, uri, ADMIN).holds

    def test_evidence_with_other_words_is_marked(self, context: Context) -> None:
        mention = Mention("march", (Evidence(0, cid_of("x"), "x"),), "Ana", "Ana's home is Berlin.")
        uri = f"{MEMORIES}/entity/berlin"
        write(context, uri, "Ana lives in Berlin.", mention)

        assert only(context, uri).evidence[0].wording == "Ana's home is Berlin."


def write(context: Context, uri: str, text: str, *mentions: Mention) -> None:
    """Write a page as if it had been extracted."""
    grounds = {statements.cid_of(text): Support(mentions=mentions)}
    node = ContextNode(uri=uri, content=f"{text}\n", metadata=as_metadata(grounds))
    context.nodes.write_node(node, ADMIN)


class TestSuperseding:
    def test_a_superseded_node_is_listed_with_its_evidence(self, context: Context) -> None:
        moved(context)

        found = of(context).why(PROFILE)

        (former,) = found.superseded
        assert former.text == "Ana lives in Berlin."
        assert former.reason == "On 2026-05-02: Ana lives in Lisbon."
        assert former.valid_until == datetime(2026, 5, 2, 10, tzinfo=UTC)
        assert former.statements[0].evidence[0].session == "march"
        assert found.statements[0].since == date(2026, 5, 2)
        assert found.incoming == ()

    def test_what_no_longer_holds_says_what_does(self, context: Context) -> None:
        moved(context)
        (former,) = of(context).why(PROFILE).superseded

        found = of(context).why(former.uri)

        assert [each.uri for each in found.superseded_by] == [PROFILE]
        assert (found.edges, found.superseded, found.merges) == ((), (), ())

    def test_a_chain_is_followed_to_its_end_and_a_cycle_once(self, context: Context) -> None:
        uris = [f"{MEMORIES}/entity/{name}" for name in ("one", "two", "three")]
        for uri in uris:
            write(context, uri, f"It is {uri}.")
        ends = zip(uris, (*uris[1:], uris[0]), strict=True)
        edges = [RelationEdge(start, end, SUPERSEDED_BY) for start, end in ends]
        context.relations.upsert_edges(edges, ANA)

        (two,) = of(context).why(uris[2]).superseded

        assert two.uri == uris[1]
        assert [each.uri for each in two.superseded] == [uris[0]]
        assert two.superseded[0].superseded == ()

    def test_a_cycle_further_back_is_reported_once(self, context: Context) -> None:
        now, one, two = uris = [f"{MEMORIES}/entity/{name}" for name in ("now", "one", "two")]
        for uri in uris:
            write(context, uri, f"It is {uri}.")
        ends = ((one, now), (two, one), (one, two))
        edges = [RelationEdge(start, end, SUPERSEDED_BY) for start, end in ends]
        context.relations.upsert_edges(edges, ANA)

        (first,) = of(context).why(now).superseded

        assert [(each.uri, each.superseded) for each in first.superseded] == [(two, ())]

    def test_merges_tell_what_went_in_when_and_whether_it_can_be_undone(
        self, context: Context
    ) -> None:
        moved(context)

        (merged,) = of(context).why(PROFILE).merges

        assert (merged.version, merged.action, merged.text) == (2, "merge", "Ana lives in Lisbon.")
        assert merged.when is not None
        assert len(merged.former) == 1
        assert merged.undoable

    def test_a_merge_whose_statement_is_gone_can_not_be_undone(self, context: Context) -> None:
        moved(context)
        node = of(context).read(PROFILE)
        context.nodes.write_node(node.revised(content="- Ana lives in Rome.\n"), ANA)

        (merged,) = of(context).why(PROFILE).merges

        assert not merged.undoable
        assert (merged.text, merged.statement) == ("", "")


class TestKinds:
    def test_what_was_written_by_hand_rests_on_nothing(self, context: Context) -> None:
        uri = of(context).save("- Tabs.\n- No milk.", category="habit", slug="all")

        found = of(context).why(uri)

        assert [(each.text, each.extracted) for each in found.statements] == [
            ("Tabs.", False),
            ("No milk.", False),
        ]
        assert found.holds
        assert [(each.number, each.actor) for each in found.versions] == [(1, "ana/default")]

    def test_a_line_added_by_hand_is_distinguished_from_learned_ones(
        self, context: Context, tmp_path: Path
    ) -> None:
        with file_of(tmp_path, "users/ana/memories/profile").open("a") as file:
            file.write("- Ana has a dog.\n")

        found = of(context).why(PROFILE)

        assert [each.extracted for each in found.statements] == [True, False]
        assert found.unrecorded
        assert not of(context).why("ctx://local/sessions/march/messages").unrecorded

    def test_the_messages_of_a_session_are_what_others_rest_on(self, context: Context) -> None:
        found = of(context).why("ctx://local/sessions/march/messages")

        assert (found.kind, found.messages, found.statements) == (ProvenanceKind.SESSION, 1, ())

    def test_a_resource_is_a_document(self, context: Context) -> None:
        uri = "ctx://local/resources/guide"
        node = ContextNode(
            uri=uri, content="# Guide\n\n- a\n- b\n", metadata={"source": "markdown"}
        )
        context.nodes.write_node(node, ADMIN)

        found = of(context).why(uri)

        assert (found.kind, found.source, found.statements) == (
            ProvenanceKind.DOCUMENT,
            "markdown",
            (),
        )

    def test_edges_are_listed_both_ways(self, context: Context) -> None:
        uri = of(context).save("See [[profile]].", category="habit", slug="link")

        assert [each.from_uri for each in of(context).why(PROFILE).incoming] == [uri]
        assert [each.to_uri for each in of(context).why(uri).edges] == [PROFILE]

    def test_metadata_that_is_no_evidence_is_none(self, context: Context) -> None:
        uri = of(context).save("Tabs.", category="habit", slug="odd")
        odd = {"statements": [1], "merges": {"a": 1}, "source": 3}
        context.nodes.write_node(of(context).read(uri).revised(metadata=odd), ANA)

        found = of(context).why(uri)

        assert (found.statements[0].extracted, found.merges, found.source) == (False, (), "")

    def test_there_must_be_a_node(self, context: Context) -> None:
        with pytest.raises(NodeNotFoundError):
            of(context).why(f"{MEMORIES}/habit/none")


class TestAgents:
    """What an agent learns is read by all its users, and rests on what one of them said."""

    @pytest.fixture
    def skilled(self, context: Context) -> Context:
        tip = {**BERLIN, "content": "To test at my place, run `make test`."}
        of(context).commit_session([tip], session_id="tip")
        return context

    def test_it_has_neither_the_words_nor_the_speaker(self, skilled: Context) -> None:
        node = of(skilled, BEN).read(MAKE_TEST)

        assert "at my place" not in repr(node.metadata)
        assert "Ana" not in repr(node.metadata)
        assert only(skilled, MAKE_TEST, BEN).out_of_reach == 1

    def test_a_caller_who_may_read_the_session_sees_both(self, skilled: Context) -> None:
        statement = only(skilled, MAKE_TEST)

        assert statement.holds
        assert statement.evidence[0].speaker == "Ana"
        assert statement.evidence[0].quotes == (Quote(0, "To test at my place, run `make test`."),)

    def test_a_message_that_was_changed_proves_nothing(
        self, skilled: Context, tmp_path: Path
    ) -> None:
        file = file_of(tmp_path, "sessions/tip/messages")
        file.write_text(file.read_text().replace("make test", "make it"))

        statement = only(skilled, MAKE_TEST)

        assert statement.evidence[0].quotes == (Quote(0, "", "the message was changed since"),)
        assert statement.evidence[0].speaker == ""


class TestReach:
    @pytest.fixture
    def shared(self, context: Context) -> Context:
        """Let a skill of the agent whom both have rest on what Ana said."""
        mention = Mention(
            "march", (Evidence(0, cid_of("I live in Berlin."), "Berlin"),), "Ana", "W"
        )
        write(context, SKILL, "Deploy from Berlin.", mention)
        return context

    def test_a_session_out_of_reach_is_only_counted(self, shared: Context) -> None:
        statement = only(shared, SKILL, BEN)

        assert (statement.evidence, statement.out_of_reach) == ((), 1)
        text = repr(of(shared, BEN).why(SKILL))
        assert "march" not in text
        assert "I live" not in text
        assert "Ana" not in text

    def test_its_owner_and_those_who_govern_see_it(self, shared: Context) -> None:
        for request in (ANA, ADMIN):
            statement = only(shared, SKILL, request)
            assert (statement.out_of_reach, statement.evidence[0].session, statement.holds) == (
                0,
                "march",
                True,
            )

    def test_a_node_out_of_reach_is_refused(self, context: Context) -> None:
        with pytest.raises(AccessDeniedError):
            of(context, BEN).why(PROFILE)

    def test_what_a_merge_superseded_out_of_reach_is_left_out(self, shared: Context) -> None:
        node = shared.nodes.read_node(SKILL, ADMIN)
        cid = statements.cid_of("Deploy from Berlin.")
        metadata = merges_as_metadata([Merge(2, "merge", cid, former=(PROFILE, "no uri"))])
        shared.nodes.write_node(node.revised(metadata={**node.metadata, **metadata}), ADMIN)

        assert of(shared).why(SKILL).merges[0].former == (PROFILE,)
        assert of(shared, BEN).why(SKILL).merges[0].former == ()

    def test_a_successor_out_of_reach_is_left_out(self, shared: Context) -> None:
        edge = RelationEdge(PROFILE, SKILL, SUPERSEDED_BY, reason="Ana lives in Berlin.")
        back = RelationEdge(SKILL, PROFILE, "about", reason="Ana lives in Berlin.")
        shared.relations.upsert_edges([edge, back], ADMIN)

        assert len(of(shared).why(SKILL).superseded) == 1
        found = of(shared, BEN).why(SKILL)
        assert (found.superseded, found.edges, found.incoming) == ((), (), ())
        assert "Ana lives" not in repr(found)
