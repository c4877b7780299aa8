"""A scripted model on loopback that speaks the APIs of the agents, and keeps what it was sent.

A turn of the script is answered to a request that offers tools, in order; when the script is used
up, and to requests without tools (titles, summaries), the answer is what it says `aside`.
"""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, by its name on the server: `recall`."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    tokens: int = 0
    """How long the model says that the request was; 0 tells the truth."""


Turn = str | Call
"""What the model says, or does."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model was sent."""

    path: str
    body: Json

    @property
    def tools(self) -> dict[str, str]:
        """The names to call of all tools that were offered, ours by their name on the server."""
        names = [name for each in self.body.get("tools") or () for name in _tool_names(each)]
        ours = [name for name in names if "perdure" in name]
        named = {re.split(r"perdure(?:__|_|/)", name)[-1]: name for name in ours}
        return {**{name: name for name in names if name not in ours}, **named}

    @property
    def has_memory(self) -> bool:
        return any("perdure" in name for name in self.tools.values())

    @property
    def text(self) -> str:
        """All that the model was shown, without what tools there are."""
        return "\n".join(self.texts)

    @property
    def texts(self) -> list[str]:
        """Each text that the model was shown; the texts in JSON that tools answered, too."""
        shown = {key: each for key, each in self.body.items() if key != "tools"}
        return [plain for text in _texts(shown) for plain in _opened(text)]


def _tool_names(tool: Json) -> Iterator[str]:
    for declared in tool.get("functionDeclarations", ()):
        yield declared["name"]
    for inner in tool.get("tools", ()):  # a namespace of Codex
        yield f"{tool['name']}/{inner['name']}"
    function = tool.get("function")
    name = function["name"] if isinstance(function, dict) else tool.get("name")
    if name and "tools" not in tool:
        yield name


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


def _opened(text: str) -> Iterator[str]:
    """Yield a text, or what is before the JSON object that it ends with, and the texts in that."""
    at = text.find('{"')
    try:
        inner = json.loads(text[at:]) if at >= 0 else None
    except ValueError:
        inner = None
    if isinstance(inner, dict):
        yield text[:at]
        yield from _texts(inner)
    else:
        yield text


class Model:
    """What was sent to the model in one run of an agent, and what it still has to say."""

    def __init__(self, script: Sequence[Turn], aside: str = "ok") -> None:
        self.requests: list[Request] = []
        self._aside = aside
        self._script = list(script)
        self._lock = threading.Lock()

    @property
    def turns(self) -> list[Request]:
        """The requests of the conversation itself."""
        return [each for each in self.requests if len(each.tools) > 3]

    @property
    def is_done(self) -> bool:
        return not self._script

    def next_turn(self, request: Request) -> Turn:
        with self._lock:
            self.requests.append(request)
            if len(request.tools) <= 3 or not self._script:
                return self._aside
            if isinstance(self._script[0], Call) and self._script[0].tool not in request.tools:
                waiting = "WaitForMcpServers"
                return Call(waiting) if waiting in request.tools else "ok"
            return self._script.pop(0)


@contextmanager
def serving(script: Sequence[Turn], aside: str = "ok") -> Iterator[tuple[Model, int]]:
    """Serve a model on a port of 127.0.0.1."""
    model = Model(script, aside)

    class Bound(_Handler):
        scripted = model

    with ThreadingHTTPServer(("127.0.0.1", 0), Bound) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield model, server.server_port
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    scripted: Model
    _numbers = count(1)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        self._send_json({"object": "list", "data": [], "models": [], "has_more": False})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data)
        except ValueError:
            body = {}
        if re.search(r"count_?tokens", self.path, re.IGNORECASE):
            self._send_json({"input_tokens": len(data) // 4, "totalTokens": len(data) // 4})
            return
        speak = next((each for part, each in _APIS.items() if part in self.path), None)
        if speak is None or not isinstance(body, dict):
            self._send_json({})
            return
        request = Request(self.path, body)
        turn = self.scripted.next_turn(request)
        if isinstance(turn, Call):
            turn = replace(turn, tool=request.tools.get(turn.tool, turn.tool))
        tokens = (turn.tokens if isinstance(turn, Call) else 0) or len(data) // 4
        whole, events = speak(turn, body, f"{next(self._numbers):08x}", tokens)
        if body.get("stream") or "stream" in self.path:
            self._send("".join(events).encode(), "text/event-stream")
        else:
            self._send_json(whole)

    def _send_json(self, payload: Json) -> None:
        self._send(json.dumps(payload).encode())

    def _send(self, data: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


# ---------------------------------------------------------------- the APIs
Spoken = tuple[Json, list[str]]
"""An answer as a whole, and as events."""


def _event(kind: str, payload: Json) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **payload})}\n\n"


