"""The tables of docs/reference/mcp.md, made from the tools themselves.

`python -m tests.docs.mcp_tables` writes them anew.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
from mcp_types import Tool

from perdure.model import RequestContext
from perdure.surfaces.mcp.server import Server
from perdure.surfaces.mcp.tools import Tools
from tests.docs.blocks import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "mcp.md"
BEGIN, END = "<!-- tools: made from the code -->", "<!-- end of tools -->"
_BETWEEN = re.compile(rf"(?<={re.escape(BEGIN)}\n).*(?={re.escape(END)})", re.DOTALL)


def tables() -> str:
    tools = anyio.run(Server(Tools({}, RequestContext("local", "ana"))).list_tools)
    return "\n" + "\n".join(line for tool in (tools) for line in _section(tool)) + "\n"


def written() -> str:
    found = _BETWEEN.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE.name} has no place for the tables"
    return found[0]


def _section(tool: Tool) -> Iterator[str]:
    yield f"### `{tool.name}`"
    yield ""
    yield tool.description or ""
    yield ""
    yield f"Hints: {', '.join(_hints(tool))}."
    yield ""
    yield "| argument | type | default | meaning |"
    yield "|---|---|---|---|"
    needed = tool.input_schema.get("required", [])
    for name, schema in tool.input_schema["properties"].items():
        default = "needed" if name in needed else f"`{schema['default']!r}`"
        yield f"| `{name}` | {_type(schema)} | {default} | {schema['description']} |"
    yield ""
    fields = ", ".join(f"`{name}`" for name in (tool.output_schema or {})["properties"])
    yield f"Answers with {fields}."
    yield ""


def _hints(tool: Tool) -> Iterator[str]:
    hints = tool.annotations
    assert hints is not None
    yield "read-only" if hints.read_only_hint else "writes"
    yield "destructive" if hints.destructive_hint else "not destructive"
    yield "idempotent" if hints.idempotent_hint else "not idempotent"
    yield "open world" if hints.open_world_hint else "closed world"


def _type(schema: Mapping[str, Any]) -> str:
    bounds = [
        f"{word} {schema[key]:,}"
        for key, word in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("maxLength", "at most"),
        )
        if key in schema
    ]
    return ", ".join([schema["type"], " ".join(bounds)]) if bounds else str(schema["type"])


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BETWEEN.sub(lambda _: tables(), text), encoding="utf-8")
