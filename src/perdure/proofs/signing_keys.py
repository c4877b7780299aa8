"""Ed25519 keys in the text forms of signed notes (C2SP signed-note), and their files."""

import base64
import binascii
import os
import re
import secrets
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.dataclass import dataclass, field
from perdure.errors import ProofError, storage_error, storage_read_error
from perdure.files import make_folder, write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_ID_BYTES = 4

_ED25519 = b"\x01"
_KEY_BYTES = 32
_LONGEST_NAME = 255
_LONGEST_FILE = 1024
_PRIVATE = "PRIVATE+KEY+"
_KEY_ID = re.compile("[0-9a-f]{8}")
_SEED_FORM = "PRIVATE+KEY+<name>+<id>+<base64>"
_PUBLIC_FORM = "<name>+<id>+<base64>"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Verifies signatures by the key of this name."""

    name: str
    key: bytes

    def __post_init__(self) -> None:
        _check_key(self.name, self.key)

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """Parse the form that `str` returns: `name+id+base64`."""
        name, key_id, key = _split(text, _PUBLIC_FORM)
        public = cls(name, key)
        _check_id(public, key_id)
        return public

    @property
    def id(self) -> bytes:
        """The four bytes that identify the key in a signature; too short to be trusted alone."""
        hashed = self.name.encode() + b"\n" + _ED25519 + self.key
        return sha256(hashed).digest()[:KEY_ID_BYTES]

    def verify(self, message: bytes, signature: bytes) -> None:
        """Raise `ProofError` unless this key signed the message."""
        key_class = _ed25519().Ed25519PublicKey
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - optional

        try:
            key_class.from_public_bytes(self.key).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise ProofError(
                f"the signature by {self.name!a} does not match the text. Fix: none; the text, the "
                "signature or the public key was changed."
            ) from None

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{to_base64(_ED25519 + self.key)}"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key. Anyone who has the seed can sign with it."""

    name: str
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_key(self.name, self.seed)

    @classmethod
    def generate(cls, name: str) -> "SigningKey":
        return cls(name, secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """Parse the form that `secret` returns."""
        if not text.startswith(_PRIVATE):
            raise _malformed(_SEED_FORM)
        name, key_id, seed = _split(text.removeprefix(_PRIVATE), _SEED_FORM)
        key = cls(name, seed)
        _check_id(key.public, key_id)
        return key

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """Read a key file; `FileNotFoundError` if there is none."""
        try:
            text = _read(path)
        except OSError as error:
            raise storage_read_error(error, str(path.parent), path.name) from error
        if not text.endswith("\n"):
            raise _malformed(_SEED_FORM)
        return cls.parse(text.removesuffix("\n"))

    @classmethod
    def load_or_generate(cls, path: Path, name: str) -> "SigningKey":
        """Read a key file, or generate a key of this name and store it there, durably.

        If several processes do so at the same time, all get the same key. An existing file is
        never changed.
        """
        with suppress(FileNotFoundError):
            return cls.load(path)
        try:
            make_folder(path.parent)
        except OSError as error:
            raise storage_error(error, str(path.parent), path.name) from error
        write_whole(path, f"{cls.generate(name).secret()}\n".encode(), place=_link_unless_taken)
        return cls.load(path)

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.name, _private_key(self.seed).public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        return _private_key(self.seed).sign(message)

    def secret(self) -> str:
        """Return the private key as text."""
        public_id = self.public.id.hex()
        return f"{_PRIVATE}{self.name}+{public_id}+{to_base64(_ED25519 + self.seed)}"


# ---------------------------------------------------------------- text
def check_name(name: str) -> None:
    """Raise `ProofError` for a name that a key in a signed note can't have."""
    if not name or "+" in name or any(c.isspace() or not c.isprintable() for c in name):
        raise ProofError(f"{name[:80]!a} can't name a key. Fix: use no spaces and no plus signs.")
    if len(name.encode()) > _LONGEST_NAME:
        raise ProofError(f"the name of a key can have at most {_LONGEST_NAME} bytes")


def _check_key(name: str, key: bytes) -> None:
    check_name(name)
    if type(key) is not bytes or len(key) != _KEY_BYTES:
        raise ProofError(f"an Ed25519 key must have {_KEY_BYTES} bytes")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """Decode canonical base64 only, so that each value has one text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProofError(f"{text[:80]!a} is not base64") from error
    if to_base64(data) != text:
        raise ProofError(f"{text[:80]!a} is not canonical base64")
    return data


def _split(text: str, form: str) -> tuple[str, str, bytes]:
    # Only the first two: base64 may contain a plus.
    name, _, rest = text.partition("+")
    key_id, _, encoded = rest.partition("+")
    data = from_base64(encoded) if len(encoded) < _LONGEST_FILE else b""
    if not _KEY_ID.fullmatch(key_id) or data[:1] != _ED25519:
        raise _malformed(form)
    return name, key_id, data[1:]


def _malformed(form: str) -> ProofError:
    return ProofError(f"this is not an Ed25519 key. Fix: copy all of it; it has the form {form}.")


def _check_id(key: PublicKey, key_id: str) -> None:
    if key.id.hex() != key_id:
        raise ProofError(
            f"the key {key.name!a} and its id {key_id} do not match. Fix: copy all of it."
        )


# ---------------------------------------------------------------- file
def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        data = file.read(_LONGEST_FILE)
    if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise ProofError(
            f"{str(path)!a} is readable by others. Fix: chmod 600, or generate a new key."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _malformed(_SEED_FORM) from error


def _link_unless_taken(unfinished: Path, path: Path) -> None:
    with suppress(FileExistsError):  # another process was first, and its key is used
        path.hardlink_to(unfinished)


# ---------------------------------------------------------------- the library
def _private_key(seed: bytes) -> "Ed25519PrivateKey":
    key: Ed25519PrivateKey = _ed25519().Ed25519PrivateKey.from_private_bytes(seed)
    return key


def _ed25519() -> Any:  # noqa: ANN401 - an optional module
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ProofError(
            "nothing can be signed or verified: cryptography is not installed. "
            "Fix: pip install '.[proofs]' from a checkout."
        ) from error
    return ed25519
