"""The verbs for nodes, on the default and on a vault, with people who edit behind its back."""

import os
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.errors import (
    AccessDeniedError,
    InvalidUriError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    NotTextError,
    SecretRefusedError,
    VersionMismatchError,
)
from perdure.model import ContextNode
from perdure.surfaces.cli import LazyGroup, cli
from perdure.surfaces.cli import history_command as history
from tests.support.validate.tokens import token
from tests.surfaces.nodes import MEMORIES, TABS, lines, one, perdure, position, refusal, stdout_of

pytestmark = pytest.mark.usefixtures("agfs")


# ---------------------------------------------------------------- names
class TestNames:
    @pytest.mark.parametrize(
        ("name", "uri"),
        [
            ("preference/indentation", TABS),
            ("memories/preference/indentation", TABS),
            (TABS, TABS),
            ("profile", f"{MEMORIES}/profile"),
            ("skills/release", "ctx://local/agents/default/skills/release"),
            ("resources/papers/a b", "ctx://local/resources/papers/a%20b"),
            ("resources/papers/a%20b", "ctx://local/resources/papers/a%20b"),
            ("sessions/s1/summary", "ctx://local/sessions/s1/summary"),
            ("users/tom/memories/profile", "ctx://local/users/tom/memories/profile"),
        ],
    )
    def test_a_short_name_is_seen_from_the_caller(self, memory: Path, name: str, uri: str) -> None:
        assert stdout_of("write", name, "x") == f"{uri} version 1\n"
        assert one("read", name)["uri"] == uri
        assert one("read", uri)["uri"] == uri

    def test_the_caller_can_be_another_user(self, memory: Path) -> None:
        stdout_of("write", "skills/x", "x", "--account", "acme", "--user", "tom", "--agent", "bot")
        stdout_of("write", "profile", "Tom.", "--account", "acme", "--user", "tom")

        assert stdout_of("read", "profile", "--account", "acme", "--user", "tom") == "Tom."
        assert stdout_of("read", "ctx://acme/agents/bot/skills/x", "--account", "acme") == "x"
        assert isinstance(refusal("read", "profile"), NodeNotFoundError)

    def test_a_uri_of_another_account_says_how_to_get_there(self, memory: Path) -> None:
        refused = refusal("read", "ctx://acme/resources/x")

        assert isinstance(refused, AccessDeniedError)
        assert str(refused).endswith("or add --account acme.")

    def test_a_member_sees_only_what_is_within_reach(self, memory: Path) -> None:
        stdout_of("write", "users/tom/memories/profile", "Tom.")
        stdout_of("write", "profile", "Ana.", "--as-role", "member")

        refused = refusal("read", "users/tom/memories/profile", "--as-role", "member")
        assert isinstance(refused, AccessDeniedError)
        assert "tom" not in stdout_of("tree", "users", "--as-role", "member")
        assert "tom" in stdout_of("tree", "users", "--as-role", "admin")

    def test_a_time_that_nobody_could_read_is_not_written(self, memory: Path) -> None:
        refused = refusal("write", "event/move", "Moves.", "--meta", "valid_from=soon")

        assert isinstance(refused, InvalidValueError)
        assert "its valid_from is 'soon', not a time. Nothing was changed." in str(refused)
        assert isinstance(refusal("read", "event/move"), NodeNotFoundError)

    def test_on_behalf_of_a_user_their_reach_counts_unless_a_role_is_named(
        self, memory: Path
    ) -> None:
        stdout_of("write", "profile", "Ana.")
        ana = "users/ana/memories/profile"

        assert isinstance(refusal("read", ana, "--user", "tom"), AccessDeniedError)
        assert isinstance(refusal("write", "resources/x", "x", "--user", "tom"), AccessDeniedError)
        assert isinstance(refusal("index", "status", "--user", "tom"), AccessDeniedError)
        assert stdout_of("read", ana, "--user", "tom", "--as-role", "root") == "Ana."
        assert stdout_of("read", ana, "--agent", "bot") == "Ana."

    @pytest.mark.parametrize(
        "name", ["a/b/c", "ctx://local/x", "ctx://", "Big/slug", "a//b", "%ff"]
    )
    def test_what_names_no_place_is_refused_in_one_line(self, memory: Path, name: str) -> None:
        refused = refusal("read", name)

        assert isinstance(refused, InvalidUriError)
        assert "\n" not in str(refused)
        assert " Fix: " in str(refused)

    @pytest.mark.parametrize(
        ("meant", "fix"),
        [
            ("preference/indentaton", "try 'preference/indentation'"),
            ("indentation", "try 'preference/indentation'"),
            ("other/indentation", "try 'preference/indentation'"),
            ("nowhere/nothing", "`perdure list memories` shows what is there"),
            ("resources/nothing", "`perdure list /` shows what is there"),
        ],
    )
    def test_what_may_have_been_meant_is_suggested(self, tabs: Path, meant: str, fix: str) -> None:
        assert f"Fix: {fix}." in str(refusal("read", meant))


