import multiprocessing
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perdure.errors import (
    AbsentError,
    InvalidLocatorError,
    LinkRefusedError,
    ParentIsFileError,
    ProofError,
)
from perdure.proofs.signing_keys import PublicKey, SigningKey, from_base64, to_base64

# Published with golang.org/x/mod/sumdb/note, from which the form comes.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"  # noqa: S105 - published
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
NAME = "perdure/00ff"


class TestPublishedVectors:
    @pytest.mark.parametrize(
        ("seed", "public", "message", "signature"),
        [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                (
                    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
                    "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
                ),
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                (
                    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
                ),
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
                "af82",
                (
                    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                    "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
                ),
            ),
        ],
    )
    def test_it_signs_as_rfc_8032_does(
        self, seed: str, public: str, message: str, signature: str
    ) -> None:
        key = SigningKey(NAME, bytes.fromhex(seed))

        assert key.public.key.hex() == public
        assert key.sign(bytes.fromhex(message)).hex() == signature
        key.public.verify(bytes.fromhex(message), bytes.fromhex(signature))

    def test_a_published_secret_has_the_published_public_key(self) -> None:
        key = SigningKey.parse(PETERS_SECRET)

        assert str(key.public) == PETER
        assert key.secret() == PETERS_SECRET
        assert key.public == PublicKey.parse(PETER)

    @pytest.mark.parametrize("text", [PETER, ENOCH])
    def test_published_public_keys_are_read_and_written(self, text: str) -> None:
        assert str(PublicKey.parse(text)) == text


def refused(text: str) -> bool:
    for kind in (PublicKey, SigningKey):
        try:
            kind.parse(text)
        except ProofError:
            continue
        return False
    return True


class TestText:
    @pytest.mark.parametrize("text", [PETER, PETERS_SECRET])
    def test_no_part_of_a_key_is_a_key(self, text: str) -> None:
        for start in range(len(text)):
            for stop in range(start, len(text) + 1):
                part = text[start:stop]
                if part not in {PETER, PETERS_SECRET}:
                    assert refused(part)

    @pytest.mark.parametrize("text", [PETER, PETERS_SECRET])
    def test_every_flipped_bit_is_refused(self, text: str) -> None:
        for at in range(len(text)):
            for bit in range(7):
                assert refused(text[:at] + chr(ord(text[at]) ^ 1 << bit) + text[at + 1 :])

    @pytest.mark.parametrize(
        "text",
        [
            "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
            "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "",
            "+",
            "++",
            "a+00000000+",
            PETER + "\n",
            " " + PETER,
            PETER.replace("c74f20a3", "C74F20A3"),
            "é" * 2000,
            "a+00000000+" + "A" * 10**6,
            "\ud800+00000000+AQ==",
        ],
    )
    def test_what_is_no_key_is_refused(self, text: str) -> None:
        assert refused(text)

    @pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\x00b", "a\u2003b", "é" * 128])
    def test_what_can_name_no_key_is_refused(self, name: str) -> None:
        with pytest.raises(ProofError, match="name"):
            PublicKey(name, bytes(32))
        with pytest.raises(ProofError, match="name"):
            SigningKey(name, bytes(32))

    @pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytearray(32)])
    def test_a_key_of_another_length_is_refused(self, key: bytes) -> None:
        with pytest.raises(ProofError, match="32 bytes"):
            PublicKey(NAME, key)
        with pytest.raises(ProofError, match="32 bytes"):
            SigningKey(NAME, key)

    @pytest.mark.parametrize(
        "text", ["QQ", "QQ=", "QR==", "QQ==\n", "Q Q==", "QQ==QQ==", "-_==", "é"]
    )
    def test_base64_has_one_form(self, text: str) -> None:
        assert from_base64(to_base64(b"A")) == b"A"
        with pytest.raises(ProofError):
            from_base64(text)


