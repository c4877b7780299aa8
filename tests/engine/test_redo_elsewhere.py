"""A redo writes into the store that it belongs to, never into an empty mount point."""

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from perdure.app import Context, identity, open_context
from perdure.errors import NodeNotFoundError, PerdureError
from perdure.storage.device_local import FolderBackend
from tests.engine.killing import killed

NEVER = 1_000_000


class Place:
    """A memory of which a commit is in the log, and its file is not written."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.environ = {"HOME": str(folder / "home"), "USER": "ana"}
        self.aside = folder / "aside"
        if backend == "vault":
            (folder / "vault").mkdir()
            (folder / "vault" / "mine.md").write_text("# mine\n", encoding="utf-8")
            self.environ |= {"MEMORY_BACKEND": "vault", "MEMORY_VAULT_PATH": str(folder / "vault")}
        with self.open() as context:
            context.memory.save("First thing.", category="event", slug="one")
            self.root = Path(context.recorded.inner.whereabouts)

    def open(self) -> Context:
        return open_context(self.environ, embedder=None)

    def kill_a_writer(self) -> None:
        """Let another process die between the log and the files."""

        def die(*_: object, **__: object) -> None:
            os._exit(9)

        def save() -> None:
            FolderBackend.write_unsynced = FolderBackend.write_all = die  # type: ignore[method-assign]
            with self.open() as context:
                context.memory.save("Second thing.", category="event", slug="two")

        killed(save, NEVER)

    def unmount(self, instead: str) -> None:
        self.root.rename(self.aside)
        if instead != "nothing":
            self.root.mkdir()
        if instead == "another":
            (self.root / "other.md").write_text("# other\n", encoding="utf-8")

    def mount(self) -> list[str]:
        """Put it back; return what is there of each memory."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.aside.rename(self.root)
        with self.open() as context:
            return [_text(context, slug) for slug in ("one", "two")]


def _text(context: Context, slug: str) -> str:
    try:
        return context.memory.read(f"event/{slug}").content
    except NodeNotFoundError:
        return "gone"


VERBS: tuple[Callable[[Context], object], ...] = (
    lambda context: context.memory.recall("thing"),
    lambda context: context.memory.save("Third thing.", category="event", slug="three"),
    lambda context: context.memory.repair(),
)


@pytest.fixture(params=["device-local", "vault"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


def check(place: Place, instead: str, *, is_open: bool) -> None:
    context = place.open() if is_open else None
    place.kill_a_writer()
    place.unmount(instead)
    before = sorted(place.root.rglob("*"))
    for verb in VERBS:
        with pytest.raises(PerdureError, match="Fix:"), ExitStack() as stack:
            verb(context or stack.enter_context(place.open()))
    assert sorted(place.root.rglob("*")) == before
    if context is not None:
        context.close()
    assert place.mount() == ["First thing.", "Second thing."]


@pytest.mark.parametrize("instead", ["nothing", "empty", "another"])
@pytest.mark.parametrize("is_open", [False, True])
def test_nothing_is_written_or_recorded_until_the_store_is_back(
    place: Place, instead: str, *, is_open: bool
) -> None:
    check(place, instead, is_open=is_open)


@pytest.mark.search
def test_who_does_not_look_where_it_is_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seeded bug: redo into an empty mount point."""
    monkeypatch.setattr(FolderBackend, "_check_root", lambda _: None)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(Place(tmp_path, "device-local"), "empty", is_open=True)


@pytest.mark.search
def test_who_confirms_no_identity_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bug, in a process that opens the store."""
    monkeypatch.setattr(identity.Store, "confirmed", lambda self: self)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(Place(tmp_path, "device-local"), "empty", is_open=False)
