"""Tenants whose every text has a word of its own, and a plain model of who may see it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.context.node_files import CONTENT
from perdure.engine.recall.question import parse_question
from perdure.engine.recall.result import RecallResult
from perdure.errors import ContextError, EmbeddingError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model import ContextNode, RelationEdge, RequestContext, Role, Uri
from tests.engine.remembering import of
from tests.support.hints import texts_of

OWNERS = ("user:ana", "user:bob", "agent:helper", "account")
ASKING = (
    RequestContext("acme", "ana", agent_id="helper"),
    RequestContext("acme", "bob"),
    RequestContext("acme", "cem", visible_owner_spaces=frozenset({"user:bob"})),
    RequestContext("acme", "eve", session_id="s0"),
    RequestContext("acme", "boss", role=Role.ADMIN),
    RequestContext("other", "ana", agent_id="helper"),
    RequestContext("other", "root", role=Role.ROOT),
)
COMMON = "coffee on the night train"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOBODYS = "zq999999k"
_SECRET = re.compile(r"zq\d+k")
_NAMED = re.compile(r"ctx://[a-z0-9/_-]*[a-z0-9]")


class Moody(HashingEmbedder):
    """Can't embed what is poisoned, so that its event waits."""

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        if any("poison" in text for text in texts):
            raise EmbeddingError("it can't be embedded. Fix: none.")
        return super().embed_texts(texts)


@dataclass(frozen=True)
class Known:
    """A node: whose it is, and all that it may say."""

    account: str
    owner: str
    texts: tuple[str, ...] = ()
    in_use: bool = True
    certain: bool = True
    """Whether its present text was recorded."""
    abstract: str = ""
    """It stays when the text is edited by hand."""

    def seen_by(self, who: RequestContext) -> bool:
        if who.account_id != self.account:
            return False
        spaces = {f"user:{who.user_id}", f"agent:{who.agent_id}", *who.visible_owner_spaces}
        return who.role is not Role.MEMBER or self.owner in {"account", *spaces}


Everything = dict[str, Known]


@dataclass
class World:
    """A memory, and what the model knows of it, now and at every state."""

    context: Context
    home: Path
    nodes: Everything = field(default_factory=dict)
    past: list[tuple[IndexState, Everything]] = field(default_factory=list)
    poisoned: set[Known] = field(default_factory=set)
    """Owners of whom something can't be embedded."""
    numbers: Iterator[int] = field(default_factory=count)

    def secret(self) -> str:
        return f"zq{next(self.numbers)}k"

    def picked(self, account: str, owner: str, pick: int) -> str | None:
        of_owner = [u for u, k in self.nodes.items() if (k.account, k.owner) == (account, owner)]
        return sorted(of_owner)[pick % len(of_owner)] if of_owner else None


def words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _SECRET.findall(text)}


# ---------------------------------------------------------------- what may happen
def _write(world: World, account: str, owner: str, pick: int) -> None:
    """Write a new node; every third has a link to a node of any owner."""
    secret, names = world.secret(), sorted(world.nodes)
    uri = f"{_folder(account, owner)}/note-{secret}"
    link = f"[[{names[pick % len(names)]}]]" if names and pick % 3 == 0 else ""
    bad = " poison" if pick % 7 == 6 else ""
    text = f"{secret} {COMMON}{bad} {link}"
    node = ContextNode(uri=uri, content=text, abstract=f"About {secret}{bad}")
    world.context.nodes.write_node(node, _admin(account))
    world.nodes[uri] = Known(account, owner, (text,), abstract=node.abstract)
    if bad:
        world.poisoned.add(Known(account, owner))


def _say(world: World, account: str, owner: str, pick: int) -> None:
    kind, _, name = owner.partition(":")
    who = RequestContext(account, name if kind == "user" else "cem")
    uri = f"ctx://{account}/sessions/s{pick % 2}/messages"
    known = world.nodes.get(uri)
    contents = [*(known.texts[-1].split("\n") if known else ()), f"{world.secret()} {COMMON}?"]
    messages = [
        {"role": "user", "name": f"N{at % 2}", "content": c} for at, c in enumerate(contents)
    ]
    of(world.context, who).commit_session(messages, session_id=f"s{pick % 2}", extract=False)
    world.nodes[uri] = Known(account, f"user:{who.user_id}", ("\n".join(contents),))


def _relate(world: World, account: str, owner: str, pick: int) -> None:
    """Relate two nodes of an account, whosesoever they are."""
    names = [uri for uri in sorted(world.nodes) if world.nodes[uri].account == account]
    if len(names) > 1:
        start, end = names[pick % len(names)], names[(pick + 1) % len(names)]
        edge = RelationEdge(start, end, "leads_to", 0.9)
        world.context.relations.upsert_edges([edge], _admin(account))


def _edit(world: World, account: str, owner: str, pick: int) -> None:
    """Edit a note by hand; every second edit is recorded."""
    uri = world.picked(account, owner, pick)
    if uri is None or "/sessions/" in uri:
        return
    file = world.context.nodes.file(Uri.parse(uri), CONTENT)
    text, is_certain = f"{world.secret()} {COMMON} by hand", pick % 2 == 0
    Path(world.context.recorded.identity, file.key).write_text(text)
    if is_certain:
        world.context.recorded.notice([file])
    known = world.nodes[uri]
    texts = (text,) if is_certain else (*known.texts, text)
    world.nodes[uri] = replace(known, texts=texts, certain=is_certain)


def _change(verb: str, world: World, account: str, owner: str, pick: int) -> None:
    uri = world.picked(account, owner, pick)
    if uri is not None:
        getattr(world.context.nodes, f"{verb}_node")(uri, _admin(account))
        known = world.nodes.pop(uri)
        if verb != "delete":
            world.nodes[uri] = replace(known, in_use=verb == "unarchive")


