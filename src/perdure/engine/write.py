"""Write a node by its name, and edit one in a text editor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from perdure.context import frontmatter
from perdure.context.nodes import Nodes
from perdure.engine.browse import Browser
from perdure.engine.validate.secrets import SecretPolicy, secrets_in
from perdure.engine.validate.texts import Note, refuse_secrets
from perdure.engine.validate.validating import Owned
from perdure.errors import InvalidValueError, NodeExistsError, VersionMismatchError
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.values import JSON, shortened

_ATTEMPTS = 20
_GIST = 60


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did."""

    uri: str
    version: int
    written: bool
    """False if the node was like that already."""
    created: bool
    masked: tuple[Note, ...] = ()
    """Where secrets were masked."""
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
        kept = {name: value for name, value in revised.metadata.items() if value is not None}
        same = all(getattr(revised, name) == getattr(node, name) for name in self._texts())
        return None if same and kept == node.metadata else revised

    def cut_in(self, node: ContextNode) -> tuple[str, ...]:
        return tuple(name for name, text in self._texts().items() if getattr(node, name) != text)

    def without_secrets(self, owned: Owned) -> "Fields":
        texts = {name: owned.text(text, name) for name, text in self._texts().items()}
        return replace(self, **texts, metadata=owned.metadata(self.metadata or {}))

    def _texts(self) -> dict[str, str]:
        named = {"content": self.content, "abstract": self.abstract, "overview": self.overview}
        return {name: text for name, text in named.items() if text is not None}


@dataclass(frozen=True, slots=True)
class Conditions:
    """When a write may replace what is there, and which secrets it may keep."""

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
) -> Written:
    """Write a node, or its next version. An existing one is replaced only under `conditions`."""
    place = browser.node_place(name)
    owned = Owned(SecretPolicy.MASK if conditions.mask_secrets else SecretPolicy.REFUSE)
    if not conditions.as_is:
        owned.name(name, "name of the node")
        reason = owned.text(reason, "reason")
        fields = fields.without_secrets(owned)
    writing, attempts = nodes.because(reason), _ATTEMPTS
    while True:
        before = browser.node_or_none(place)
        after = fields.new(place) if before is None else fields.revised(before)
        if after is None and before is not None:
            return Written(before.uri, before.version, written=False, created=False)
        _refuse_unless_allowed(place, before, conditions)
        if after is None:
            raise AssertionError
        try:
            writing.write_node(after, caller)
        except (NodeExistsError, VersionMismatchError):  # another writer was first
            attempts -= 1
            if not attempts or not nodes.exists(str(place), caller):
                raise
        else:
            return Written(
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
    content = f"{there}, with the content {shortened(_first_line(before), _GIST)!a}"
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
    """Refuse to write over an edit by hand that can't be parsed."""
    for problem in node.problems:
        raise VersionMismatchError(
            f"{node.uri!a} was edited by hand and can't be read as it is: {problem} "
            "Nothing was written. Fix: correct its file in an editor",
            options={"replace": True},
        )


def _first_line(node: ContextNode) -> str:
    return next((line for line in node.content.splitlines() if line.strip()), "")


# ---------------------------------------------------------------- editing
@dataclass(frozen=True, slots=True)
class Page:
    """A node as an editor shows it: its frontmatter, if its owner wrote any, and its content.

    It ends with a line break, because editors add one; that is not a change of the node.
    """

    node: ContextNode

    @property
    def text(self) -> str:
        return f"{self._whole}\n" if self._is_unended else self._whole

    @property
    def _whole(self) -> str:
        return frontmatter.join(self.node.frontmatter or "", self.node.content)

    @property
    def _is_unended(self) -> bool:
        return bool(self._whole) and not self._whole.endswith("\n")

    def revised(self, text: str) -> ContextNode | None:
        """Return the next version of the node; None if it would be the same."""
        if text == self.text:
            return None
        if not text.strip():
            raise InvalidValueError(
                f"{self.node.uri!a} would be empty. Nothing was written. "
                "Fix: `perdure delete` removes a node."
            )
        lines, content = frontmatter.split(text.removesuffix("\n") if self._is_unended else text)
        same = lines == (self.node.frontmatter or "")
        return self.node.revised(
            content=content, frontmatter=self.node.frontmatter if same else lines
        )


def edit(  # noqa: PLR0913 - as `write`
    nodes: Nodes,
    browser: Browser,
    caller: RequestContext,
    name: str,
    change: Callable[[str], str],
    *,
    reason: str = "",
    as_is: bool = False,
) -> Written:
    """Write what `change` makes of a node's text, frontmatter included, as its next version."""
    if not as_is:
        _refuse_new_secrets(reason, "", "reason")
    before = browser.node(browser.node_place(name))
    refuse_broken(before)
    nodes.reach.changed(before.uri, caller)
    page = Page(before)
    text = change(page.text)
    after = page.revised(text)
    if after is None:
        return Written(before.uri, before.version, written=False, created=False)
    if not as_is:
        _refuse_new_secrets(text, page.text, "text")
    try:
        nodes.because(reason).write_node(after, caller)
    except VersionMismatchError:
        raise VersionMismatchError(
            f"{after.uri!a} changed while it was being edited. Nothing was written. "
            "Fix: edit it again, and take over your text."
        ) from None
    return Written(after.uri, after.version, written=True, created=False)


def _refuse_new_secrets(text: str, before: str, where: str) -> None:
    found = {text[each.start : each.end] for each in secrets_in(text)}
    if any(each not in before for each in found):
        refuse_secrets(text, where, options=("as_is",))
