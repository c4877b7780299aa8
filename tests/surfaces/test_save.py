"""`perdure save`: one memory, from an argument, stdin or an editor."""

from pathlib import Path

import pytest

from perdure.errors import (
    InvalidUriError,
    InvalidValueError,
    NodeExistsError,
    NotTextError,
    SecretRefusedError,
)
from tests.support.validate.tokens import token
from tests.surfaces.nodes import MEMORIES, TABS, one, perdure, refusal, stdout_of
from tests.surfaces.terminals import at_a_terminal

TEA = "Drinks tea without milk."


def test_a_text_is_a_note_named_by_how_it_begins(memory: Path) -> None:
    answer = stdout_of("save", TEA)

    assert answer.startswith(f"{MEMORIES}/note/drinks-tea-without-milk-")
    assert answer.endswith(" version 1\n")
    assert stdout_of("read", answer.split()[0]) == TEA


def test_category_slug_and_metadata_can_be_given(memory: Path) -> None:
    words = ("save", "Tabs.", "--category", "preference", "--slug", "indentation")
    saved = one(*words, "--meta", "sure:=true")

    assert saved == {
        "uri": TABS,
        "version": 1,
        "written": True,
        "created": True,
        "changed": False,
        "lifted": 0,
        "masked": [],
    }
    assert one("read", TABS)["metadata"] == {"sure": True}


def test_the_same_again_is_reported_as_stored(memory: Path) -> None:
    stdout_of("save", TEA)

    done = perdure("save", TEA)

    assert done.stdout.endswith(" version 1\n")
    assert done.stderr == "already stored; nothing was written\n"
    again = one("save", TEA)
    assert (again["written"], again["created"]) == (False, False)


def test_another_text_under_the_same_slug_is_the_next_version(memory: Path) -> None:
    stdout_of("save", "Tabs.", "--slug", "indentation")

    saved = one("save", "Spaces.", "--slug", "indentation")

    assert (saved["version"], saved["written"], saved["created"]) == (2, True, False)


@pytest.mark.parametrize("words", [("save",), ("save", "-")])
def test_the_text_may_be_piped_and_is_the_same_memory(memory: Path, words: tuple[str, ...]) -> None:
    first = stdout_of("save", TEA)

    assert stdout_of(*words, typed=f"{TEA}\n".encode()) == first


def test_a_list_is_a_text_though_it_begins_with_a_dash(memory: Path) -> None:
    uri = stdout_of("save", "- tea\n- milk", "--slug", "list").split()[0]

    assert stdout_of("read", uri) == "- tea\n- milk"


@pytest.mark.parametrize("text", ["", " \n "])
def test_nothing_is_not_remembered(memory: Path, text: str) -> None:
    assert "the text is empty" in str(refusal("save", text))
    assert "the text is empty" in str(refusal("save", typed=text.encode()))


def test_what_is_piped_must_be_text_of_some_length(memory: Path) -> None:
    assert isinstance(refusal("save", typed=b"\xff\xfe"), NotTextError)
    assert "more than 1,000,000 bytes" in str(refusal("save", typed=b"x" * 1_000_001))
    assert isinstance(refusal("save", "x" * 120_000), InvalidValueError)


def test_a_secret_is_refused_with_the_option_that_masks_it(memory: Path) -> None:
    secret = token("aws")

    refused = refusal("save", f"The key is {secret}.")

    assert isinstance(refused, SecretRefusedError)
    assert str(refused).endswith("Fix: leave it out, or add --mask-secrets.")
    assert secret not in str(refused)


def test_a_secret_can_be_masked(memory: Path) -> None:
    secret = token("aws")

    done = perdure("save", f"The key is {secret}.", "--mask-secrets", "--slug", "key")

    assert done.exit_code == 0
    assert "the text was changed for safety: `perdure read note/key`" in done.stderr
    assert "1 secret was masked: content, line 1 (AWS access key)\n" in done.stderr
    assert secret not in stdout_of("read", "note/key")
    assert one("save", f"The key is {secret}!", "--mask-secrets", "--slug", "key")["changed"]


