"""A real HTTP server on this machine that embeds texts, or misbehaves."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from perdure.index.hashing_embedder import HashingEmbedder

DIMENSION = 64

Answer = Callable[["Handler"], None]


class Server(ThreadingHTTPServer):
    """Sends the `answers` that a test sets, one for each request, and valid ones after that."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: deque[Answer] = deque()
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.over = Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients who hang up."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.asked = json.loads(self.rfile.read(length))
        self.server.asked.append(self.asked)
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers["Authorization"])
        answers = self.server.answers
        (answers.popleft() if answers else embeddings)(self)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def send(
        self, content: bytes, status: int = 200, reason: str | None = None, **more: str
    ) -> None:
        self.send_response(status, reason)
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def rows_for(texts: list[str]) -> list[dict[str, Any]]:
    # Not of unit length, as few are.
    vectors = HashingEmbedder(DIMENSION).embed_texts(texts)
    return [
        {"object": "embedding", "index": at, "embedding": [3 * number for number in vector]}
        for at, vector in enumerate(vectors)
    ]


def embeddings(handler: Handler) -> None:
    report = {"object": "list", "data": rows_for(handler.asked["input"]), "model": "any"}
    handler.send(json.dumps(report).encode())


def backwards(handler: Handler) -> None:
    handler.send(json.dumps({"data": rows_for(handler.asked["input"])[::-1]}).encode())


def says(content: bytes, status: int = 200, **more: Any) -> Answer:  # noqa: ANN401 - headers
    return lambda handler: handler.send(content, status, **more)


def never(handler: Handler) -> None:
    handler.server.over.wait()


def drips(handler: Handler) -> None:
    """Send a byte now and then, and never come to an end."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.wait(0.001):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def floods(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 1_000_000)


def breaks_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def breaks_off_a_chunk(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"ff\r\n{}")
    handler.close_connection = True


def is_no_server(handler: Handler) -> None:
    handler.wfile.write(b"\x16\x03\x01 hello\r\n\r\n")
    handler.close_connection = True


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
