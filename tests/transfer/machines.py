"""Whole memories, and how to compare two of them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from perdure.app import Context, import_memory, open_context
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model import RequestContext, Role
from perdure.storage.locator import STORE_NOTE
from perdure.transfer.migrate import ArchiveReport
from tests.engine.remembering import ANA, BOB, of

ROOT = RequestContext("local", "ana", role=Role.ROOT)
ACME = RequestContext("acme", "eve", role=Role.ROOT)
QUESTIONS = ("tabs or spaces", "coffee", "quince", "what about the train")


class Machine:
    """A home, and where its texts are."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "USER": "ana"}
        self.texts = self.home / ".perdure" / "memory"
        if backend == "vault":
            self.texts = folder / "Notes"
            self.texts.mkdir()
            self.environ["MEMORY_VAULT_PATH"] = str(self.texts)

    @contextmanager
    def opened(self) -> Iterator[Context]:
        with open_context(self.environ, embedder=HashingEmbedder()) as context:
            yield context

    def import_folder(self, folder: Path) -> ArchiveReport:
        return import_memory(self.environ, folder)

    def files(self) -> dict[str, bytes]:
        return files_in(self.texts)

    @property
    def is_empty(self) -> bool:
        """Whether there is no text, and nothing that would be one when it is opened."""
        with self.opened() as context:
            return not self.files() and not context.recorded.history.position()


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files but the note that names the store, which is no text of a memory."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / STORE_NOTE.key
    }


def fill(context: Context) -> None:
    """Give two accounts memories in several versions, one put away, one moved, one gone."""
    memory = of(context, ROOT)
    for text in ("Prefers tabs.", "Prefers tabs over spaces.", "Prefers tabs, always."):
        memory.save(text, category="preference", slug="indentation")
    memory.save("Drinks coffee black.\r\nNever after noon.", category="preference", slug="coffee")
    gone = memory.save("Takes the night train.", category="event", slug="gone")
    memory.forget(gone)
    removed = memory.save("An old plan.", category="event", slug="plan")
    context.nodes.delete_node(removed, ROOT)
    moved = memory.save("A quince.", category="event", slug="fruit")
    context.nodes.move_node(moved, moved.replace("fruit", "quince"), ROOT)
    of(context, BOB).save("Bob likes soup.", category="preference", slug="soup")
    talk = [{"role": "user", "content": "I prefer trains over planes.", "name": "Ana"}]
    of(context, ANA).commit_session(talk, session_id="s1")
    talk = [{"role": "user", "content": "My soup is cold."}]
    of(context, BOB).commit_session(talk, session_id="s2", extract=False)
    of(context, ACME).save("Acme keeps a quince.", category="profile")


def versions(context: Context) -> list[tuple[object, ...]]:
    """Return every version of every text, with its content."""
    history = context.recorded.history
    return [
        (
            event.key,
            event.position,
            event.commit,
            event.time,
            event.cid,
            event.circumstances,
            None if event.cid is None else history.store.get(event.cid),
        )
        for event in history.changes()
    ]


def answers(context: Context) -> Mapping[str, object]:
    """Return what is recalled, now and as of each commit, by two people."""
    history = context.recorded.history
    found: dict[str, object] = {}
    for who in (ROOT, BOB, ACME):
        for question in QUESTIONS:
            hits = of(context, who).recall(question).hits
            found[f"{who.user_id}: {question}"] = [(h.uri, h.cid, h.snippet, h.score) for h in hits]
    half = history.store.last_commit(history.store.current()).position // 2
    past = of(context, ROOT).recall("tabs", at=history.store.last_commit((0, half))).hits  # type: ignore[arg-type] # it is a state
    found["past"] = [(h.uri, h.cid) for h in past]
    return found


def manifest(folder: Path) -> dict[str, object]:
    manifest: dict[str, object] = json.loads((folder / "perdure.json").read_text())
    return manifest
