"""Literals, derivations and their structure."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.artifacts.artifact import (
    Artifact,
    Derived,
    Literal,
    decode_canonical,
    in_order,
    sid_of,
    structures,
)
from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.derivations import Operations
from perdure.errors import CycleError, InvalidArtifactError, OperationError

ONE, TWO = Literal(b"one"), Literal(b"two")


@given(st.binary(), st.binary())
def test_literals_are_the_same_exactly_if_their_bytes_are(one: bytes, other: bytes) -> None:
    assert (sid_of(Literal(one)) == sid_of(Literal(other))) == (one == other)


def test_a_structure_is_named_by_its_canonical_encoding() -> None:
    ((_, structure),) = structures(ONE)

    assert structure.sid == CID.of(structure.encoded, codec=Codec.DAG_CBOR)
    assert decode_canonical(structure.encoded) == [1, "literal", CID.of(b"one")]


def test_the_structure_of_something_derived_links_its_children() -> None:
    *_, (_, structure) = structures(Derived("concat", "1", (ONE, TWO), {"b": 1, "a": 2}))

    assert structure.children == (sid_of(ONE), sid_of(TWO))
    assert decode_canonical(structure.encoded) == [
        1,
        "derived",
        "concat",
        "1",
        {"a": 2, "b": 1},
        [sid_of(ONE), sid_of(TWO)],
    ]


def test_the_same_derivation_is_the_same_artifact() -> None:
    def derived() -> Derived:
        return Derived("concat", "1", (Literal(b"one"), Literal(b"two")), {"x": [1, 2.5, None]})

    assert sid_of(derived()) == sid_of(derived())


def test_any_difference_makes_another_artifact() -> None:
    variants: list[Artifact] = [
        Derived("concat", "1", (ONE, TWO)),
        Derived("concat", "1", (TWO, ONE)),
        Derived("concat", "1", (ONE,)),
        Derived("concat", "1", (ONE, ONE, TWO)),
        Derived("concat", "2", (ONE, TWO)),
        Derived("hash", "1", (ONE, TWO)),
        Derived("concat", "1", (ONE, TWO), {"a": 1}),
        Derived("concat", "1", (ONE, TWO), {"a": 1.0}),
        Derived("concat", "1", (ONE, TWO), {"a": True}),
        Derived("concat", "1", (ONE, TWO), {"a": "1"}),
        ONE,
        TWO,
    ]

    assert len({sid_of(each) for each in variants}) == len(variants)
    assert sid_of(ONE, Hash.BLAKE3) != sid_of(ONE)


def test_children_come_first_and_each_comes_once() -> None:
    shared = Derived("concat", "1", (ONE, TWO))
    root = Derived("concat", "1", (shared, shared, ONE))

    assert list(in_order(root)) == [ONE, TWO, shared, root]


def test_a_diamond_of_many_levels_is_walked_once() -> None:
    top: Artifact = ONE
    for _ in range(200):
        top = Derived("concat", "1", (top, top))

    assert len(list(in_order(top))) == 201


def test_depth_has_no_limit() -> None:
    top: Artifact = ONE
    for _ in range(100_000):
        top = Derived("utf8", "1", (top,))

    assert sum(1 for _ in structures(top)) == 100_001


def test_a_cycle_is_refused_by_name() -> None:
    inner = Derived("concat", "1", (ONE,))
    outer = Derived("concat", "7", (inner,))
    object.__setattr__(inner, "children", (outer,))
    try:
        with pytest.raises(CycleError, match="concat 7 is derived from itself"):
            sid_of(outer)
    finally:
        object.__setattr__(inner, "children", ())
        gc.collect()


@pytest.mark.parametrize("data", ["text", bytearray(b"x"), None])
def test_a_literal_is_bytes(data: bytes) -> None:
    with pytest.raises(InvalidArtifactError):
        Literal(data)


@pytest.mark.parametrize(("operation", "version"), [("", "1"), ("concat", "")])
def test_a_derivation_names_its_operation(operation: str, version: str) -> None:
    with pytest.raises(InvalidArtifactError):
        Derived(operation, version)


def test_parameters_have_a_canonical_form() -> None:
    with pytest.raises(InvalidArtifactError):
        sid_of(Derived("concat", "1", (), {"when": object()}))  # type: ignore[dict-item]


def test_the_shipped_operations_do_what_they_say() -> None:
    run = Operations().run

    assert run("concat", "1", [b"a", b"", b"bc"], {}) == b"abc"
    assert run("concat", "1", [], {}) == b""
    assert run("slice", "1", [b"abcdef"], {"offset": 2, "length": 3}) == b"cde"
    assert run("hash", "1", [b""], {}) == CID.of(b"").digest
    assert run("utf8", "1", ["é".encode()], {}) == "é".encode()


@pytest.mark.parametrize(
    ("name", "children", "parameters"),
    [
        ("slice", [b"abc"], {"offset": 2, "length": 2}),
        ("slice", [b"abc"], {"offset": -1, "length": 1}),
        ("slice", [b"abc"], {"offset": "0", "length": 1}),
        ("slice", [b"abc"], {}),
        ("slice", [], {"offset": 0, "length": 0}),
        ("hash", [b"a", b"b"], {}),
        ("concat", [b"a"], {"separator": ","}),
        ("utf8", [b"\xff"], {}),
        ("nothing", [], {}),
    ],
)
def test_an_operation_that_can_not_be_done_says_so(
    name: str, children: list[bytes], parameters: dict[str, object]
) -> None:
    with pytest.raises(OperationError, match=name):
        Operations().run(name, "1", children, parameters)  # type: ignore[arg-type]


def test_operations_can_be_added_but_not_changed() -> None:
    operations = Operations()
    operations.register("upper", "1", lambda children, _: children[0].upper())
    assert operations.run("upper", "1", [b"a"], {}) == b"A"

    with pytest.raises(OperationError, match="version"):
        operations.register("upper", "1", lambda *_: b"")
    operations.register("bad", "1", lambda *_: "text")  # type: ignore[arg-type]
    with pytest.raises(OperationError, match="not bytes"):
        operations.run("bad", "1", [], {})
