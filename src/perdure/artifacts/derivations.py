"""Putting what is derived: register its structure, make its bytes once, remember the result."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from google_crc32c import value as crc32c

from perdure.artifacts.artifact import SID, Derived, Literal, Structure, structures
from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.draft import Content, Draft
from perdure.artifacts.entry import Register, Result
from perdure.artifacts.materialize import Materializer
from perdure.artifacts.operations import Operations
from perdure.errors import DeterminismError

if TYPE_CHECKING:
    from perdure.artifacts.catalogue import Catalogue


class Derivation:
    """A derived artifact on its way into the store."""

    def __init__(
        self, root: SID, nodes: list[Structure], literals: dict[SID, Content], made: Content
    ) -> None:
        self.root = root
        self.made = made
        self._nodes = nodes
        self._literals = literals

    def plan(self, draft: Draft, catalogue: "Catalogue", algorithm: Hash) -> None:
        """Draft the entries that are not in the log yet, in the order that the seed asks for."""
        catalogue.follow()
        known = catalogue.registered([node.sid for node in self._nodes])
        for node in self._nodes:
            if node.sid not in known:
                draft.append_once(Register(node.sid, node.encoded))
        for literal in self._literals.values():
            draft.put(literal)
        draft.put(self.made)
        cid = CID(self.made.digest, algorithm)
        if cid not in {known for known, _ in catalogue.results(self.root)}:
            draft.append_once(Result(self.root, cid))


class Derivations:
    """The action cache: a result that is known, and still to be had, is not made again."""

    def __init__(
        self,
        catalogue: "Catalogue",
        operations: Operations,
        algorithm: Hash,
        get: Callable[[CID], bytes | None],
    ) -> None:
        self._catalogue = catalogue
        self._hash = algorithm
        self._get = get
        self._operations = operations

    def result_of(self, sid: SID) -> CID | None:
        """Return the one content that the structure gave; None if it was never made.

        More than one is a `DeterminismError`: which is right can't be known from here.
        """
        results = self._catalogue.results(sid)
        if len(results) > 1:
            shown = ", ".join(f"{cid} (entry {position})" for cid, position in results)
            raise DeterminismError(
                f"{sid} was made more than once, and not the same: {shown}. All are kept. Fix: "
                "make the operation depend on nothing but its inputs, and give it a new version."
            )
        return results[0][0] if results else None

    def begin(self, artifact: Derived) -> CID | Derivation:
        """Return the content, if it is known and to be had; else make it."""
        self._catalogue.follow()
        nodes, literals = [], {}
        for node, structure in structures(artifact, self._hash):
            if isinstance(node, Literal):  # whose put registers it
                literals[structure.sid] = node.data
            else:
                nodes.append(structure)
        root = nodes[-1].sid
        known = self.result_of(root)
        if known is not None and self._get(known) is not None:
            return known
        made = self._content(self._materializer(nodes).bytes_of(root, literals))
        contents = {sid: self._content(data) for sid, data in literals.items()}
        return Derivation(root, nodes, contents, made)

    def told(self, artifact: Derived, made: Content) -> Derivation:
        """Return a derivation that somebody else made; its literals are named, and not put."""
        nodes = [structure for _, structure in structures(artifact, self._hash)]
        return Derivation(nodes[-1].sid, nodes, {}, made)

    def _materializer(self, nodes: list[Structure]) -> Materializer:
        encoded = {node.sid: node.encoded for node in nodes}
        made = self._catalogue.made(list(encoded))
        return Materializer(
            self._operations,
            lambda sid: encoded.get(sid) or self._catalogue.structure(sid),
            lambda sid: None if sid in encoded and sid not in made else self._remembered(sid),
            self._get,
        )

    def _remembered(self, sid: SID) -> bytes | None:
        known = self.result_of(sid)
        return None if known is None else self._get(known)

    def _content(self, data: bytes) -> Content:
        return Content(bytes(CID.of(data, self._hash)), crc32c(data), data)
