"""From a config file to an answer: the owner's model, within the owner's budget, written down."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perdure.app import open_context
from perdure.errors import ConfigError, OverBudgetError
from perdure.llm.contract import Answer, Usage
from perdure.llm.counter import ledger_file
from perdure.model.values import JSON
from perdure.surfaces.cli.cost import cost_command
from tests.llm.fake_services import Server, serving

SCHEMA: dict[str, JSON] = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("MY_KEY", "k")
    return home


def configure(home: Path, server: Server, *lines: str) -> None:
    settings = f'provider = "openai"\nbase_url = "{server.address}/v1"\nmodel = "small"'
    (home / "config.toml").write_text(
        "\n".join(["[llm]", settings, 'api_key_variable = "MY_KEY"', *lines])
    )


def ask(prompt: str = "How many?") -> dict[str, object]:
    with open_context(os.environ) as context:
        assert context.language_model is not None
        return context.language_model.complete_json(prompt, SCHEMA)


def cost(*words: str) -> Result:
    done = CliRunner().invoke(cost_command, words)
    assert (done.exception, done.exit_code) == (None, 0), done.output
    return done


def test_without_a_setting_there_is_no_model(home: Path) -> None:
    with open_context(os.environ) as context:
        assert context.language_model is None
    assert not ledger_file(home).exists()
    assert cost().stderr == "no language model was called\n"
    assert cost("--json").stdout == ""
    assert not ledger_file(home).exists()


def test_what_the_model_answers_is_counted(home: Path, server: Server) -> None:
    configure(home, server)
    server.script.add(Answer('{"a": 1}', usage=Usage(1_200, 30)))

    assert ask() == {"a": 1}

    header, row = cost().stdout.splitlines()
    assert header.split() == ["day", "calls", "read", "written"]
    assert row.split()[1:] == ["1", "1,200", "30"]


def test_anthropic_is_asked_as_configured(home: Path, server: Server) -> None:
    (home / "config.toml").write_text(
        f'[llm]\nprovider = "anthropic"\nbase_url = "{server.address}"\nmodel = "small"\n'
        'api_key_variable = "MY_KEY"\nstructured = "text"\n'
    )
    server.script.add(Answer('{"a": 1}'))

    assert ask() == {"a": 1}
    assert "max_tokens" in server.asked[0]


def test_the_budget_of_the_owner_holds(home: Path, server: Server) -> None:
    configure(home, server, "tokens_per_day = 7000")
    server.script.add(Answer('{"a": 1}', usage=Usage(100, 1)))
    server.script.add(Answer('{"a": 2}', usage=Usage(1_000, 1_000)))

    ask("one")
    ask("two")
    with pytest.raises(OverBudgetError, match="4,899 tokens are left"):
        ask("three")
    assert len(server.asked) == 2


def test_a_key_that_is_not_set_is_reported_before_a_request(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, server)
    monkeypatch.delenv("MY_KEY")

    with pytest.raises(ConfigError, match=r"MY_KEY, which is not set\. Fix: "):
        ask()


def test_costs_are_grouped_by_model_and_since_any_time(home: Path, server: Server) -> None:
    configure(home, server)
    server.script.add(*[Answer('{"a": 1}', usage=Usage(100_000, 0))] * 2)
    ask("one")
    ask("two")

    assert json.loads(cost("--by", "model", "--json").stdout) == {
        "model": "small",
        "calls": 2,
        "unfinished": 0,
        "input_tokens": 200_000,
        "output_tokens": 0,
    }
    assert cost("--since", "2100-01-01").stderr == "no language model was called\n"
    assert len(cost("--since", "2020-01-01", "--json").stdout.splitlines()) == 1


def test_a_time_that_is_none_is_refused(home: Path) -> None:
    done = CliRunner().invoke(cost_command, ["--since", "lately"])

    assert done.exit_code == 2
    assert "Fix: write a date" in done.stderr
