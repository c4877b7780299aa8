"""The parser of messages in the formats of SDKs.

Accepts OpenAI chat messages and Responses items, Anthropic messages with their blocks, and any
mapping with a role and content: as dicts, as the SDKs' own objects (`model_dump`), or as whole
responses of OpenAI. What a session can't hold is reported (`SkippedContent`), never refused. Each
message is parsed by itself, so that the same input always gives the same message.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from perdure.dataclass import dataclass
from perdure.errors import InvalidValueError
from perdure.model.transcript import Message
from perdure.model.values import MAX_SHOWN, shortened, shown
from perdure.patterns import later
from perdure.times import read_time

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_TIMES = ("time", "created_at", "timestamp")
_TEXTS = ("content", "refusal", "audio", "tool_calls", "function_call")
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_ENVELOPE = frozenset(
    {
        *("id", "object", "type", "status", "index", "phase", "created", "model", "usage"),
        *("stop_reason", "stop_sequence", "stop_details", "finish_reason", "logprobs"),
        *("call_id", "tool_call_id", "annotations", "cache_control", "container"),
        *("response_metadata", "usage_metadata"),
    }
)
"""Keys that describe a message, and are not its content."""
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_INPUTS = ("arguments", "input", "args", "action", "code", "queries", "operation")
_HALVES = later("[\ud800-\udfff]")
_GOES_ON = frozenset(".,;:!?)")
_ONLY_TEXT = "only text is stored"
_NO_JSON = "it can't be JSON"


@dataclass(frozen=True, slots=True)
class SkippedContent:
    message: int
    """The index of the given message, from 0."""
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The messages of a session, and what it can't hold of the given ones."""

    messages: tuple[Message, ...]
    left_out: tuple[SkippedContent, ...]
    sources: tuple[int, ...]
    """For each message, the index of the given one, which may become several, or none."""


def read_messages(given: Iterable[object]) -> ParsedMessages:
    """Parse messages. What is not in `messages` is in `left_out`.

    A call of a tool and its result are messages of the role tool; an unknown role becomes the name
    of a system message. `InvalidValueError` for what is not a mapping.
    """
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise InvalidValueError(f"{shown(given)} is not a list of messages. Fix: give a list.")
    messages: list[Message] = []
    left_out: list[SkippedContent] = []
    sources: list[int] = []
    for index, each in enumerate(given):
        found = mapping_in(each)
        if found is None:
            raise InvalidValueError(
                f"{shown(each)} is not a message. Fix: give a mapping with role and content."
            )
        for one in _unwrapped(found):
            parser = _MessageParser(index, one)
            messages += parser.messages
            left_out += parser.left_out
            sources += [index] * len(parser.messages)
    return ParsedMessages(tuple(messages), tuple(left_out), tuple(sources))


# ---------------------------------------------------------------- values of other programs
def mapping_in(value: object) -> Mapping[object, object] | None:
    """Return a mapping, or an object of an SDK as one; None if it is neither."""
    if isinstance(value, Mapping):
        return value
    dump = None if isinstance(value, type) else getattr(value, "model_dump", None)
    if not callable(dump):
        return None
    try:
        found = dump()
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def text_of(value: object) -> str:
    """Return a text with U+FFFD for unpaired surrogates; "" if the value is not text."""
    if not isinstance(value, str):
        return ""
    text = str.__str__(value)
    if text.isascii() or not _HALVES.search(text):
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _HALVES.sub("\ufffd", whole)


