"""Names of nodes, for a shell that completes them as they are typed."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from perdure.app import default_request, open_storage
from perdure.context.files import ARCHIVED
from perdure.context.reading import NodeReader
from perdure.model import RequestContext, Uri
from perdure.model.short_names import name_for, place_named
from perdure.model.uri import name_of
from perdure.surfaces.nodes.opening import Caller, request_for

_MOST = 500
_PLAIN = re.compile(r"[\w.@%+=/-]+")
"""What a shell takes as it is. Whatever else is in a name, it is typed by hand."""


def node_names(ctx: click.Context, _: object, incomplete: str) -> list[str]:
    """Return the names of nodes that begin so; of a folder alone, those in it."""
    return _found(ctx, incomplete, _Names.children)


def folder_names(ctx: click.Context, _: object, incomplete: str) -> list[str]:
    return [name for name in node_names(ctx, _, incomplete) if name.endswith("/")]


def archived_names(ctx: click.Context, _: object, incomplete: str) -> list[str]:
    return _found(ctx, incomplete, _Names.archived)


def _found(ctx: click.Context, incomplete: str, children: Any) -> list[str]:  # noqa: ANN401 - one of the two above
    try:
        names = _Names(_caller(ctx))
        return list(islice(names.beginning(incomplete, children), _MOST))
    except Exception:  # noqa: BLE001 - who types is not to be interrupted by what is wrong
        return []


def _caller(ctx: click.Context) -> RequestContext:
    said = {name: ctx.params.get(name) for name in Caller.__annotations__}
    if not any(said.values()):
        return default_request(os.environ)
    return request_for(Caller(**{**said, "session": said["session"] or ""}), os.environ)  # type: ignore[typeddict-item] # click has checked them


class _Names:
    def __init__(self, request: RequestContext) -> None:
        self._request = request
        self._reader = NodeReader(open_storage(os.environ))

    def beginning(self, typed: str, children: Any) -> Iterator[str]:  # noqa: ANN401 - as before
        """Yield what begins as it was typed; of one folder alone, what is in it."""
        folder, slash, _ = typed.rpartition("/")
        place = place_named(folder + slash, self._request)
        found = [name for name in children(self, place) if name.startswith(typed)]
        if len(found) == 1 and found[0].endswith("/"):
            yield from filter(
                _PLAIN.fullmatch, children(self, place_named(found[0], self._request))
            )
        else:
            yield from filter(_PLAIN.fullmatch, found)

    def children(self, place: Uri) -> Iterator[str]:
        for uri in self._reader.list_children(str(place), self._request):
            yield self._named(Uri.parse(uri))

    def archived(self, place: Uri) -> Iterator[str]:
        """Yield what is archived in a folder, and the folders in it."""
        for mark in self._reader.backend.list(self._reader.file(place, ARCHIVED)):
            name = name_of(mark.name)
            if name is not None and self._reader.reach.may_see(place.child(name), self._request):
                yield self._named(place.child(name))
        yield from (name for name in self.children(place) if name.endswith("/"))

    def _named(self, place: Uri) -> str:
        return name_for(place, self._request) + ("" if place.is_node else "/")
