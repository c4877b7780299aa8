"""Digests of records, by which an index proves that it holds what was put."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256

from perdure.index.vectors import quantised
from perdure.model import IndexRecord
from perdure.model.values import JSON

Said = tuple[str, int, str, str, Mapping[str, JSON], JSON]
"""Id, level, text, context, filters and payload of a record."""

_encoded = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=dict
).encode


def stamp(records: Iterable[IndexRecord]) -> str:
    """Return one digest of the records of a URI, in whatever order; of one id the last counts."""
    return stamp_of({record.id: digest(record) for record in records})


def stamp_of(digests: Mapping[str, bytes]) -> str:
    """Return the stamp of records whose digests are known, by their ids."""
    return sha256(b"".join(digests[id_] for id_ in sorted(digests))).hexdigest()


def digest(record: IndexRecord) -> bytes:
    """Return the digest of all that a record says; of its vector, as it is kept."""
    return digest_of(
        (
            record.id,
            int(record.level),
            record.text,
            record.context,
            record.filters,
            record.payload,
        ),
        quantised(record.vector),
    )


def digest_of(said: Said, vector: bytes) -> bytes:
    """Return the digest of a record whose vector is known as it is kept."""
    return sha256(_encoded((*said, vector.hex())).encode()).digest()


def root(stamps: Mapping[str, str]) -> str:
    """Return one digest of all stamps of an account, by their URIs."""
    return sha256(_encoded(sorted(stamps.items())).encode()).hexdigest()
