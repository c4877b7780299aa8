"""Derived artifacts: operations, their materialization, and the action cache."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from perdure.artifacts.artifact import (
    SID,
    Derived,
    Literal,
    Recipe,
    Structure,
    Value,
    decode_structure,
    structures,
)
from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.content_index import CommitDraft, Content
from perdure.artifacts.entry import Register, Result
from perdure.errors import DeterminismError, OperationError, UnknownContentError

if TYPE_CHECKING:
    from perdure.artifacts.catalogue import Catalogue

Operation = Callable[[Sequence[bytes], Mapping[str, Value]], bytes]
"""Computes bytes from the children's bytes and the parameters; must be deterministic."""


class Operations:
    """Operations by name and version. One whose results change needs a new version."""

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
                f"the operation {name!a} {version} is registered already. Fix: give the new one "
                "another version."
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
            result = function(children, parameters)
        except Exception as error:  # a caller's function may raise anything
            raise OperationError(
                f"the operation {name!a} {version} failed: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(result, bytes):
            raise OperationError(
                f"the operation {name!a} {version} returned {type(result).__name__}, not bytes"
            )
        return result


def _concat(children: Sequence[bytes], parameters: Mapping[str, Value]) -> bytes:
    """Return the children joined."""
    _only(parameters)
    return b"".join(children)


def _slice(children: Sequence[bytes], parameters: Mapping[str, Value]) -> bytes:
    """Return `length` bytes at `offset` of the one child, which must have them."""
    (child,) = children
    _only(parameters, "offset", "length")
    offset, length = parameters["offset"], parameters["length"]
    if not isinstance(offset, int) or not isinstance(length, int):
        raise TypeError("offset and length must be integers")
    if offset < 0 or length < 0 or offset + length > len(child):
        raise ValueError(f"{offset}+{length} is outside of the {len(child)} bytes")
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


def materialize(
    root: SID,
    operations: Operations,
    find: Callable[[SID], bytes | CID | Recipe],
    content: Callable[[CID], bytes | None],
) -> bytes:
    """Return the bytes of `root`: run the operations whose results are not known.

    `find` returns the bytes of a SID if they are known, else its structure; `content` returns the
    bytes of a CID. Depth is bounded by memory only.
    """
    values: dict[SID, bytes] = {}
    recipes = _recipes(root, find, content, values)
    uses = Counter(child for recipe in recipes.values() for child in recipe.children)
    done = set(values)
    pending = [root]
    while pending:
        sid = pending[-1]
        if sid in done:
            pending.pop()
            continue
        name, version, parameters, children = recipes[sid]
        missing = [child for child in children if child not in done]
        if missing:
            pending.extend(missing)
            continue
        values[sid] = operations.run(name, version, [values[each] for each in children], parameters)
        done.add(sid)
        for child in children:
            uses[child] -= 1
            if not uses[child]:
                del values[child]
    return values[root]


def _recipes(
    root: SID,
    find: Callable[[SID], bytes | CID | Recipe],
    content: Callable[[CID], bytes | None],
    values: dict[SID, bytes],
) -> dict[SID, Recipe]:
    """Return the recipes that must be run, and add the known values of the others."""
    recipes: dict[SID, Recipe] = {}
    pending = [root]
    while pending:
        sid = pending.pop()
        if sid in values or sid in recipes:
            continue
        found = find(sid)
        if isinstance(found, Recipe):
            recipes[sid] = found
            pending.extend(found.children)
            continue
        if isinstance(found, CID):
            data = content(found)
            if data is None:
                raise UnknownContentError(
                    f"{found} is needed for a derivation, but is hidden or erased. Fix: put it "
                    "again, or lift its tombstone."
                )
            found = data
        values[sid] = found
    return recipes


class Derivation(NamedTuple):
    """A derived artifact to be stored, with its result."""

    root: SID
    nodes: list[Structure]
    literals: dict[SID, Content]
    result: Content

    @property
    def digest(self) -> bytes:
        return self.result.digest

    def plan(self, draft: CommitDraft, catalogue: "Catalogue", algorithm: Hash) -> None:
        """Draft the entries that are not in the log yet, in the specified order."""
        catalogue.follow()
        known = catalogue.registered([node.sid for node in self.nodes])
        for node in self.nodes:
            if node.sid not in known:
                draft.append_once(Register(node.sid, node.encoded))
        for literal in self.literals.values():
            draft.put(literal)
        draft.put(self.result)
        cid = CID(self.result.digest, algorithm)
        if cid not in {known for known, _ in catalogue.results(self.root)}:
            draft.append_once(Result(self.root, cid))


class ActionCache:
    """Results by structure: one that is known and stored is not computed again."""

    def __init__(
        self,
        catalogue: "Catalogue",
        operations: Operations,
        algorithm: Hash,
        get: Callable[[CID], bytes | None],
        content: Callable[[bytes], Content],
    ) -> None:
        self._catalogue = catalogue
        self._hash = algorithm
        self._get = get
        self._content = content
        self._operations = operations

    def result_of(self, sid: SID) -> CID | None:
        """Return the result of a structure; None if there is none.

        More than one raises `DeterminismError`: which one is right is not known.
        """
        results = self._catalogue.results(sid)
        if len(results) > 1:
            shown = ", ".join(f"{cid} (entry {position})" for cid, position in results)
            raise DeterminismError(
                f"{sid} has more than one result: {shown}. All are retained. Fix: make the "
                "operation depend only on its inputs, and give it a new version."
            )
        return results[0][0] if results else None

    def derive(self, artifact: Derived) -> CID | Derivation:
        """Return the CID of a known and stored result; else compute it."""
        self._catalogue.follow()
        nodes, literals = [], {}
        for node, structure in structures(artifact, self._hash):
            if isinstance(node, Literal):  # its put registers it
                literals[structure.sid] = node.data
            else:
                nodes.append(structure)
        root = nodes[-1].sid
        known = self.result_of(root)
        if known is not None and self._get(known) is not None:
            return known
        find = self._finder(nodes, literals)
        result = self._content(materialize(root, self._operations, find, self._get))
        contents = {sid: self._content(data) for sid, data in literals.items()}
        return Derivation(root, nodes, contents, result)

    def with_result(self, artifact: Derived, result: Content) -> Derivation:
        """Return a derivation with a known result; its literals are named, but not stored."""
        nodes = [structure for _, structure in structures(artifact, self._hash)]
        return Derivation(nodes[-1].sid, nodes, {}, result)

    def _finder(
        self, nodes: list[Structure], literals: Mapping[SID, bytes]
    ) -> Callable[[SID], bytes | CID | Recipe]:
        given = {node.sid: node.encoded for node in nodes}
        derived = self._catalogue.with_results(list(given))

        def find(sid: SID) -> bytes | CID | Recipe:
            known = literals.get(sid)
            if known is None and (sid not in given or sid in derived):
                result = self.result_of(sid)
                known = None if result is None else self._get(result)
            if known is not None:
                return known
            encoded = given.get(sid) or self._catalogue.structure(sid)
            if encoded is None:
                raise UnknownContentError(
                    f"no artifact is registered as {sid}. Fix: use the artifact itself instead of "
                    "its SID, or put it first."
                )
            return decode_structure(encoded)

        return find
