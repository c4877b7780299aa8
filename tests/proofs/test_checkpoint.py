from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts.merkle import EMPTY_ROOT, LARGEST_SIZE
from perdure.errors import ProofError
from perdure.proofs.proof import (
    LONGEST_NOTE,
    Checkpoint,
    NoteSignature,
    SignedCheckpoint,
    SignedNote,
    origin_of,
)
from perdure.proofs.signing_keys import PublicKey, SigningKey, to_base64
from perdure.testing.suite import examples

# The note and the keys are published with golang.org/x/mod/sumdb/note, from which the form comes.
PETER = PublicKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
PETERS_SECRET = SigningKey.parse(
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
)
ENOCH = PublicKey.parse("EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop")
TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
BY_PETER = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6"
    "KE6RyyBwJnAM=\n"
)
BY_ENOCH = (
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33"
    "WWd1RvMc+QQ=\n"
)
# The example of c2sp.org/signed-note; its text has a blank line.
QUASIMODO = (
    "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n\n"
    "— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU"
    "0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"
)
# The example of c2sp.org/tlog-checkpoint.
SOFA = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q"
    "1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
)

ORIGIN = origin_of(bytes(range(16)))
KEY = SigningKey(ORIGIN, bytes(range(32)))
CLAIM = Checkpoint(ORIGIN, 20_852_163, bytes(range(32)), 1_767_225_600_000, 7)
SIGNED = CLAIM.signed(KEY)


def is_refused(task: Callable[..., object], *arguments: object) -> bool:
    try:
        task(*arguments)
    except ProofError:
        return True
    return False


class TestPublishedNotes:
    def test_a_note_is_signed_byte_for_byte_as_published(self) -> None:
        assert SignedNote.sign(TEXT, PETERS_SECRET).to_text() == TEXT + "\n" + BY_PETER

    @pytest.mark.parametrize(
        ("below", "key"),
        [
            (BY_PETER, PETER),
            (BY_ENOCH, ENOCH),
            (BY_PETER + BY_ENOCH, PETER),
            (BY_PETER + BY_ENOCH, ENOCH),
            (BY_ENOCH + BY_PETER + BY_PETER, PETER),
        ],
    )
    def test_published_notes_verify(self, below: str, key: PublicKey) -> None:
        note = SignedNote.from_text(TEXT + "\n" + below)

        note.verify(key)
        assert note.text == TEXT
        assert note.to_text() == TEXT + "\n" + below

    @pytest.mark.parametrize("text", [QUASIMODO, SOFA])
    def test_the_examples_of_the_specifications_are_read_and_written(self, text: str) -> None:
        note = SignedNote.from_text(text)

        assert note.to_text() == text
        assert len(note.signatures[0].signature) == 64

    def test_a_blank_line_may_stand_in_the_text(self) -> None:
        assert SignedNote.from_text(QUASIMODO).text.endswith("sole:\n\ned è subito sera.\n")

    def test_a_signature_of_a_known_key_that_fails_refuses_the_note(self) -> None:
        broken = BY_PETER.replace("x08go/ZJ", "x08go/ZK")
        for below in (broken, broken + BY_PETER, BY_PETER + broken):
            note = SignedNote.from_text(TEXT + "\n" + below)
            with pytest.raises(ProofError, match="does not match"):
                note.verify(PETER)

    def test_signatures_of_unknown_keys_count_for_nothing(self) -> None:
        note = SignedNote.from_text(TEXT + "\n" + BY_ENOCH)
        for stranger in (PETER, replace(ENOCH, name="Enoch"), replace(ENOCH, key=PETER.key)):
            with pytest.raises(ProofError, match="not signed by"):
                note.verify(stranger)

    def test_sixteen_signatures_are_read(self) -> None:
        long = NoteSignature("witness.example/pq", b"1234", bytes(5000))
        note = SignedNote(TEXT, (long,) * 15 + SignedNote.sign(TEXT, PETERS_SECRET).signatures)

        SignedNote.from_text(note.to_text()).verify(PETER)
        assert is_refused(SignedNote.from_text, note.to_text() + BY_PETER)
        assert is_refused(SignedNote, TEXT, note.signatures * 2)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "\n\n",
            TEXT,
            TEXT + "\n",
            TEXT + "\n" + BY_PETER[:-1],
            TEXT + BY_PETER,
            "\x01" + TEXT + "\n" + BY_PETER,
            "\r" + TEXT + "\n" + BY_PETER,
            TEXT + "\n— Bad Name x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSN=\n",
            TEXT + "\n" + BY_PETER + "Unexpected line.\n",
            TEXT + "\n" + BY_PETER.replace("—", "-"),
            TEXT + "\n" + BY_PETER.replace("— ", "—"),
            TEXT + "\n" + BY_PETER.replace("— ", "—  "),
            TEXT + "\n" + BY_PETER.replace("AM=", "AM"),
            TEXT + "\n" + BY_PETER.replace("AM=", "AN="),
            TEXT + "\n— PeterNeumann x08gow==\n",
            TEXT + "\n— PeterNeumann x08g\n",
            TEXT + "\n— PeterNeumann \n",
            TEXT + "\n— PeterNeumann\n",
            TEXT + "\n— \n",
            "\ud800" * LONGEST_NOTE + TEXT + "\n" + BY_PETER,
        ],
    )
    def test_what_is_no_note_is_refused(self, text: str) -> None:
        with pytest.raises(ProofError):
            SignedNote.from_text(text)

    def test_half_a_character_can_not_be_signed(self) -> None:
        with pytest.raises(ProofError, match="lone surrogate"):
            SignedNote.sign("\ud800\n", PETERS_SECRET)
        with pytest.raises(ProofError, match="lone surrogate"):
            SignedNote.from_text("\ud800\n\n" + BY_PETER).verify(PETER)


