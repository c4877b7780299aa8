"""The doors: each runs a request and returns the answer in one common form."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import perdure
from perdure import Entry, Memory, PerdureError, RecallResult, RememberResult
from perdure.engine.hide import HiddenCounts
from perdure.model import ContextNode, RelationEdge
from tests.surfaces.mcp.agents import Agent
from tests.surfaces.mcp.agents import text as text_of
from tests.surfaces.nodes import perdure as run_command

BUDGET = 20_000
"""Every door packs its hits into this many tokens: MCP always has a budget."""
Answer = Any
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """A refusal: what is wrong, without the fix, which each door spells for its users."""

    what: str


def refused(message: str) -> Refused:
    what = re.sub(r"\s+", " ", message).partition(" Fix:")[0]
    return Refused(what.removesuffix(" Nothing was written.").strip())


# ---------------------------------------------------------------- Python
class PythonDoor:
    """Calls the verb of `Memory`."""

    name = "python"

    def __init__(self, home: Path) -> None:
        self._home = home / ".perdure"

    def ask(self, verb: str, arguments: Arguments) -> Answer:
        given = dict(arguments)
        user = None if given.pop("owner", False) else "ana"
        with perdure.open(user=user, home=self._home) as memory:
            try:
                return PYTHON[verb](memory, **given)
            except (PerdureError, ValueError) as error:
                return refused(str(error))


def _hits(result: RecallResult) -> dict[str, Answer]:
    hits = [
        {
            "uri": hit.uri,
            "cid": hit.cid,
            "title": hit.title,
            "text": hit.snippet,
            "date": hit.date.date().isoformat() if hit.date else "",
            "category": hit.category,
            "speaker": hit.speaker,
            "session_id": hit.session_id,
            "holds": hit.holds,
            "score": round(hit.score, 4),
        }
        for hit in result.hits
    ]
    return {"hits": hits, "left_out": result.left_out, "index_lag": result.index_lag}


def _node(node: ContextNode) -> dict[str, Answer]:
    return {
        "uri": node.uri,
        "title": node.title,
        "category": node.category,
        "text": node.content,
        "version": node.version,
        "problems": list(node.problems),
    }


def _entry(entry: Entry) -> tuple[str, str, int]:
    kind = "folder" if entry.is_folder else "memory"
    return entry.uri, kind, entry.node.version if entry.node else 0


def _every(entry: Entry) -> list[tuple[str, str, int]]:
    return [_entry(entry), *(each for below in entry.below for each in _every(below))]


def _edge(edge: RelationEdge) -> tuple[str, str, str, float, str]:
    return edge.from_uri, edge.to_uri, edge.relation_type, edge.weight, edge.reason


def _recall(
    memory: Memory,
    query: str,
    category: str = "",
    budget_tokens: int = BUDGET,
    **more: Any,  # noqa: ANN401
) -> Answer:
    filters = {"category": category} if category else {}
    return _hits(memory.recall(query, filters=filters, budget_tokens=budget_tokens, **more))


def _read(memory: Memory, uri: str, at: str | None = None) -> Answer:
    return _node((memory if at is None else memory.at(at)).read(uri))


def _list(memory: Memory, folder: str = "", at: str | None = None, **more: Any) -> Answer:  # noqa: ANN401
    found = (memory if at is None else memory.at(at)).list(folder, **more)
    return sorted(map(_entry, found))


def _tree(memory: Memory, folder: str = "", at: str | None = None, **more: Any) -> Answer:  # noqa: ANN401
    found = (memory if at is None else memory.at(at)).tree(folder, **more)
    return [each for below in found.below for each in _every(below)]


def _save(memory: Memory, text: str, **more: Any) -> Answer:  # noqa: ANN401
    saved = memory.save(text, **more)
    return {
        "uri": str(saved),
        "version": saved.version,
        "written": saved.written,
        "created": saved.created,
        "changed": saved.changed,
    }


_REMEMBERED = ("uri", "text", "outcome", "merged_with", "replaced", "doubted")
_PENDING = ("id", "text", "kind", "session_id", "message")


def _remembered(done: RememberResult) -> Answer:
    return {key: getattr(done, key) for key in _REMEMBERED}


def _remember(memory: Memory, text: str, **more: Any) -> Answer:  # noqa: ANN401
    more["replaces"] = [more["replaces"]] if "replaces" in more else []
    return _remembered(memory.remember(text, **more))


def _history(memory: Memory, uri: str) -> Answer:
    versions = memory.history(uri)
    if not versions:
        raise PerdureError("nothing")
    return [(v.number, v.origin, v.reason, str(v.cid) if v.cid else "") for v in versions]


def _why(memory: Memory, uri: str) -> Answer:
    found = memory.why(uri)
    return {
        "uri": found.uri,
        "kind": found.kind.value,
        "version": found.version,
        "holds": found.holds,
        "statements": [
            (claim.text, [(s.session, q.message, q.text) for s in claim.evidence for q in s.quotes])
            for claim in found.statements
        ],
        "superseded": [(each.uri, each.text) for each in found.superseded],
        "superseded_by": [each.uri for each in found.superseded_by],
    }


def _forget(memory: Memory, uri: str, **more: Any) -> Answer:  # noqa: ANN401
    done = memory.forget(uri, **more)
    return {"archived": list(done.archived), "also": list(done.also), "hidden": asdict(done.hidden)}


def _write(memory: Memory, uri: str, text: str | None = None, **more: Any) -> Answer:  # noqa: ANN401
    done = memory.write(uri, text, **more)
    return {
        "uri": done.uri,
        "version": done.version,
        "written": done.written,
        "created": done.created,
    }


def _relations(memory: Memory, uri: str) -> Answer:
    edges = memory.relations(uri)
    return [
        *(("out", *_edge(each)) for each in edges.outgoing),
        *(("in", *_edge(each)) for each in edges.incoming),
    ]


def _move(memory: Memory, uri: str, to: str) -> Answer:
    moved = memory.move(uri, to)
    return {"uri": moved.uri, "version": moved.version}


def _restore(memory: Memory, uri: str, to: str) -> Answer:
    node = memory.restore(uri, to)
    return {"uri": node.uri, "version": node.version}


def _rewind(memory: Memory, when: str, folder: str = "") -> Answer:
    return [
        (each.uri, each.outcome.value) for each in memory.rewind(when, folder, dry_run=True).steps
    ]


def _lint(memory: Memory, folder: str | None = None) -> Answer:
    return [(p.file, p.line or None, p.code, p.what) for p in memory.lint(folder).findings]


def _repair(memory: Memory, *, apply: bool = False) -> Answer:
    return [(f.uri, f.state.value, f.action.value) for f in memory.repair(apply=apply).findings]


_INDEX = ("index", "semantic", "built", "position", "newest", "places", "behind", "waiting", "dead")
_PROOF = ("root", "places", "records", "notes")


def _status(memory: Memory) -> Answer:
    parts = {part.name: part.facts for part in memory.status()}
    return {name: parts[name] for name in ("config", "storage", "nodes", "history", "index", "llm")}


def _work(memory: Memory) -> Answer:
    done = memory.work().counts
    return {"done": done.done, "failed": done.failed, "dead": done.dead, "indexed": done.indexed}


PYTHON: dict[str, Callable[..., Answer]] = {
    "status": _status,
    "index status": lambda memory: {n: getattr(memory.index.status(), n) for n in _INDEX},
    "index heal": lambda memory: {n: getattr(memory.index.verify(heal=True), n) for n in _PROOF},
    "index rebuild": lambda memory: {"indexed": len(memory.index.rebuild().places)},
    "outbox list": lambda memory: [(e.uri, e.event_type.value) for e in memory.outbox.list()],
    "outbox requeue": lambda memory, event: {"requeued": memory.outbox.requeue([event])},
    "work": _work,
    "tenants": lambda memory, kind: memory.tenants.list(kind),
    "create": lambda memory, kind, name: memory.tenants.create(kind, name),
    "delete tenant": lambda memory, kind, name: memory.tenants.delete(kind, name).counts,
    "recall": _recall,
    "read": _read,
    "list": _list,
    "tree": _tree,
    "save": _save,
    "remember": _remember,
    "candidates": lambda memory: [
        tuple(getattr(each, key) for key in _PENDING) for each in memory.candidates()
    ],
    "accept": lambda memory, id, **more: _remembered(memory.accept(id, **more)),  # noqa: A006
    "reject": lambda memory, id: memory.reject(id).text,  # noqa: A006
    "history": _history,
    "why": _why,
    "forget": _forget,
    "write": _write,
    "move": _move,
    "archive": lambda memory, uri: memory.archive(uri),
    "unarchive": lambda memory, uri: memory.unarchive(uri),
    "delete": lambda memory, uri: memory.delete(uri),
    "relations": _relations,
    "relate": lambda memory, uri, to, kind: [_edge(memory.relate(uri, to, kind))],
    "unrelate": lambda memory, uri, to: [_edge(each) for each in memory.unrelate(uri, to)],
    "restore": _restore,
    "rewind": _rewind,
    "lint": _lint,
    "repair": _repair,
}


# ---------------------------------------------------------------- command line
class CommandDoor:
    """Runs the command with `--json`."""

    name = "command line"

    def __init__(self, home: Path) -> None:
        self._home = home

    def ask(self, verb: str, arguments: Arguments) -> Answer:
        given = dict(arguments)
        owner = given.pop("owner", False) or verb == "history"  # the owner of the machine
        words, decode = COMMANDS[verb](**given)
        user = [] if owner else ["--user", "ana"]
        done = run_command(*words, "--json", *user)
        if done.exit_code == 2:  # click's own refusal of an argument
            return refused(re.sub(r"(?s).*Error: (?:Invalid value[^:]*: )?", "", done.stderr))
        if isinstance(done.exception, PerdureError):
            return refused(str(done.exception))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.stderr
        return decode([json.loads(line) for line in done.stdout.splitlines()])


Command = tuple[list[str], Callable[[list[dict[str, Any]]], Answer]]


def _options(**given: object) -> list[str]:
    words: list[str] = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in {None, False}:
            words += [option, str(value)]
    return words


def _recall_command(
    query: str,
    top_k: int = 10,
    budget_tokens: int = BUDGET,
    **more: Any,  # noqa: ANN401
) -> Command:
    keys = ("uri", "cid", "title", "category", "speaker", "session_id", "holds")

    def decode(found: list[dict[str, Any]]) -> Answer:
        (answer,) = found
        hits = [
            {
                **{key: hit[key] or ("" if key != "holds" else False) for key in keys},
                "text": hit["snippet"],
                "date": (hit["date"] or "")[:10],
                "score": round(hit["score"], 4),
            }
            for hit in answer["hits"]
        ]
        return {"hits": hits, "left_out": answer["left_out"], "index_lag": answer["index_lag"]}

    options = _options(top=top_k, budget=budget_tokens, **more)
    return ["recall", query, *options], decode


def _read_command(uri: str, at: str | None = None) -> Command:
    def decode(found: list[dict[str, Any]]) -> Answer:
        (node,) = found
        keys = ("uri", "title", "version", "problems")
        same = {key: node[key] for key in keys}
        return {**same, "category": node["category"] or "", "text": node["content"]}

    return ["read", uri, *_options(at=at)], decode


def _entries(found: list[dict[str, Any]]) -> Answer:
    return [
        (e["uri"], "folder" if e["kind"] == "folder" else "memory", e["version"] or 0)
        for e in found
    ]


def _picked(*keys: str) -> Callable[[list[dict[str, Any]]], Answer]:
    return lambda found: {key: found[0][key] for key in keys}


def _rows(*keys: str) -> Callable[[list[dict[str, Any]]], Answer]:
    return lambda found: [tuple(each[key] for key in keys) for each in found]


_EDGE = ("from_uri", "to_uri", "type", "weight", "reason")


def _history_command(uri: str) -> Command:
    key = "accounts/local/" + uri.removeprefix("ctx://local/") + "/content.md"
    if not uri.startswith("ctx://"):
        key = f"accounts/local/users/ana/memories/{uri}/content.md"

    def decode(found: list[dict[str, Any]]) -> Answer:
        return [(v["version"], v["origin"], v["reason"], v["cid"] or "") for v in found]

    return ["history", "log", key], decode


def _why_command(uri: str) -> Command:
    def decode(found: list[dict[str, Any]]) -> Answer:
        (why,) = found
        return {
            **{key: why[key] for key in ("uri", "kind", "version", "holds")},
            "statements": [
                (
                    each["text"],
                    [
                        (s["session"], q["message"], q["quote"])
                        for s in each["evidence"]
                        for q in s["quotes"]
                    ],
                )
                for each in why["statements"]
            ],
            "superseded": [(each["uri"], each["text"]) for each in why["superseded"]],
            "superseded_by": [each["uri"] for each in why["superseded_by"]],
        }

    return ["why", uri], decode


def _write_command(uri: str, text: str | None = None, **more: Any) -> Command:  # noqa: ANN401
    words = ["write", uri, *([] if text is None else [text]), *_options(**more)]
    return words, _picked("uri", "version", "written", "created")


def _status_command() -> Command:
    def decode(found: list[dict[str, Any]]) -> Answer:
        names = ("config", "storage", "nodes", "history", "index", "llm")
        return {
            name: {key: each for key, each in found[0][name].items() if key != "trouble"}
            for name in names
        }

    return ["status"], decode


COMMANDS: dict[str, Callable[..., Command]] = {
    "status": _status_command,
    "index status": lambda: (["index", "status"], _picked(*_INDEX)),
    "index heal": lambda: (["index", "verify", "--heal"], _picked(*_PROOF)),
    "index rebuild": lambda: (["index", "rebuild"], _picked("indexed")),
    "outbox list": lambda: (["outbox", "list"], _rows("uri", "type")),
    "outbox requeue": lambda event: (["outbox", "requeue", event], _picked("requeued")),
    "work": lambda: (["worker", "--once"], _picked("done", "failed", "dead", "indexed")),
    "tenants": lambda kind: ([kind, "list"], lambda found: [each["id"] for each in found]),
    "create": lambda kind, name: ([kind, "create", name], lambda found: found[0]["uri"]),
    "delete tenant": lambda kind, name: (
        [kind, "delete", name, "--yes"],
        lambda found: found[0]["deleted"],
    ),
    "recall": _recall_command,
    "read": _read_command,
    "list": lambda folder="", **more: (
        ["list", folder, *_options(**more)],
        lambda found: sorted(_entries(found)),
    ),
    "tree": lambda folder="", **more: (["tree", folder, *_options(**more)], _entries),
    "save": lambda text, **more: (
        ["save", text, *_options(**more)],
        _picked("uri", "version", "written", "created", "changed"),
    ),
    "remember": lambda text, **more: (
        ["remember", text, *_options(**more)],
        _picked(*_REMEMBERED),
    ),
    "candidates": lambda: (["review"], _rows(*_PENDING)),
    "accept": lambda id, **more: (  # noqa: A006
        ["review", "accept", id, *_options(**more)],
        _picked(*_REMEMBERED),
    ),
    "reject": lambda id: (["review", "reject", id], lambda found: found[0]["text"]),  # noqa: A006
    "history": _history_command,
    "why": _why_command,
    "forget": lambda uri, **more: (
        ["forget", uri, *_options(**more)],
        _picked("archived", "also", "hidden"),
    ),
    "write": _write_command,
    "move": lambda uri, to: (["move", uri, to], _picked("uri", "version")),
    "archive": lambda uri: (["archive", uri], lambda found: found[0]["uri"]),
    "unarchive": lambda uri: (["unarchive", uri], lambda found: found[0]["uri"]),
    "delete": lambda uri: (["delete", uri, "--yes"], lambda found: found[0]["uri"]),
    "relations": lambda uri: (["relate", uri], _rows("direction", *_EDGE)),
    "relate": lambda uri, to, kind: (["relate", uri, to, "--type", kind], _rows(*_EDGE)),
    "unrelate": lambda uri, to: (["relate", uri, to, "--remove"], _rows(*_EDGE)),
    "restore": lambda uri, to: (["restore", uri, to], _picked("uri", "version")),
    "rewind": lambda when, folder="": (["rewind", when, folder], _rows("uri", "fate")),
    "lint": lambda folder=None: (
        ["lint", *([] if folder is None else [folder])],
        _rows("file", "line", "code", "what"),
    ),
    "repair": lambda **more: (["repair", *_options(**more)], _rows("uri", "state", "action")),
}


# ---------------------------------------------------------------- MCP
class ToolDoor:
    """Calls the tool, if there is one, through the SDK's client."""

    name = "mcp"

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def ask(self, verb: str, arguments: Arguments) -> Answer:
        tool, given, decode = TOOLS[verb](**arguments)
        result = self._agent.call(tool, **given)
        if result.is_error:
            return refused(text_of(result))
        assert isinstance(result.structured_content, dict)
        return decode(result.structured_content)


