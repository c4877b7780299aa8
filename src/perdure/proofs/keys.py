"""Ed25519 keys, in the text forms of signed notes (C2SP signed-note), and where one is kept."""

import base64
import binascii
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

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
    """What tells whether a text was signed by the key of this name."""

    name: str
    key: bytes

    def __post_init__(self) -> None:
        _check_key(self.name, self.key)

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """Read the form that `str` gives: `name+id+base64`."""
        name, key_id, key = _parts(text, _PUBLIC_FORM)
        public = cls(name, key)
        _check_id(public, key_id)
        return public

    @property
    def id(self) -> bytes:
        """The four bytes that name the key in a signature; too short to be trusted alone."""
        hashed = self.name.encode() + b"\n" + _ED25519 + self.key
        return sha256(hashed).digest()[:KEY_ID_BYTES]

    def verify(self, message: bytes, signature: bytes) -> None:
        """Return only if this key signed the message."""
        if not _is_signed(self.key, message, signature):
            raise ProofError(
                f"the signature by {self.name!a} does not fit the text. Fix: none; the text, the "
                "signature or the public key is not what it was."
            )

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{to_base64(_ED25519 + self.key)}"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs in the name of its owner. Anyone who has the seed can sign."""

    name: str
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_key(self.name, self.seed)

    @classmethod
    def make(cls, name: str) -> "SigningKey":
        return cls(name, secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """Read the form that `secret` gives."""
        if not text.startswith(_PRIVATE):
            raise _malformed(_SEED_FORM)
        name, key_id, seed = _parts(text.removeprefix(_PRIVATE), _SEED_FORM)
        key = cls(name, seed)
        _check_id(key.public, key_id)
        return key

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """Read the key in a file; `FileNotFoundError` if there is none."""
        try:
            text = _read(path)
        except OSError as error:
            raise storage_read_error(error, str(path.parent), path.name) from error
        if not text.endswith("\n"):
            raise _malformed(_SEED_FORM)
        return cls.parse(text.removesuffix("\n"))

    @classmethod
    def load_or_make(cls, path: Path, name: str) -> "SigningKey":
        """Read the key in a file, or make one of this name and keep it there, durably.

        Of processes that do so at the same time one makes the key, and all get that one. A file
        that is there is never changed.
        """
        with suppress(FileNotFoundError):
            return cls.load(path)
        try:
            make_folder(path.parent)
        except OSError as error:
            raise storage_error(error, str(path.parent), path.name) from error
        write_whole(path, f"{cls.make(name).secret()}\n".encode(), place=_name_unless_taken)
        return cls.load(path)

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.name, _private_key(self.seed).public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        return _private_key(self.seed).sign(message)

    def secret(self) -> str:
        """Return the key as text; it is for the owner's eyes only."""
        public_id = self.public.id.hex()
        return f"{_PRIVATE}{self.name}+{public_id}+{to_base64(_ED25519 + self.seed)}"


# ---------------------------------------------------------------- text
def check_name(name: str) -> None:
    """Refuse what can't be the name of a key in a signed note."""
    if not name or "+" in name or any(c.isspace() or not c.isprintable() for c in name):
        raise ProofError(f"{name[:80]!a} names no key. Fix: use no spaces and no plus signs.")
    if len(name.encode()) > _LONGEST_NAME:
        raise ProofError(f"the name of a key has at most {_LONGEST_NAME} bytes")


def _check_key(name: str, key: bytes) -> None:
    check_name(name)
    if type(key) is not bytes or len(key) != _KEY_BYTES:
        raise ProofError(f"an Ed25519 key has {_KEY_BYTES} bytes")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """Read what `to_base64` gives, and only that: each text has one meaning, and each one text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProofError(f"{text[:80]!a} is no base64") from error
    if to_base64(data) != text:
        raise ProofError(f"{text[:80]!a} is not written in the one usual way of base64")
    return data


def _parts(text: str, form: str) -> tuple[str, str, bytes]:
    # Only the first two: a plus may also stand in base64.
    name, _, rest = text.partition("+")
    key_id, _, encoded = rest.partition("+")
    data = from_base64(encoded) if len(encoded) < _LONGEST_FILE else b""
    if not _KEY_ID.fullmatch(key_id) or data[:1] != _ED25519:
        raise _malformed(form)
    return name, key_id, data[1:]


def _malformed(form: str) -> ProofError:
    return ProofError(f"this is no Ed25519 key. Fix: copy it whole; it has the form {form}.")


def _check_id(key: PublicKey, key_id: str) -> None:
    if key.id.hex() != key_id:
        raise ProofError(
            f"the key {key.name!a} and its id {key_id} do not fit. Fix: copy it whole."
        )


# ---------------------------------------------------------------- file
def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        data = file.read(_LONGEST_FILE)
    if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise ProofError(f"{str(path)!a} is open to others. Fix: chmod 600, or make a new key.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _malformed(_SEED_FORM) from error


def _name_unless_taken(unfinished: Path, path: Path) -> None:
    with suppress(FileExistsError):  # another process wrote a key first, and that one is valid
        path.hardlink_to(unfinished)


# ---------------------------------------------------------------- the library
def _private_key(seed: bytes) -> "Ed25519PrivateKey":
    with _installed():
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - optional
    return ed25519.Ed25519PrivateKey.from_private_bytes(seed)


def _is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    with _installed():
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - optional
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - optional
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ProofError(
            "nothing can be signed or verified: cryptography is not installed. "
            "Fix: pip install '.[proofs]' from a checkout."
        ) from error