class TestSignatures:
    KEY = SigningKey(NAME, bytes(32))

    def test_every_flipped_bit_of_a_signature_is_refused(self) -> None:
        signature = self.KEY.sign(b"text")
        for bit in range(512):
            changed = bytearray(signature)
            changed[bit // 8] ^= 1 << bit % 8
            with pytest.raises(ProofError, match="does not match"):
                self.KEY.public.verify(b"text", bytes(changed))

    def test_a_signature_in_a_second_form_is_refused(self) -> None:
        """The order of the group added to S gives the same point; RFC 8032 refuses it."""
        order = 2**252 + 27742317777372353535851937790883648493
        signature = self.KEY.sign(b"text")
        scalar = int.from_bytes(signature[32:], "little") + order
        with pytest.raises(ProofError):
            self.KEY.public.verify(b"text", signature[:32] + scalar.to_bytes(32, "little"))

    @pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
    def test_what_is_no_signature_is_refused(self, signature: bytes) -> None:
        with pytest.raises(ProofError):
            self.KEY.public.verify(b"text", signature)

    def test_the_secret_is_not_shown_by_accident(self) -> None:
        key = SigningKey.generate(NAME)

        assert key.seed.hex() not in repr(key)
        assert repr(key.seed) not in repr(key)
        assert to_base64(key.seed)[:20] not in f"{key} {key!r}"

    def test_no_two_created_keys_are_alike(self) -> None:
        assert len({SigningKey.generate(NAME).seed for _ in range(100)}) == 100


class TestFile:
    def test_the_first_use_makes_the_key_and_later_ones_read_it(self, tmp_path: Path) -> None:
        path = tmp_path / "keys" / "deeper" / "log.key"
        key = SigningKey.load_or_generate(path, NAME)

        assert SigningKey.load_or_generate(path, "another/name") == key == SigningKey.load(path)
        assert key.name == NAME
        assert path.read_text() == key.secret() + "\n"

    def test_only_the_owner_can_read_it_and_nothing_else_is_left(self, tmp_path: Path) -> None:
        path = tmp_path / "log.key"
        before = os.umask(0)
        try:
            SigningKey.load_or_generate(path, NAME)
        finally:
            os.umask(before)

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert list(tmp_path.iterdir()) == [path]
        assert path.stat().st_nlink == 1

    def test_none_means_absent(self, tmp_path: Path) -> None:
        with pytest.raises(AbsentError):
            SigningKey.load(tmp_path / "log.key")

    def test_threads_that_make_it_at_once_get_one_key(self, tmp_path: Path) -> None:
        path, found = tmp_path / "log.key", []
        barrier = threading.Barrier(8)

        def make() -> None:
            barrier.wait()
            found.append(SigningKey.load_or_generate(path, NAME))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(found) == 8
        assert {*found} == {SigningKey.load(path)}

    def test_processes_that_make_it_at_once_get_one_key(self, tmp_path: Path) -> None:
        context = multiprocessing.get_context("spawn")
        paths = [str(tmp_path / f"{number}.key") for number in range(10)]
        with context.Pool(4) as pool:
            found = pool.map(make_all, [paths] * 4, chunksize=1)

        assert found == [[SigningKey.load(Path(path)) for path in paths]] * 4
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"{n}.key" for n in range(10)]

    def test_a_file_that_is_there_is_never_changed(self, tmp_path: Path) -> None:
        path = tmp_path / "log.key"
        for content in (b"", b"\xff", b"mine", PETER.encode(), PETERS_SECRET.encode(), b"x" * 9999):
            path.write_bytes(content)
            path.chmod(0o600)
            with pytest.raises(ProofError, match="not an Ed25519 key"):
                SigningKey.load_or_generate(path, NAME)
            assert path.read_bytes() == content

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
    def test_a_key_that_others_can_read_is_refused(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "log.key"
        SigningKey.load_or_generate(path, NAME)
        path.chmod(mode)

        with pytest.raises(ProofError, match="chmod 600"):
            SigningKey.load_or_generate(path, NAME)

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        SigningKey.load_or_generate(tmp_path / "real.key", NAME)
        (tmp_path / "log.key").symlink_to("real.key")

        with pytest.raises(LinkRefusedError):
            SigningKey.load(tmp_path / "log.key")
        (tmp_path / "nowhere.key").symlink_to("missing.key")
        with pytest.raises(LinkRefusedError):
            SigningKey.load_or_generate(tmp_path / "nowhere.key", NAME)
        assert not (tmp_path / "missing.key").exists()

    def test_a_place_where_no_file_can_be_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ParentIsFileError):
            SigningKey.load_or_generate(tmp_path / "file" / "log.key", NAME)
        with pytest.raises(InvalidLocatorError, match="shorten"):
            SigningKey.load_or_generate(tmp_path / ("a" * 250), NAME)

    def test_a_name_that_can_not_be_makes_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ProofError):
            SigningKey.load_or_generate(tmp_path / "log.key", "a b")

        assert list(tmp_path.iterdir()) == []


def make_all(paths: list[str]) -> list[SigningKey]:
    return [SigningKey.load_or_generate(Path(path), NAME) for path in paths]


WITHOUT = """
import sys
sys.modules["cryptography"] = None
from pathlib import Path
from perdure.proofs.signing_keys import PublicKey, SigningKey
from perdure.errors import ProofError
key = PublicKey.parse(sys.argv[1])
for use in (
    lambda: key.verify(b"", bytes(64)),
    lambda: SigningKey.generate("a").sign(b""),
    lambda: SigningKey.load_or_generate(Path(sys.argv[2]), "a"),
):
    try:
        use()
    except ProofError as error:
        print(error)
"""


def test_without_the_library_the_error_names_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "log.key"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, PETER, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.count("pip install '.[proofs]' from a checkout") == 3
    assert not path.exists()


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, perdure.proofs.proof as _; print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