def _move(world: World, account: str, owner: str, pick: int) -> None:
    """Move a note, perhaps to another owner; links to it follow."""
    uri, to = world.picked(account, owner, pick), OWNERS[pick % len(OWNERS)]
    if uri is None or "/sessions/" in uri:
        return
    target = f"{_folder(account, to)}/moved-{world.secret()}"
    world.context.nodes.move_node(uri, target, _admin(account))
    world.nodes[target] = replace(world.nodes.pop(uri), owner=to)
    world.poisoned |= {Known(account, to)} if Known(account, owner) in world.poisoned else set()
    for name, known in world.nodes.items():
        texts = (*known.texts, *(text.replace(uri, target) for text in known.texts))
        world.nodes[name] = replace(known, texts=tuple(dict.fromkeys(texts)))


def _forget(world: World, account: str, owner: str, pick: int) -> None:
    """Delete a user or an agent, or the whole account, with all that was derived from theirs."""
    kind, _, name = owner.partition(":")
    if kind == "account":
        world.context.namespaces.delete_account(account, _admin(account))
    else:
        delete = getattr(world.context.namespaces, f"delete_{kind}")
        delete(account, name, _admin(account))
    gone = [
        uri
        for uri, known in world.nodes.items()
        if known.account == account and (kind == "account" or known.owner == owner)
    ]
    left = words(path.read_text() for path in world.home.rglob("abstracts/**/*.md"))
    assert not left & words(gone), "the summaries of their folders are still there"
    for uri in gone:
        del world.nodes[uri]


def _folder(account: str, owner: str) -> str:
    kind, _, name = owner.partition(":")
    place = "resources" if kind == "account" else f"{kind}s/{name}/memories/preference"
    return f"ctx://{account}/{place}"


def _admin(account: str) -> RequestContext:
    return RequestContext(account, "boss", role=Role.ROOT)


STEPS: dict[str, Callable[[World, str, str, int], None]] = {
    "write": _write,
    "say": _say,
    "relate": _relate,
    "edit": _edit,
    "move": _move,
    "forget": _forget,
    **{verb: partial(_change, verb) for verb in ("delete", "archive", "unarchive")},
}
Step = tuple[str, str, str, int]
"""What happens, in which account, to whose memory, and a number to choose by."""


def do(world: World, step: Step) -> None:
    verb, *where = step
    try:
        STEPS[verb](world, *where)  # type: ignore[arg-type] # account, owner, pick
    except ContextError:  # it can't be done there now, and changes nothing
        return
    state = IndexState(0, world.context.recorded.history.position())
    world.past.append((state, dict(world.nodes)))


# ---------------------------------------------------------------- what is looked at
def check(world: World, who: RequestContext, nodes: Everything, at: IndexState | None) -> None:
    """Ask for everything that there is; the answer is what the caller may see, and all of it."""
    every = words(text for known in (nodes | world.nodes).values() for text in known.texts)
    question = " ".join((*sorted(every), COMMON))
    result = _ask(world, who, question, at)
    mine = {uri: known for uri, known in nodes.items() if known.in_use and known.seen_by(who)}
    found, is_certain = {hit.uri for hit in result.hits}, _text_of(result, question)

    own = " ".join(f"{uri} {known.abstract} {' '.join(known.texts)}" for uri, known in mine.items())
    assert words([is_certain]) <= words([own])
    assert all(name in own for name in _NAMED.findall(is_certain))
    assert found <= set(mine)
    for uri, known in mine.items():
        assert uri in found or not known.certain or _finds(world, who, (uri, known), at), uri
    assert all(hit.snippet in result.context for hit in result.hits)
    assert " 0 refused" in result.trace[-1].text, "more was found than a filter lets through"
    if at is not None or not any(owner.seen_by(who) for owner in world.poisoned):
        assert result.index_lag == 0


def attack(world: World, who: RequestContext, pick: int) -> None:
    """Ask for the one word of a text out of reach: the result is that of an unknown word."""
    spread: dict[bool, set[str]] = {True: set(), False: set()}
    for uri, known in world.nodes.items():
        spread[known.seen_by(who)] |= words((uri, known.abstract, *known.texts))
    hidden = sorted(spread[False] - spread[True])
    if not hidden:
        return
    word = hidden[pick % len(hidden)]
    result, nothing = (_ask(world, who, asked, None) for asked in (word, NOBODYS))
    assert result.trace[1].text.startswith("0 passages ")
    assert not any(hit.score_terms.get("words") for hit in result.hits)
    assert word not in _text_of(result, word)
    assert result.index_lag == nothing.index_lag
    if not result.semantic:
        assert (result.hits, result.context) == ((), "")
        assert _text_of(result, word) == _text_of(nothing, NOBODYS)


def _finds(
    world: World, who: RequestContext, node: tuple[str, Known], at: IndexState | None
) -> bool:
    """Whether a node without a vector, which many words together may miss, is found by its own."""
    word = max(words([node[1].texts[-1]]))
    return node[0] in {hit.uri for hit in _ask(world, who, word, at).hits}


def _ask(world: World, who: RequestContext, question: str, at: IndexState | None) -> RecallResult:
    return of(world.context, who).recall(question, top_k=200, budget_tokens=20_000, at=at)


def _text_of(result: RecallResult, question: str) -> str:
    """Return all that a result says, without the question that it repeats."""
    asked = ", ".join(parse_question(question, NOW).words)
    steps = [step.text.replace(asked, "") for step in result.trace]
    return f"{result.hits} {result.stale} {texts_of(result)} {result.context} {steps}"
