"""Functions of bytes that derived artifacts are made by."""

from collections.abc import Callable, Mapping, Sequence

from perdure.artifacts.canonical import Value
from perdure.artifacts.cid import Hash
from perdure.errors import OperationError

Operation = Callable[[Sequence[bytes], Mapping[str, Value]], bytes]
"""Makes bytes out of the children's bytes and the parameters, and always the same."""


class Operations:
    """Operations by name and version. A change in what one makes is a new version of it."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str], Operation] = {
            ("concat", "1"): _concat,
            ("slice", "1"): _slice,
            ("hash", "1"): _hash,
            ("utf8", "1"): _utf8,
        }

    def register(self, name: str, version: str, function: Operation) -> None:
        if (name, version) in self._functions:
            raise OperationError(
                f"the operation {name!a} {version} is registered. Fix: give the new one a version "
                "of its own."
            )
        self._functions[name, version] = function

    def run(
        self, name: str, version: str, children: Sequence[bytes], parameters: Mapping[str, Value]
    ) -> bytes:
        function = self._functions.get((name, version))
        if function is None:
            known = ", ".join(f"{n} {v}" for n, v in sorted(self._functions))
            raise OperationError(
                f"no operation is called {name!a} {version}. Known: {known}. Fix: register it."
            )
        try:
            made = function(children, parameters)
        except Exception as error:  # somebody else's function, whatever it raises
            raise OperationError(
                f"the operation {name!a} {version} failed: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(made, bytes):
            raise OperationError(
                f"the operation {name!a} {version} made {type(made).__name__}, not bytes"
            )
        return made


def _concat(children: Sequence[bytes], parameters: Mapping[str, Value]) -> bytes:
    """Join the children."""
    _only(parameters)
    return b"".join(children)


def _slice(children: Sequence[bytes], parameters: Mapping[str, Value]) -> bytes:
    """Cut `length` bytes at `offset` out of the one child; they must all be there."""
    (child,) = children
    _only(parameters, "offset", "length")
    offset, length = parameters["offset"], parameters["length"]
    if not isinstance(offset, int) or not isinstance(length, int):
        raise TypeError("offset and length are whole numbers")
    if offset < 0 or length < 0 or offset + length > len(child):
        raise ValueError(f"{offset}+{length} lies outside of the {len(child)} bytes")
    return child[offset : offset + length]


def _hash(children: Sequence[bytes], parameters: Mapping[str, Value]) -> bytes:
    """Return the sha2-256 of the one child."""
    (child,) = children
    _only(parameters)
    return Hash.SHA2_256.digest(child)


def _utf8(children: Sequence[bytes], parameters: Mapping[str, Value]) -> bytes:
    """Return the one child if it is UTF-8 text."""
    (child,) = children
    _only(parameters)
    child.decode()
    return child


def _only(parameters: Mapping[str, Value], *names: str) -> None:
    if set(parameters) != set(names):
        raise ValueError(f"takes the parameters {sorted(names)}, not {sorted(parameters)}")
