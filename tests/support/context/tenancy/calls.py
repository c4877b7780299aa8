"""Calls each verb as a caller, and checks the answer down to the last text in it."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from perdure.errors import AccessDeniedError, PerdureError
from perdure.model import ContextNode, OutboxEvent, RelationEdge, RequestContext, Role, Uri
from tests.support.context.tenancy.model import TOKEN, Model, StoredNode
from tests.support.context.tenancy.people import NOBODY, Cast, everywhere
from tests.support.context.tenancy.world import OpenWorld, World

_URI = re.compile(r"ctx://[\w.~%/-]+")
_TYPED = frozenset({"content", "frontmatter"})
"""What its author typed: the links in it say where they lead, be it in reach or not."""


class Leak(AssertionError):  # noqa: N818 - a leak is what it is
    """Somebody got, or did, what was out of their reach; or was kept from what is theirs."""


def demand(holds: object, what: str) -> None:
    if not holds:
        raise Leak(what)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb returned, or how it refused."""

    value: object = None
    error: PerdureError | None = None

    def refused(self, *kinds: type[Exception]) -> None:
        demand(isinstance(self.error, kinds), f"expected {kinds}, got {self!r}")

    def given(self) -> object:
        demand(self.error is None, f"refused for no reason: {self.error!r}")
        return self.value

    def words(self, *named: str) -> str:
        """Return the text of a refusal, without the places that were asked for."""
        text = str(self.error)
        for uri in sorted(named, key=len, reverse=True):
            text = text.replace(ascii(uri[:200])[1:-1], "<uri>")
        return text


def check_answer(answer: Answer, asked: Collection[str], ctx: RequestContext, model: Model) -> None:
    """Refuse an answer with a secret or a place in it that the caller can't know.

    A place that the caller named may be named in a refusal, and in an event, which repeats what
    was registered; nowhere else.
    """
    events = answer.value if isinstance(answer.value, list) else [answer.value]
    reported = asked if all(isinstance(event, OutboxEvent) for event in events) else ()
    for text in _texts(answer.value):
        _check_text(text, reported, ctx, model)
    if answer.error is not None:
        cause = answer.error.__cause__
        for text in [str(answer.error), str(cause or ""), *getattr(answer.error, "__notes__", ())]:
            _check_text(text, asked, ctx, model)


def uris_in(value: object) -> set[str]:
    return {uri.rstrip(".") for text in _texts(value) for uri in _URI.findall(text)}


def _check_text(text: str, asked: Collection[str], ctx: RequestContext, model: Model) -> None:
    for token in TOKEN.findall(text):
        demand(model.may_know(token, ctx), f"{token} was shown to {ctx}: {text!r}")
    for found in _URI.findall(text):
        uri = found.rstrip(".")
        foreign = uri in model.known and not model.may_see(uri, ctx)
        demand(uri in asked or not foreign, f"{uri} was shown to {ctx}: {text!r}")


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value, but not the URIs that a user typed into a content."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, ContextNode):
        yield from TOKEN.findall(f"{value.content}{value.frontmatter}")
        yield from _fields(value)
    elif is_dataclass(value):
        yield from _fields(value)
    elif isinstance(value, Enum):
        yield str(value.value)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(name)
            yield from _texts(each)
    elif isinstance(value, Collection) and not isinstance(value, bytes):
        for each in value:
            yield from _texts(each)


def _fields(value: object) -> Iterator[str]:
    for each in fields(value):  # type: ignore[arg-type] # who calls has looked
        if each.name not in _TYPED:
            yield from _texts(getattr(value, each.name))


KNOWS = "knows"
"""The type of all edges that are written here."""

