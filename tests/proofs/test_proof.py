import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest

from perdure.artifacts.cid import CID
from perdure.artifacts.entry import (
    Bind,
    Entry,
    Lift,
    LogEntry,
    Put,
    Tombstone,
    UnknownEntry,
    encode,
)
from perdure.artifacts.merkle import (
    leaf,
    leaf_hash,
    prove_inclusion,
    root_of,
)
from perdure.errors import ProofError
from perdure.proofs.proof import (
    LONGEST_TEXT,
    Checkpoint,
    InclusionProof,
    ProvenEntry,
    SignedCheckpoint,
    origin_of,
    prove_entry,
    verify_proof,
)
from perdure.proofs.signing_keys import SigningKey, to_base64

ORIGIN = origin_of(bytes(range(16)))
KEY = SigningKey(ORIGIN, bytes(range(32)))
PUBLIC = KEY.public
BEGIN = 1_767_225_600_000
MOST = 40


@cache
def entry_at(position: int) -> Entry:
    cid = CID.of(str(position).encode())
    kinds: tuple[Entry, ...] = (
        Put(cid, position * 100, 3, 7),
        Bind(f"notes/{position}.md", cid, {"who": "ana", "why": "she said so"}),
        Tombstone(cid, "a secret"),
        Bind(f"notes/{position}.md", None),
        Lift(cid),
    )
    return kinds[position % 5]