def test_a_secret_is_no_slug(memory: Path) -> None:
    refused = refusal("save", "Tea.", "--slug", token("github").lower())

    assert "the slug holds a GitHub token" in str(refused)


def test_a_secret_in_a_key_of_the_metadata_is_not_called_maskable(memory: Path) -> None:
    refused = refusal("save", TEA, "--meta", f"{token('aws')}=x")

    assert isinstance(refused, SecretRefusedError)
    assert "--mask-secrets" not in str(refused)


@pytest.mark.parametrize("category", ["", "Big/Words", "a b", "\x1b[31m", "x" * 300])
def test_a_category_must_be_a_plain_word(memory: Path, category: str) -> None:
    assert isinstance(refusal("save", TEA, "--category", category), InvalidUriError)


def test_there_is_one_profile_and_it_has_no_slug(memory: Path) -> None:
    assert "leave the slug out" in str(
        refusal("save", TEA, "--category", "profile", "--slug", "tea")
    )
    assert stdout_of("save", TEA, "--category", "profile") == f"{MEMORIES}/profile version 1\n"


def test_a_user_saves_memories_of_their_own(memory: Path) -> None:
    uri = one("save", TEA, "--user", "bob", "--slug", "tea")["uri"]

    assert uri == "ctx://local/users/bob/memories/note/tea"
    assert one("save", TEA, "--account", "firm", "--slug", "tea")["uri"] == (
        "ctx://firm/users/ana/memories/note/tea"
    )


class TestEditor:
    """At a terminal, without a text."""

    def test_what_is_typed_there_is_remembered(self, tmp_path: Path) -> None:
        editor = tmp_path / "editor"
        editor.write_text(f'echo "{TEA}" > "$1"')

        code, seen = at_a_terminal(tmp_path, "save", "--slug", "tea", EDITOR=f"sh {editor}")

        assert (code, seen) == (0, f"{MEMORIES}/note/tea version 1\n")
        assert at_a_terminal(tmp_path, "read", "note/tea") == (0, f"{TEA}\n")

    def test_nothing_typed_is_nothing_remembered(self, tmp_path: Path) -> None:
        code, seen = at_a_terminal(tmp_path, "save", EDITOR="true")

        assert code == 1
        assert "the text is empty" in seen
        assert "Your text is kept" not in seen

    def test_a_text_that_can_not_be_saved_is_not_lost(self, tmp_path: Path) -> None:
        editor = tmp_path / "editor"
        editor.write_text(f'echo "The key is {token("aws")}." > "$1"')

        code, seen = at_a_terminal(
            tmp_path, "save", EDITOR=f"sh {editor}", TMPDIR=str(tmp_path), LANG="C.UTF-8"
        )

        assert code == 1
        assert "add --mask-secrets. Your text is in" in " ".join(seen.split())
        (stored,) = tmp_path.rglob("memory.md")
        assert "The key is" in stored.read_text()

    def test_without_an_editor_the_fix_is_shown(self, tmp_path: Path) -> None:
        code, seen = at_a_terminal(tmp_path, "save")

        assert code == 1
        assert "set EDITOR, as in EDITOR=nano; or give the text" in seen


def test_what_was_learned_is_not_replaced_without_leave(memory: Path) -> None:
    printed = b'{"role": "user", "name": "Ana", "content": "I prefer tabs over spaces."}'
    stdout_of("commit", "-", "--session", "s", typed=printed)
    save = ("save", "Tea.", "--category", "preference", "--slug", "tabs-over-spaces")

    error = refusal(*save)

    assert isinstance(error, NodeExistsError)
    assert str(error).endswith("or add --replace.")
    stdout_of(*save, "--replace")
    assert stdout_of("read", "preference/tabs-over-spaces") == "Tea."
