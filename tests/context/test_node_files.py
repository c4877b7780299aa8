"""The files of a node say what was written, and what is hostile is refused."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.context.node_files import Meta, parse_relations, relations_text
from perdure.errors import InvalidValueError
from perdure.model import NodeStatus, RelationEdge
from perdure.model.values import JSON

NOW = datetime(2026, 3, 2, 10, 0, 0, 123_456, tzinfo=UTC)
META = Meta(NodeStatus.ACTIVE, 3, "user:ana", NOW, NOW, {"content.md": "f0155"}, {"a": 1})
START = "ctx://acme/users/ana/memories/preference/a"
TARGET = "ctx://acme/users/ana/memories/preference/b"

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
TIMES = st.datetimes(timezones=st.just(UTC))


@given(
    st.sampled_from(NodeStatus),
    st.integers(1, 2**40),
    TIMES,
    st.sampled_from([META.cids, {}]),
    st.dictionaries(st.text(max_size=8), VALUES, max_size=3),
)
def test_a_meta_is_read_as_it_was_written(
    status: NodeStatus,
    version: int,
    time: datetime,
    cids: dict[str, str],
    metadata: dict[str, JSON],
) -> None:
    meta = META._replace(status=status, version=version, created_at=time, cids=cids)
    written = meta._replace(metadata=metadata)
    read = Meta.parse(written.text())

    assert read._replace(metadata={}) == written._replace(metadata={})
    assert json.loads(read.text()) == json.loads(written.text())


def test_a_meta_has_a_line_for_each_thing_that_it_says() -> None:
    lines = META.text().splitlines()

    assert lines[0] == "{"
    assert lines[2] == '  "status": "ACTIVE",'
    assert len(lines) == len(json.loads(META.text())) + 2


def test_a_meta_without_cids_names_only_what_is_not_the_default() -> None:
    meta = Meta(NodeStatus.ACTIVE, 1, "", NOW, NOW, {}, {}, "5891b5b522d5")

    assert json.loads(meta.text()) == {
        "created_at": "2026-03-02T10:00:00.123456Z",
        "content": "5891b5b522d5",
    }
    assert Meta.parse(meta.text()) == meta


@given(
    st.lists(
        st.builds(
            RelationEdge,
            st.just(START),
            st.just(TARGET),
            st.sampled_from(["related", "supports"]),
            st.floats(0, 1),
            st.text(max_size=20),
            TIMES,
        ),
        max_size=3,
    )
)
def test_edges_are_read_as_they_were_written(edges: list[RelationEdge]) -> None:
    assert parse_relations(relations_text(tuple(edges)), START) == tuple(edges)


def changed(**raw: object) -> str:
    return json.dumps({**json.loads(META.text()), **raw})


HOSTILE_JSON = (
    "",
    "{",
    "null",
    '"text"',
    "1",
    "[" * 100_000,
    '{"a":' * 100_000,
    "9" * 10_000,
    "\x00",
    "NaN",
    META.text() + "{}",
)


HOSTILE_METAS = (
    *HOSTILE_JSON,
    "[]",
    "{}",
    changed(format=2),
    changed(format="1"),
    changed(status="active"),
    changed(status=[]),
    changed(status=None),
    changed(version=0),
    changed(version=True),
    changed(version=1.5),
    changed(version="1"),
    changed(version=10**30),
    changed(owner_space=7),
    changed(content=7),
    changed(owner_space="\ud800"),
    changed(created_at="yesterday"),
    changed(created_at="2026-02-30T10:00:00Z"),
    changed(created_at="2026-03-02T10:00:00"),
    changed(created_at="٢٠٢٦-03-02T10:00:00Z"),
    changed(created_at=0),
    changed(created_at="9999-12-31T23:59:59-23:59"),
    changed(parts=[]),
    changed(parts={"content.md": 1}),
    changed(metadata=[]),
    changed(metadata={"a": 10**30}),
    changed(metadata={"a": "\ud800"}),
    changed(metadata={"a": float("inf")}),
    changed(metadata={"a": json.loads("[" * 40 + "]" * 40)}),
    META.text().replace('"version": 3', '"version": 3, "version": 4'),
    META.text().replace('{"a": 1}', '{"a": 1, "a": 2}'),
    META.text().replace('{"a": 1}', '{"a": 1e999}'),
)


@pytest.mark.parametrize("text", HOSTILE_METAS, ids=range(len(HOSTILE_METAS)))
def test_a_hostile_meta_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        Meta.parse(text)

    assert "Fix: " in str(refusal.value)
    assert len(str(refusal.value)) < 500


def one(**raw: object) -> str:
    edge = {"to": TARGET, "type": "related", "weight": 0.5, "created_at": "2026-03-02T10:00:00Z"}
    return json.dumps([{**edge, **raw}])


HOSTILE_EDGES = (
    *HOSTILE_JSON,
    "{}",
    "[1]",
    "[[]]",
    "[{}]",
    one(to="nowhere"),
    one(to=START),
    one(to="ctx://other/resources/b"),
    one(to="ctx://acme/users/ana/memories/preference"),
    one(to=1),
    one(type="Related to"),
    one(type=None),
    one(weight=2),
    one(weight="1"),
    one(weight=True),
    one(weight=float("nan")),
    one(weight=10**400),
    one(reason=1),
    one(reason="x" * 1_000),
    one(created_at="2026-02-30T10:00:00Z"),
    one(created_at=None),
    one().replace('"weight": 0.5', '"weight": 0.5, "weight": 1'),
)


@pytest.mark.parametrize("text", HOSTILE_EDGES, ids=range(len(HOSTILE_EDGES)))
def test_hostile_edges_are_refused(text: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        parse_relations(text, START)

    assert "Fix: " in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_an_edge_may_leave_out_what_is_usual() -> None:
    raw = f'[{{"to": "{TARGET}", "type": "related", "created_at": "2026-03-02T11:00:00+01:00"}}]'
    (edge,) = parse_relations(raw, START)

    assert (edge.weight, edge.reason) == (1.0, "")
    assert edge.created_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
