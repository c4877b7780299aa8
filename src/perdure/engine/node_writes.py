"""Writes to nodes: save, write, edit and relate them by name."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Self

from perdure import frontmatter
from perdure.context.nodes import Nodes, Relations
from perdure.dataclass import dataclass, replace
from perdure.engine.browse import Browser
from perdure.engine.learn.evidence import support_of
from perdure.engine.learn.slugs import of_project
from perdure.errors import (
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import (
    MENTIONS,
    ContextNode,
    NodeStatus,
    RelationEdge,
    RequestContext,
    Uri,
    slugify,
)
from perdure.model.node import PROJECT
from perdure.model.uri import PROFILE
from perdure.model.values import JSON, encodable, shortened
from perdure.safety.secrets import SecretPolicy, secrets_in
from perdure.safety.validation import Note, SafeText, SecretFilter, make_safe, refuse_secrets

_ATTEMPTS_TO_SAVE = 10
_RENAME = "choose another name."


class SaveResult(str):
    """The URI of a saved memory, with the effects of saving it."""

    __slots__ = ("changed", "created", "lifted", "masked", "version", "written")
    version: int
    written: bool
    """False if the memory had this text already."""
    created: bool
    changed: bool
    """Whether the stored text differs from the given one, which was not safe."""
    masked: tuple[Note, ...]
    lifted: int
    """How many forgotten entries that say the same are no longer forgotten."""

    @classmethod
    def of(cls, node: ContextNode, *, written: bool, given: str, masked: tuple[Note, ...]) -> Self:
        saved = cls(node.uri)
        saved.version = node.version
        saved.written = written
        saved.created = written and node.version == 1
        saved.changed = node.content != given
        saved.masked = masked
        saved.lifted = 0
        return saved


def save(  # noqa: PLR0913 - as `Memory.save`
    nodes: Nodes,
    caller: RequestContext,
    content: str,
    *,
    category: str,
    slug: str,
    metadata: Mapping[str, JSON],
    project: str,
    mask: bool,
    replace_learned: bool,
) -> SaveResult:
    """Save a text at its place; retry if another writer is faster.

    If a memory of another project has the slug, the name of this project is appended to it, unless
    the metadata name a project: then the memory is moved to that one.
    """
    if not encodable(content, "content").strip():
        raise InvalidValueError("the text is empty. Fix: give a text.")
    _refuse_secret_category(category)
    refuse_secrets(slug, "slug", _RENAME)
    is_moved = PROJECT in metadata
    named = {PROJECT: project, **metadata} if project else metadata
    clean = make_safe(content, named, SecretPolicy.MASK if mask else SecretPolicy.REFUSE)
    place = _place(caller, category, slug, clean.content)
    attempts = _ATTEMPTS_TO_SAVE
    while True:
        of = None if is_moved else project
        found = _next(nodes, caller, place, clean, of, replace_learned=replace_learned)
        if found is None:
            taken, place = place, of_project(place, project)
            if place == taken:
                raise NodeExistsError(
                    f"{str(place)!a} belongs to another project. Nothing was written. "
                    "Fix: choose another slug."
                )
            continue
        before, node = found
        try:
            if node is not before:
                nodes.write_node(node, caller)
        except (NodeExistsError, VersionMismatchError) as error:
            attempts -= 1
            stored = nodes.load(place)
            if stored is not None and stored.meta.status is NodeStatus.ARCHIVED:
                raise NodeExistsError(
                    f"{str(place)!a} was forgotten, and is archived. Nothing was written. "
                    "Fix: choose another slug, or run `perdure unarchive`."
                ) from error
            if not attempts:
                raise
        else:
            written = node is not before
            return SaveResult.of(node, written=written, given=content, masked=clean.notes)


@lru_cache(maxsize=64)
def _refuse_secret_category(category: str) -> None:
    refuse_secrets(category, "category", _RENAME)


def _next(  # noqa: PLR0913 - who, where and what
    nodes: Nodes,
    caller: RequestContext,
    place: Uri,
    clean: SafeText,
    project: str | None,
    *,
    replace_learned: bool,
) -> tuple[ContextNode | None, ContextNode] | None:
    """Return the node as it is, if it exists, and its next version; the same one if unchanged.

    Return None if the node belongs to another project.
    """
    try:
        before = nodes.read_node(str(place), caller)
    except NodeNotFoundError:
        return None, ContextNode(uri=str(place), content=clean.content, metadata=clean.metadata)
    if project is not None and before.project != project and place.category != PROFILE:
        return None
    if before.content == clean.content and clean.metadata.items() <= before.metadata.items():
        return before, before
    if not replace_learned and support_of(before):
        raise NodeExistsError(
            f"{before.uri!a} was learned from sessions, and this would replace it. Nothing "
            "was written. Fix: give it another slug, or add the text to it by hand",
            options={"replace_learned": True},
        )
    return before, before.revised(content=clean.content, metadata=clean.metadata)


def _place(caller: RequestContext, category: str, slug: str, content: str) -> Uri:
    """Return the place of a text; without a slug, its name is derived from the text."""
    place = Uri(caller.account_id, ("users", caller.user_id, "memories", category))
    if not place.is_node:
        digest = sha256(content.encode(errors="replace")).hexdigest()[:8]
        return place.child(slug or f"{slugify(content[:200])[:60].strip('-')}-{digest}")
    if slug:
        raise InvalidValueError(
            f"{category!a} is one memory, and has no {slug[:80]!a}. Fix: leave the slug out."
        )
    return place


_ATTEMPTS = 20
_GIST = 60


@dataclass(frozen=True, slots=True)
class WriteResult:
    uri: str
    version: int
    written: bool
    """False if the node was the same already."""
    created: bool
    masked: tuple[Note, ...] = ()
    cut: tuple[str, ...] = ()
    """The fields that were too long, and end in [cut]."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The new values of a node's fields; None leaves a field as it is."""

    content: str | None = None
    abstract: str | None = None
    overview: str | None = None
    metadata: Mapping[str, JSON] | None = None

    def new(self, place: Uri) -> ContextNode:
        return ContextNode(uri=str(place)).revised(
            version=1, metadata=self.metadata or {}, **self._texts()
        )

    def revised(self, node: ContextNode) -> ContextNode | None:
        """Return the next version of a node; None if it would be the same."""
        changed = {**node.metadata, **(self.metadata or {})}
        revised = node.revised(metadata=changed, **self._texts())
        metadata = {name: value for name, value in revised.metadata.items() if value is not None}
        same = all(getattr(revised, name) == getattr(node, name) for name in self._texts())
        return None if same and metadata == node.metadata else revised

    def cut_in(self, node: ContextNode) -> tuple[str, ...]:
        return tuple(name for name, text in self._texts().items() if getattr(node, name) != text)

    def without_secrets(self, owned: SecretFilter) -> "Fields":
        texts = {name: owned.text(text, name) for name, text in self._texts().items()}
        return replace(self, **texts, metadata=owned.metadata(self.metadata or {}))

    def _texts(self) -> dict[str, str]:
        named = {"content": self.content, "abstract": self.abstract, "overview": self.overview}
        return {name: text for name, text in named.items() if text is not None}


