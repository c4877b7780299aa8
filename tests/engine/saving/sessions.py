"""Sessions for the tests of saving, and what they leave in a memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.app import Context, open_context
from perdure.engine.memory import Memory
from perdure.model import ContextNode, RequestContext, Uri

ANA = RequestContext("local", "ana")
MEMORIES = "ctx://local/users/ana/memories"
PROFILE = f"{MEMORIES}/profile"
TABS = f"{MEMORIES}/preference/tabs-over-spaces"
COFFEE = f"{MEMORIES}/preference/coffee"


@contextmanager
def remembering(home: Path) -> Iterator[Memory]:
    """Open the memory of a home, in which words are all that is compared."""
    with open_home(home) as context:
        yield context.memory.for_caller(ANA)


def open_home(home: Path) -> Context:
    return open_context({"HOME": str(home), "USER": "ana"})


def user_messages(
    *texts: str, day: str = "2026-01-05", name: str = "Ana"
) -> list[dict[str, object]]:
    """Return messages of a user, one after the other, on a day."""
    return [
        {"role": "user", "content": text, "name": name, "time": f"{day}T10:{minute:02}:00Z"}
        for minute, text in enumerate(texts)
    ]


def contents(context: Context) -> dict[str, str]:
    """Return what all memories of users and agents say, by their URIs."""
    return {uri: node.content for uri, node in nodes(context).items()}


def nodes(context: Context) -> dict[str, ContextNode]:
    reader = context.reader
    places = [
        place
        for owners in ("users", "agents")
        for place in reader.walk(Uri("local", (owners,)))
        if reader.is_active(place)
    ]
    return {str(place): reader.active(place).node for place in places}