# ---------------------------------------------------------------- write
class TestWrite:
    def test_a_new_node_is_version_one(self, memory: Path) -> None:
        done = one("write", "preference/indentation", "Prefers tabs.")

        assert done == {
            "uri": TABS,
            "version": 1,
            "written": True,
            "created": True,
            "masked": [],
        }

    @pytest.mark.parametrize("words", [("-",), ()])
    def test_the_text_may_be_piped(self, memory: Path, words: tuple[str, ...]) -> None:
        stdout_of("write", "preference/indentation", *words, typed="Café\r\nno end".encode())

        done = perdure("read", "preference/indentation")
        assert done.stdout_bytes == "Café\r\nno end".encode()

    @pytest.mark.parametrize("words", [("-",), (), ("--replace",)])
    def test_a_pipe_that_brings_nothing_writes_nothing(
        self, tabs: Path, words: tuple[str, ...]
    ) -> None:
        done = perdure("write", "preference/indentation", *words, typed=b"")

        assert done.exit_code == 2
        assert "there is no text. Fix: " in done.stderr
        assert stdout_of("read", "preference/indentation") == "Prefers tabs."

    def test_an_empty_text_can_be_meant(self, tabs: Path) -> None:
        stdout_of("write", "preference/indentation", "", "--replace")

        assert stdout_of("read", "preference/indentation") == ""

    def test_what_is_piped_must_be_text_of_some_length(self, memory: Path) -> None:
        assert isinstance(refusal("write", "a/b", "-", typed=b"\xff\xfe"), NotTextError)
        refused = refusal("write", "a/b", "-", typed=b"x" * 1_000_001)
        assert isinstance(refused, InvalidValueError)

    def test_a_node_that_is_there_is_not_overwritten_unasked(self, tabs: Path) -> None:
        refused = refusal("write", "preference/indentation", "Prefers spaces.")

        assert isinstance(refused, NodeExistsError)
        assert "version 1 of 20" in str(refused)
        assert "with the content 'Prefers tabs.'" in str(refused)
        assert "or add --version 1 or --replace." in str(refused)
        assert stdout_of("read", "preference/indentation") == "Prefers tabs."

    def test_the_version_that_was_seen_is_followed(self, tabs: Path) -> None:
        words = ("write", "preference/indentation", "Prefers spaces.", "--version", "1")

        assert stdout_of(*words) == f"{TABS} version 2\n"
        refused = refusal("write", "preference/indentation", "No.", "--version", "1")
        assert isinstance(refused, VersionMismatchError)
        assert "is not at version 1 but at version 2 of" in str(refused)
        again = one(*words)
        assert (again["version"], again["written"], again["created"]) == (2, False, False)

    @pytest.mark.parametrize(
        "words",
        [
            ("Use {}.",),
            ("x", "--abstract", "{}"),
            ("x", "--overview", "{}"),
            ("x", "--meta", "api={}"),
            ("x", "--meta", "{}=1"),
            ("x", "--reason", "because {}"),
        ],
    )
    def test_a_secret_is_refused_wherever_it_stands(
        self, memory: Path, words: tuple[str, ...]
    ) -> None:
        secret = token("github/write")
        refused = refusal("write", "note/x", *(each.format(secret) for each in words))

        assert isinstance(refused, SecretRefusedError)
        assert secret not in str(refused)
        assert "Fix: " in str(refused)
        assert isinstance(refusal("read", "note/x"), NodeNotFoundError)

    def test_a_secret_names_no_node(self, memory: Path) -> None:
        refused = refusal("write", f"note/{token('github/name').lower()}", "x")

        assert isinstance(refused, SecretRefusedError)
        assert "choose another name" in str(refused)

    def test_a_secret_can_be_masked_or_written_on_purpose(self, memory: Path) -> None:
        secret = token("github/write")

        done = perdure("write", "note/x", f"It is\n{secret}.", "--mask-secrets")
        assert done.stderr == "1 secret was masked: content, line 2 (GitHub token)\n"
        assert stdout_of("read", "note/x") == "It is\n[secret: GitHub token]."
        answer = one("write", "note/y", secret, "--mask-secrets", "--meta", f"password={secret}")
        assert str(answer["masked"]).count("'kind': 'GitHub token'") == 2
        assert stdout_of("write", "note/x", secret, "--as-is", "--replace").endswith("version 2\n")
        assert stdout_of("read", "note/x") == secret
        assert perdure("write", "note/x", "y", "--as-is", "--mask-secrets").exit_code == 2

    def test_a_version_of_nothing_can_not_be_followed(self, memory: Path) -> None:
        refused = refusal("write", "preference/indentation", "x", "--version", "3")

        assert isinstance(refused, VersionMismatchError)
        assert "no node is there" in str(refused)

    def test_whatever_is_there_can_be_replaced(self, tabs: Path) -> None:
        stdout_of("write", "preference/indentation", "Prefers spaces.", "--replace")

        assert one("read", "preference/indentation")["version"] == 2

    def test_the_same_again_is_not_written_again(self, tabs: Path) -> None:
        before = position()

        done = perdure("write", "preference/indentation", "Prefers tabs.")

        assert (done.exit_code, done.stdout) == (0, f"{TABS} version 1\n")
        assert done.stderr == "no change; nothing was written\n"
        assert position() == before

    def test_summaries_and_metadata_stay_until_they_are_changed(self, memory: Path) -> None:
        meta = ("--meta", "source=chat", "--meta", "tags:=[1, true]", "--meta", "sum=a=b")
        stdout_of("write", "a/b", "x", "--abstract", "Short.", "--overview", "Longer.", *meta)
        stdout_of("write", "a/b", "y", "--replace", "--meta", "source:=null")
        stdout_of("write", "a/b", "--replace", "--abstract", "", typed=b"")

        found = one("read", "a/b")
        assert (found["content"], found["abstract"], found["overview"]) == ("y", "", "Longer.")
        assert found["metadata"] == {"tags": [1, True], "sum": "a=b"}
        assert one("write", "a/b", "--replace", "--meta", "sum=a=b")["written"] is False

    def test_the_reason_stands_in_the_history(self, memory: Path) -> None:
        stdout_of("write", "a/b", "x", "--reason", "he said so")

        key = str(one("read", "a/b")["key"])
        assert one("history", "log", key)["reason"] == "he said so"
        assert one("history", "log", key)["actor"] == "ana/default"

    def test_the_history_of_a_node_is_found_by_its_name(self, tabs: Path) -> None:
        key = "accounts/local/users/ana/memories/preference/indentation/content.md"

        for name in ("preference/indentation", key):
            assert one("history", "log", name)["key"] == key
        tried = str(refusal("history", "log", "preference/indentatio"))
        assert tried.endswith("Fix: try 'preference/indentation'.")

    def test_what_is_a_little_too_long_is_cut_and_reported(self, memory: Path) -> None:
        done = perdure("write", "a/b", "x", "--abstract", "a" * 210)

        assert done.exit_code == 0
        assert done.stderr == "the abstract was too long; it was cut, and ends in [cut]\n"
        refused = refusal("write", "a/c", "x", "--abstract", "a" * 221)
        assert "the abstract has 221 characters; the limit is 200" in str(refused)

    @pytest.mark.parametrize("text", ["- Tabs\n- Spaces\n", "--- so = what", "-- x"])
    def test_a_text_may_begin_with_a_dash(self, memory: Path, text: str) -> None:
        stdout_of("write", "a/b", text, "--abstract", "- short", "--meta", "a=- b")

        found = one("read", "a/b")
        assert (found["content"], found["abstract"]) == (text, "- short")
        assert found["metadata"] == {"a": "- b"}
        assert perdure("write", "a/b", "x", "--replacing").exit_code == 2
        assert stdout_of("write", "--replace", "--", "a/b", "-x").endswith(" version 2\n")

    def test_an_archived_node_is_not_written(self, tabs: Path) -> None:
        stdout_of("archive", "preference/indentation")

        refused = refusal("write", "preference/indentation", "x", "--replace")
        assert isinstance(refused, NodeExistsError)
        assert "an archived node is at" in str(refused)

    def test_what_can_not_be_read_is_overwritten_only_by_force(self, tabs: Path) -> None:
        tabs.write_text("Prefers both. " * 8_000)

        refused = refusal("write", "preference/indentation", "x", "--version", "1")
        assert isinstance(refused, VersionMismatchError)
        assert "edited by hand and can't be read as it is: content.md: " in str(refused)
        stdout_of("write", "preference/indentation", "x", "--replace")
        assert stdout_of("read", "preference/indentation") == "x"

    @pytest.mark.parametrize(
        "words",
        [
            ("a/b",),
            ("a/b", "x", "--version", "0"),
            ("a/b", "x", "--version", "1", "--replace"),
            ("a/b", "x", "--meta", "novalue"),
            ("a/b", "x", "--meta", ":=1"),
            ("a/b", "x", "--meta", "a:=nojson"),
            ("a/b", "x", "--as-role", "king"),
        ],
    )
    def test_wrong_usage_has_a_code_of_its_own(self, memory: Path, words: tuple[str, ...]) -> None:
        assert perdure("write", *words).exit_code == 2


