"""Where the files are that agents load by themselves, and what is not read of them."""

import os
from pathlib import Path

import pytest

from perdure.agents.instruction_files import MOST_BYTES, MOST_FILES, instruction_files


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def repository(home: Path) -> Path:
    folder = home / "work" / "harbour"
    (folder / ".git").mkdir(parents=True)
    return folder


def put(path: Path, text: str = "Use tabs.\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(home: Path, folder: Path, agent: str = "") -> list[str]:
    return [each.name for each in instruction_files(str(folder), agent, {"HOME": str(home)})]


@pytest.mark.parametrize(
    "name",
    [
        *("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md", "AGENTS.override.md"),
        *("GEMINI.md", ".cursorrules", ".github/copilot-instructions.md"),
        *(".claude/rules/a.md", ".claude/rules/api/b.md", ".cursor/rules/c.mdc"),
    ],
)
def test_a_file_is_known_in_its_folder_and_below_it(
    home: Path, repository: Path, name: str
) -> None:
    put(repository / name)
    below = repository / "src" / "app"
    below.mkdir(parents=True)

    assert names(home, repository) == [name]
    assert names(home, below) == [f"../../{name}"]


def test_what_is_above_the_repository_is_not_read(home: Path, repository: Path) -> None:
    put(repository.parent / "CLAUDE.md")

    assert names(home, repository) == []


def test_without_a_repository_only_the_folder_is_read(home: Path) -> None:
    put(home / "notes" / "CLAUDE.md")
    below = home / "notes" / "below"
    below.mkdir()

    assert names(home, below) == []


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-code", ".claude/CLAUDE.md"),
        ("claude-code", ".claude/rules/a.md"),
        ("codex", ".codex/AGENTS.md"),
        ("codex", ".codex/memories/memory_summary.md"),
        ("gemini-cli", ".gemini/GEMINI.md"),
    ],
)
def test_an_agent_knows_its_own_user_files_only(
    home: Path, repository: Path, agent: str, name: str
) -> None:
    put(home / name)

    assert names(home, repository, agent) == [f"~/{name}"]
    assert names(home, repository, "cursor") == []
    assert names(home, repository) == [f"~/{name}"]


def test_the_memory_of_claude_code_is_that_of_the_main_working_tree(
    home: Path, repository: Path
) -> None:
    slug = "".join(each if each.isascii() and each.isalnum() else "-" for each in str(repository))
    memory = put(home / ".claude" / "projects" / slug / "memory" / "MEMORY.md", "Use tabs.\n" * 300)
    worktree = home / "work" / "other"
    own = repository / ".git" / "worktrees" / "other"
    put(own / "commondir", "../..\n")
    put(worktree / ".git", f"gitdir: {own}\n")

    (file,) = instruction_files(str(worktree), "claude-code", {"HOME": str(home)})
    assert file.name == f"~/{memory.relative_to(home)}"
    assert file.text.count("Use tabs.") == 200


def test_the_memory_of_a_long_path_is_found_by_how_its_name_begins(home: Path) -> None:
    folder = home / ("a" * 120) / ("b" * 120)
    (folder / ".git").mkdir(parents=True)
    slug = str(folder).replace("/", "-").replace("_", "-")[:200]
    put(home / ".claude" / "projects" / f"{slug}-biclsr" / "memory" / "MEMORY.md")
    found = names(home, folder, "claude-code")

    assert len(found) == 1
    put(home / ".claude" / "projects" / f"{slug}-another" / "memory" / "MEMORY.md")
    assert names(home, folder, "claude-code") == []


# ---------------------------------------------------------------- what they say
def test_imports_are_read_one_level_deep_inside_the_repository(
    home: Path, repository: Path
) -> None:
    put(home / "secret.md")
    put(repository / "deep.md")
    put(repository / "docs" / "style.md", "See @../deep.md\n")
    put(
        repository / "CLAUDE.md", "See @docs/style.md, @../../secret.md, `@deep.md`, @~/secret.md\n"
    )

    assert names(home, repository) == ["CLAUDE.md", "docs/style.md"]


def test_frontmatter_is_blank_and_its_globs_are_known(home: Path, repository: Path) -> None:
    put(
        repository / ".cursor/rules/a.mdc",
        "---\ndescription: x\nglobs: src/**/*.ts,*.{js,jsx}\nalwaysApply: no\n---\nUse tabs.\n",
    )
    put(repository / ".claude/rules/b.md", '---\npaths:\n  - "api/**"\n  - lib/*\n---\nUse tabs.\n')
    rule, scoped = instruction_files(str(repository), "", {"HOME": str(home)})

    assert {rule.globs, scoped.globs} == {("src/**/*.ts", "*.{js,jsx}"), ("api/**", "lib/*")}
    assert rule.text.split("\n").index("Use tabs.") == 5
    assert scoped.text.strip() == "Use tabs."


# ---------------------------------------------------------------- hostile repositories
def test_a_link_is_read_once_and_only_inside_the_repository(home: Path, repository: Path) -> None:
    put(repository / "AGENTS.md")
    (repository / "CLAUDE.md").symlink_to("AGENTS.md")
    (repository / "GEMINI.md").symlink_to(put(home / ".ssh" / "id"))
    (repository / ".cursorrules").symlink_to(".cursorrules")

    assert names(home, repository) == ["CLAUDE.md"]


def test_linked_folders_and_circles_of_links_are_passed_over(home: Path, repository: Path) -> None:
    rules = repository / ".claude" / "rules"
    put(rules / "a.md")
    (rules / "again").symlink_to(rules)
    (rules / "out").symlink_to(home)

    assert names(home, repository) == [".claude/rules/a.md"]


def test_what_is_not_a_plain_text_file_is_ignored(home: Path, repository: Path) -> None:
    os.mkfifo(repository / "CLAUDE.md")
    (repository / "AGENTS.md").write_bytes(b"Use\0tabs.")
    put(repository / "GEMINI.md", "x" * (MOST_BYTES + 1))
    (repository / ".cursorrules").mkdir()
    (repository / "CLAUDE.local.md").symlink_to("/dev/zero")

    assert names(home, repository) == []


def test_many_rule_files_are_read_in_bounds(home: Path, repository: Path) -> None:
    rules = repository / ".claude" / "rules"
    rules.mkdir(parents=True)
    for number in range(10_000):
        (rules / f"{number:05}.md").touch()
    put(rules / "00000.md")
    put(repository / "CLAUDE.md")
    found = names(home, repository)

    assert len(found) == MOST_FILES
    assert found[:2] == ["CLAUDE.md", ".claude/rules/00000.md"]


def test_no_more_bytes_are_read_than_the_bound(home: Path, repository: Path) -> None:
    for number in range(5):
        put(repository / ".claude" / "rules" / f"{number}.md", "x" * (MOST_BYTES // 3))
    found = instruction_files(str(repository), "", {"HOME": str(home)})

    assert sum(len(each.text) for each in found) <= MOST_BYTES


@pytest.mark.parametrize("cwd", ["", "relative", "/no/such/folder", "/nul\0"])
def test_a_folder_that_is_not_there_has_no_files(home: Path, cwd: str) -> None:
    assert instruction_files(cwd, "", {"HOME": str(home)}) == []
