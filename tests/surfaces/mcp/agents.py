"""Agents that use memory through the SDK's own client: over real pipes, or in this process."""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ListToolsResult, TextContent
from mcp_types import Tool as Offered

from perdure.app import caller_for
from perdure.surfaces.mcp.server import Server
from perdure.surfaces.mcp.tools import Tools
from tests.surfaces.processes import PERDURE

MEMORIES = "ctx://local/users/ana/memories"

Call = tuple[str, dict[str, Any]]


class Agent(ABC):
    """Calls tools, and waits for their answers."""

    @abstractmethod
    def tools(self) -> dict[str, Offered]: ...

    @abstractmethod
    def call(self, tool: str, **arguments: object) -> CallToolResult: ...

    @property
    @abstractmethod
    def instructions(self) -> str: ...

    def answer(self, tool: str, **arguments: object) -> dict[str, Any]:
        return answer(self.call(tool, **arguments))

    def refusal(self, tool: str, **arguments: object) -> str:
        result = self.call(tool, **arguments)
        assert result.is_error, result
        assert result.structured_content is None
        return text(result)


class Connected(Agent):
    """Uses the SDK's own client."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def tools(self) -> dict[str, Offered]:
        return {tool.name: tool for tool in self._portal.call(self._client.list_tools).tools}

    def call(self, tool: str, **arguments: object) -> CallToolResult:
        result: CallToolResult = self._portal.call(self._client.call_tool, tool, dict(arguments))
        return result

    def begin(self, calls: Sequence[Call]) -> list[Future[CallToolResult]]:
        """Call tools, and wait for nothing."""
        return [
            self._portal.start_task_soon(self._client.call_tool, tool, arguments)
            for tool, arguments in calls
        ]

    def at_once(self, calls: Sequence[Call]) -> list[CallToolResult]:
        return [each.result(60) for each in self.begin(calls)]

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""


class Direct(Agent):
    """Asks a server in this process; what is patched here is patched there."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def tools(self) -> dict[str, Offered]:
        listed = ListToolsResult.model_validate(self._asked("tools/list"))
        return {tool.name: tool for tool in listed.tools}

    def call(self, tool: str, **arguments: object) -> CallToolResult:
        reply = self._asked("tools/call", name=tool, arguments=arguments)
        return CallToolResult.model_validate(reply)

    @property
    def instructions(self) -> str:
        return str(self._asked("initialize")["instructions"])

    def _asked(self, method: str, **params: object) -> dict[str, Any]:
        reply = self._server.answer(message(method, 1, **params).decode())
        assert isinstance(reply, dict)
        result = json.loads(json.dumps(reply["result"]))
        assert isinstance(result, dict)
        return result


def answer(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def uris(recalled: dict[str, Any]) -> list[str]:
    return [hit["uri"] for hit in recalled["hits"]]


@contextmanager
def over_stdio(home: Path, *words: str, **variables: str) -> Iterator[Connected]:
    """Start `perdure mcp` for a user called Ana, and end it."""
    counted = {name: each for name, each in os.environ.items() if name.startswith("COVERAGE_")}
    server = StdioServerParameters(
        command=PERDURE,
        args=["mcp", *words],
        env={**counted, "HOME": str(home), "USER": "ana", **variables},
        cwd=str(home),  # which is no project
    )
    with start_blocking_portal() as portal:
        client = Client(stdio_client(server, errlog=sys.__stderr__ or sys.stderr))
        with portal.wrap_async_context_manager(client):
            yield Connected(portal, client)


@contextmanager
def in_process(home: Path) -> Iterator[Agent]:
    """Serve without a process of its own."""
    environ = {"HOME": str(home), "USER": "ana"}
    with Tools(environ, caller_for(environ, user="ana")) as tools:
        yield Direct(Server(environ, lambda: tools.call))


def message(method: str, number: int | None = None, **params: object) -> bytes:
    """Return a line as a client sends it."""
    reply: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(reply if number is None else {**reply, "id": number}).encode() + b"\n"