Tool = tuple[str, dict[str, Any], Callable[[dict[str, Any]], Answer]]


def _recall_tool(query: str, **more: Any) -> Tool:  # noqa: ANN401
    keys = ("uri", "cid", "title", "text", "date", "category", "speaker", "session_id", "holds")

    def decode(answer: dict[str, Any]) -> Answer:
        hits = [
            {**{key: hit[key] for key in keys}, "score": hit["score"]} for hit in answer["hits"]
        ]
        return {"hits": hits, "left_out": answer["left_out"], "index_lag": answer["index_lag"]}

    given = {name: str(value) if name.endswith("at") else value for name, value in more.items()}
    return "recall", {"budget_tokens": BUDGET, **given, "query": query, "details": True}, decode


def _read_tool(uri: str, at: str = "") -> Tool:
    keys = ("uri", "title", "category", "text", "version", "problems")
    return "read", {"uri": uri, "at": at}, lambda answer: {key: answer[key] for key in keys}


def _why_tool(uri: str) -> Tool:
    def decode(why: dict[str, Any]) -> Answer:
        return {
            **{key: why[key] for key in ("uri", "kind", "version", "holds")},
            "statements": [
                (s["text"], [(q["session"], q["message"], q["quote"]) for q in s["evidence"]])
                for s in why["statements"]
            ],
            "superseded": [(each["uri"], each["text"]) for each in why["superseded"]],
            "superseded_by": why["superseded_by"],
        }

    return "why", {"uri": uri}, decode


