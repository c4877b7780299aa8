"""A real HTTP server on this machine that speaks as both services do, or does something else."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from perdure.llm.contract import Answer, Refusal, Reply, ToolCall, Truncation, Usage
from perdure.llm.http_services import Service
from perdure.testing.llm import Script

USAGE = Usage(100, 20)
KEY = "key-of-ana"
MODEL = "small"

Act = Callable[["Handler"], None]


class Server(ThreadingHTTPServer):
    """Runs the `acts` that a test sets, one for each request, and plays the script after that."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.acts: deque[Act] = deque()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def openai(self, **more: Any) -> Service:  # noqa: ANN401 - the fields' own types
        return Service(f"{self.address}/v1", MODEL, **{"api_key": KEY, **more})

    def anthropic(self, **more: Any) -> Service:  # noqa: ANN401 - the fields' own types
        return Service(self.address, MODEL, **{"api_key": KEY, "structured": "tool", **more})

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients who hang up."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.asked)
        self.server.headers.append({name.lower(): each for name, each in self.headers.items()})
        acts = self.server.acts
        (acts.popleft() if acts else plays)(self)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    @property
    def speaks_openai(self) -> bool:
        assert self.path in {"/v1/chat/completions", "/v1/messages"}
        return self.path == "/v1/chat/completions"

    def send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content_Type": "application/json"} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


# ---------------------------------------------------------------- playing the script
def plays(handler: Handler) -> None:
    read, write = (read_openai, openai) if handler.speaks_openai else (read_anthropic, anthropic)
    reply = handler.server.script.reply_to(read(handler.asked))
    handler.send(json.dumps(write(reply)).encode())


def read_openai(asked: Mapping[str, Any]) -> dict[str, Any]:
    tools = [each["function"] for each in asked.get("tools", [])]
    choice = asked.get("tool_choice", "auto")
    structure = asked.get("response_format", {"json_schema": {"schema": None}})
    return {
        "messages": asked["messages"],
        "tools": [
            {
                "name": each["name"],
                "description": each["description"],
                "input_schema": each["parameters"],
            }
            for each in tools
        ],
        "tool_choice": choice if isinstance(choice, str) else choice["function"]["name"],
        "schema": structure["json_schema"]["schema"],
    }


def read_anthropic(asked: Mapping[str, Any]) -> dict[str, Any]:
    tools, choice = asked.get("tools", []), asked.get("tool_choice", {"type": "auto"})
    schema = None
    if [each["name"] for each in tools] == ["answer"]:
        schema, tools, choice = tools[0]["input_schema"], [], {"type": "auto"}
    system = [{"role": "system", "content": each["text"]} for each in asked.get("system", [])]
    chosen = {"any": "required", "tool": choice.get("name")}.get(choice["type"], choice["type"])
    return {
        "messages": [*system, *asked["messages"]],
        "tools": tools,
        "tool_choice": chosen,
        "schema": schema,
    }


def openai(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    finish = "stop"
    match reply:
        case Refusal():
            message["refusal"] = "I can't help with that."
        case Truncation():
            message["content"], finish = '{"who": "A', "length"
        case Answer(text, calls):
            message["content"] = text or None
            message["tool_calls"] = [
                {
                    "id": f"call_{at}",
                    "type": "function",
                    "function": {"name": each.tool, "arguments": each.arguments},
                }
                for at, each in enumerate(calls)
            ]
            finish = "tool_calls" if calls else "stop"
    usage = reply.usage or USAGE
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens},
    }


def anthropic(reply: Reply) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    stop = {Refusal: "refusal", Truncation: "max_tokens"}.get(type(reply), "end_turn")
    if isinstance(reply, Answer):
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        for at, each in enumerate(reply.calls):
            given = _loaded(each.arguments)
            content.append({"type": "tool_use", "id": f"t{at}", "name": each.tool, "input": given})
            stop = "tool_use"
    usage = reply.usage or USAGE
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": stop,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def _loaded(arguments: str) -> object:
    """Return what a model that can't write JSON makes of its input: a text."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def as_the_tool_answer(reply: Reply) -> Reply:
    """Return a reply in JSON as a service gives it that was asked by way of a tool."""
    if isinstance(reply, Answer) and reply.text and not reply.calls:
        return Answer(calls=(ToolCall("answer", reply.text),), usage=reply.usage)
    return reply


# ---------------------------------------------------------------- other acts
def says(content: bytes, status: int = 200, **headers: str) -> Act:
    return lambda handler: handler.send(content, status, **headers)


def fails(status: int, **headers: str) -> Act:
    return says(json.dumps({"error": {"message": "secret details"}}).encode(), status, **headers)


def replies(reply: Reply) -> Act:
    def act(handler: Handler) -> None:
        write = openai if handler.speaks_openai else anthropic
        handler.send(json.dumps(write(reply)).encode())

    return act


def never(handler: Handler) -> None:
    """Accept the request, and send no header."""
    handler.server.over.wait()


def drips(handler: Handler) -> None:
    """Send a byte now and then, and never come to an end."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    while not handler.server.over.wait(0.001):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def stalls(handler: Handler) -> None:
    """Send half of the body, and then nothing."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.server.over.wait()


def floods(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 1_000_000)


def floods_with_an_error(handler: Handler) -> None:
    handler.send_response(400)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 1_000_000)


def breaks_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


@contextmanager
def serving(script: Script | None = None) -> Iterator[Server]:
    server = Server(script or Script())
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
