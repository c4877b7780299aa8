"""The one memory of a server, opened when it is first asked for."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from perdure.app import Context, open_context
from perdure.engine.memory import Memory
from perdure.errors import ClosedError
from perdure.model import RequestContext, Role
from perdure.surfaces.nodes.opening import Caller, request_for
from perdure.surfaces.telling import mention


class Opened:
    """Opens memory for the first who asks; one that can't be opened is tried again by the next.

    Many threads may ask at once.
    """

    def __init__(self, environ: Mapping[str, str], caller: Caller) -> None:
        self.environ = environ
        self._caller = caller
        self._lock = threading.Lock()
        self._context: Context | None = None
        self._is_closed = False

    def context(self) -> Context:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the server is ending. Fix: start it again.")
            if self._context is None:
                self._context = _ready(open_context(self.environ))
            return self._context

    def memory(self) -> Memory:
        return self.context().memory.for_caller(self.request)

    @property
    def request(self) -> RequestContext:
        """Who asks: the user of this machine, who reaches their own, or whoever was named."""
        named = request_for(self._caller, self.environ)
        return named if self._caller["as_role"] else replace(named, role=Role.MEMBER)

    def close(self) -> None:
        with self._lock:
            context, self._context, self._is_closed = self._context, None, True
        if context is not None:
            said = context.warnings()
            context.close()
            if said:
                mention(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ready(context: Context) -> Context:
    """Make the parts that threads would otherwise make at the same time."""
    try:
        _ = context.memory, context.relations
    except BaseException:
        context.close()
        raise
    return context
