"""Content identifiers, in the standard form CIDv1.

Apart from artifacts, because who only reads nodes needs no CBOR.
"""

import base64
import binascii
import hashlib
from enum import Enum
from functools import lru_cache
from typing import Protocol

from perdure.dataclass import dataclass
from perdure.errors import InvalidCIDError

_VERSION = 1
_DIGEST_BYTES = 32


class Codec(Enum):
    RAW = 0x55
    """Any bytes."""
    DAG_CBOR = 0x71
    """A structure, in canonical CBOR."""


class Hash(Enum):
    """The algorithm of the digest; a parameter of a store's format."""

    SHA2_256 = 0x12
    BLAKE3 = 0x1E

    def digest(self, data: bytes) -> bytes:
        return self.hasher(data).digest()

    def hasher(self, data: bytes = b"") -> "Hasher":
        """Return a hash object that was updated with `data`."""
        if self is Hash.SHA2_256:
            return hashlib.sha256(data)
        try:
            import blake3  # noqa: PLC0415 - an optional dependency
        except ImportError as error:
            raise InvalidCIDError(
                "blake3 is not installed. "
                "Fix: pip install '.[blake3]' from a checkout, or use sha2-256."
            ) from error
        return blake3.blake3(data)


class Hasher(Protocol):
    def update(self, data: bytes, /) -> object: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True, slots=True, order=True)
class CID:
    """The name of some bytes, computed from them."""

    digest: bytes
    hash: Hash = Hash.SHA2_256
    codec: Codec = Codec.RAW

    def __post_init__(self) -> None:
        if len(self.digest) != _DIGEST_BYTES:
            raise InvalidCIDError(f"a digest has {_DIGEST_BYTES} bytes, not {len(self.digest)}")

    @classmethod
    def of(cls, data: bytes, hash: Hash = Hash.SHA2_256, codec: Codec = Codec.RAW) -> "CID":  # noqa: A002 - the standard's own word
        is_usual = hash is Hash.SHA2_256
        cid, put = object.__new__(cls), object.__setattr__  # a digest needs no check here
        put(cid, "digest", hashlib.sha256(data).digest() if is_usual else hash.digest(data))
        put(cid, "hash", hash)
        put(cid, "codec", codec)
        return cid

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> "CID":
        """Parse the form that `str` returns; `InvalidCIDError` for any other text."""
        try:
            padding = "=" * (-(len(text) - 1) % 8)
            data = base64.b32decode(text[1:].upper() + padding)
        except (binascii.Error, ValueError) as error:
            raise _invalid(text, "it is not base32") from error
        cid = cls.from_bytes(data)
        if str(cid) != text:
            raise _invalid(text, "it is not in canonical form")
        return cid

    @classmethod
    def from_bytes(cls, data: bytes) -> "CID":
        if len(data) != _DIGEST_BYTES + 4 or data[0] != _VERSION or data[3] != _DIGEST_BYTES:
            raise _invalid(data.hex(), "it is not a CIDv1 with a digest of 32 bytes")
        cid, put = object.__new__(cls), object.__setattr__
        put(cid, "digest", data[4:])
        try:
            put(cid, "hash", Hash(data[2]))
            put(cid, "codec", Codec(data[1]))
        except ValueError as error:
            raise _invalid(data.hex(), "its codec or hash is not supported") from error
        return cid

    def __bytes__(self) -> bytes:
        return bytes((_VERSION, self.codec.value, self.hash.value, _DIGEST_BYTES)) + self.digest

    def __str__(self) -> str:
        return "b" + base64.b32encode(bytes(self)).decode().lower().rstrip("=")


def _invalid(shown: str, what: str) -> InvalidCIDError:
    return InvalidCIDError(
        f"{shown[:80]!a} is not a usable CID: {what}. Fix: copy all of it, as in 'bafkrei...'."
    )
