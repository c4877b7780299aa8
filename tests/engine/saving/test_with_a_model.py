"""With a language model that its owner switched on, sessions are learned from within its budget."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.engine.llm.contract import Refusal
from perdure.errors import AnswerRefusedError, OverBudgetError
from perdure.testing.llm.scripted import says_json
from tests.engine.llm.services import Server, replies, serving
from tests.engine.reading_model import Reader, item, says_items
from tests.engine.saving.sessions import PROFILE, said

TALK = said("I live in Porto, by the way.", "I prefer tabs over spaces.")
HOME = "I live in Porto"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Reader()) as server:
        yield server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path))
    monkeypatch.setenv("USER", "ana")
    return tmp_path


def configure(home: Path, server: Server, *lines: str) -> None:
    told = f'provider = "openai"\nbase_url = "{server.address}/v1"\nmodel = "small"'
    (home / "config.toml").write_text("\n".join(["[llm]", told, *lines]))


def test_what_the_model_finds_is_remembered_with_its_quote(home: Path, server: Server) -> None:
    configure(home, server, "extract = true")
    found = item(quote=HOME, content="Ana lives in Porto.", category="profile", topic="home")
    server.acts.append(replies(says_items(found)))

    with open_context(os.environ) as context:
        done = context.memory.commit_session(TALK, session_id="s")

        assert (done.extracted, done.created) == (1, 1)
        assert context.memory.read(PROFILE).content == "- Ana lives in Porto.\n"
        assert done.plans[0].candidate.quote == HOME
        asked = len(server.asked)
        assert context.memory.commit_session(TALK, session_id="s").extracted == 0
        assert len(server.asked) == asked


def test_what_the_model_makes_up_is_refused(home: Path, server: Server) -> None:
    configure(home, server, "extract = true")
    found = item(quote="I am rich", content="Ana is rich.", category="profile", topic="job")
    server.acts.append(replies(says_items(found)))

    with open_context(os.environ) as context:
        done = context.memory.commit_session(TALK, session_id="s")

        assert (done.extracted, done.failed) == (1, 1)
        assert "quote the message to the letter" in done.plans[0].reason


def test_while_the_model_declines_the_messages_are_kept(home: Path, server: Server) -> None:
    configure(home, server, "extract = true")
    server.acts.append(replies(Refusal()))

    with open_context(os.environ) as context:
        with pytest.raises(AnswerRefusedError):
            context.memory.commit_session(TALK, session_id="s")
        done = context.memory.commit_session(TALK, session_id="s")

        assert (done.added, done.messages) == (0, 2)
        assert done.created == 2


def test_beyond_the_budget_nobody_is_asked(home: Path, server: Server) -> None:
    configure(home, server, "extract = true", "tokens_per_call = 1000")

    with open_context(os.environ) as context, pytest.raises(OverBudgetError, match="Fix: "):
        context.memory.commit_session(TALK, session_id="s")
    assert server.asked == []


def test_a_model_that_is_not_switched_on_for_it_is_not_asked(home: Path, server: Server) -> None:
    configure(home, server)

    with open_context(os.environ) as context:
        assert context.memory.commit_session(TALK, session_id="s").created == 2
    assert server.asked == []


def test_a_model_may_judge_where_only_words_differ(home: Path, server: Server) -> None:
    configure(home, server, "merge = true")
    server.acts.append(replies(says_json({"verdict": "same", "reason": "Both say so."})))

    with open_context(os.environ) as context:
        context.memory.save("Ana loves strong coffee.", category="preference", slug="robust-coffee")
        done = context.memory.commit_session(said("I love robust coffee."), session_id="s")

        assert [each.outcome.value for each in done.plans] == ["merged"]
