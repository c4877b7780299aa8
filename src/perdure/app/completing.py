"""Names of nodes for a shell that completes them. Opens neither history nor index."""

from collections.abc import Iterator, Mapping

from perdure.app.opening import open_texts
from perdure.context.node_files import ARCHIVED
from perdure.context.reader import NodeReader
from perdure.model import RequestContext, Uri
from perdure.model.request import name_for, place_named
from perdure.model.uri import name_of


def completions(
    environ: Mapping[str, str], caller: RequestContext, typed: str, *, archived: bool = False
) -> Iterator[str]:
    """Yield the names of nodes and folders that begin as typed; of a single folder, those in it.

    With `archived`, of archived nodes instead of active ones. Folders end with a slash.
    """
    reader = NodeReader(open_texts(environ))
    folder, slash, _ = typed.rpartition("/")
    names = _archived_in if archived else _names_in
    found = [n for n in names(reader, caller, folder + slash) if n.startswith(typed)]
    is_folder = len(found) == 1 and found[0].endswith("/")
    return names(reader, caller, found[0]) if is_folder else iter(found)


def _names_in(reader: NodeReader, caller: RequestContext, folder: str) -> Iterator[str]:
    for uri in reader.list_children(str(place_named(folder, caller)), caller):
        place = Uri.parse(uri)
        yield name_for(place, caller) + ("" if place.is_node else "/")


def _archived_in(reader: NodeReader, caller: RequestContext, folder: str) -> Iterator[str]:
    """Yield what is archived in a folder, and the folders in it."""
    place = place_named(folder, caller)
    for mark in reader.backend.list(reader.file(place, ARCHIVED)):
        name = name_of(mark.name)
        if name is not None and reader.reach.may_see(place.child(name), caller):
            yield name_for(place.child(name), caller)
    yield from (name for name in _names_in(reader, caller, folder) if name.endswith("/"))
