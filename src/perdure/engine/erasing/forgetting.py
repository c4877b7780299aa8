"""Forgetting: to put away what nobody is to find, or to erase it."""

from collections.abc import Callable, Iterator

from perdure.context.nodes import Nodes
from perdure.context.reading import absent
from perdure.engine.erasing.erasing import Erasing
from perdure.engine.erasing.plan import Forgotten
from perdure.errors import BrokenNodeError, NodeNotFoundError
from perdure.model import NodeStatus, RequestContext, Uri


class Forgetting:
    """Forgets on behalf of somebody."""

    def __init__(
        self, nodes: Nodes, erasing: Callable[[], Erasing], request: RequestContext
    ) -> None:
        self._nodes = nodes
        self._erasing = erasing
        self._request = request

    def archive(self, uri: str, reason: str, *, dry_run: bool) -> Forgotten:
        """Put away every node at a place and below; those that are, stay so."""
        place = self._nodes.reach.changed(uri, self._request)
        nodes = self._nodes.because(reason)
        now, before = [], []
        for each in [place] if place.is_node else list(self._below(place)):
            if self._is_archived(each):
                before.append(str(each))
            elif not place.is_node and not self._nodes.is_active(each):
                continue
            else:
                now.append(str(each))
        if not now and not before:
            raise absent(place)
        for each_uri in now:
            if dry_run:
                self._nodes.active(Uri.parse(each_uri))
            else:
                nodes.archive_node(each_uri, self._request)
        return Forgotten(tuple(now), tuple(before))

    def erase(self, uri: str, reason: str, *, dry_run: bool) -> Forgotten:
        erasing = self._erasing()
        plan = erasing.plan(uri, self._request)
        if dry_run or plan.is_empty:
            return Forgotten(plan=plan)
        return Forgotten(plan=plan, erased=erasing.erase(uri, self._request, reason))

    def _below(self, folder: Uri) -> Iterator[Uri]:
        reach = self._nodes.reach
        for place in self._nodes.walk(folder):
            if self._request.may_change(place) and reach.may_see(place, self._request):
                yield place

    def _is_archived(self, place: Uri) -> bool:
        try:
            stored = self._nodes.load(place)
        except (BrokenNodeError, NodeNotFoundError):
            return False
        return stored is not None and stored.meta.status is NodeStatus.ARCHIVED
