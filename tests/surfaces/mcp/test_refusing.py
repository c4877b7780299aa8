"""How errors are reported to a model."""

import pytest

from perdure.errors import ConfigError, InvalidValueError, SecretRefusedError, StorageFaultError
from perdure.surfaces.mcp.server import checked, refusal, without_paths

ENVIRON = {"HOME": "/home/ana"}


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("'/home/ana/.perdure/memory/x.md' is gone.", "'~/.perdure/memory/x.md' is gone."),
        ("no space in /srv/data/vault/notes.", "no space in .../notes."),
        ("no node is at 'ctx://local/users/ana'.", "no node is at 'ctx://local/users/ana'."),
        ("see https://example.org/a/b for it", "see https://example.org/a/b for it"),
        ("preference/indentation and 3/4 stay", "preference/indentation and 3/4 stay"),
        ("two\n  lines\x1b[2J", "two lines\\x1b[2J"),
    ],
)
def test_folders_of_the_machine_are_left_out(given_text: str, shown: str) -> None:
    assert without_paths(given_text, ENVIRON) == shown
    assert refusal(StorageFaultError(given_text), "recall", ENVIRON) == shown


def test_the_path_of_the_config_is_shown() -> None:
    error = ConfigError("/etc/perdure/config.toml, line 3: no. Fix: mend it.")

    assert "/etc/perdure/config.toml" in refusal(error, "recall", ENVIRON)


def test_an_error_of_the_system_is_reported_without_its_file() -> None:
    error = OSError(28, "No space left on device", "/srv/data/secret")

    assert "No space left on device" in refusal(error, "recall", {})
    assert "secret" not in refusal(error, "recall", {})


def test_an_unexpected_error_is_named_by_its_kind_only() -> None:
    assert "secret" not in refusal(KeyError("secret"), "recall", {})


def test_wrong_arguments_are_reported_without_their_values() -> None:
    with pytest.raises(InvalidValueError) as caught:
        checked("recall", {"query": "x", "top_k": "hostile"})
    given_text = refusal(caught.value, "recall", {})

    assert given_text.startswith("recall: top_k: ")
    assert given_text.endswith("Fix: see its input schema.")
    assert "hostile" not in given_text


def test_what_models_send_instead_is_understood() -> None:
    given = {"query": "x", "top_k": "5", "details": "true", "at": None}
    found = checked("recall", given)

    assert (found["top_k"], found["details"], found["at"]) == (5, True, "")


def test_of_what_would_allow_it_only_arguments_of_the_tool_are_named() -> None:
    options = {"mask_secrets": True, "as_is": True}
    error = SecretRefusedError("it holds a key. Fix: leave it out", options=options)

    named = refusal(error, "remember", {}, {"text", "mask_secrets"})
    assert named == "it holds a key. Fix: leave it out, or pass mask_secrets: true."
    assert refusal(error, "read", {}, {"uri"}) == "it holds a key. Fix: leave it out."


def test_a_long_story_is_cut() -> None:
    assert len(refusal(StorageFaultError("x" * 9_000), "recall", {})) <= 2_000