def logged_at(position: int) -> LogEntry:
    return LogEntry(position, position, BEGIN + position // 2, entry_at(position))


LOG = [logged_at(position) for position in range(1, MOST + 1)]
LEAVES = [leaf_hash(leaf(each.time, encode(each.entry))) for each in LOG]
SHOWN = [each for each in LOG if isinstance(each.entry, Put | Bind)]


@cache
def checkpoint_at(size: int) -> SignedCheckpoint:
    time = LOG[size - 1].time if size else 0
    return Checkpoint(ORIGIN, size, root_of(LEAVES[:size]), time, size // 10).signed(KEY)


@cache
def proof_of(position: int, size: int) -> InclusionProof:
    return prove_entry(logged_at(position), LEAVES[:size], checkpoint_at(size))


def is_refused(task: Callable[..., object], *arguments: object) -> bool:
    try:
        task(*arguments)
    except ProofError:
        return True
    return False


class TestInclusion:
    def test_each_put_and_binding_is_proved_in_each_state_that_has_it(self) -> None:
        for logged in SHOWN:
            for size in range(logged.position, MOST + 1):
                proof = proof_of(logged.position, size)
                assert verify_proof(proof, PUBLIC) == ProvenEntry(
                    logged.entry,  # type: ignore[arg-type] # these puts and binds are
                    logged.position,
                    logged.time,
                    size,
                    ORIGIN,
                )

    def test_a_put_shows_its_content_and_no_name(self) -> None:
        shown = verify_proof(proof_of(5, 40), PUBLIC)

        assert shown.cid == CID.of(b"5")
        assert shown.name is None
        assert (shown.position, shown.time, shown.size) == (5, BEGIN + 2, 40)

    def test_a_binding_shows_name_content_and_circumstances(self) -> None:
        shown = verify_proof(proof_of(6, 40), PUBLIC)

        assert (shown.name, shown.cid) == ("notes/6.md", CID.of(b"6"))
        assert isinstance(shown.entry, Bind)
        assert shown.entry.circumstances["why"] == "she said so"

    def test_an_unbinding_shows_a_name_and_no_content(self) -> None:
        shown = verify_proof(proof_of(8, 40), PUBLIC)

        assert (shown.name, shown.cid) == ("notes/8.md", None)

    def test_it_is_proved_to_be_about_the_content_that_was_asked_for(self) -> None:
        for position in (5, 6):
            verify_proof(proof_of(position, 40), PUBLIC, CID.of(str(position).encode()))
        for position in (5, 6, 8):
            with pytest.raises(ProofError, match="the proof is about"):
                verify_proof(proof_of(position, 40), PUBLIC, CID.of(b"else"))

    @pytest.mark.parametrize("position", [2, 4, 7, 9])
    def test_an_entry_that_says_something_else_is_not_proved(self, position: int) -> None:
        with pytest.raises(ProofError, match="neither a put nor a bind"):
            proof_of(position, 40)

    @pytest.mark.parametrize("position", [2, 4, 7, 9])
    def test_an_entry_that_says_something_else_does_not_pass_for_a_put(self, position: int) -> None:
        """Even if its path is right."""
        logged = logged_at(position)
        path = prove_inclusion(LEAVES[:40], position - 1)
        forged = InclusionProof(
            position, logged.time, encode(logged.entry), path, checkpoint_at(40)
        )
        with pytest.raises(ProofError, match="neither a put"):
            verify_proof(forged, PUBLIC)

    def test_an_entry_of_a_later_state_is_not_proved(self) -> None:
        with pytest.raises(ProofError):
            prove_entry(logged_at(11), LEAVES[:10], checkpoint_at(10))

    def test_a_proof_that_would_fail_is_not_given_out(self) -> None:
        changed = logged_at(5)._replace(time=BEGIN)
        with pytest.raises(ProofError, match="does not prove"):
            prove_entry(changed, LEAVES[:40], checkpoint_at(40))
        wrong = replace(checkpoint_at(40).checkpoint, root=bytes(32)).signed(KEY)
        with pytest.raises(ProofError, match="does not prove"):
            prove_entry(logged_at(5), LEAVES[:40], wrong)

    def test_another_key_proves_nothing(self) -> None:
        for other in (SigningKey(ORIGIN, bytes(32)), SigningKey("perdure/00", KEY.seed)):
            with pytest.raises(ProofError, match="not signed by"):
                verify_proof(proof_of(5, 40), other.public)

    @pytest.mark.parametrize(
        "changed",
        [
            {"position": 6},
            {"position": 4},
            {"position": 0},
            {"position": -1},
            {"position": 41},
            {"position": 2**70},
            {"time": BEGIN + 3},
            {"time": 0},
            {"time": -1},
            {"time": 2**64},
            {"entry": encode(entry_at(6))},
            {"entry": encode(entry_at(10))},
            {"entry": b""},
            {"entry": encode(entry_at(5)) * 2},
            {"entry": encode(entry_at(5))[:-1]},
            {"path": ()},
            {"path": proof_of(5, 40).path[:-1]},
            {"path": (*proof_of(5, 40).path, bytes(32))},
            {"path": proof_of(5, 40).path[::-1]},
            {"path": proof_of(6, 40).path},
            {"path": ("a",) * 6},
            {"checkpoint": checkpoint_at(39)},
            {"checkpoint": checkpoint_at(4)},
            {"checkpoint": checkpoint_at(0)},
        ],
    )
    def test_no_part_of_it_can_be_exchanged(self, changed: dict[str, Any]) -> None:
        forged = replace(proof_of(5, 40), **changed)

        assert is_refused(verify_proof, forged, PUBLIC)

    def test_no_two_proofs_can_be_mixed(self) -> None:
        proofs = [proof_of(position, size) for position, size in ((5, 40), (6, 40), (5, 39))]
        fields = ("position", "time", "entry", "path", "checkpoint")
        for one in proofs:
            for other in proofs:
                for field in fields:
                    mixed = replace(one, **{field: getattr(other, field)})
                    assert mixed == one or is_refused(verify_proof, mixed, PUBLIC)

    def test_an_entry_later_than_the_last_one_is_refused(self) -> None:
        claim = replace(checkpoint_at(40).checkpoint, time=BEGIN).signed(KEY)

        with pytest.raises(ProofError, match="later than the last"):
            verify_proof(replace(proof_of(5, 40), checkpoint=claim), PUBLIC)

    def test_a_position_that_is_no_number_is_refused(self) -> None:
        wrongs: tuple[Any, ...] = (True, 5.0, "5", None)
        for wrong in wrongs:
            with pytest.raises(ProofError, match="integer"):
                replace(proof_of(5, 40), position=wrong)

    def test_an_entry_without_bounds_is_refused(self) -> None:
        with pytest.raises(ProofError, match="can't be proved"):
            replace(proof_of(5, 40), entry=bytes(2**20 + 1))


class TestText:
    def test_a_proof_is_read_as_it_was_written(self) -> None:
        for logged in SHOWN:
            proof = proof_of(logged.position, MOST)
            assert InclusionProof.from_text(proof.to_text()) == proof

    def test_it_is_plain_json_that_names_its_form(self) -> None:
        proof = proof_of(5, 40)

        assert json.loads(proof.to_text()) == {
            "format": "perdure-inclusion-1",
            "position": 5,
            "time": BEGIN + 2,
            "entry": to_base64(encode(entry_at(5))),
            "path": [to_base64(each) for each in proof.path],
            "checkpoint": checkpoint_at(40).to_text(),
        }
        assert proof.to_text().isascii()

    def test_another_form_is_refused(self) -> None:
        with pytest.raises(ProofError, match="perdure-inclusion-1"):
            InclusionProof.from_text('{"format": "perdure-consistency-1"}')

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("\n", "\r\n"),
            ("\n", ""),
            ("}\n", "}"),
            ("}\n", "}\n\n"),
            ("{\n", " {\n"),
            ('"position": 5', '"position":5'),
            ('"position": 5', '"position": 5.0'),
            ('"position": 5', '"position": "5"'),
            ('"position": 5', '"position": true'),
            ('"position": 5', '"position": 5, "position": 5'),
            ('"position": 5', '"position": 4, "position": 5'),
            ('"position": 5', '"position": ' + "5" * 5000),
            ('"position": 5', '"position": NaN'),
            ('"position": 5', '"place": 5'),
            ('"position": 5', '"position": 5,\n  "so": 1'),
            ("\\u2014", "—"),
            ("inclusion-1", "inclusion-2"),
            ("perdure/00", "perdure\\/00"),
        ],
    )
    def test_what_is_written_in_another_way_is_refused(self, old: str, new: str) -> None:
        text = proof_of(5, 40).to_text()

        assert old in text
        assert is_refused(InclusionProof.from_text, text.replace(old, new))

    @pytest.mark.parametrize(
        "text",
        [
            *("", "null", "[]", "{}", "1", '"a"', "nonsense", "\ud800", "{", "\x00", "NaN"),
            *("[" * 100_000, '{"a":' * 100_000, "9" * 100_000, '"\\ud800"', "[" + "1," * 10**6),
            '{"format": "perdure-inclusion-1"}',
        ],
    )
    def test_what_is_no_proof_is_refused(self, text: str) -> None:
        assert is_refused(InclusionProof.from_text, text)

    @pytest.mark.parametrize("name", ["position", "time", "entry", "path", "checkpoint", "format"])
    @pytest.mark.parametrize(
        "value",
        [None, True, 0, -1, 1.5, 10**30, "", "a", "\ud800", [], ["a"], [1], [[]], ["QQ=="], {}],
    )
    def test_a_field_of_another_kind_is_refused(self, name: str, value: object) -> None:
        fields = json.loads(proof_of(5, 40).to_text()) | {name: value}
        text = json.dumps(fields, indent=2, sort_keys=True) + "\n"

        assert is_refused(verified, text)

    def test_a_path_without_end_is_refused(self) -> None:
        fields = json.loads(proof_of(5, 40).to_text())
        fields["path"] = [to_base64(bytes(32))] * 20_000

        with pytest.raises(ProofError, match="at most 64 hashes"):
            InclusionProof.from_text(json.dumps(fields))

    def test_a_text_without_end_is_refused(self) -> None:
        with pytest.raises(ProofError, match="at most"):
            InclusionProof.from_text(" " * (LONGEST_TEXT + 1))


