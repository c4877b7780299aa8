"""Until Perdure is published, whatever says how to install it names a checkout."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("src", "docs", "examples", "skills", "hooks", ".claude-plugin")
PAGES = sorted(
    path
    for path in (
        *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.*")),
    )
    if path.suffix in {".py", ".md", ".json", ".toml", ".sh"}
)
INSTALLER = re.compile(
    r"(?:pip|pipx|uv pip|uv tool)\s+install[ \t]+(?P<what>[^\n`]*)|uvx (?P<x>\S+)"
)
FROM_A_CHECKOUT = re.compile(r"(?:-\S+ )*(?:\.(?=$|[\s,;)])|'\.\[[a-z0-9,{}'.()]+\]')")


def unpublished(text: str) -> list[str]:
    """Return the installs in a text that would take the package from an index."""
    return [
        match.group()
        for match in INSTALLER.finditer(text)
        if "perdure" in match.group() or not FROM_A_CHECKOUT.match(match["what"] or "")
    ]


def test_every_install_names_a_checkout() -> None:
    found = {page: unpublished(page.read_text(encoding="utf-8")) for page in PAGES}
    assert {page: installs for page, installs in found.items() if installs} == {}


@pytest.mark.parametrize(
    "text",
    [
        "pip install perdure",
        "Fix: pip install 'perdure[mcp]'.",
        "pipx install perdure",
        "uvx perdure mcp",
        "pip install --user perdure[watch]",
        "pip install mcp",
    ],
)
def test_an_install_from_an_index_is_found(text: str) -> None:
    assert unpublished(text) != []


@pytest.mark.parametrize("text", ["$ pip install .", "Fix: pip install '.[mcp]' from a checkout."])
def test_an_install_from_a_checkout_passes(text: str) -> None:
    assert unpublished(text) == []
