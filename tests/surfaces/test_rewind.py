"""`perdure restore` and `perdure rewind`."""

from pathlib import Path

import pytest

from perdure.errors import AccessDeniedError, NodeNotFoundError
from tests.surfaces.nodes import (
    MEMORIES,
    content_of,
    lines,
    objects,
    one,
    perdure,
    position,
    refusal,
    stdout_of,
)

pytestmark = pytest.mark.usefixtures("agfs")

TEA = f"{MEMORIES}/taste/tea"


@pytest.fixture
def then(memory: Path) -> str:
    """Let a day go wrong; return the moment before it."""
    stdout_of("write", "taste/tea", "No milk.")
    stdout_of("write", "habit/vim", "Uses vim.")
    before = position()
    stdout_of("write", "taste/tea", "Much milk.", "--version", "1")
    stdout_of("delete", "habit/vim", "--yes")
    stdout_of("write", "habit/junk", "Nonsense.")
    return before


def test_what_would_be_done_is_shown_first(then: str) -> None:
    before = position()
    done = perdure("rewind", then)

    assert lines(done.stdout) == [
        ["node", "what", "--apply", "does"],
        ["habit/junk", "removed"],
        ["habit/vim", "brought", "back"],
        ["taste/tea", "restored"],
    ]
    assert done.stderr == "3 nodes to rewind; nothing was changed\n"
    assert position() == before


def test_with_leave_it_is_done(then: str) -> None:
    assert perdure("rewind", then, "--apply").stderr == "3 nodes rewound\n"
    assert (stdout_of("read", "taste/tea"), stdout_of("read", "habit/vim")) == (
        "No milk.",
        "Uses vim.",
    )
    assert isinstance(refusal("read", "habit/junk"), NodeNotFoundError)
    assert stdout_of("rewind", then) == "ok: nothing has changed since\n"


def test_a_folder_alone_can_be_rewound(then: str) -> None:
    (step,) = objects("rewind", then, "taste", "--apply")

    assert step == {
        "uri": TEA,
        "fate": "restored",
        "reason": None,
        "version": 3,
        "applied": True,
    }


def test_an_edit_is_rewound_too_and_stays_in_history(memory: Path) -> None:
    stdout_of("write", "taste/tea", "No milk.")
    then = position()
    content_of(memory, "users/ana/memories/taste/tea").write_text("Scribbles.\n")

    stdout_of("rewind", then, "--apply")

    assert stdout_of("read", "taste/tea") == "No milk."
    log = stdout_of("history", "log", "accounts/local/users/ana/memories/taste/tea/content.md")
    assert "external" in log
    assert "restore" in log


def test_what_is_left_is_reported_with_its_reason(then: str) -> None:
    stdout_of("archive", "taste/tea")

    done = perdure("rewind", then, "taste", "--apply")

    assert "left as it is: it was archived since; `perdure unarchive` it first" in done.stdout
    assert done.stderr == "0 nodes rewound; 1 left as it was\n"


def test_nobody_rewinds_what_is_not_theirs(then: str) -> None:
    assert isinstance(refusal("rewind", then, MEMORIES, "--user", "ben"), AccessDeniedError)
    assert stdout_of("rewind", then, "--user", "ben") == "ok: nothing has changed since\n"


def test_a_moment_that_is_none_is_refused(memory: Path) -> None:
    done = perdure("rewind", "yesterday")

    assert done.exit_code == 2
    assert "Fix: write a date as 2026-03-01" in done.stderr


class TestRestore:
    def test_a_node_is_what_it_was(self, then: str) -> None:
        assert stdout_of("restore", "taste/tea", then) == f"{TEA} version 3\n"
        assert stdout_of("read", "taste/tea") == "No milk."

    def test_a_version_is_named_by_its_content(self, then: str) -> None:
        versions = one("why", "taste/tea")["versions"]
        assert isinstance(versions, list)

        assert one("restore", "taste/tea", versions[0]["cid"])["written"] is True
        again = perdure("restore", "taste/tea", versions[0]["cid"])
        assert again.stderr == "already in that state; nothing was written\n"

    def test_what_was_deleted_comes_back(self, then: str) -> None:
        stdout_of("restore", "habit/vim", then)

        assert stdout_of("read", "habit/vim") == "Uses vim."

    def test_what_never_was_can_not(self, then: str) -> None:
        assert isinstance(refusal("restore", "habit/none", then), NodeNotFoundError)
        assert perdure("restore", "taste/tea", "bafnonsense").exit_code == 2