@dataclass(frozen=True, slots=True)
class Conditions:
    """When a write may replace a node, and whether it masks or keeps secrets."""

    version: int | None = None
    replace: bool = False
    mask_secrets: bool = False
    as_is: bool = False

    def __post_init__(self) -> None:
        for one, other in (("version", "replace"), ("mask_secrets", "as_is")):
            if getattr(self, one) and getattr(self, other):
                raise InvalidValueError(f"{one} and {other} exclude each other. Fix: give one.")


def write(  # noqa: PLR0913 - what, where, and under which conditions
    nodes: Nodes,
    browser: Browser,
    caller: RequestContext,
    name: str,
    fields: Fields,
    *,
    conditions: Conditions,
    reason: str = "",
) -> WriteResult:
    """Write a node, or its next version. An existing one is replaced only under `conditions`."""
    place = browser.node_place(name)
    owned = SecretFilter(SecretPolicy.MASK if conditions.mask_secrets else SecretPolicy.REFUSE)
    if not conditions.as_is:
        owned.name(name, "name of the node")
        reason = owned.text(reason, "reason")
        fields = fields.without_secrets(owned)
    writing, attempts = nodes.because(reason), _ATTEMPTS
    while True:
        before = browser.node_or_none(place)
        if before is None:
            after = fields.new(place)
        elif (revised := fields.revised(before)) is None:
            return WriteResult(before.uri, before.version, written=False, created=False)
        else:
            after = revised
        _refuse_unless_allowed(place, before, conditions)
        try:
            writing.write_node(after, caller)
        except (NodeExistsError, VersionMismatchError):  # another writer was faster
            attempts -= 1
            if not attempts or not nodes.exists(str(place), caller):
                raise
        else:
            return WriteResult(
                after.uri,
                after.version,
                written=True,
                created=before is None,
                masked=tuple(owned.notes),
                cut=fields.cut_in(after),
            )


