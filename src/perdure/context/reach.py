"""What a caller may see and change; a session's owner is written in the session."""

from perdure.context.files import OWNER
from perdure.context.parts import said_at
from perdure.model import RequestContext, Uri
from perdure.storage import Locator, StorageBackend


class Reach:
    """Says no before anything is looked at, so that a refusal tells nothing of what is there."""

    def __init__(self, backend: StorageBackend, root: Locator) -> None:
        self._backend = backend
        self._root = root

    def seen(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the place if the caller may see it; `AccessDeniedError` if not."""
        place = Uri.parse(uri)
        if not self.may_see(place, ctx):
            raise ctx.refuse(uri)
        return place

    def changed(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the place if the caller may change it; `AccessDeniedError` if not."""
        place = Uri.parse(uri)
        if not ctx.may_change(place) or not self._session_open(place, ctx):
            raise ctx.refuse(uri)
        return place

    def may_see(self, place: Uri, ctx: RequestContext) -> bool:
        return ctx.may_see(place) and self._session_open(place, ctx)

    def session_owner(self, place: Uri) -> str | None:
        """Return whose a session is; None before its first node, empty if nobody can tell."""
        said = said_at(self.owner_file(place), self._backend.read)
        if said is None:
            return None
        return said.removesuffix("\n") if isinstance(said, str) else ""  # an id may end in space

    def known_at(self, reader: Uri, place: Uri) -> bool:
        """Whether all who see one place may know of another: it is the same owner's, or shared."""
        owner = place.owner_space or self.session_owner(place)
        own = reader.owner_space or self.session_owner(reader)
        return bool(owner) and owner in {own, f"account:{reader.account}"}

    def owner_file(self, place: Uri) -> Locator:
        return self._root.child(Uri(place.account, place.path[:2]).key, OWNER)

    def _session_open(self, place: Uri, ctx: RequestContext) -> bool:
        """Whether a place is in no session, or in one that is the caller's."""
        if not place.session or ctx.governs:
            return True
        owner = self.session_owner(place)
        if owner is None:
            return ctx.session_id == place.session
        return ctx.reaches(owner)
