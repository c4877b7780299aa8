"""What people write into the notes of their vault is understood as their editor shows it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import perdure
from perdure import Memory

Write = Callable[[str, str], None]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(vault: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    home = vault.parent / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[storage]\nbackend = "vault"\nlayout = "notes"\n[storage.vault]\npath = "{vault}"\n'
    )
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("USER", "ana")
    with perdure.open() as opened:
        yield opened


def write(vault: Path, name: str, text: str) -> None:
    path = vault / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def found(memory: Memory, query: str) -> list[str]:
    return [hit.uri.removeprefix("ctx://local/resources/") for hit in memory.recall(query).hits]


# ---------------------------------------------------------------- properties
@pytest.mark.parametrize("query", ["kohlrabi handbook", "turnip cabbage", "brassica"])
def test_recall_finds_a_note_by_its_properties(memory: Memory, vault: Path, query: str) -> None:
    lines = "title: Kohlrabi Handbook\naliases: [Turnip Cabbage]\ntags: [brassica]\n"
    write(vault, "n1.md", f"---\n{lines}---\n# Introduction\n\nSow it in spring.\n")

    hit = memory.recall(query).hits[0]

    assert (hit.uri, hit.title) == ("ctx://local/resources/n1", "Kohlrabi Handbook")


def test_a_note_of_properties_alone_is_found(memory: Memory, vault: Path) -> None:
    write(vault, "Dune.md", "---\nauthor: Frank Herbert\nrating: 5\n---\n")
    write(vault, "n2.md", '---\ntitle: "Chard"\naliases:\n  - "Chard"\n---\n')

    hit = memory.recall("herbert").hits[0]

    assert (hit.title, "author: Frank Herbert" in hit.snippet) == ("Dune", True)
    assert found(memory, "chard") == ["n2"]


def test_names_of_a_note_are_bounded_in_the_index(memory: Memory, vault: Path) -> None:
    aliases = "".join(f"  - alias{number:04}\n" for number in range(1_000))
    write(vault, "n3.md", f"---\naliases:\n{aliases}---\nKale.\n")

    assert found(memory, "alias0001") == ["n3"]
    assert found(memory, "alias0999") == []