# ---------------------------------------------------------------- read
class TestRead:
    def test_the_content_is_printed_as_it_is(self, tabs: Path) -> None:
        assert stdout_of("read", "preference/indentation") == "Prefers tabs."

    def test_all_that_is_known_can_be_asked_for(self, tabs: Path) -> None:
        stdout_of("write", "habit/editor", "Uses vim for [[indentation]].")
        stdout_of("relate", "preference/indentation", "habit/editor", "--type", "shapes")
        words = ("--overview", "One.\n\nTwo.", "--meta", "n:=3", "--abstract", "Tabs")
        stdout_of("write", "preference/indentation", "Tabs!", "--replace", *words)

        printed = stdout_of("read", "preference/indentation", "--all")

        assert printed.startswith(f"Tabs\nuri       {TABS}\nkey       accounts/local/users/ana/")
        for line in (
            "version   3",
            "overview  One.\n\n          Two.",
            "metadata  n = 3",
            "to        habit/editor  shapes 1",
            "from      habit/editor  mentions 0.5",
        ):
            assert f"\n{line}\n" in printed
        assert printed.endswith("\n\nTabs!\n")

    def test_json_has_everything(self, tabs: Path) -> None:
        found = one("read", "preference/indentation")

        assert set(found) == {
            *("uri", "key", "title", "type", "category", "status", "version", "owner_space"),
            *("created_at", "updated_at", "abstract", "overview", "content", "cid"),
            *("frontmatter", "metadata", "edges", "incoming", "problems", "project"),
        }
        assert (found["title"], found["status"], found["category"]) == (
            *("Prefers tabs.", "ACTIVE", "preference"),
        )

    def test_the_past_can_be_read(self, tabs: Path) -> None:
        before = position()
        stdout_of("write", "preference/indentation", "Prefers spaces.", "--replace")
        stdout_of("move", "preference/indentation", "style/indentation")

        assert stdout_of("read", "preference/indentation", "--at", before) == "Prefers tabs."
        assert stdout_of("read", TABS, "--at", before, "--all").startswith("Prefers tabs.\n")
        refused = refusal("read", "style/indentation", "--at", before)
        assert isinstance(refused, NodeNotFoundError)
        assert f" at {before}. Fix: try 'preference/indentation'." in str(refused)
        assert "preference" in stdout_of("tree", "--at", before)
        assert lines(stdout_of("list", "preference", "--at", before))[1][1] == "1"

    def test_an_edit_by_hand_is_part_of_the_past_when_it_is_asked_for(self, tabs: Path) -> None:
        tabs.write_text(tabs.read_text().replace("tabs", "both"))

        done = perdure("read", "preference/indentation", "--at", "2999-01-01")

        assert done.stdout == "Prefers both."
        assert done.stderr.startswith("recorded 1 edit made outside Perdure: preference/")

    @pytest.mark.parametrize(("moment", "code"), [("yesterday", 2), ("999999", 1), ("0", 1)])
    def test_a_moment_that_can_not_be_asked_for(self, tabs: Path, moment: str, code: int) -> None:
        assert perdure("read", "preference/indentation", "--at", moment).exit_code == code

    def test_an_edit_by_hand_counts(self, tabs: Path) -> None:
        tabs.write_text("---\ntitle: Mine\n---\nPrefers both.\n")

        found = one("read", "preference/indentation")
        assert (found["content"], found["version"]) == ("Prefers both.\n", 2)
        assert found["frontmatter"] == "title: Mine\n"

    def test_what_an_edit_broke_is_reported_on_stderr(self, tabs: Path) -> None:
        tabs.write_text("Prefers both. " * 8_000)

        done = perdure("read", "preference/indentation")

        assert (done.exit_code, done.stdout) == (0, "Prefers tabs.")
        assert done.stderr.startswith("problem: content.md: it has 112,000 characters")
        assert len(one("read", "preference/indentation")["problems"]) == 1  # type: ignore[arg-type] # a list
        assert "broken by an edit" in stdout_of("list", "preference")

    def test_a_folder_has_no_content(self, tabs: Path) -> None:
        refused = refusal("read", "preference")

        assert isinstance(refused, InvalidValueError)
        assert "Fix: `perdure list preference` shows what is there." in str(refused)


