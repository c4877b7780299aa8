"""Documents become resources of the account; a second import touches only what changed."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from perdure.context.nodes import Nodes
from perdure.engine.importing.contract import Document
from perdure.engine.importing.outline import abstract_of, outline_of
from perdure.engine.importing.standing import SOURCE, SOURCE_ID, State, known_at, origin, stand
from perdure.engine.validate.secrets import SecretPolicy, secrets_in
from perdure.engine.validate.texts import without_secrets
from perdure.errors import BrokenNodeError, NodeNotFoundError
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri

_GONE = "source_gone"
"""In the metadata of what was archived because its file went away."""


class DocumentImporter:
    """Writes documents below one folder of the resources."""

    def __init__(
        self, nodes: Nodes, ctx: RequestContext, folder: str, secrets: SecretPolicy
    ) -> None:
        self._nodes = nodes.because("import")
        self._ctx = ctx
        self._secrets = secrets
        self.masked = 0
        """How many secrets were masked in what was written."""
        self._root = Uri(ctx.account_id, ("resources", folder))

    def put(self, item: Document, *, dry_run: bool) -> State:
        fix = "take it out, or let secrets be masked with --mask-secrets."
        text = without_secrets(item.text, "document", self._secrets, fix)
        found = len(secrets_in(item.text)) if text != item.text else 0
        item = replace(item, text=text)
        place = self._root.child(*item.source_id.split("/"))
        known = known_at(self._nodes, place, self._ctx)
        if known is not None and known.metadata.get(_GONE) is True:
            return self._bring_back(item, known, dry_run=dry_run)
        state = stand(item, item.text, known)
        if state is not State.SAME and not dry_run:
            self._write(item, place, known)
            self.masked += found
        return state

    def gone(self, present: set[str], source: str) -> Iterator[ContextNode]:
        """Yield the documents that were imported once, and whose files are not there any more."""
        for node in self._below(self._root):
            said = node.metadata
            if said.get(SOURCE) == source and said.get(SOURCE_ID) not in present:
                yield node

    def archive(self, node: ContextNode) -> None:
        """Put a document away, and note why, so that it comes back with its file."""
        if node.metadata.get(_GONE) is not True:
            self._nodes.write_node(node.revised(metadata={_GONE: True}), self._ctx)
        self._nodes.archive_node(node.uri, self._ctx)

    def _bring_back(self, item: Document, known: ContextNode, *, dry_run: bool) -> State:
        if not dry_run:
            if known.status is NodeStatus.ARCHIVED:
                self._nodes.unarchive_node(known.uri, self._ctx)
            self._write(item, known.place, self._nodes.read_node(known.uri, self._ctx))
        return State.CHANGED

    def _write(self, item: Document, place: Uri, known: ContextNode | None) -> None:
        said = {
            "content": item.text,
            "abstract": abstract_of(item.text, place.name.rpartition(".")[0] or place.name),
            "overview": outline_of(item.text),
            "metadata": {**origin(item, item.text), _GONE: None},
        }
        new = ContextNode(uri=str(place)).revised(version=1, **said)
        self._nodes.write_node(new if known is None else known.revised(**said), self._ctx)

    def _below(self, place: Uri) -> Iterator[ContextNode]:
        """Yield the nodes in use below a place."""
        for uri in self._nodes.list_children(str(place), self._ctx):
            with suppress(NodeNotFoundError, BrokenNodeError):  # a folder, or nothing of ours
                yield self._nodes.read_node(uri, self._ctx)
            yield from self._below(Uri.parse(uri))