def json_of(value: object) -> str | None:
    """Return a text unchanged, and anything else as JSON; None if that is impossible."""
    if isinstance(value, str):
        return text_of(value)
    try:
        return text_of(json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        return None


def time_in(value: object) -> datetime | None:
    """Return a time in UTC: a datetime with a zone, seconds since 1970, or ISO 8601; else None."""
    try:
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.utcoffset() is not None else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return read_time(value)


def called(name: str, given: str) -> str:
    return f"[called {name or 'a tool'}] {given}".rstrip()


def _unwrapped(given: Mapping[object, object]) -> list[Mapping[object, object]]:
    found: list[object] = []
    if given.get("object") == "chat.completion":
        choices = map(mapping_in, _listed(given.get("choices")))
        found = [choice.get("message") for choice in choices if choice is not None][:1]
    elif given.get("object") == "response":
        found = [*_listed(given.get("output"))]
    messages = [each for each in map(mapping_in, found) if each is not None]
    return messages if len(messages) == len(found) > 0 else [given]


# ---------------------------------------------------------------- one message
class _MessageParser:
    """Parses one message; `messages` is what a session stores of it, `left_out` the rest."""

    def __init__(self, index: int, given: Mapping[object, object]) -> None:
        self._index = index
        self._given = given
        self._texts: list[str] = []
        self._role = self._name = ""
        self._time: datetime | None = None
        self.messages: list[Message] = []
        self.left_out: list[SkippedContent] = []
        self._parse()
        if not self.messages and not self.left_out:
            self._leave("the message", "it is empty")

    def _parse(self) -> None:
        kind = text_of(self._given.get("type"))
        role = self._given.get("role")
        self._read_time()
        if role is not None or _role(kind) in _ROLES:
            self._read_role(kind if role is None else role)
        elif kind.endswith("_output"):
            self._tool(self._name_in(self._given), self._result(self._given.get("output")))
        elif kind.endswith("_call"):
            self._read_call(kind)
        elif kind in _THOUGHTS:
            self._leave("reasoning", "it is not part of the conversation")
        else:
            self._leave(f"an item of type {shown(kind)}" if kind else "the message", "has no role")

    def _read_role(self, role: object) -> None:
        own = " ".join(text_of(role).split())
        if not own or len(own) > MAX_SHOWN:
            self._leave("the message", f"its role is {shown(role)}")
            return
        self._name = self._name_in(self._given)
        self._role = _ROLES.get(_role(own), "")
        if not self._role:
            self._role, self._name = "system", shortened(f"{own} {self._name}".strip(), MAX_SHOWN)
        self._read_content()
        self._flush()
        self._report_keys()

    def _read_content(self) -> None:
        given = self._given
        for block in _listed(given.get("content")):
            self._block(block)
        self._texts.append(text_of(given.get("refusal")))
        if given.get("audio") is not None:
            transcript = (mapping_in(given["audio"]) or {}).get("transcript")
            self._texts.append(text_of(transcript))
            self._leave("audio", _ONLY_TEXT)
        for call in _listed(given.get("tool_calls")):
            self._call(call)
        if given.get("function_call") is not None:
            self._call(given["function_call"])

    # ------------------------------------------------------------ blocks
    def _block(self, block: object) -> None:
        known = mapping_in({"text": block} if isinstance(block, str) else block)
        if known is None:
            self._leave(f"content of type {type(block).__name__}", _ONLY_TEXT)
            return
        kind = text_of(known.get("type"))
        if kind in _CALLS or kind.endswith("_call"):
            self._call(known)
        elif kind.endswith("tool_result"):
            self._flush()
            self._tool(self._name_in(known), self._result(known.get("content")))
        else:
            self._texts.append(self._text(known, kind))

    def _text(self, block: Mapping[object, object], kind: str) -> str:
        """Return the text of a block; for one that is not text, its type in brackets."""
        if kind in _THOUGHTS:
            self._leave(kind, "it is not part of the conversation")
            return ""
        text = block.get("refusal") if kind == "refusal" else block.get("text")
        text = (mapping_in(text) or {}).get("value", text) if text is not None else None
        if isinstance(text, str):
            self._report_halves(text)
            return text_of(text)
        noun = next((each for each in ("image", "audio", "video") if each in kind), kind)
        noun = shortened(" ".join(noun.split()), MAX_SHOWN)
        self._leave(noun or "content without a type", _ONLY_TEXT)
        return f"[{noun}]" if noun else ""

    # ------------------------------------------------------------ tools
    def _read_call(self, kind: str) -> None:
        item = {"name": kind.removesuffix("_call"), **self._given}
        self._call(item if item.get("name") else {**item, "name": kind.removesuffix("_call")})
        for name in ("output", "outputs", "results", "error"):
            if self._given.get(name):
                self._tool("", self._result(self._given[name]))
        if self._given.get("result") is not None:
            self._leave(f"the result of {shown(kind)}", _ONLY_TEXT)

    def _call(self, call: object) -> None:
        self._flush()
        known = mapping_in(call)
        if known is None:
            self._leave("a call of a tool", f"it is {type(call).__name__}")
            return
        inner = mapping_in(known.get("function")) or mapping_in(known.get("custom")) or known
        name = self._name_in(inner)
        given = next((inner[each] for each in _INPUTS if inner.get(each) is not None), "")
        text = json_of(given)
        if text is None:
            self._leave("what a tool was called with", _NO_JSON)
        self._tool(name, called(name, text or ""))

    def _result(self, content: object) -> str:
        if not isinstance(content, list | tuple):
            text = "" if content is None else json_of(content)
            if text is None:
                self._leave("the result of a tool", _NO_JSON)
            return text or ""
        texts = []
        for block in content:
            known = mapping_in({"text": block} if isinstance(block, str) else block)
            if known is None:
                self._leave(f"a result of type {type(block).__name__}", _ONLY_TEXT)
            else:
                texts.append(self._text(known, text_of(known.get("type"))))
        return _joined(texts)

    def _tool(self, name: str, content: str) -> None:
        if content.strip():
            self.messages.append(Message("tool", content, name, self._time))
        else:
            self._leave("the result of a tool", "it is empty")

    # ------------------------------------------------------------ the rest
    def _flush(self) -> None:
        text = _joined(self._texts)
        self._texts.clear()
        if text.strip():
            self.messages.append(Message(self._role, text, self._name, self._time))

    def _read_time(self) -> None:
        name = next((each for each in _TIMES if self._given.get(each) is not None), "")
        if name:
            self._time = time_in(self._given[name])
            if self._time is None:
                self._leave(f"its {name}", "it is not a time with a zone")

    def _name_in(self, given: Mapping[object, object]) -> str:
        name = given.get("name")
        text = " ".join(text_of(name).split())
        if len(text) > MAX_SHOWN or (name is not None and not isinstance(name, str)):
            self._leave("its name", f"it is {shown(name)}")
        return text[:MAX_SHOWN].strip()

    def _report_keys(self) -> None:
        known = {"role", "name", *_TEXTS, *_TIMES, *_ENVELOPE}
        unknown = [key for key, value in self._given.items() if key not in known and not _no(value)]
        for key in unknown:
            if key in _THOUGHTS:
                self._leave(str(key), "it is not part of the conversation")
        rest = sorted(shown(key) for key in unknown if key not in _THOUGHTS)
        if rest:
            self._leave(shortened(", ".join(rest), MAX_SHOWN), "unknown key")

    def _report_halves(self, text: str) -> None:
        if not text.isascii() and "\ufffd" in text_of(text) and "\ufffd" not in text:
            self._leave("half a character", "UTF-8 can't encode it")

    def _leave(self, what: str, why: str) -> None:
        self.left_out.append(SkippedContent(self._index, text_of(what), why))


def _role(text: str) -> str:
    return text.strip().lower()


def _listed(content: object) -> Sequence[object]:
    if content is None:
        return ()
    return content if isinstance(content, list | tuple) else (content,)


def _no(value: object) -> bool:
    return value is None or (isinstance(value, str | Sequence | Mapping) and not value)


def _joined(texts: Iterable[str]) -> str:
    """Join texts as paragraphs, except where a sentence continues, as cited texts do."""
    joined = ""
    for text in filter(None, texts):
        goes_on = joined[-1:].isspace() or text[:1].isspace() or text[:1] in _GOES_ON
        joined += text if not joined or goes_on else f"\n\n{text}"
    return joined
