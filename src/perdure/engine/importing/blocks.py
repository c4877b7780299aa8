"""Messages made of blocks, as Claude's programs write them: texts, calls of tools, results."""

from collections.abc import Iterator, Mapping

from perdure.engine.importing.contract import Said
from perdure.engine.importing.texts import call, compact, list_of, mapping_of, message
from perdure.model.messages import text_of

_SILENT = frozenset({"thinking", "redacted_thinking"})
_SHOWN = frozenset({"image", "document", "file"})


def said_in(role: str, content: object, time: object) -> Iterator[Said]:
    """Yield what a message says: its texts and calls as one message, each result as one of a tool.

    Thoughts are left out: nobody said them.
    """
    spoken: list[str] = []
    results: list[Said] = []
    for block in (
        [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
    ):
        known = mapping_of(block)
        if known.get("type") == "tool_result":
            result = message("tool", compact(_result(known.get("content"))), time=time)
            if result is not None:
                results.append(result)
        else:
            spoken.append(_spoken(known))
    one = message(role, "\n\n".join(filter(None, spoken)), time=time)
    if one is not None:
        yield one
    yield from results


def _spoken(block: Mapping[str, object]) -> str:
    kind = text_of(block.get("type"))
    if kind == "tool_use":
        return call(text_of(block.get("name")), block.get("input"))
    if kind in _SHOWN:
        return f"[{kind}]"
    return "" if kind in _SILENT else text_of(block.get("text"))


def _result(content: object) -> object:
    """Return the text of a result; of pictures, that there was one."""
    if not isinstance(content, list):
        return content
    return "\n".join(filter(None, (_spoken(mapping_of(each)) for each in content)))
