"""`perdure edit`, with scripts for editors."""

import sys
from pathlib import Path

import pytest

from perdure.errors import (
    SecretRefusedError,
    StorageFaultError,
    VersionMismatchError,
)
from perdure.index.sqlite_index import SqliteIndex
from tests.support.validate.tokens import token
from tests.surfaces.nodes import TABS, one, perdure, refusal, stdout_of

pytestmark = pytest.mark.usefixtures("agfs")


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the editor be a script, which gets the file as $1; temporary files go where we see."""
    script = tmp_path / "my editor"
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("EDITOR", f"sh '{script}'")
    return script


class TestEdit:
    def test_what_was_changed_is_the_next_version(self, tabs: Path, editor: Path) -> None:
        editor.write_text('sed -i s/tabs/both/ "$1"')

        assert one("edit", "preference/indentation") == {"uri": TABS, "version": 2, "written": True}
        assert stdout_of("read", "preference/indentation") == "Prefers both."
        assert list((editor.parent / "temporary").iterdir()) == []

    def test_what_was_not_changed_is_not_written(self, tabs: Path, editor: Path) -> None:
        editor.write_text("true")

        done = perdure("edit", "preference/indentation")

        assert (done.exit_code, done.stdout) == (0, f"{TABS} version 1\n")
        assert done.stderr == "no change; nothing was written\n"

    def test_a_new_secret_is_refused_and_the_text_stays_in_a_file(
        self, tabs: Path, editor: Path
    ) -> None:
        secret = token("github/edit")
        editor.write_text(f'echo "It is {secret}" >> "$1"')

        refused = refusal("edit", "preference/indentation")

        assert isinstance(refused, SecretRefusedError)
        assert "--as-is" in str(refused)
        assert secret not in str(refused)
        assert stdout_of("read", "preference/indentation") == "Prefers tabs."
        assert one("edit", "preference/indentation", "--as-is")["written"] is True
        editor.write_text('sed -i s/tabs/both/ "$1"')
        assert one("edit", "preference/indentation")["written"] is True

    def test_visual_comes_before_editor(
        self, tabs: Path, editor: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VISUAL", "true")
        editor.write_text("exit 3")

        assert one("edit", "preference/indentation")["written"] is False

    def test_the_file_is_named_as_the_node_and_is_markdown(self, tabs: Path, editor: Path) -> None:
        editor.write_text('basename "$1" > "$1"')

        stdout_of("edit", "preference/indentation", "--reason", "why not")
        assert stdout_of("read", "preference/indentation") == "indentation.md"

    def test_a_users_own_frontmatter_is_shown_and_preserved(self, tabs: Path, editor: Path) -> None:
        tabs.write_text("---\n# mine\ntags: [a]\n---\nPrefers both.\n")
        editor.write_text("sed -i 's/\\[a\\]/[a, b]/; s/both/all/' \"$1\"")

        stdout_of("edit", "preference/indentation")

        assert tabs.read_text() == "---\n# mine\ntags: [a, b]\n---\nPrefers all.\n"

    def test_a_content_that_looks_like_frontmatter_stays_content(
        self, memory: Path, editor: Path
    ) -> None:
        stdout_of("write", "a/b", "---\nx: 1\n---\nend\n")
        editor.write_text('sed -i s/end/END/ "$1"')

        stdout_of("edit", "a/b")
        assert stdout_of("read", "a/b") == "---\nx: 1\n---\nEND\n"

    def test_an_editor_that_fails_changes_nothing(self, tabs: Path, editor: Path) -> None:
        editor.write_text("exit 3")

        assert "ended with 3. Nothing was written." in str(
            refusal("edit", "preference/indentation")
        )
        assert list((editor.parent / "temporary").iterdir()) == []

    @pytest.mark.parametrize(
        ("script", "why"),
        [
            ('echo typed > "$1"; exit 1', "ended with 1"),
            ("printf -- '---\\ntyped: [\\n---\\n' > \"$1\"", "not valid YAML"),
            ("printf -- '---\\ntyped\\n' > \"$1\"", "no end"),
            ("printf '\\377typed' > \"$1\"", "not valid UTF-8"),
        ],
    )
    def test_a_text_that_can_not_be_written_stays_in_a_file(
        self, tabs: Path, editor: Path, script: str, why: str
    ) -> None:
        editor.write_text(script)

        refused = str(refusal("edit", "preference/indentation"))

        stored = next((editor.parent / "temporary").rglob("*.md"))
        assert why in refused
        assert refused.endswith(f"Your text is in {str(stored)!a}.")
        assert b"typed" in stored.read_bytes()
        assert stdout_of("read", "preference/indentation") == "Prefers tabs."

    @pytest.mark.parametrize("by_hand", [True, False])
    def test_a_concurrent_change_is_not_overwritten(
        self,
        tabs: Path,
        editor: Path,
        by_hand: bool,  # noqa: FBT001 - pytest's parameter
    ) -> None:
        node = f'-c "import perdure.surfaces.cli as c; c.main()" write {TABS} both --replace'
        theirs = f"printf both > '{tabs}'" if by_hand else f"'{sys.executable}' {node} > /dev/null"
        editor.write_text(f'echo typed >> "$1"; {theirs}')

        refused = refusal("edit", "preference/indentation")

        assert isinstance(refused, VersionMismatchError)
        assert "changed while it was being edited" in str(refused)
        stored = next((editor.parent / "temporary").rglob("*.md"))
        assert stored.read_text() == "Prefers tabs.\ntyped\n"
        assert stdout_of("read", "preference/indentation") == "both"

    def test_an_empty_text_is_no_edit(self, tabs: Path, editor: Path) -> None:
        editor.write_text(': > "$1"')

        assert "would be empty" in str(refusal("edit", "preference/indentation"))

    def test_a_file_that_is_gone_is_no_edit(self, tabs: Path, editor: Path) -> None:
        editor.write_text('rm "$1"')

        assert "removed its file" in str(refusal("edit", "preference/indentation"))

    @pytest.mark.parametrize(
        ("named", "why"),
        [
            ("", "no editor is set. Fix: set EDITOR"),
            ("'", "can't be parsed"),
            ("/no/such/editor", "can't be started: No such file"),
        ],
    )
    def test_without_an_editor_the_fix_is_shown(
        self, tabs: Path, monkeypatch: pytest.MonkeyPatch, named: str, why: str
    ) -> None:
        monkeypatch.setenv("EDITOR", named)

        assert why in str(refusal("edit", "preference/indentation"))

    def test_what_a_hand_broke_is_mended_by_hand(self, tabs: Path, editor: Path) -> None:
        tabs.write_text("Prefers both. " * 8_000)

        assert "correct its file" in str(refusal("edit", "preference/indentation"))

    def test_a_written_text_leaves_no_file_though_it_could_not_be_indexed(
        self, tabs: Path, editor: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise StorageFaultError("the index is gone. Fix: none.")

        editor.write_text('echo both > "$1"')
        with monkeypatch.context() as patch:
            patch.setattr(SqliteIndex, "replace", fail)
            stdout_of("edit", "preference/indentation")

        assert list((editor.parent / "temporary").iterdir()) == []
        assert stdout_of("read", "preference/indentation") == "both"
