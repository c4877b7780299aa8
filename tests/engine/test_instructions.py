"""What instruction files say, and which of their lines the user contradicted since."""

from datetime import UTC, datetime, timedelta

import pytest

from perdure.engine.contradictions import Contradictions
from perdure.engine.instruction_lines import InstructionFile, InstructionLine, Instructions

CHANGED = datetime(2026, 2, 1, tzinfo=UTC)
LATER = CHANGED + timedelta(days=30)


def file(text: str, *globs: str) -> Instructions:
    return Instructions([InstructionFile("CLAUDE.md", text, CHANGED, globs)])


def contradicted(instructions: Instructions, text: str, date: datetime) -> InstructionLine | None:
    return Contradictions(instructions).line(text, date)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Use tabs.", "Use tabs."),
        ("- **Use pnpm**, not npm.", "Use pnpm, never npm."),
        ("Use pnpm for installing packages.", "Use pnpm."),
        ("Use 4 spaces for indentation in all files.", "Use 4 spaces for indentation."),
        ("Never commit secrets in this repository.", "Never commit secrets."),
        ("Use tabs in Makefiles only.", "Use tabs in Makefiles."),
    ],
)
def test_what_a_line_says_is_known(line: str, text: str) -> None:
    assert file(line).cover(text)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Use tabs in Makefiles only.", "Use tabs."),
        ("Use tabs for Makefiles.", "Use tabs."),
        ("Run make test before pushing if the API changed.", "Run make test before pushing."),
        (
            "The staging API server listens on port 8080.",
            "The staging API server listens on port 9090.",
        ),
        (
            "Install packages with npm before running the unit tests.",
            "Install packages with pnpm before running the unit tests.",
        ),
        ("Use npm.", "Never use npm."),
    ],
)
def test_a_line_that_narrows_denies_or_has_another_value_does_not_say_it(
    line: str, text: str
) -> None:
    assert not file(line).cover(text)


def test_a_file_for_some_files_says_it_for_these_only() -> None:
    rule = file("Use tabs.", "src/**/*.ts")

    assert not rule.cover("Use tabs.")
    assert rule.cover("Use tabs in src for ts files.")


CONTRADICTED = [
    ("Use npm", "We use pnpm now."),
    ("- **Always use npm.**", "We use pnpm now."),
    ("Use npm", "Use pnpm, not npm."),
    ("Use npm for installs.", "We switched from npm to pnpm."),
    ("Run `npm test` before each commit.", "We switched from npm to pnpm."),
    ("Use yarn", "Let's use pnpm instead of yarn from now on."),
    ("Run tests with pytest", "We moved from pytest to unittest."),
    ("Use tabs for indentation.", "Use spaces for indentation."),
    ("Use 2 spaces for indentation", "Use 4 spaces for indentation"),
    ("Always squash commits.", "Never squash commits."),
    ("Do not use npm", "We use npm now"),
    ("Commit directly to main.", "Don't commit directly to main."),
    ("The API port is 8080", "The API port is 9090"),
    ("Max line length: 80", "The max line length is 100"),
    ("Use Python 3.10", "Use Python 3.12"),
    ("We use MySQL", "We use Postgres now"),
    ("We use npm.", "From now on we use pnpm, never npm."),
]
COMPATIBLE = [
    ("Use pnpm", "We use pnpm now."),
    ("Don't use npm", "We use pnpm now"),
    ("npm is not used", "We switched from npm to pnpm."),
    ("We migrated from npm to pnpm", "We switched from npm to pnpm."),
    ("Use npm in the docs folder", "We switched from npm to pnpm."),
    ("Use npm in docs/", "Use pnpm"),
    ("Use tabs in Makefiles only.", "Use spaces"),
    ("Run npm audit weekly", "We use pnpm now"),
    ("Use npm", "npm is slow"),
    ("Use Postgres for the API", "Use SQLite for tests"),
    ("Use 2 spaces in YAML", "Use 4 spaces in Python"),
    ("The API runs on port 8080", "The database runs on port 5432"),
    ("Use Docker", "Use Docker Compose"),
    ("Use Redis for caching", "Use Redis for sessions"),
    ("Run the tests", "Run the linter"),
    ("Use the task id as a session name.", "Take a repo path instead of a session name."),
    ("Write a commit message for all changes.", "The message names the docs, not all the changes."),
]


@pytest.mark.parametrize(("line", "text"), CONTRADICTED)
def test_a_line_that_the_user_contradicted_is_found_with_its_number(line: str, text: str) -> None:
    found = contradicted(file(f"# Harbour\n\n{line}\n"), text, LATER)

    assert found is not None
    assert (found.file, found.number) == ("CLAUDE.md", 3)
    assert file(line).may_contradict(text)


@pytest.mark.parametrize(("line", "text"), COMPATIBLE)
def test_a_line_that_may_hold_beside_it_is_not_contradicted(line: str, text: str) -> None:
    assert contradicted(file(line), text, LATER) is None


def test_what_was_stated_before_the_file_was_changed_contradicts_nothing() -> None:
    assert contradicted(file("Use npm"), "We use pnpm now.", CHANGED - timedelta(days=1)) is None


@pytest.mark.parametrize("text", ["```sh\nUse npm\n```", f"Use npm {'and so on ' * 40}"])
def test_code_and_long_lines_are_not_contradicted(text: str) -> None:
    assert contradicted(file(text), "We use pnpm now.", LATER) is None


def test_a_rule_for_some_files_is_not_contradicted() -> None:
    assert contradicted(file("Use npm", "docs/**"), "We use pnpm now.", LATER) is None


@pytest.mark.parametrize("text", ["for " * 50_000, "in " * 60_000, "(" * 200_000, "a. " * 60_000])
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    instructions = file(text)

    assert not instructions.cover("Use tabs in Makefiles for the harbour.")
    assert contradicted(instructions, "We use pnpm now.", LATER) is None


def test_a_statement_that_a_newer_one_took_back_contradicts_nothing() -> None:
    found = Contradictions(file("Use npm"))

    assert found.line("We use pnpm now.", LATER) is not None
    assert found.line("We use pnpm now.", LATER, ["Use npm."]) is None
