"""What lies in the folders of a memory and is no memory."""

from collections.abc import Iterator

from perdure.context.files import CONTENT, FILES
from perdure.context.reading import NodeReader
from perdure.engine.lint.problem import Code, Problem
from perdure.model import RequestContext, Role, Uri, slugify
from perdure.model.values import shown
from perdure.storage import Finding, FindingKind, Locator
from perdure.storage.walk import is_directory

_KINDS = {
    FindingKind.CONFLICT_COPY: Code.CONFLICT_COPY,
    FindingKind.UNUSABLE_NAME: Code.NAME_UNUSABLE,
    FindingKind.LINK: Code.FILE_LINK,
    FindingKind.LEFTOVER: Code.LEFTOVER,
}
_NOTE = ".md"


class Folders:
    """Walks the folders that somebody may see. Those with a dot belong to tools."""

    def __init__(self, reader: NodeReader, ctx: RequestContext) -> None:
        self._reader = reader
        self._backend = reader.backend
        self._ctx = ctx
        self._own = reader.folder(Uri(ctx.account_id))

    def problems(self, place: Uri) -> Iterator[Problem]:
        """Yield what is wrong at a place and below; of a whole account, in all of the store.

        What other accounts have is none of it.
        """
        whole = not place.path and self._ctx.role is Role.ROOT
        pending = [self._reader.root if whole else self._reader.folder(place)]
        while pending:
            folder = pending.pop()
            if not self._may_look(folder):
                continue
            findings = self._backend.findings(folder)
            yield from map(_told, findings)
            children = [
                child for child in self._backend.list(folder) if not child.name.startswith(".")
            ]
            if self._own.contains(folder):
                yield from _strays(folder, children, {finding.name for finding in findings})
            pending += filter(self._is_to_be_seen, children)

    def _is_to_be_seen(self, child: Locator) -> bool:
        another = child.parent == self._own.parent and child != self._own
        return not another and child.name not in FILES and is_directory(self._backend, child)

    def _may_look(self, folder: Locator) -> bool:
        if self._ctx.governs:
            return True
        place = Uri.of_key(folder.key)
        return place is not None and self._reader.reach.may_see(place, self._ctx)


def _strays(folder: Locator, children: list[Locator], told: set[str]) -> Iterator[Problem]:
    """Yield the notes that are no nodes, for the place that they are at."""
    for child in children:
        if child.name == CONTENT:
            place = Uri.of_key(folder.key)
            if place is None or not place.is_node:
                what = f"no memory can be in a folder called {shown(folder.name)} here"
                fix = f"rename it, such as to {slugify(folder.name)}, in a folder of a category"
                yield Problem(child.key, 0, Code.NAME_UNUSABLE.value, what, fix)
        elif child.name.endswith(_NOTE) and child.name not in told:
            what = "it is no memory, so nobody finds it"
            fix = "`perdure write CATEGORY/NAME < FILE` makes one of it"
            yield Problem(child.key, 0, Code.NO_NODE.value, what, fix)


def _told(finding: Finding) -> Problem:
    folder = f"{finding.directory.key}/" if finding.directory.key else ""
    of = f" of {finding.original.name}" if finding.original is not None else ""
    what = f"it is a {finding.kind.value}{of}"
    code = _KINDS[finding.kind].value
    return Problem(f"{folder}{finding.name}", 0, code, what, finding.advice.rstrip("."))
