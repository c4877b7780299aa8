"""Statements become memories, and the entities of a graph too, with their relations."""

from collections.abc import Iterator

from perdure.context.nodes import Nodes
from perdure.context.relations import Relations
from perdure.engine.importing.contract import Entity, Relation, Statement
from perdure.engine.importing.standing import State, Verbs, known_at, origin, stand
from perdure.engine.importing.texts import stable_name, stable_slug
from perdure.engine.validate.secrets import SecretPolicy
from perdure.engine.validate.texts import cleaned_line, count_masked, refuse_secrets
from perdure.engine.validate.validating import safe
from perdure.errors import InvalidValueError, NodeNotFoundError
from perdure.model import MENTIONS, ContextNode, RelationEdge, Uri, slugify
from perdure.model.values import JSON, MAX_ABSTRACT, shortened

_ENTITY = "entity"
_CATEGORIES = (_ENTITY, "preference", "event")
_REFERS = "refers-to"
"""What a relation becomes that is called as edges are which only links make."""
_MOST_OF_A_KIND = 100


class StatementImporter:
    """Saves what was remembered elsewhere, under a slug that is made of its id there."""

    def __init__(self, memory: Verbs, nodes: Nodes, secrets: SecretPolicy) -> None:
        self._memory = memory
        self._nodes = nodes
        self._secrets = secrets
        self.masked = 0
        """How many secrets were masked in what was written."""

    def put(self, item: Statement, *, dry_run: bool) -> State:
        slug = slugify(stable_name(item.source, stable_slug(item.source_id)))
        known, category = self._known(slug, item.category)
        clean = safe(item.content, item.metadata, self._secrets)
        state = stand(item, clean.content, known)
        if state is not State.SAME and not dry_run:
            metadata = {**clean.metadata, **origin(item, clean.content)}
            self._memory.save(clean.content, category=category, slug=slug, metadata=metadata)
            self.masked += count_masked(clean.notes)
        return state

    def _known(self, slug: str, category: str) -> tuple[ContextNode | None, str]:
        """Return the memory, wherever it was put when it was first imported, and its category."""
        ctx = self._memory.caller
        memories = Uri(ctx.account_id, ("users", ctx.user_id, "memories"))
        for each in dict.fromkeys((category, *_CATEGORIES)):
            known = known_at(self._nodes, memories.child(each, slug), ctx)
            if known is not None:
                return known, each
        return None, category


class GraphImporter:
    """Saves entities, each as one memory; relations wait until all entities are there."""

    def __init__(
        self, memory: Verbs, nodes: Nodes, relations: Relations, secrets: SecretPolicy
    ) -> None:
        self._memory = memory
        self._nodes = nodes
        self._relations = relations
        self._secrets = secrets
        self._arriving: set[str] = set()
        self.masked = 0
        """How many secrets were masked in what was written."""

    def put(self, item: Entity, *, dry_run: bool) -> State:
        place = self._place(item.source_id)
        clean = safe(_described(item), {"entity_type": item.kind or None}, self._secrets)
        content = clean.content
        state = stand(item, content, known_at(self._nodes, place, self._memory.caller))
        if state is not State.SAME and not dry_run:
            metadata: dict[str, JSON] = {**clean.metadata, **origin(item, content)}
            self._memory.save(content, category=_ENTITY, slug=place.name, metadata=metadata)
            self.masked += count_masked(clean.notes)
        self._arriving.add(str(place))
        return state

    def relate(self, item: Relation, *, dry_run: bool) -> State:
        edge = self._edge(item)
        for end, name in ((edge.from_uri, item.start), (edge.to_uri, item.target)):
            there = self._nodes.exists(end, self._memory.caller)
            if not there and not (dry_run and end in self._arriving):
                raise NodeNotFoundError(
                    f"there is no entity {name[:80]!a}. Fix: add it to the file."
                )
        known = self._relations.get_edges(edge.from_uri, self._memory.caller)
        if edge.identity in {each.identity for each in known}:
            return State.SAME
        if not dry_run:
            self._relations.upsert_edges([edge], self._memory.caller)
        return State.NEW

    def _edge(self, item: Relation) -> RelationEdge:
        if item.start == item.target:
            raise InvalidValueError("it leads to where it starts. Fix: leave it out.")
        refuse_secrets(item.kind, "relation", "name it otherwise.")
        kind = slugify(item.kind[:_MOST_OF_A_KIND])
        kind = _REFERS if kind == MENTIONS else kind
        reason = "" if kind == item.kind else _reason(item.kind)
        start, target = self._place(item.start), self._place(item.target)
        return RelationEdge(str(start), str(target), kind, reason=reason)

    def _place(self, name: str) -> Uri:
        ctx = self._memory.caller
        path = ("users", ctx.user_id, "memories", _ENTITY, stable_slug(name))
        return Uri(ctx.account_id, path)


def _reason(kind: str) -> str:
    """Return how the source calls a relation, on one line that does nothing."""
    line = shortened(" ".join(kind.split()), MAX_ABSTRACT // 2)
    return shortened(cleaned_line(line, "relation").text, MAX_ABSTRACT)


def _described(item: Entity) -> str:
    return "\n".join(_lines(item)) + "\n"


def _lines(item: Entity) -> Iterator[str]:
    yield f"# {' '.join(item.source_id.split())}"
    if item.kind:
        yield from ("", f"Type: {' '.join(item.kind.split())}")
    if item.observations:
        yield ""
    for observation in item.observations:
        first, *more = observation.splitlines()
        yield f"- {first}"
        yield from (f"  {line}".rstrip() for line in more)