TOOLS: dict[str, Callable[..., Tool]] = {
    "recall": _recall_tool,
    "read": _read_tool,
    "list": lambda folder="", **more: (
        "list",
        {"folder": folder, **more},
        lambda answer: sorted((e["uri"], e["kind"], e["version"]) for e in answer["entries"]),
    ),
    "save": lambda text, **more: (
        "remember",
        {"text": text, **more},
        lambda answer: {
            key: answer[key] for key in ("uri", "version", "written", "created", "changed")
        },
    ),
    "history": lambda uri: (
        "history",
        {"uri": uri},
        lambda answer: [
            (v["version"], v["origin"], v["reason"], v["cid"]) for v in reversed(answer["versions"])
        ],
    ),
    "why": _why_tool,
    "forget": lambda uri, **more: (
        "forget",
        {"uri": uri, **more},
        lambda answer: {
            "archived": [answer["uri"]]
            if answer["changed"] and answer["state"] == "archived"
            else [],
            "also": answer.get("also", []),
            "hidden": {**asdict(HiddenCounts()), **answer.get("hidden", {})},
        },
    ),
    "delete": lambda uri: ("forget", {"uri": uri, "delete": True}, lambda answer: answer["uri"]),
}


def plain(value: Answer) -> Answer:
    """Return an answer without the difference between lists and tuples, and with dates as text."""
    match value:
        case date() | datetime():
            return value.isoformat()
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
    return value
