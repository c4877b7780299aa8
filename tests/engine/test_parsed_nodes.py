"""A node that was parsed before is parsed again if anything changed, and shown to no one else.

Each rule is a function that a healthy memory passes and that finds the broken one beside it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.context import reader
from perdure.context.node_files import Meta
from perdure.context.reader import NodeReader, NoteTexts, StoredNode
from perdure.model import RequestContext, Uri
from perdure.storage import Locator
from tests.engine.remembering import ANA, BOB, EVE, of, opened

URI = "ctx://local/users/ana/memories/preference/drink"
TEA, MILK = "Drinks tea with a lemon.", "Drinks tea with a melon."
Rule = Callable[[Context, Path], None]
Broken = Callable[[pytest.MonkeyPatch], None]
_OTHER = """
import sys
from perdure.app import open_context
with open_context({"HOME": sys.argv[1], "USER": "ana"}) as context:
    context.memory."""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=False) as context:
        of(context).save(TEA, category="preference", slug="drink")
        assert snippets(context) == snippets(context) == [TEA]
        yield context


def snippets(
    context: Context, caller: RequestContext = ANA, *, at: IndexState | None = None
) -> object:
    return [hit.snippet for hit in of(context, caller).recall("lemon melon tea", at=at).hits]


def read(context: Context, caller: RequestContext = ANA) -> str | None:
    """Return what the reader of recalls shows, without an index in between."""
    stored = context.indexes.current("local").sources.reader.visible_nodes([URI], caller)[URI]
    return None if stored is None else stored.node.content.strip()


def elsewhere(home: Path, call: str) -> None:
    """Call a verb in another process."""
    subprocess.run([sys.executable, "-c", _OTHER + call, str(home)], check=True)


# ---------------------------------------------------------------- the rules
def an_edit_with_the_same_size_and_time_is_seen(context: Context, home: Path) -> None:
    (file,) = (home / ".perdure" / "memory").rglob("Drink*.md")
    before = file.stat()
    file.write_text(file.read_text().replace(TEA, MILK))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert read(context) == MILK
    assert snippets(context) == [MILK]


def what_another_process_archives_is_gone(context: Context, home: Path) -> None:
    elsewhere(home, f"archive({URI!r})")

    assert read(context) is None
    assert snippets(context) == []


def what_another_process_erases_is_gone(context: Context, home: Path) -> None:
    elsewhere(home, f"forget({URI!r}, erase=True)")

    assert read(context) is None
    assert snippets(context) == []


def what_another_process_saves_is_seen(context: Context, home: Path) -> None:
    then = IndexState(0, context.recorded.history.position())
    elsewhere(home, f"write({URI!r}, {MILK!r}, replace=True)")

    assert read(context) == MILK
    assert snippets(context) == [MILK]
    assert snippets(context, at=then) == [TEA]
    assert read(context) == MILK


def other_tenants_see_nothing(context: Context, _home: Path) -> None:
    assert read(context) == TEA
    for other in (BOB, EVE):
        assert read(context, other) is None
        assert snippets(context, other) == []


# ---------------------------------------------------------------- who breaks them
def keeps_what_it_parsed(patch: pytest.MonkeyPatch) -> None:
    """Trust a place, whatever its file says."""
    loaded = NodeReader._loaded

    def known(self: NodeReader, place: Uri, files: NoteTexts) -> StoredNode | None:
        parsed = self._parsed.get(place.key)
        return parsed[1] if parsed else loaded(self, place, files)

    patch.setattr(NodeReader, "_loaded", known)


def compares_sizes(patch: pytest.MonkeyPatch) -> None:
    """Trust a file of the same length at the same path."""
    loaded = NodeReader._loaded

    def known(self: NodeReader, place: Uri, files: NoteTexts) -> StoredNode | None:
        parsed, now = self._parsed.get(place.key), files.get(place.key)
        same = parsed is not None and now is not None and [*map(len, parsed[0])] == [*map(len, now)]  # type: ignore[arg-type,call-overload] # of two texts
        return parsed[1] if parsed and same else loaded(self, place, files)

    patch.setattr(NodeReader, "_loaded", known)


def asks_nobody_who_it_is(patch: pytest.MonkeyPatch) -> None:
    """Show what was parsed to whoever asks."""
    visible = NodeReader.visible_nodes

    def shown(
        self: NodeReader, uris: list[str], ctx: RequestContext
    ) -> dict[str, StoredNode | None]:
        parsed = {uri: self._parsed.get(Uri.parse(uri).key) for uri in uris}
        return visible(self, uris, ctx) | {uri: each[1] for uri, each in parsed.items() if each}

    patch.setattr(NodeReader, "visible_nodes", shown)


RULES: dict[Rule, Broken] = {
    an_edit_with_the_same_size_and_time_is_seen: compares_sizes,
    what_another_process_archives_is_gone: keeps_what_it_parsed,
    what_another_process_erases_is_gone: keeps_what_it_parsed,
    what_another_process_saves_is_seen: keeps_what_it_parsed,
    other_tenants_see_nothing: asks_nobody_who_it_is,
}


@pytest.mark.parametrize("rule", RULES)
def test_a_parsed_node_is_never_shown_for_another(
    context: Context, tmp_path: Path, rule: Rule
) -> None:
    rule(context, tmp_path)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_finds_who_breaks_it(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: Rule
) -> None:
    RULES[rule](monkeypatch)

    with pytest.raises(AssertionError):
        rule(context, tmp_path)


# ---------------------------------------------------------------- what it is for
def test_what_did_not_change_is_read_once_and_not_parsed(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    opened_files: list[str] = []
    time.sleep(0.1)  # a file that is as young as a tick of the clock is read again
    snippets(context)
    inner = context.recorded.inner.inner  # type: ignore[attr-defined] # the folder below the layout
    healthy = inner.read
    monkeypatch.setattr(Meta, "parse", parsed.append)

    def counted(at: Locator) -> str:
        opened_files.append(at.key)
        text: str = healthy(at)
        return text

    monkeypatch.setattr(inner, "read", counted)

    assert snippets(context) == [TEA]
    assert not parsed
    assert len(opened_files) == 1


def test_no_more_parsed_nodes_are_retained_than_fit(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MAX_PARSED", 3)
    for number in range(6):
        of(context).save(f"Tea number {number}.", category="event", slug=f"n{number}")

    assert len(snippets(context)) == 7  # type: ignore[arg-type] # a list
    assert len(context.indexes.current("local").sources.reader._parsed) == 3
