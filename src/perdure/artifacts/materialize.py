"""From a structure to bytes: run the operations that make an artifact."""

from collections import Counter
from collections.abc import Callable, Mapping

from perdure.artifacts.artifact import SID, Recipe, decode_structure
from perdure.artifacts.cid import CID
from perdure.artifacts.operations import Operations
from perdure.errors import UnknownContentError

_Values = dict[SID, bytes]


class Materializer:
    """Makes bytes, and only those that nobody has made before.

    `structure` gives what is registered under a SID, `remembered` the bytes that a SID is known to
    make, `content` the bytes of a CID; each may give None.
    """

    def __init__(
        self,
        operations: Operations,
        structure: Callable[[SID], bytes | None],
        remembered: Callable[[SID], bytes | None],
        content: Callable[[CID], bytes | None],
    ) -> None:
        self._operations = operations
        self._structure = structure
        self._remembered = remembered
        self._content = content

    def bytes_of(self, root: SID, given: Mapping[SID, bytes]) -> bytes:
        """Return what `root` makes. `given` are the bytes of literals that are not stored yet.

        Depth is bounded by memory only.
        """
        values: _Values = {}
        recipes = self._plan(root, given, values)
        uses = Counter(child for recipe in recipes.values() for child in recipe.children)
        done = set(values)
        pending = [root]
        while pending:
            sid = pending[-1]
            if sid in done:
                pending.pop()
                continue
            recipe = recipes[sid]
            missing = [child for child in recipe.children if child not in done]
            if missing:
                pending.extend(missing)
                continue
            values[sid] = self._run(recipe, values)
            done.add(sid)
            for child in recipe.children:
                uses[child] -= 1
                if not uses[child]:
                    del values[child]
        return values[root]

    def _plan(self, root: SID, given: Mapping[SID, bytes], values: _Values) -> dict[SID, Recipe]:
        """Return the recipes that have to be run, and find the values of all others."""
        recipes: dict[SID, Recipe] = {}
        pending = [root]
        while pending:
            sid = pending.pop()
            if sid in values or sid in recipes:
                continue
            known = given.get(sid)
            if known is None:
                known = self._remembered(sid)
            if known is not None:
                values[sid] = known
                continue
            structure = self._read(sid)
            if isinstance(structure, CID):
                values[sid] = self._literal(structure)
            else:
                recipes[sid] = structure
                pending.extend(structure.children)
        return recipes

    def _read(self, sid: SID) -> CID | Recipe:
        encoded = self._structure(sid)
        if encoded is None:
            raise UnknownContentError(
                f"no artifact is registered as {sid}. Fix: give the artifact itself instead of its "
                "SID, or put it first."
            )
        return decode_structure(encoded)

    def _literal(self, cid: CID) -> bytes:
        content = self._content(cid)
        if content is None:
            raise UnknownContentError(
                f"{cid} is needed to derive something, but can't be had at present. Fix: put it "
                "again, or lift its tombstone."
            )
        return content

    def _run(self, recipe: Recipe, values: _Values) -> bytes:
        children = [values[child] for child in recipe.children]
        return self._operations.run(recipe.operation, recipe.version, children, recipe.parameters)