# ---------------------------------------------------------------- hostile input
HOSTILE = "\x1b[31mred\nline\x07\u202e"


class TestHostile:
    def test_names_do_nothing_to_a_terminal(self, memory: Path) -> None:
        stdout_of("write", f"resources/{HOSTILE}", HOSTILE, "--abstract", HOSTILE)
        stdout_of("user", "create", HOSTILE)
        stdout_of(
            "relate", f"resources/{HOSTILE}", self.other(), "--type", "x", "--reason", HOSTILE
        )

        for words in (
            *(("list", "resources"), ("tree", "/"), ("user", "list"), ("outbox", "list")),
            ("read", f"resources/{HOSTILE}", "--all"),
            ("relate", f"resources/{HOSTILE}"),
            ("relate", self.other()),
        ):
            seen = stdout_of(*words)
            if "--all" in words:
                seen = seen.removesuffix(f"\n{HOSTILE}\n")
            assert all(c.isprintable() for c in seen.replace("\n", "")), words
            assert "31mred" in seen

    def test_a_name_that_is_shown_can_be_typed(self, memory: Path) -> None:
        stdout_of("write", f"resources/{HOSTILE}%41", "x")

        name = stdout_of("list", "resources").splitlines()[1].partition("  ")[0]
        assert stdout_of("read", name) == "x"

    @staticmethod
    def other() -> str:
        stdout_of("write", "resources/other", "x", "--replace")
        return "resources/other"


# ---------------------------------------------------------------- help
@pytest.mark.parametrize(("group", "words"), [(cli, ()), (history, ("history",))])
def test_the_list_of_commands_says_what_the_commands_say(
    group: LazyGroup, words: tuple[str, ...]
) -> None:
    for part in group.sections.values():
        for name, help_text in part.items():
            assert help_text in " ".join(stdout_of(*words, name, "--help").split())


def test_what_a_program_wrote_is_read_by_the_command(memory: Path) -> None:
    with open_context(os.environ) as context:
        context.nodes.write_node(ContextNode(uri=TABS, content="x"), context.request)

    assert stdout_of("read", "preference/indentation") == "x"