class TestCheckpoint:
    def test_it_is_the_form_that_transparency_logs_share(self) -> None:
        below = KEY.public.id + KEY.sign(CLAIM.body().encode())
        assert SIGNED.to_text() == (
            "perdure/000102030405060708090a0b0c0d0e0f\n"
            "20852163\n"
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
            "time 1767225600000\n"
            "snapshot 7\n"
            "\n"
            f"— perdure/000102030405060708090a0b0c0d0e0f {to_base64(below)}\n"
        )

    def test_it_is_read_as_it_was_written(self) -> None:
        read = SignedCheckpoint.from_text(SIGNED.to_text())

        assert read == SIGNED
        assert read.verify(KEY.public) == CLAIM

    @settings(deadline=None, max_examples=examples(50))
    @given(
        st.binary(min_size=1, max_size=64),
        st.integers(1, LARGEST_SIZE),
        st.binary(min_size=32, max_size=32),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**64 - 1),
    )
    def test_each_is_read_as_it_was_written(
        self, history: bytes, size: int, root: bytes, time: int, snapshot: int
    ) -> None:
        claim = Checkpoint(origin_of(history), size, root, time, snapshot)
        text = claim.signed(KEY).to_text()

        assert SignedCheckpoint.from_text(text).verify(KEY.public) == claim

    def test_the_empty_log_has_one_too(self) -> None:
        claim = Checkpoint(ORIGIN, 0, EMPTY_ROOT, 0, 0)

        assert SignedCheckpoint.from_text(claim.signed(KEY).to_text()).verify(KEY.public) == claim

    def test_another_key_does_not_verify_it(self) -> None:
        for other in (SigningKey(ORIGIN, bytes(32)), SigningKey("other", KEY.seed)):
            with pytest.raises(ProofError, match="not signed by"):
                SIGNED.verify(other.public)

    @pytest.mark.parametrize(
        "changed",
        [
            {"origin": origin_of(bytes(16))},
            {"size": 20_852_162},
            {"root": bytes(32)},
            {"time": 1_767_225_600_001},
            {"snapshot": 8},
        ],
    )
    def test_no_part_of_it_can_be_exchanged(self, changed: dict[str, Any]) -> None:
        forged = SignedCheckpoint(replace(CLAIM, **changed), SIGNED.signatures)

        with pytest.raises(ProofError, match="does not match"):
            forged.verify(KEY.public)
        with pytest.raises(ProofError, match="does not match"):
            SignedCheckpoint.from_text(forged.to_text()).verify(KEY.public)

    def test_a_countersignature_of_a_witness_does_not_disturb(self) -> None:
        witness = NoteSignature("witness.example/w1", b"\x01\x02\x03\x04", bytes(72))
        both = SignedCheckpoint(CLAIM, (witness, *SIGNED.signatures))

        assert SignedCheckpoint.from_text(both.to_text()).verify(KEY.public) == CLAIM

    @pytest.mark.parametrize(
        "wrong",
        [
            {"origin": ""},
            {"origin": "example.com/log"},
            {"origin": "perdure/"},
            {"origin": "perdure/0"},
            {"origin": "perdure/0G"},
            {"origin": "perdure/AA"},
            {"origin": "perdure/00\n"},
            {"origin": "perdure/" + "00" * 65},
            *({"size": size} for size in (-1, LARGEST_SIZE + 1, True, 1.0, "1", None)),
            *({"root": root} for root in (b"", bytes(31), bytes(33), "a" * 32, bytearray(32))),
            *({name: -1} for name in ("time", "snapshot")),
            *({name: 2**64} for name in ("time", "snapshot")),
            *({name: True} for name in ("time", "snapshot")),
            *({name: "1"} for name in ("time", "snapshot")),
            {"size": 0},
            {"size": 0, "root": EMPTY_ROOT},
        ],
    )
    def test_one_that_can_not_be_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ProofError):
            replace(CLAIM, **wrong)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("20852163", "020852163"),
            ("20852163", "+20852163"),
            ("20852163", " 20852163"),
            ("20852163", "20_852_163"),
            ("20852163", "٢٠٨٥٢١٦٣"),
            ("20852163", "9" * 19),
            ("20852163", "9" * 5000),
            ("20852163", "-1"),
            ("20852163", ""),
            ("Hh8=", "Hh8"),
            ("Hh8=", "Hh8=\n"),
            ("Hh8=", "Hh9="),
            ("Hh8=", "Hh8A"),
            ("time 1767225600000\n", ""),
            ("time 1767225600000", "time  1767225600000"),
            ("time 1767225600000", "time 01767225600000"),
            ("time 1767225600000", "time 18446744073709551616"),
            ("time 1767225600000", "Time 1767225600000"),
            ("snapshot 7\n", ""),
            ("snapshot 7\n", "snapshot 7\nmore 1\n"),
            ("snapshot 7\n", "snapshot 7\n\n"),
            ("snapshot 7\n", "snapshot 7\r\n"),
            ("time 1767225600000\nsnapshot 7\n", "snapshot 7\ntime 1767225600000\n"),
            ("perdure/0001", "perdure/001"),
        ],
    )
    def test_what_is_written_in_another_way_is_refused(self, old: str, new: str) -> None:
        """Even if it is signed."""
        body = CLAIM.body().replace(old, new, 1)
        if body == CLAIM.body():
            pytest.fail("the example changes nothing")
        with pytest.raises(ProofError):
            SignedCheckpoint.from_text(SignedNote.sign(body, KEY).to_text())

    def test_every_flipped_bit_is_refused(self) -> None:
        whole = SIGNED.to_text().encode()
        for bit in range(8 * len(whole)):
            changed = bytearray(whole)
            changed[bit // 8] ^= 1 << bit % 8
            text = changed.decode(errors="surrogateescape")
            assert is_refused(verified, text), text

    def test_every_part_left_out_is_refused(self) -> None:
        text = SIGNED.to_text()
        for start in range(len(text)):
            for length in (1, 2, 3, 7, 40, len(text)):
                assert is_refused(verified, text[:start] + text[start + length :])

    def test_random_damage_is_refused(self) -> None:
        chance = Random(5)
        text = SIGNED.to_text()
        for _ in range(6000):
            changed = mangled(text, chance)
            try:
                assert verified(changed) == CLAIM
                assert changed == text
            except ProofError:
                pass


def verified(text: str) -> Checkpoint:
    return SignedCheckpoint.from_text(text).verify(KEY.public)


def mangled(text: str, chance: Random) -> str:
    pieces = ("\n", "\n\n", "— ", " ", "0", "9" * 30, "=", "+", "\x00", "\ud800", "é", "time 1\n")
    for _ in range(chance.randrange(1, 4)):
        at, length = chance.randrange(len(text) + 1), chance.randrange(40)
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