def verified(text: str) -> ProvenEntry:
    return verify_proof(InclusionProof.from_text(text), PUBLIC)


def flips(whole: bytes) -> Iterator[str]:
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        yield changed.decode(errors="surrogateescape")


class TestTampering:
    """No text but the one that was written verifies; it can't come to mean anything else."""

    def test_every_flipped_bit_of_a_proof_of_inclusion_is_refused(self) -> None:
        for text in flips(proof_of(5, 7).to_text().encode()):
            assert is_refused(verified, text), text

    def test_every_flipped_bit_of_its_values_is_refused(self) -> None:
        """Below the text, which has checks of its own."""
        proof = proof_of(6, 7)
        for bit in range(8 * len(proof.entry)):
            forged = replace(proof, entry=flipped(proof.entry, bit))
            assert is_refused(verify_proof, forged, PUBLIC)
        for at, each in enumerate(proof.path):
            for bit in range(256):
                path = (*proof.path[:at], flipped(each, bit), *proof.path[at + 1 :])
                assert is_refused(verify_proof, replace(proof, path=path), PUBLIC)
        for bit in range(64):
            for field in ("position", "time"):
                value = getattr(proof, field) ^ 1 << bit
                assert is_refused(verify_proof, replace(proof, **{field: value}), PUBLIC)

    def test_every_shortened_text_is_refused(self) -> None:
        text = proof_of(6, 7).to_text()
        for at in range(len(text)):
            assert is_refused(verified, text[:at])
            assert is_refused(verified, text[at + 1 :])
            assert is_refused(verified, text[:at] + text[at + 1 :])


def flipped(value: bytes, bit: int) -> bytes:
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


