"""What a caller reaches, checked before anything is read."""

from typing import TYPE_CHECKING, cast

from perdure.context.node_files import OWNER, read_text
from perdure.errors import AccessRefusedError
from perdure.model import RequestContext, Uri
from perdure.storage import Locator, StorageBackend
from perdure.storage.contract import Layout

if TYPE_CHECKING:
    from perdure.context.layouts.notes import NotesLayout

_ROOT = Locator("")


def layout_of(backend: StorageBackend) -> "NotesLayout | None":
    inner = getattr(backend, "inner", backend)
    return cast("NotesLayout", inner) if isinstance(inner, Layout) else None


class Reach:
    """Refuses before anything is read, so that a refusal reveals nothing about what is stored."""

    def __init__(self, backend: StorageBackend) -> None:
        self._backend = backend
        self._layout = layout_of(backend)

    def require_visible(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the parsed URI; `AccessDeniedError` if the caller may not see it."""
        place = Uri.parse(uri)
        if not self.may_see(place, ctx):
            raise ctx.refuse(uri)
        return place

    def require_writable(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the parsed URI; `AccessDeniedError` if the caller may not change it."""
        place = Uri.parse(uri)
        self._refuse_note(place, ctx)
        if not ctx.may_change(place) or (place.session and not self._reaches_session(place, ctx)):
            raise ctx.refuse(uri)
        return place

    def _refuse_note(self, place: Uri, ctx: RequestContext) -> None:
        """Refuse to change a user's own note, if the caller may see that it is one."""
        if self._layout is None or place.path[:1] != ("resources",) or not ctx.may_see(place):
            return
        if path := self._layout.own_note(place.key):
            raise AccessRefusedError(
                f"{path!a} is a note of its owner's, which Perdure reads and does not change. "
                "Nothing was changed. Fix: edit it in its editor, or save a memory beside it with "
                "`perdure save`; `perdure read --at` and the date print what it was. To erase its "
                "versions, delete the file first."
            )

    def may_see(self, place: Uri, ctx: RequestContext) -> bool:
        return ctx.may_see(place) and (not place.session or self._reaches_session(place, ctx))

    def session_owner(self, place: Uri) -> str | None:
        """Return the owner space of a session; None before its first node, "" if unreadable."""
        text = read_text(self.owner_file(place), self._backend.read)
        if text is None:
            return None
        return text.removesuffix("\n") if isinstance(text, str) else ""  # an id may end in space

    def is_known_to(self, reader: Uri, place: Uri) -> bool:
        """Whether all who see `reader` may know of `place`: one owner has both, or it is shared."""
        owner = place.owner_space or self.session_owner(place)
        own = reader.owner_space or self.session_owner(reader)
        return bool(owner) and owner in {own, f"account:{reader.account}"}

    def owner_file(self, place: Uri) -> Locator:
        return _ROOT.child(Uri(place.account, place.path[:2]).key, OWNER)

    def _reaches_session(self, place: Uri, ctx: RequestContext) -> bool:
        if ctx.governs:
            return True
        owner = self.session_owner(place)
        return ctx.session_id == place.session if owner is None else ctx.reaches(owner)
