"""`Memory` for asyncio. Each verb calls that of `Memory` in a thread; none is written twice.

Type checkers read `async_memory.pyi`, which `make stubs` writes from the signatures of `Memory`.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from typing import Any, Self

from perdure.engine.memory import Memory, PastMemory
from perdure.errors import ClosedError
from perdure.model import RequestContext

_END = object()


class AsyncMirror:
    """An object with the public methods of another one, to be awaited."""

    def __init__(self, inner: object) -> None:
        self._mirrored = inner

    @property
    def _inner(self) -> Any:  # noqa: ANN401 - any class can be mirrored
        return self._mirrored

    def _wrapped(self, value: object) -> object:
        """Return the mirror of a memory; any other value is returned as it is."""
        if isinstance(value, Memory):
            return AsyncMemory(value)
        if isinstance(value, PastMemory):
            return AsyncPastMemory(value)
        return value


def _awaited(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    async def call(self: AsyncMirror, *args: object, **kwargs: object) -> object:
        return self._wrapped(await asyncio.to_thread(verb, self._inner, *args, **kwargs))

    return call


def _iterated(verb: Callable[..., Iterator[object]]) -> Callable[..., Any]:
    @wraps(verb)
    async def call(self: AsyncMirror, *args: object, **kwargs: object) -> AsyncIterator[object]:
        found = await asyncio.to_thread(verb, self._inner, *args, **kwargs)
        while (value := await asyncio.to_thread(next, found, _END)) is not _END:
            yield value

    return call


def _group(read: property) -> property:
    def found(self: AsyncMirror) -> object:
        value = getattr(self._inner, str(read.fget.__name__)) if read.fget else None
        has_verbs = type(value).__module__.startswith("perdure.engine")
        return mirror_of(type(value))(value) if has_verbs else value

    return property(found, doc=read.__doc__)


def _mirror(source: type) -> Callable[[type], type]:
    """Add the public methods and properties of `source` that a class does not define itself."""

    def add(mirror: type) -> type:
        for name, member in inspect.getmembers(source):
            if name.startswith("_") or name in vars(mirror):
                continue
            if isinstance(member, property):
                setattr(mirror, name, _group(member))
            elif inspect.isfunction(member):
                is_iterator = str(member.__annotations__.get("return")).startswith("Iterator")
                setattr(mirror, name, _iterated(member) if is_iterator else _awaited(member))
        return mirror

    return add


_MIRRORS: dict[type, type] = {}


def mirror_of(source: type) -> type:
    if source not in _MIRRORS:
        _MIRRORS[source] = _mirror(source)(type(f"Async{source.__name__}", (AsyncMirror,), {}))
    return _MIRRORS[source]


@_mirror(PastMemory)
class AsyncPastMemory(AsyncMirror):
    """A memory as of a state, for asyncio."""


@_mirror(Memory)
class AsyncMemory(AsyncMirror):
    """A memory opened for one caller, for asyncio: the verbs of `Memory`, each to be awaited.

    Use it in an `async with`, which opens and closes it in a thread. Many tasks may use it at once.
    A task that is cancelled stops waiting, but the verb that it called is finished.
    """

    def __init__(self, memory: Memory | Callable[[], Memory]) -> None:
        super().__init__(memory if isinstance(memory, Memory) else None)
        self._opening = memory

    @property
    def _inner(self) -> Memory:
        if not isinstance(self._mirrored, Memory):
            raise ClosedError("this memory is not open. Fix: use it in an `async with`.")
        return self._mirrored

    @property
    def caller(self) -> RequestContext:
        return self._inner.caller

    async def __aenter__(self) -> Self:
        if not isinstance(self._opening, Memory):
            self._mirrored = await asyncio.to_thread(self._opening)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._inner.close)