Make = Callable[..., tuple[Any, ...]]
"""Makes the arguments of a verb from the places that it is about."""
Listed = list[tuple[str, OutboxEvent]]


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody asks for something at one or two places; `odd` decides the rest."""

    ctx: RequestContext
    here: str
    there: str
    odd: int

    def flag(self, bit: int) -> bool:
        return bool(self.odd >> bit & 1)


Handler = TypeVar("Handler", bound=Callable[..., None])


def verb(name: str, weight: int = 1) -> Callable[[Handler], Handler]:
    """Let a method ask for a verb, so often in comparison to the others."""

    def mark(handler: Handler) -> Handler:
        handler.__dict__["asks_for"] = (name, weight)
        return handler

    return mark


def verbs_of(machine: type) -> dict[str, tuple[str, int]]:
    """Return the verbs that a machine asks for, each with its method and weight."""
    marked = ((name, getattr(machine, name)) for name in dir(machine))
    found = (
        (name, vars(each).get("asks_for")) for name, each in marked if hasattr(each, "__dict__")
    )
    return {asked[0]: (name, asked[1]) for name, asked in found if asked}


class Asking(RuleBasedStateMachine):
    """What all verbs need. `open_world` is the hook of the test class."""

    open_world: ClassVar[OpenWorld]
    cast: Cast
    files: object
    events: dict[str, Listed]
    """What there was after the last verb."""
    places: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.world: World = type(self).open_world()
        self.model = Model()
        self.asked_for: set[str] = set()
        self._secrets = 0

    def teardown(self) -> None:
        self.world.close()

    # ------------------------------------------------------------ asking
    def ask(self, name: str, ctx: RequestContext, *args: object, **options: object) -> Answer:
        """Call a verb. A refusal changes nothing, and no answer tells what is out of reach."""
        called = self.world.verb(name)
        assert called is not None, name
        self.asked_for.add(name)
        try:
            value = called(*args, **options)
            answer = Answer(list(value) if isinstance(value, Iterator) else value)
        except PerdureError as error:
            answer = Answer(error=error)
        self._note(name, ctx, answer)
        check_answer(answer, uris_in([args, options]), ctx, self.model)
        return answer

    def ask_of(self, name: str, ctx: RequestContext, make: Make, *uris: str) -> Answer:
        return self.ask(name, ctx, *make(*uris))

    def denied(self, answer: Answer, asked: tuple[str, RequestContext, Make], *uris: str) -> None:
        """Demand a refusal that is the same, but for the name, where nothing ever was."""
        answer.refused(AccessDeniedError)
        name, ctx, make = asked
        twins = [
            uri if self.model.may_change(uri, ctx) else twin(uri, str(n))
            for n, uri in enumerate(uris)
        ]
        absent = self.ask_of(name, ctx, make, *twins)
        demand(
            type(absent.error) is type(answer.error)
            and absent.words(*twins) == answer.words(*uris),
            f"{name} tells denied from absent: {answer.error} / {absent.error}",
        )

    def _note(self, name: str, ctx: RequestContext, answer: Answer) -> None:
        before, files = self.events, self.files
        self.files, self.events = self.world.snapshot(), self._listed()
        if answer.error is not None:
            unchanged = (self.files, self.events) == (files, before)
            demand(unchanged, f"{name} refused, and changed something: {answer.error!r}")
        if name.startswith(("nodes.", "relations.", "repair.")):
            for account, listed in self.events.items():
                known = before[account]
                demand(listed[: len(known)] == known, f"{name} changed events that were there")
                for uri, _ in listed[len(known) :]:
                    demand(self.model.may_see(uri, ctx), f"{name} registered an event of {uri}")

    def _listed(self) -> dict[str, Listed]:
        return {
            account: self.world.outbox.list_unfinished(account) for account in self.cast.accounts
        }

    # ------------------------------------------------------------ beginning
    def begin(self, cast: Cast, missing: set[int]) -> None:
        """Let there be nodes in most places, with links and edges from everybody to everybody."""
        self.cast = cast
        self.places = everywhere(cast)
        fresh = cast.sessions[1]  # any caller may begin it
        written = [
            uri
            for n, uri in enumerate(self.places)
            if n not in missing and Uri.parse(uri).session != fresh
        ]
        for n, uri in enumerate(written):
            ctx, other = self.root(Uri.parse(uri).account), written[(7 * n + 3) % len(written)]
            space = self.model.space_of(uri) or f"user:{cast.users[n % 3]}"
            node, stored = self.drafted(uri, space, other)
            self.world.nodes.write_node(self._related(node, stored, written[n - 5]), ctx)
            self.model.put(uri, stored)
        self.files, self.events = self.world.snapshot(), self._listed()

    def _related(self, node: ContextNode, stored: StoredNode, to: str) -> ContextNode:
        """Return a node with an edge to another, if they are of one account."""
        if Uri.parse(to).account != node.account_id or to == node.uri:
            return node
        edge = RelationEdge(node.uri, to, KNOWS, reason=self.secret())
        stored.edges[to, KNOWS] = edge.reason
        return replace(node, relations=(edge,))

    def root(self, account: str) -> RequestContext:
        """Return one who sees all of an account, to see what is really there."""
        return RequestContext(account, NOBODY, NOBODY, role=Role.ROOT)

    def secret(self) -> str:
        self._secrets += 1
        return f"tok{self._secrets:06d}"

    def drafted(self, uri: str, space: str, link: str) -> tuple[ContextNode, StoredNode]:
        """Return a new node whose every text is secret, and what must be found of it."""
        token = self.secret()
        content = f"# About {token}\n\nSee [[{link}]] and [[y]].\n"
        node = ContextNode(
            uri=uri,
            content=content,
            abstract=f"abstract {token}",
            overview=f"overview {token}",
            metadata={"secret": token},
            owner_space=space,
        )
        return node, StoredNode(space, content, f"abstract {token}")

    # ------------------------------------------------------------ looking at all
    def check_all(self) -> None:
        """Demand that what is there is what must be there: nobody changed what they may not."""
        for uri in self.places:
            ctx = self.root(Uri.parse(uri).account)
            stored = self.model.active(uri)
            exists = self.world.nodes.exists(uri, ctx)
            demand(exists is (stored is not None), f"{uri} is {'' if exists else 'not '}there")
            if stored is not None:
                self.check_node(self.world.nodes.read_node(uri, ctx), stored, ctx)

    def check_node(self, node: object, stored: StoredNode, ctx: RequestContext) -> None:
        assert isinstance(node, ContextNode), node
        edges = {(edge.to_uri, edge.relation_type): edge.reason for edge in node.relations}
        actual = (node.content, node.abstract, node.version, node.owner_space, edges)
        seen = self.model.visible_edges(stored, ctx)
        must = (stored.content, stored.abstract, stored.version, stored.space, seen)
        demand(actual == must, f"{node.uri} is not as it was written: {actual} / {must}")


def twin(uri: str, number: str = "") -> str:
    """Return a place like this one, of a user who does not exist."""
    place = Uri.parse(uri)
    nobody = NOBODY + number
    if place.path[:1] == ("resources",):
        return str(Uri(place.account, ("resources", nobody)))
    return str(Uri(place.account, (place.path[0], nobody, *place.path[2:])))
