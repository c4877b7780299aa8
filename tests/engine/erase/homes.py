"""Homes with something in them that is to be erased, and how to look for what is left."""

from collections.abc import Iterable
from pathlib import Path

from perdure.app import Context
from perdure.app.open import signing_key_for
from perdure.artifacts import IndexState
from perdure.engine.emissions import EmissionRecord, append_emission
from perdure.engine.memory import Memory
from perdure.engine.receipt import ErasureReceipt, differences
from perdure.engine.uses import count_uses, emitted
from perdure.model import RequestContext, Role
from tests.engine.remembering import of

ROOT = RequestContext("local", "ana", role=Role.ROOT)
SECRET = "Xylophones vex the jumbled wizard. The kumquat hides under the veranda."  # noqa: S105 - no password
WORDS = ("ylophone", "jumbled", "wizard", "kumquat", "veranda")
"""They are in no other text, and in no name."""
FOLDER = "ctx://local/users/ana/memories/preference"
ODD = f"{FOLDER}/odd"


def leaks(home: Path, words: Iterable[str] = WORDS) -> dict[str, list[str]]:
    """Return the files below a home in which a word is found, as it is or in small letters."""
    wanted = {word: (word.encode(), word.lower().encode()) for word in words}
    found: dict[str, list[str]] = {}
    for path in sorted(home.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        held = [word for word, forms in wanted.items() if any(form in data for form in forms)]
        if held:
            found[str(path.relative_to(home))] = held
    return found


def root(context: Context) -> Memory:
    return of(context, ROOT)


def save_secret(context: Context) -> str:
    """Save it, in several versions, among others; ask for it, now and as of then."""
    memory = root(context)
    memory.save("Prefers tabs over spaces.", category="preference", slug="indentation")
    memory.save("Drinks coffee black.", category="preference", slug="coffee")
    uri = memory.save(SECRET, category="preference", slug="odd")
    memory.save(f"{SECRET} Twice.", category="preference", slug="odd")
    assert [hit.uri for hit in memory.recall("kumquat wizard").hits] == [uri]
    memory.recall("kumquat wizard", at=now(context))
    show(memory)
    return uri


def show(memory: Memory) -> None:
    """Show an agent all that a briefing has, log it and count it, as hooks do."""
    items = tuple(map(emitted, memory.briefing(budget_tokens=2_000).items))
    record = EmissionRecord(
        "claude-code",
        "s",
        "session-start",
        f"names {WORDS[0]}",
        1,
        1,
        items,
        "local",
        "ana",
        position=memory.position,
    )
    append_emission(memory.home, record)
    count_uses(memory.home, "s", items, items[:1])


def now(context: Context) -> IndexState:
    return IndexState(0, context.recorded.history.position())


def receipts(home: Path) -> list[Path]:
    return sorted(home.rglob("receipts/*.json"))


def check_receipt(context: Context, path: Path) -> list[str]:
    """Return what is otherwise than a receipt says; it must be signed."""
    key = signing_key_for(context.config).public
    facts = ErasureReceipt.from_text(path.read_text()).verify(key)
    return list(differences(facts, context.recorded.history, key))
