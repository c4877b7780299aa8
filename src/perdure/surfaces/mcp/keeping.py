"""`remember` and `forget`."""

from typing import Annotated, Literal

from mcp_types import CallToolResult

from perdure.context.files import META
from perdure.context.nodes import Nodes
from perdure.errors import (
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import NodeStatus, Uri
from perdure.model.short_names import name_for
from perdure.surfaces.mcp.answers import Forgotten, Saved, answered
from perdure.surfaces.mcp.arguments import (
    Category,
    Delete,
    MaskSecrets,
    Name,
    Reason,
    Slug,
    Text,
)
from perdure.surfaces.mcp.naming import node_of, place_of
from perdure.surfaces.mcp.opened import Opened

_ATTEMPTS = 10


class Keeping:
    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def remember(
        self,
        text: Text,
        category: Category = "note",
        slug: Slug = "",
        mask_secrets: MaskSecrets = False,  # noqa: FBT002 - a client names each
    ) -> Annotated[CallToolResult, Saved]:
        """Keep one thing for later conversations.

        Use it when the user states a lasting preference or fact, decides something, or asks you to
        remember; and for what cost effort to find out. Not for what only matters now, nor for what
        a file already says. To correct a memory, give its category and slug again: the old text
        stays in its history. The same twice changes nothing.
        """
        text = text.strip("\n")
        context = self._opened.context()
        history = context.recorded.history
        before = history.position()
        uri = self._saved(text, category, slug, mask_secrets=mask_secrets)
        node = self._opened.memory().read(uri)
        last = history.current(context.reader.file(node.place, META))
        written = last is not None and last.position > before
        saved = Saved(
            uri=uri,
            version=node.version,
            written=written,
            created=written and node.version == 1,
            changed=node.content != text,
        )
        return answered(saved)

    def _saved(self, text: str, category: str, slug: str, *, mask_secrets: bool) -> str:
        """Keep a text, also if somebody else writes the same memory at the same time."""
        memory, attempts = self._opened.memory(), _ATTEMPTS
        while True:
            try:
                return memory.save(text, category=category, slug=slug, mask_secrets=mask_secrets)
            except (NodeExistsError, VersionMismatchError) as error:
                attempts -= 1
                if not attempts or self._is_archived(category, slug):
                    raise NodeExistsError(
                        f"{category}/{slug or '...'} was forgotten before, and is put away. "
                        "Nothing was written. Fix: take another slug, or ask the user to look at "
                        "`perdure list --archived` and to run `perdure unarchive`."
                    ) from error

    def _is_archived(self, category: str, slug: str) -> bool:
        place = place_of(f"{category}/{slug}", self._opened.request)
        stored = self._opened.context().reader.load(place) if place.is_node else None
        return stored is not None and stored.meta.status is NodeStatus.ARCHIVED

    def forget(
        self,
        uri: Name,
        reason: Reason = "",
        delete: Delete = False,  # noqa: FBT002 - a client names each
    ) -> Annotated[CallToolResult, Forgotten]:
        """Put a memory away, so that nothing finds it any more.

        Use it when the user asks to forget something, or says that it was never true. If something
        changed, remember what holds now instead. The user can take it back.
        """
        request = self._opened.request
        nodes = self._opened.context().nodes.because(reason)
        place = nodes.reach.changed(str(node_of(uri, request)), request)
        name = name_for(place, request)
        if delete:
            nodes.delete_node(str(place), request)
            undo = f"perdure read {name} --at MOMENT shows what it said"
        else:
            undo = f"perdure unarchive {name}"
        changed = delete or self._archived(nodes, place)
        self._opened.memory().settle()
        state: Literal["archived", "deleted"] = "deleted" if delete else "archived"
        return answered(Forgotten(uri=str(place), state=state, changed=changed, undo=undo))

    def _archived(self, nodes: Nodes, place: Uri) -> bool:
        """Put a memory away; say whether it was in use."""
        try:
            nodes.archive_node(str(place), self._opened.request)
        except NodeNotFoundError:
            stored = nodes.load(place)
            if stored is None or stored.meta.status is not NodeStatus.ARCHIVED:
                raise
            return False
        return True
