"""What a user writes, with the types that a checker must infer. It is checked, never run."""

from typing import assert_type

import perdure
from perdure import (
    AsyncMemory,
    Entry,
    Hint,
    Hit,
    Memory,
    NodeNotFoundError,
    PastMemory,
    PerdureError,
    RecallResult,
    SaveResult,
    SessionCommit,
)
from perdure.model import ContextNode


def use(messages: list[dict[str, object]]) -> None:
    with perdure.open(user="ana", project=".") as memory:
        assert_type(memory, Memory)
        uri = memory.save("Prefers tabs.", category="preference", slug="indentation")
        assert_type(uri, SaveResult)
        done = memory.commit_session(messages, session_id="a", extract=True)
        assert_type(done, SessionCommit)
        assert_type(memory.append("a", messages), SessionCommit)
        result = memory.recall("which indentation?", top_k=10, budget_tokens=2000, at=None)
        assert_type(result, RecallResult)
        assert_type(result.hits, tuple[Hit, ...])
        assert_type(result.hints, tuple[Hint, ...])
        assert_type(result.index_lag, int)
        assert_type(memory.list(), tuple[Entry, ...])
        assert_type(memory.read(uri), ContextNode)
        assert_type(memory.at("2026-03-01"), PastMemory)
        assert_type(memory.for_caller(user="bob"), Memory)
        memory.recall("x", top_k="ten")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


async def use_async() -> None:
    async with perdure.open_async(user="ana") as memory:
        assert_type(memory, AsyncMemory)
        assert_type(await memory.save("x", category="note"), SaveResult)
        assert_type(await memory.recall("x"), RecallResult)
        assert_type(await memory.list(), tuple[Entry, ...])
        assert_type(await memory.for_caller(user="bob"), AsyncMemory)


def refusals(memory: Memory) -> str:
    try:
        return memory.read("preference/nothing").content
    except NodeNotFoundError as error:
        assert_type(error, NodeNotFoundError)
        return str(error)
    except (PerdureError, FileNotFoundError):
        return ""
