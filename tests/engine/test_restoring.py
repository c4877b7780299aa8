"""A node can be again what it was; nothing is lost by that, and nobody sees or writes more."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.errors import (
    AccessDeniedError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
)
from perdure.model import RelationEdge
from perdure.storage.text_history import RESTORE
from tests.engine.remembering import ANA, BOB, of, opened, save_all

TABS = "ctx://local/users/ana/memories/preference/indentation"
COFFEE = "ctx://local/users/ana/memories/preference/coffee"
THEN = "Prefers tabs over spaces in every language."


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path) as context:
        save_all(of(context))
        yield context


def now(context: Context) -> IndexState:
    return IndexState(0, context.recorded.history.position())


def test_a_node_is_again_what_it_was_as_its_next_version(context: Context) -> None:
    memory = of(context)
    then = now(context)
    memory.save("Spaces.", category="preference", slug="indentation", metadata={"mood": "odd"})

    restored = memory.restore(TABS, then)

    assert (restored.content, restored.version, dict(restored.metadata)) == (THEN, 3, {})
    versions = memory.history(TABS)
    assert len(versions) == 3
    assert (versions[-1].cid, versions[-1].origin) == (versions[0].cid, RESTORE)
    assert memory.recall("tabs or spaces?").hits[0].snippet == THEN


@pytest.mark.parametrize("as_text", [True, False])
def test_a_version_can_be_named_by_its_content(context: Context, as_text: bool) -> None:  # noqa: FBT001 - given
    memory = of(context)
    memory.save("Spaces.", category="preference", slug="indentation")
    cid = memory.history(TABS)[0].cid
    assert cid is not None

    assert memory.restore(TABS, str(cid) if as_text else cid).content == THEN
    with pytest.raises(NodeNotFoundError, match="Fix: "):
        memory.restore(COFFEE, cid)


def test_what_a_node_was_before_it_was_moved_can_be_restored(context: Context) -> None:
    memory, moved = of(context), TABS.replace("indentation", "tabs")
    cid = memory.history(TABS)[0].cid
    assert cid is not None
    context.nodes.move_node(TABS, moved, ANA)
    memory.save("Spaces.", category="preference", slug="tabs")

    assert memory.restore(moved, cid).content == THEN


def test_a_deleted_node_comes_back_and_is_found(context: Context) -> None:
    memory = of(context)
    then = now(context)
    context.nodes.delete_node(TABS, ANA)
    memory.settle()
    assert memory.recall("spaces").hits == ()

    assert memory.restore(TABS, then).version == 1
    assert memory.recall("spaces").hits[0].uri == TABS
    assert memory.recall("spaces").index_lag == 0


def test_to_restore_what_it_is_changes_nothing(context: Context) -> None:
    before = now(context)

    assert of(context).restore(TABS, before).version == 1
    assert of(context).restore(TABS, datetime.now(UTC)).version == 1
    assert now(context) == before
    assert context.outbox.list_unfinished("local") == []


def test_relations_overview_and_frontmatter_come_back_too(context: Context) -> None:
    memory = of(context)
    edge = RelationEdge(TABS, COFFEE, "needs")
    node = memory.read(TABS).revised(
        relations=(edge,), abstract="Tabs.", overview="All tabs.", frontmatter="colour: red\n"
    )
    context.nodes.write_node(node, ANA)
    then = now(context)
    plain = memory.read(TABS).revised(
        relations=(), abstract="", overview="", frontmatter="colour: blue\n"
    )
    context.nodes.write_node(plain, ANA)

    restored = memory.restore(TABS, then)

    assert [each.to_uri for each in restored.relations] == [COFFEE]
    assert (restored.abstract, restored.overview) == ("Tabs.", "All tabs.")
    assert restored.frontmatter == "colour: red\n"


def test_frontmatter_that_did_not_exist_yet_is_removed_again(context: Context) -> None:
    then = now(context)
    node = of(context).read(TABS).revised(frontmatter="colour: blue\n")
    context.nodes.write_node(node, ANA)

    assert of(context).restore(TABS, then).frontmatter is None


def test_who_may_not_see_or_change_a_node_restores_nothing(context: Context) -> None:
    then = now(context)
    of(context).save("Spaces.", category="preference", slug="indentation")
    for wanted in (then, of(context).history(TABS)[0].cid, "2026-01-01"):
        assert wanted is not None
        with pytest.raises(AccessDeniedError):
            of(context, BOB).restore(TABS, wanted)

    assert of(context).read(TABS).content == "Spaces."


def test_where_nothing_was_nothing_is_restored(context: Context) -> None:
    with pytest.raises(NodeNotFoundError):
        of(context).restore(TABS, "2001-01-01")
    with pytest.raises(InvalidValueError, match="Fix: "):
        of(context).restore(TABS, "soon")

    assert of(context).read(TABS).version == 1


def test_an_archived_node_is_unarchived_first(context: Context) -> None:
    then = now(context)
    context.nodes.archive_node(TABS, ANA)

    with pytest.raises(NodeExistsError, match="unarchive"):
        of(context).restore(TABS, then)


def test_the_past_takes_the_same_filters_as_the_present(context: Context) -> None:
    memory = of(context)
    memory.save("Tabs at work.", category="habit", slug="work", metadata={"project": "x"})
    then = now(context)
    memory.save("Nothing.", category="habit", slug="work")
    past = memory.at(then)
    only = {"category": "habit"}

    assert [hit.snippet for hit in past.recall("tabs", filters=only).hits] == ["Tabs at work."]
    assert past.recall("tabs", filters=only) == memory.recall("tabs", filters=only, at=then)
    packed = past.recall("tabs", budget_tokens=200, project="x")
    assert packed == memory.recall("tabs", budget_tokens=200, project="x", at=then)
    assert packed.hits[0].snippet == "Tabs at work."
    with pytest.raises(InvalidValueError, match="Fix: "):
        past.recall("tabs", filters={"colour": "red"})
