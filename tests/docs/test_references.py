"""What the documentation points at is there."""

import re
import tomllib
from pathlib import Path

import pytest

from perdure import storage
from tests.docs.blocks import REPOSITORY
from tests.docs.mcp_tables import written
from tests.docs.test_code_blocks import DOCUMENTS, shown

DECISIONS = sorted((REPOSITORY / "docs" / "decisions").glob("[0-9]*.md"))
SECTIONS = ["Context", "Choice", "Alternatives refused", "What would reopen it"]
SHORT = {
    REPOSITORY / "README.md": 150,
    REPOSITORY / "docs" / "ARCHITECTURE.md": 200,
    **dict.fromkeys(DECISIONS, 60),
}
"""The most lines that a document may have, so that people read it."""
AVOIDED = re.compile(r"\b(?:said|told|somebody|whoever|anew|otherwise)\b", re.IGNORECASE)


def text_of(document: Path) -> str:
    """Return the prose of a document, without its fenced blocks."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


def avoided_words(document: Path) -> list[str]:
    """Return the words of the prose that the manuals of SQLite or Django would not use."""
    prose = re.sub(r"`[^`\n]*`", "", text_of(document).replace(written(), ""))
    return AVOIDED.findall(prose)


def headings(document: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", text_of(document), re.MULTILINE)


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def broken_links(document: Path) -> list[str]:
    links = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text_of(document))
    return [link for link in links if "://" not in link and not leads_somewhere(document, link)]


def leads_somewhere(document: Path, link: str) -> bool:
    path, _, place = link.partition("#")
    target = document.parent / path if path else document
    return target.exists() and (not place or place in map(anchor, headings(target)))


def missing_files(document: Path) -> list[str]:
    """Return what is named like a file of this repository, or a test in one, and isn't there."""
    named = re.findall(
        r"`((?:src|tests|docs|requirements|benchmarks|examples)/[\w/.-]*)(?:::(\w+))?`",
        text_of(document),
    )
    return [f"{path}::{test}" for path, test in named if not is_there(REPOSITORY / path, test)]


def is_there(path: Path, test: str) -> bool:
    if not test:
        return path.exists()
    return path.is_file() and f"def {test}(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_links_lead_somewhere(document: Path) -> None:
    assert broken_links(document) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_files_and_tests_that_are_named_are_there(document: Path) -> None:
    assert missing_files(document) == []


def test_a_link_or_name_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading, with `code`\n[a](#a-heading-with-code) [b](#nowhere) [c](page.md)\n"
        "[d](gone.md) [e\nf](page.md#gone) `tests/docs/blocks.py` `tests/gone.py`\n"
        "`tests/docs/blocks.py::documentation` `tests/docs/blocks.py::gone`\n",
        encoding="utf-8",
    )

    assert broken_links(page) == ["#nowhere", "gone.md", "page.md#gone"]
    assert missing_files(page) == ["tests/gone.py::", "tests/docs/blocks.py::gone"]


def test_the_reference_names_everything_that_storage_offers() -> None:
    reference = (REPOSITORY / "docs" / "reference" / "storage.md").read_text(encoding="utf-8")

    assert [name for name in storage.__all__ if not re.search(rf"\b{name}\b", reference)] == []


def test_the_architecture_draws_the_layers_that_are_checked() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (REPOSITORY / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(
        r"^## The layers\n.*?^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )

    assert [line.split("  ")[0].strip() for line in drawn.splitlines()] == layers


def test_every_decision_is_in_the_index_under_its_number() -> None:
    index = (REPOSITORY / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| \[(\d{4})\]\((.+)\)", index, re.MULTILINE) == [
        (path.name[:4], path.name) for path in DECISIONS
    ]


@pytest.mark.parametrize("decision", DECISIONS, ids=shown)
def test_a_decision_says_why_and_what_would_reopen_it(decision: Path) -> None:
    title, *sections = headings(decision)

    assert title.startswith(f"{decision.name[:4]} ")
    assert sections == SECTIONS


@pytest.mark.parametrize("document", SHORT, ids=shown)
def test_a_document_stays_short(document: Path) -> None:
    assert len(document.read_text(encoding="utf-8").splitlines()) <= SHORT[document]


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_prose_uses_plain_words(document: Path) -> None:
    assert avoided_words(document) == []


def test_an_avoided_word_in_prose_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Somebody said `told`.\n```text\ntold\n```\n", encoding="utf-8")

    assert avoided_words(page) == ["Somebody", "said"]
