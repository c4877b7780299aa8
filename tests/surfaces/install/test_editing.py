"""Entries that are put into config files of others, and taken out again."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from perdure.agents.clients import AGENTS, files_for
from perdure.agents.entries import JsonFile, TomlFile, is_our_hook
from perdure.agents.jsonc import parse
from perdure.errors import InvalidValueError

ENVIRON = {"HOME": "/home/ana"}
EVERY = [each for agent in AGENTS for each in files_for(agent, ENVIRON, "/opt/bin/perdure")]
JSON_FILES = [each for each in EVERY if isinstance(each, JsonFile)]
(TOML_FILE,) = [each for each in EVERY if isinstance(each, TomlFile)]

SETTINGS, SERVERS = JSON_FILES[0], JSON_FILES[1]

names = st.sampled_from(["hooks", "mcpServers", "model", "Stop", "SessionStart", "a//b", 'q"', "é"])
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("http://x // y")
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
groups = st.fixed_dictionaries(
    {"hooks": st.lists(st.fixed_dictionaries({"command": st.text(max_size=8)}), max_size=2)}
)
others_hooks = st.dictionaries(
    st.sampled_from(["Stop", "SessionStart", "sessionStart", "Other"]),
    st.lists(groups, max_size=2),
    max_size=3,
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "model": values,
        "hooks": others_hooks,
        "mcpServers": st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2),
        "mcp": st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2),
        "version": st.just(1),
        "last": values,
    },
)
styles = st.sampled_from([None, 1, 2, 4, "\t"])
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def expected(config: dict[str, Any], wanted: JsonFile) -> dict[str, Any]:
    """Return what a config says with our entries, made in another way than by splicing."""
    config = json.loads(json.dumps(config))
    for key, value in (wanted.members or {}).items():
        config.setdefault(key, value)
    if wanted.server is not None:
        config.setdefault(wanted.section, {})["perdure"] = wanted.server
    for hook in wanted.hooks:
        config.setdefault("hooks", {}).setdefault(hook.event, []).append(hook.entry)
    return config


@unhurried
@given(configs, styles, st.sampled_from(JSON_FILES), st.sampled_from(["", "\n", "\n\n"]))
def test_entries_go_in_and_out_and_leave_every_character_as_it_was(
    config: dict[str, Any], indent: int | str | None, wanted: JsonFile, end: str
) -> None:
    check_in_and_out(config, indent, wanted, end)


def check_in_and_out(
    config: dict[str, Any], indent: int | str | None, wanted: JsonFile, end: str
) -> None:
    text = json.dumps(config, indent=indent, ensure_ascii=False) + end
    added = wanted.add(text)

    assert json.loads(added.text) == expected(config, wanted)
    assert list(json.loads(added.text))[: len(config)] == list(config)
    assert wanted.add(added.text).text == added.text
    if not wanted.members or "version" in config:
        assert wanted.remove(added.text, added.created) == text


@unhurried
@given(configs, styles, st.sampled_from(JSON_FILES))
def test_lines_that_end_otherwise_stay_so(
    config: dict[str, Any], indent: int | str | None, wanted: JsonFile
) -> None:
    assume(config and indent is not None)
    check_ends_of_lines(config, indent, wanted)


def check_ends_of_lines(config: dict[str, Any], indent: int | str | None, wanted: JsonFile) -> None:
    text = json.dumps(config, indent=indent).replace("\n", "\r\n")
    added = wanted.add(text).text

    assert added.count("\n") == added.count("\r\n")
    assert json.loads(added) == expected(config, wanted)


def test_what_is_added_is_laid_out_as_the_rest() -> None:
    tabs = '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n'
    one_line = '{"mcpServers": {"a": {}}}'

    assert '\n\t\t"perdure": {\n\t\t\t"' in SERVERS.add(tabs).text
    assert "\n" not in SERVERS.add(one_line).text
    assert SERVERS.add("").text.endswith("\n  }\n}\n")


COMMENTED = """\
// mine
{
  // before all
  "hooks": { /* mine too */
    "Stop": [
      {"hooks": [{"command": "say \\"http://x\\" // done"}]}, // behind
    ], // after a list
    // before the end
  },
  "mcpServers": {
    // none yet
  },
  "url": "http://example.org//", // trailing
}
// after all
"""


@pytest.mark.parametrize("wanted", JSON_FILES, ids=lambda each: str(each.path))
def test_comments_and_trailing_commas_stay(wanted: JsonFile) -> None:
    added = wanted.add(COMMENTED)
    plain = parse(added.text).plain
    gone = wanted.remove(added.text, added.created)

    assert isinstance(plain, dict)
    assert plain["url"] == "http://example.org//"
    for comment in (
        "mine",
        "before all",
        "mine too",
        "behind",
        "none yet",
        "trailing",
        "after all",
    ):
        assert comment in added.text
        assert comment in gone
    assert {**_plain(gone), "version": 1} == {**_plain(COMMENTED), "version": 1}


def _plain(text: str) -> dict[str, object]:
    plain = parse(text).plain
    assert isinstance(plain, dict)
    return plain


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {}, "hooks": {}}',
        '{"a": 1 "b": 2}',
        '{"a": 1} x',
        "{'a': 1}",
        '{"a": tru}',
        '{"a": "\n"}',
        '{"a": 01}',
        "{" * 10_000,
        '{"a": ' * 100 + "1" + "}" * 100,
        '{"a": "\\x"}',
        "// only a comment\n",
        '{/* never ended "hooks": {}}',
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_config_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        SETTINGS.add(text)


def test_a_name_that_is_taken_is_left_to_its_owner() -> None:
    theirs = '{"mcpServers": {"perdure": {"command": "climbing-gym"}}}'
    with pytest.raises(InvalidValueError, match="something else"):
        SERVERS.add(theirs)

    assert SERVERS.remove(theirs) == theirs


def test_an_entry_that_its_owner_adapted_stays_so() -> None:
    adapted = '{"mcpServers": {"perdure": {"command": "perdure", "args": ["mcp", "--user", "b"]}}}'

    assert SERVERS.add(adapted).text == adapted
    assert json.loads(SERVERS.remove(adapted)) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("perdure hook stop", True),
        ("/opt/perdure hook stop --agent codex", True),
        ("'/My Apps/perdure' hook stop", True),
        ("PERDURE_HOME=/x perdure hook stop", True),
        ("musperdure hook stop", False),
        ("perdure recall hook", False),
        ("echo perdure hooks", False),
    ],
)
def test_a_hook_is_known_by_what_it_runs(command: str, *, is_ours: bool) -> None:
    assert is_our_hook({"command": command}) is is_ours


def test_agents_get_the_memory_that_is_chosen_here() -> None:
    environ = {**ENVIRON, "PERDURE_HOME": "/srv/my memory", "MEMORY_VAULT_PATH": "/srv/vault"}
    settings, servers, *_ = files_for("claude-code", environ, "perdure")
    config, _ = files_for("codex", environ, "perdure")
    chosen = {"PERDURE_HOME": "/srv/my memory", "MEMORY_VAULT_PATH": "/srv/vault"}

    content = "PERDURE_HOME='/srv/my memory' MEMORY_VAULT_PATH=/srv/vault perdure hook stop"
    assert content in settings.add("").text
    assert json.loads(servers.add("").text)["mcpServers"]["perdure"]["env"] == chosen
    added = config.add("").text
    assert tomllib.loads(added)["mcp_servers"]["perdure"]["env"] == chosen
    assert config.remove(added).strip() == ""


def test_a_hook_that_others_stand_beside_is_taken_out_alone() -> None:
    shared = {"hooks": [{"command": "/x/perdure hook stop"}, {"command": "say perdure hooks"}]}
    text = json.dumps({"hooks": {"Stop": [shared], "Other": [{"hooks": []}]}}, indent=2)
    gone = json.loads(SETTINGS.remove(text))

    assert gone["hooks"]["Stop"] == [{"hooks": [{"command": "say perdure hooks"}]}]
    assert gone["hooks"]["Other"] == [{"hooks": []}]


def test_what_was_written_behind_our_entries_stays() -> None:
    added = SERVERS.add('{\n  "a": 1\n}\n')
    edited = added.text[: added.text.rstrip().rindex("}")].rstrip() + ',\n  "b": [2]\n}\n'
    gone = SERVERS.remove(edited, added.created)

    assert gone == '{\n  "a": 1,\n  "b": [2]\n}\n'


# ---------------------------------------------------------------- TOML
TOMLS = {
    "empty": "",
    "plain": 'model = "o3"\n',
    "without an end": 'model = "o3"',
    "commented": "# mine\n[profiles.x] # here\nmodel = 'x' # there\n\n# the end\n",
    "other servers": '[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers.a.env]\nX = "1"\n',
    "windows": '[tui]\r\nnotifications = ["a",\r\n  "b"]\r\n',
    "dotted": 'tui.x = 1\n\n[[rules]]\na = "[mcp_servers.x]"\n',
    "many lines": 'text = """\n[mcp_servers.perdure]\n"""\n',
}


@pytest.mark.parametrize("text", TOMLS.values(), ids=TOMLS.keys())
def test_a_table_goes_in_and_out(text: str) -> None:
    added = TOML_FILE.add(text).text
    wanted = tomllib.loads(text)
    wanted.setdefault("mcp_servers", {})["perdure"] = dict(TOML_FILE.server)

    assert added.startswith(text)
    assert tomllib.loads(added) == wanted
    assert TOML_FILE.add(added).text == added
    assert TOML_FILE.remove(added) == (text if text[-1:] != '"' else f"{text}\n")


def test_a_table_is_taken_out_from_between_others() -> None:
    text = (
        '# top\n[mcp_servers.perdure]\ncommand = "/x/perdure"\nargs = ["mcp"]\n'
        '[mcp_servers.perdure.env]\nA = "b"\n\n[other]\nx = 1 # keep\n'
    )

    assert TOML_FILE.remove(text) == "# top\n[other]\nx = 1 # keep\n"


@pytest.mark.parametrize(
    "text", ["a = ", "mcp_servers = {}\n", "mcp_servers = 3\n", "[a]\nx=1\n[a]\n", "\x00"]
)
def test_a_toml_that_can_not_be_changed_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        TOML_FILE.add(text)


def test_no_file_is_named_twice() -> None:
    assert len({each.path for each in EVERY}) == len(EVERY)
    folders = (Path("/home/ana"), Path(__file__).parents[3])
    assert all(any(each.path.is_relative_to(folder) for folder in folders) for each in EVERY)
