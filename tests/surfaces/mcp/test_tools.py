"""The tools of `perdure mcp`, through the SDK's own client, over real pipes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import tokens_in
from perdure.model.uri import KINDS
from tests.support.validate.tokens import token
from tests.surfaces.mcp.agents import MEMORIES, Connected, answer, over_stdio, text, uris
from tests.surfaces.mcp.checks import CHECKS, remember_tabs


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def agent(home: Path) -> Iterator[Connected]:
    """Start one server for all; each test has a category of its own."""
    with over_stdio(home) as agent:
        yield agent


@pytest.mark.parametrize("check", CHECKS)
def test_it_holds_over_real_pipes(agent: Connected, check: str) -> None:
    CHECKS[check](agent, check.replace("_", "-")[:40])


def test_all_schemas_together_have_less_than_900_tokens(agent: Connected) -> None:
    """A client sends them with every request."""
    shown = [
        {"name": name, "description": tool.description, "input_schema": tool.input_schema}
        for name, tool in agent.tools().items()
    ]

    assert tokens_in(json.dumps(shown)) < 900
    assert len(json.dumps(shown)) / 4 < 600


def test_each_kind_is_stored_in_its_category(agent: Connected) -> None:
    for kind, category in KINDS.items():
        reported = agent.answer("remember", text=f"A lasting {kind}.", kind=kind, scope="person")
        place = "agents/default/skills/" if category == "skill" else f"memories/{category}/"
        assert place in reported["uri"]


def test_many_calls_at_once_are_all_answered(agent: Connected) -> None:
    stored = agent.at_once(
        [
            ("remember", {"text": f"Fact {n}.", "category": "fact", "slug": f"f{n}"})
            for n in range(20)
        ]
    )
    asked = agent.at_once(
        [("recall", {"query": f"fact {n}"}) for n in range(10)]
        + [("read", {"uri": f"fact/f{n}"}) for n in range(10)]
    )

    assert {answer(each)["uri"] for each in stored} == {f"{MEMORIES}/fact/f{n}" for n in range(20)}
    assert all(not each.is_error for each in asked)
    assert [answer(each)["text"] for each in asked[10:]] == [f"Fact {n}." for n in range(10)]
    assert agent.answer("list", folder="fact")["total"] == 20


def test_many_corrections_at_once_are_all_versions(agent: Connected) -> None:
    given_text = [f"Prefers width {n}." for n in range(8)]
    done = agent.at_once(
        [
            ("remember", {"text": each, "category": "preference", "slug": "width"})
            for each in given_text
        ]
    )

    assert all(not each.is_error for each in done), [text(each) for each in done]
    assert agent.answer("history", uri="preference/width")["total"] == 8


def test_a_list_goes_on_where_it_ended(agent: Connected) -> None:
    for n in range(5):
        agent.answer("remember", text=f"Fact {n}.", category="listed", slug=f"f{n}")
    first = agent.answer("list", folder="listed", limit=3)
    rest = agent.answer("list", folder="listed", limit=3, after=first["more_after"])

    names = [each["name"] for each in (*first["entries"], *rest["entries"])]
    assert names == [f"listed/f{n}" for n in range(5)]
    assert (first["total"], rest["more_after"]) == (5, "")
    (folder,) = [each for each in agent.answer("list")["entries"] if each["name"] == "listed"]
    assert (folder["kind"], folder["says"]) == ("folder", "5 entries")


def test_sessions_are_listed_by_title_date_and_size(
    agent: Connected, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_text = {"role": "user", "content": "Hello.", "time": "2026-03-02T10:00:00Z"}
    monkeypatch.setenv("USER", "ana")
    with perdure.open(home=home / ".perdure") as memory:
        memory.append("listed", [given_text], title="Greetings <script>", extract=False)

    entries = agent.answer("list", folder="sessions")["entries"]

    (entry,) = [each for each in entries if each["name"] == "sessions/listed"]
    assert (entry["kind"], entry["updated_at"][:16]) == ("folder", "2026-03-02T10:00")
    assert entry["says"].startswith("Greetings ")
    assert "<script>" not in entry["says"]
    assert "(1 message, " in entry["says"]


def test_the_past_is_as_it_was(agent: Connected) -> None:
    tabs = remember_tabs(agent, "past")
    (first,) = agent.answer("history", uri=tabs)["versions"]
    home = agent.answer("remember", text="Lives in Lisbon.", category="past", slug="home")["uri"]

    then = agent.answer("recall", query="Lisbon tabs", at=first["time"], category="past")
    now = agent.answer("recall", query="Lisbon tabs", category="past")
    assert uris(then) == [tabs]
    assert set(uris(now)) == {tabs, home}


def test_secrets_are_masked_only_if_asked_for(agent: Connected) -> None:
    secret = token("aws")
    saved = agent.answer("remember", text=f"Use {secret} for it.", mask_secrets=True)

    assert saved["changed"] is True
    assert secret not in json.dumps(agent.answer("read", uri=saved["uri"]))
    refused = agent.refusal("remember", text=f"Use {secret} for it.")
    assert secret not in refused
    assert "mask_secrets" in refused


def test_an_agent_of_another_user_or_account_finds_nothing_of_it(
    agent: Connected, home: Path
) -> None:
    tabs = remember_tabs(agent, "mine")
    for words in (("--user", "bob"), ("--account", "acme")):
        with over_stdio(home, *words) as other:
            assert uris(other.answer("recall", query="tabs over spaces")) == []
            assert "out of reach" in other.refusal("read", uri=tabs)
            assert "out of reach" in other.refusal("forget", uri=tabs)
            other.answer("remember", text="Prefers eights.", category="mine", slug="theirs")
    assert agent.answer("read", uri=tabs)["text"] == "Prefers tabs over spaces."
    assert agent.answer("list", folder="mine")["total"] == 1
    assert uris(agent.answer("recall", query="prefers eights", category="mine")) == [tabs]


def test_two_servers_share_one_memory(agent: Connected, home: Path) -> None:
    with over_stdio(home) as other:
        begun = [
            each
            for n in range(4)
            for one, name in ((agent, "left"), (other, "right"))
            for each in one.begin(
                [
                    ("remember", {"text": f"{name} {n}.", "category": name, "slug": f"s{n}"}),
                    ("remember", {"text": f"Both: {name} {n}.", "category": "both", "slug": "one"}),
                ]
            )
        ]
        assert not any(each.result(60).is_error for each in begun)
        assert agent.answer("history", uri="both/one")["total"] == 8
        other.answer("remember", text="Both: two.", category="both", slug="one")

        for each in (agent, other):
            assert each.answer("list", folder="left")["total"] == 4
            assert each.answer("list", folder="right")["total"] == 4
            assert each.answer("read", uri="both/one")["text"] == "Both: two."
            found = each.answer("recall", query="right 3", category="right")
            assert f"{MEMORIES}/right/s3" in uris(found)
            assert found["index_lag"] == 0


def test_messages_prove_what_was_learned(
    agent: Connected, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [{"role": "user", "name": "ana", "content": "I prefer tabs over spaces."}]
    monkeypatch.setenv("USER", "ana")
    with perdure.open(home=home / ".perdure") as memory:
        memory.commit_session(talk, session_id="march")
    (hit, *_) = agent.answer("recall", query="tabs over spaces", category="preference")["hits"]
    reported = agent.answer("why", uri=hit["uri"])

    assert reported["holds"] is True
    (statement,) = reported["statements"]
    assert statement["origin"] == "learned"
    assert statement["evidence"][0]["quote"] in talk[0]["content"]
    assert statement["evidence"][0]["session"] == "march"
