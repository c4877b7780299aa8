"""What an agent sends to a hook."""

import json
import os
from collections.abc import Mapping

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError

MOST_BYTES = 4 * 1024 * 1024
_AT_ONCE = 65536


@dataclass(frozen=True, slots=True)
class HookInput:
    """What an agent sends to a hook; whatever is missing, or of another kind, is empty."""

    session_id: str = ""
    transcript: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    """Why a session starts: startup, resume, clear, compact."""
    tool: str = ""
    """The tool that is called, by the agent's own name for it."""
    tool_input: Mapping[str, object] = field(default_factory=dict)
    subagent: str = ""
    """The id of the subagent that calls; empty for the agent itself."""
    raw: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def event(self) -> str:
        return _text(self.raw, "hook_event_name")

    @classmethod
    def parse(cls, data: bytes) -> "HookInput":
        """Read what was sent; `InvalidValueError` if it is not a JSON object."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidValueError(
                f"a hook was given {len(data):,} bytes that are not JSON. Fix: let the agent call."
            ) from error
        if not isinstance(found, dict):
            raise InvalidValueError(
                f"a hook was given a JSON {type(found).__name__}. Fix: give it an object."
            )
        asked = found.get("tool_input")
        return cls(
            session_id=_text(found, "session_id", "conversation_id"),
            transcript=_text(found, "transcript_path"),
            cwd=_text(found, "cwd") or _first(found.get("workspace_roots")),
            prompt=_text(found, "prompt"),
            source=_text(found, "source"),
            tool=_text(found, "tool_name"),
            tool_input=asked if isinstance(asked, dict) else {},
            subagent=_text(found, "agent_id"),
            raw=found,
        )


def read_all(descriptor: int) -> bytes:
    """Return all that is sent; from a terminal, nothing. Too much is `InvalidValueError`."""
    if os.isatty(descriptor):
        return b"{}"
    parts: list[bytes] = []
    size = 0
    while data := os.read(descriptor, _AT_ONCE):
        parts.append(data)
        size += len(data)
        if size > MOST_BYTES:
            raise InvalidValueError(
                f"a hook was given more than {MOST_BYTES:,} bytes. Fix: let the agent call it."
            )
    return b"".join(parts)


def _text(found: Mapping[str, object], *names: str) -> str:
    values = (found.get(name) for name in names)
    return next((each for each in values if isinstance(each, str) and each), "")


def _first(values: object) -> str:
    if isinstance(values, list) and values and isinstance(values[0], str):
        return values[0]
    return ""
