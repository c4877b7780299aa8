"""What an index refuses before it changes anything."""

from collections.abc import Collection, Mapping, Sequence

from perdure.errors import ConcurrentModificationError, InvalidValueError
from perdure.model import IndexRecord, Uri
from perdure.model.values import shown


def check_cursor(cursor: int, expected: int | None) -> None:
    """Refuse to go on from another cursor than was expected."""
    if expected is not None and cursor != expected:
        raise ConcurrentModificationError(
            f"the index is at {cursor}, not at {expected}: somebody else moved it, and nothing was "
            "changed. Fix: look again where it is, and go on from there."
        )


def check_unlogged(unlogged: Collection[str], nodes: Mapping[str, object]) -> None:
    """Refuse to be told of places that are not being replaced."""
    for uri in unlogged:
        if uri not in nodes:
            raise InvalidValueError(
                f"{shown(uri)} is not among what is replaced. Fix: replace it too, or leave it out."
            )


def check_nodes(account: str, nodes: Mapping[str, Sequence[IndexRecord]]) -> list[IndexRecord]:
    """Return all records of nodes, if each is of the URI and account that it is given for."""
    for uri in nodes:
        if Uri.parse(uri).account != account:
            raise InvalidValueError(
                f"{uri!a} is not in the account {shown(account)}. Fix: replace it in its own."
            )
    for uri, records in nodes.items():
        for record in records:
            if record.uri != uri:
                raise InvalidValueError(
                    f"{record.uri!a} is no record of {uri!a}. Fix: give it with its own URI."
                )
    return [record for records in nodes.values() for record in records]