class TestFuzz:
    """Hostile texts: only `ProofError`, or just what was written."""

    def test_mangled_texts(self) -> None:
        chance = Random(6)
        text = proof_of(6, 23).to_text()
        meant = verified(text)
        for _ in range(4500):
            assert_harmless(verified, mangled(text, chance), meant)

    def test_mangled_fields(self) -> None:
        """JSON in its one form, so that what comes after the form is met."""
        chance = Random(7)
        text = proof_of(6, 23).to_text()
        meant = verified(text)
        for _ in range(2000):
            fields = json.loads(text)
            name = chance.choice([each for each in fields if each != "format"])
            fields[name] = altered(fields[name], chance)
            changed = json.dumps(fields, indent=2, sort_keys=True) + "\n"
            assert_harmless(verified, changed, meant)

    def test_signed_entries_that_make_no_sense(self) -> None:
        """An owner may sign anything; it is still read without harm."""
        chance = Random(8)
        bound = encode(entry_at(6))
        for _ in range(3000):
            entry = mangled_bytes(bound, chance)
            root = leaf_hash(leaf(BEGIN, entry))
            signed = Checkpoint(ORIGIN, 1, root, BEGIN, 0).signed(KEY)
            text = InclusionProof(1, BEGIN, entry, (), signed).to_text()
            try:
                shown = verified(text)
            except ProofError:
                continue
            assert encode(shown.entry) == entry

    @pytest.mark.parametrize(
        "entry", [encode(UnknownEntry(200, b"whatever")), encode(entry_at(5)) * 2, b""]
    )
    def test_what_is_signed_but_no_put_or_binding_shows_nothing(self, entry: bytes) -> None:
        signed = Checkpoint(ORIGIN, 1, leaf_hash(leaf(BEGIN, entry)), BEGIN, 0).signed(KEY)

        with pytest.raises(ProofError, match="neither a put"):
            verify_proof(InclusionProof(1, BEGIN, entry, (), signed), PUBLIC)


def assert_harmless(task: Callable[[str], object], text: str, meant: object) -> None:
    try:
        shown = task(text)
    except ProofError:
        return
    assert shown == meant


def mangled(text: str, chance: Random) -> str:
    pieces = (
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\n",
        "\\u0000",
        "\\ud800",
        "9" * 30,
        "1e999",
        "é",
    )
    for _ in range(chance.randrange(1, 4)):
        at, length = chance.randrange(len(text) + 1), chance.randrange(60)
        how = chance.randrange(4)
        if how == 0:
            text = text[:at] + text[at + length :]
        elif how == 1:
            text = text[:at] + chance.choice(pieces) + text[at:]
        elif how == 2:
            text = text[:at] + chr(chance.randrange(128)) + text[at + 1 :]
        else:
            text = text[:at] + text[at : at + length] + text[at:]
    return text


def altered(value: int | str | list[str], chance: Random) -> object:
    if isinstance(value, int):
        return chance.choice([value + 1, value ^ 1 << chance.randrange(64), -value, 10**30, "1"])
    if isinstance(value, str):
        return mangled(value, chance)
    how = chance.randrange(4)
    if how == 0:
        return chance.sample(value, len(value))
    if how == 1:
        return value * 2
    at = chance.randrange(len(value))
    if how == 2:
        return value[:at] + value[at + 1 :]
    return [*value[:at], mangled(value[at], chance), *value[at + 1 :]]


def mangled_bytes(content: bytes, chance: Random) -> bytes:
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(content) + 1)
        how = chance.randrange(3)
        if how == 0:
            content = content[:at] + chance.randbytes(chance.randrange(1, 9)) + content[at:]
        elif how == 1:
            content = content[:at] + content[at + chance.randrange(1, 9) :]
        else:
            content = content[:at] + chance.randbytes(1) + content[at + 1 :]
    if chance.randrange(2):  # a length that fits, so that the body is met
        kind, body = content[:1] or b"\x03", content[5:]
        return kind + len(body).to_bytes(4, "little") + body
    return content


ALONE = """
import sys
from perdure.proofs.signing_keys import PublicKey
from perdure.proofs.proof import InclusionProof, verify_proof

def show():
    return verify_proof(InclusionProof.from_text(text), PublicKey.parse(sys.argv[1]))

def refuse(event, arguments):
    if event in ("open", "os.listdir", "os.mkdir", "sqlite3.connect", "socket.connect"):
        raise AssertionError(event)

text = sys.stdin.read()
show()  # loads the library
sys.addaudithook(refuse)
print(show().name)
"""


def test_a_proof_is_checked_without_any_file() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", ALONE, str(PUBLIC)],
        input=proof_of(6, 40).to_text(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert completed.stdout == "notes/6.md\n"