def _refuse_unless_allowed(place: Uri, before: ContextNode | None, conditions: Conditions) -> None:
    if before is None:
        if conditions.version is not None:
            raise VersionMismatchError(
                f"{str(place)!a} has no version {conditions.version}: no node is there. "
                "Nothing was written. Fix: leave the version out."
            )
        return
    if conditions.replace:
        return
    refuse_broken(before)
    if conditions.version == before.version:
        return
    there = f"version {before.version} of {before.updated_at:%Y-%m-%d %H:%M:%S}Z"
    line = next((line for line in before.content.splitlines() if line.strip()), "")
    content = f"{there}, with the content {shortened(line, _GIST)!a}"
    options = {"version": before.version, "replace": True}
    if conditions.version is None:
        raise NodeExistsError(
            f"{before.uri!a} exists: {content}. Nothing was written. Fix: read it first",
            options=options,
        )
    raise VersionMismatchError(
        f"{before.uri!a} is not at version {conditions.version} but at {content}. "
        "Nothing was written. Fix: read it first",
        options=options,
    )


def refuse_broken(node: ContextNode) -> None:
    for problem in node.problems:
        raise VersionMismatchError(
            f"{node.uri!a} was edited by hand and can't be read as it is: {problem} "
            "Nothing was written. Fix: correct its file in an editor",
            options={"replace": True},
        )


# ---------------------------------------------------------------- editing
def editor_text(node: ContextNode) -> str:
    """Return a node as an editor shows it: its frontmatter, if its owner wrote any, and content.

    It ends with a line break, because editors add one; that is not a change of the node.
    """
    text = frontmatter.join(node.frontmatter or "", node.content)
    return f"{text}\n" if text and not text.endswith("\n") else text


def revised_from(node: ContextNode, text: str) -> ContextNode | None:
    """Return the next version of a node from its edited text; None if that is unchanged."""
    before = editor_text(node)
    if text == before:
        return None
    if not text.strip():
        raise InvalidValueError(
            f"{node.uri!a} would be empty. Nothing was written. "
            "Fix: `perdure delete` removes a node."
        )
    if before != frontmatter.join(node.frontmatter or "", node.content):
        text = text.removesuffix("\n")
    if frontmatter.has_no_end(text):
        raise InvalidValueError(frontmatter.NO_END)
    lines, content = frontmatter.split(text)
    same = lines == (node.frontmatter or "")
    return node.revised(content=content, frontmatter=node.frontmatter if same else lines)


def edit(  # noqa: PLR0913 - as `write`
    nodes: Nodes,
    browser: Browser,
    caller: RequestContext,
    name: str,
    change: Callable[[str], str],
    *,
    reason: str = "",
    as_is: bool = False,
) -> WriteResult:
    """Write what `change` returns for a node's text, frontmatter included, as its next version."""
    if not as_is:
        _refuse_new_secrets(reason, "", "reason")
    before = browser.node(browser.node_place(name))
    refuse_broken(before)
    nodes.reach.require_writable(before.uri, caller)
    shown = editor_text(before)
    text = change(shown)
    after = revised_from(before, text)
    if after is None:
        return WriteResult(before.uri, before.version, written=False, created=False)
    if not as_is:
        _refuse_new_secrets(text, shown, "text")
    try:
        nodes.because(reason).write_node(after, caller)
    except VersionMismatchError:
        raise VersionMismatchError(
            f"{after.uri!a} changed while it was being edited. Nothing was written. "
            "Fix: edit it again, and copy your text into it."
        ) from None
    return WriteResult(after.uri, after.version, written=True, created=False)


def _refuse_new_secrets(text: str, before: str, where: str) -> None:
    found = {text[each.start : each.end] for each in secrets_in(text)}
    if any(each not in before for each in found):
        refuse_secrets(text, where, options=("as_is",))


Ends = tuple[str, str]


def relate(  # noqa: PLR0913, PLR0917 - an edge has that many fields
    relations: Relations,
    browser: Browser,
    caller: RequestContext,
    ends: Ends,
    relation_type: str,
    weight: float,
    reason: str,
) -> RelationEdge:
    start, target = map(browser.node_place, ends)
    browser.node(start)
    browser.node(target)
    edge = RelationEdge(str(start), str(target), relation_type, weight, reason)
    relations.upsert_edges([edge], caller)
    written = relations.get_edges(str(start), caller)
    return next((each for each in written if each.identity == edge.identity), edge)


def unrelate(
    relations: Relations,
    browser: Browser,
    caller: RequestContext,
    ends: Ends,
    relation_type: str | None,
) -> tuple[RelationEdge, ...]:
    start, target = map(browser.node_place, ends)
    browser.node(start)
    found = tuple(
        edge
        for edge in relations.get_edges(str(start), caller)
        if edge.to_uri == str(target)
        and (
            edge.relation_type == relation_type if relation_type else edge.relation_type != MENTIONS
        )
    )
    if relation_type == MENTIONS or not found:
        unremovable = relation_type in {None, MENTIONS}
        which = "that can be removed" if unremovable else f"of type {relation_type!a}"
        raise NodeNotFoundError(
            f"no relation {which} leads from {str(start)!a} to {str(target)!a}. "
            f"Fix: `perdure relate {browser.name(start)}` lists them; a link goes with its text."
        )
    relations.remove_edges(found, caller)
    return found