def _messages(turn: Turn, body: Json, number: str, tokens: int) -> Spoken:
    if isinstance(turn, Call):
        block: Json = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.tool}
        empty, given = {**block, "input": {}}, dict(turn.arguments)
        delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        block, reason = {**block, "input": given}, "tool_use"
    else:
        block, empty = {"type": "text", "text": turn}, {"type": "text", "text": ""}
        delta, reason = {"type": "text_delta", "text": turn}, "end_turn"
    usage = {"input_tokens": tokens, "output_tokens": 5}
    whole: Json = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {**usage, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    }
    begun = {**whole, "content": [], "stop_reason": None}
    ended = {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    return whole, [
        _event("message_start", {"message": begun}),
        _event("content_block_start", {"index": 0, "content_block": empty}),
        _event("content_block_delta", {"index": 0, "delta": delta}),
        _event("content_block_stop", {"index": 0}),
        _event("message_delta", ended),
        _event("message_stop", {}),
    ]


def _responses(turn: Turn, body: Json, number: str, tokens: int) -> Spoken:
    if isinstance(turn, Call):
        space, _, name = turn.tool.rpartition("/")
        item: Json = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": json.dumps(dict(turn.arguments)),
            "status": "completed",
            **({"namespace": space} if space else {}),
        }
    else:
        payload = {"type": "output_text", "text": turn, "annotations": []}
        item = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [payload],
        }
    details: Json = {"input_tokens_details": {"cached_tokens": 0}}
    whole: Json = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": body.get("model"),
        "output": [item],
        "usage": {
            "input_tokens": tokens,
            "output_tokens": 5,
            "total_tokens": tokens + 5,
            **details,
        },
    }
    begun = {**whole, "status": "in_progress", "output": []}
    return whole, [
        _event("response.created", {"response": begun}),
        _event("response.output_item.added", {"output_index": 0, "item": item}),
        _event("response.output_item.done", {"output_index": 0, "item": item}),
        _event("response.completed", {"response": whole}),
    ]


def _chat(turn: Turn, body: Json, number: str, tokens: int) -> Spoken:
    message: Json = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
    if isinstance(turn, Call):
        function = {"name": turn.tool, "arguments": json.dumps(dict(turn.arguments))}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        message["tool_calls"] = [call]
    reason = "tool_calls" if isinstance(turn, Call) else "stop"
    usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
    base: Json = {"id": f"chatcmpl-{number}", "created": int(time.time())}
    base |= {"model": body.get("model"), "usage": usage}
    whole = {"message": message, "finish_reason": reason, "index": 0}
    parts: list[Json] = [
        {"delta": message, "finish_reason": None, "index": 0},
        {"delta": {}, "finish_reason": reason, "index": 0},
    ]
    chunk = {**base, "object": "chat.completion.chunk"}
    events = [f"data: {json.dumps({**chunk, 'choices': [each]})}\n\n" for each in parts]
    return {**base, "object": "chat.completion", "choices": [whole]}, [*events, "data: [DONE]\n\n"]


def _gemini(turn: Turn, body: Json, number: str, tokens: int) -> Spoken:
    del body, number
    part: Json = {"text": turn}
    if isinstance(turn, Call):
        part = {"functionCall": {"name": turn.tool, "args": dict(turn.arguments)}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 5, "totalTokenCount": tokens + 5}
    whole: Json = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "scripted",
    }
    return whole, [f"data: {json.dumps(whole)}\r\n\r\n"]


_APIS = {
    "/messages": _messages,
    "/responses": _responses,
    "/chat/completions": _chat,
    "enerateContent": _gemini,
}
