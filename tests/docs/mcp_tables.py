"""The tables of docs/reference/mcp.md, made from the tools themselves.

`python -m tests.docs.mcp_tables` writes them anew.
"""

import re
from collections.abc import Iterator

from perdure.surfaces.mcp.server import TOOLS, Argument, ToolSchema
from tests.docs.blocks import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "mcp.md"
BEGIN, END = "<!-- tools: made from the code -->", "<!-- end of tools -->"
_BETWEEN = re.compile(rf"(?<={re.escape(BEGIN)}\n).*(?={re.escape(END)})", re.DOTALL)


def tables() -> str:
    return "\n" + "\n".join(line for each in TOOLS.items() for line in _section(*each)) + "\n"


def written() -> str:
    found = _BETWEEN.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE.name} has no place for the tables"
    return found[0]


def _section(name: str, tool: ToolSchema) -> Iterator[str]:
    kind = "Destroys" if tool.destroys else "Writes" if tool.writes else "Reads only"
    yield f"### `{name}`"
    yield ""
    yield tool.description
    yield ""
    yield f"{kind}."
    yield ""
    yield "| argument | type | default | listed |"
    yield "|---|---|---|---|"
    for key, argument in tool.arguments.items():
        default = "needed" if argument.default is None else f"`{argument.default!r}`"
        yield f"| `{key}` | {_type(argument)} | {default} | {'yes' if argument.listed else 'no'} |"
    yield ""


def _type(argument: Argument) -> str:
    kind = str(argument.schema()["type"])
    if argument.choices:
        return f"{kind}: {', '.join(argument.choices)}"
    if kind == "boolean":
        return kind
    if kind == "integer":
        return f"{kind} from {argument.least:,} to {argument.most:,}"
    return f"{kind} of at most {argument.most:,} characters"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BETWEEN.sub(lambda _: tables(), text), encoding="utf-8")
