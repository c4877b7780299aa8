"""Save one text as a memory."""

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, Self

from perdure.context.nodes import Nodes
from perdure.engine.merge.grounds import grounds_of
from perdure.engine.validate.secrets import SecretPolicy
from perdure.engine.validate.texts import Note, refuse_secrets
from perdure.engine.validate.validating import safe
from perdure.errors import (
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri, slugify
from perdure.model.values import JSON, encodable

if TYPE_CHECKING:
    from perdure.engine.parts import Parts

_ATTEMPTS = 10
_RENAME = "choose another name."


class Saved(str):
    """The URI of a saved memory, with what saving did."""

    __slots__ = ("changed", "created", "masked", "version", "written")
    version: int
    written: bool
    """False if the memory had just this text already."""
    created: bool
    changed: bool
    """Whether the stored text differs from the given one, because that could do harm."""
    masked: tuple[Note, ...]
    """Where secrets were masked."""

    @classmethod
    def of(cls, node: ContextNode, *, written: bool, given: str, masked: tuple[Note, ...]) -> Self:
        saved = cls(node.uri)
        saved.version = node.version
        saved.written = written
        saved.created = written and node.version == 1
        saved.changed = node.content != given
        saved.masked = masked
        return saved


class Text(NamedTuple):
    """A text to save, and where."""

    content: str
    category: str
    slug: str
    metadata: Mapping[str, JSON]


def save(
    parts: "Parts", caller: RequestContext, text: Text, *, mask: bool, replace_learned: bool
) -> Saved:
    """Save a text at its place; another writer of the same place is waited out."""
    if not encodable(text.content, "content").strip():
        raise InvalidValueError("the text is empty. Fix: give a text.")
    refuse_secrets(text.category, "category", _RENAME)
    refuse_secrets(text.slug, "slug", _RENAME)
    policy = SecretPolicy.MASK if mask else SecretPolicy.REFUSE
    clean = safe(text.content, text.metadata, policy)
    place = _place(caller, text, clean.content)
    attempts = _ATTEMPTS
    while True:
        try:
            node, written = _write(
                parts.nodes,
                caller,
                place,
                clean.content,
                clean.metadata,
                replace_learned=replace_learned,
            )
        except (NodeExistsError, VersionMismatchError) as error:
            attempts -= 1
            if _is_archived(parts.nodes, place):
                raise NodeExistsError(
                    f"{str(place)!a} was forgotten before, and is archived. Nothing was written. "
                    "Fix: take another slug, or run `perdure unarchive`."
                ) from error
            if not attempts or isinstance(error, _LearnedError):
                raise
        else:
            return Saved.of(node, written=written, given=text.content, masked=clean.notes)


class _LearnedError(NodeExistsError): ...


def _write(  # noqa: PLR0913 - a node's fields
    nodes: Nodes,
    caller: RequestContext,
    place: Uri,
    content: str,
    metadata: Mapping[str, JSON],
    *,
    replace_learned: bool,
) -> tuple[ContextNode, bool]:
    """Return the node as it is now, and whether it was written."""
    uri = str(place)
    try:
        before = nodes.read_node(uri, caller)
    except NodeNotFoundError:
        node = ContextNode(uri=uri, content=content, metadata=metadata)
    else:
        if before.content == content and metadata.items() <= before.metadata.items():
            return before, False
        if not replace_learned and grounds_of(before):
            raise _LearnedError(
                f"{before.uri!a} was learned from sessions, and this would replace it. Nothing "
                "was written. Fix: give it another slug, or add the text to it by hand",
                options={"replace_learned": True},
            )
        node = before.revised(content=content, metadata=metadata)
    nodes.write_node(node, caller)
    return node, True


def _place(caller: RequestContext, text: Text, content: str) -> Uri:
    place = Uri(caller.account_id, ("users", caller.user_id, "memories", text.category))
    if not place.is_node:
        return place.child(text.slug or _slug(content))
    if text.slug:
        raise InvalidValueError(
            f"{text.category!a} is one memory, and has no {text.slug[:80]!a}. "
            "Fix: leave the slug out."
        )
    return place


def _is_archived(nodes: Nodes, place: Uri) -> bool:
    stored = nodes.load(place)
    return stored is not None and stored.meta.status is NodeStatus.ARCHIVED


def _slug(content: str) -> str:
    """Return a name for a text that has none; another text gets another one."""
    digest = sha256(content.encode(errors="replace")).hexdigest()[:8]
    return f"{slugify(content[:200])[:60].strip('-')}-{digest}"
