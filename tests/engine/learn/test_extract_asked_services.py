"""From a config file to candidates: the owner's model, over HTTP, within the owner's budget."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.app import open_context
from perdure.engine.learn.asking import asking_judge, by_model
from perdure.engine.learn.evidence import verified
from perdure.engine.learn.extractors import extractors
from perdure.engine.learn.judge import Verdict
from perdure.engine.llm.contract import Answer, Occasion, Refusal, Reply, Truncation, Usage
from perdure.errors import (
    AnswerMalformedError,
    AnswerRefusedError,
    AnswerTruncatedError,
    LanguageModelError,
    OverBudgetError,
    RequestRefusedError,
)
from perdure.model import CandidateMemory, RequestContext
from perdure.testing.llm.scripted import says_json
from tests.engine.llm.services import Server, fails, replies, says, serving
from tests.engine.reading_model import Reader, item, says_items

ANA = RequestContext("local", "ana", session_id="monday")
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "I live in Porto. I prefer tabs over spaces.", "name": "Ana"},
    {"role": "user", "content": "To deploy the site, run `make ship`."},
]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Reader()) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("USER", "ana")
    return home


def configure(home: Path, server: Server, *lines: str) -> None:
    told = f'provider = "openai"\nbase_url = "{server.address}/v1"\nmodel = "small"\nextract = true'
    (home / "config.toml").write_text("\n".join(["[llm]", told, *lines]))


def extract(messages: list[dict[str, Any]] = MESSAGES) -> list[CandidateMemory]:
    with open_context(os.environ) as context:
        assert context.language_model is not None
        llm = context.language_model.on(Occasion("local", "user:ana", "monday", "extract"))
        return [each for one in extractors(by_model(llm)) for each in one.extract(messages, ANA)]


def test_four_extractors_pay_for_one_answer_and_the_next_time_for_none(
    home: Path, server: Server
) -> None:
    configure(home, server)
    found = extract()

    assert [each.category for each in found] == ["profile", "preference", "skill"]
    assert verified(found, MESSAGES) == (found, [])
    assert extract() == found
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Refusal(), AnswerRefusedError),
        (Truncation(), AnswerTruncatedError),
        (Answer("I live in Porto."), AnswerMalformedError),
        (Answer('{"items": [{"message": 0}]}'), AnswerMalformedError),
        (says_json({"items": [{**item(), "cid": "x"}]}), AnswerMalformedError),
    ],
)
def test_what_is_no_answer_is_an_error_and_nothing_is_made_up(
    home: Path, server: Server, reply: Reply, error: type[LanguageModelError]
) -> None:
    configure(home, server)
    server.acts.append(replies(reply))

    with pytest.raises(error, match="Fix: "):
        extract()
    assert len(server.asked) == 1
    assert len(extract()) == 3  # it was not remembered


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"\xff"])
def test_what_is_no_protocol_is_an_error(home: Path, server: Server, body: bytes) -> None:
    configure(home, server)
    server.acts.append(says(body))

    with pytest.raises(AnswerMalformedError):
        extract()


def test_a_request_that_is_turned_down_is_an_error(home: Path, server: Server) -> None:
    configure(home, server)
    server.acts.append(fails(401))

    with pytest.raises(RequestRefusedError):
        extract()


def test_over_the_budget_nobody_is_asked(home: Path, server: Server) -> None:
    configure(home, server, "tokens_per_call = 1000")

    with pytest.raises(OverBudgetError, match="Fix: "):
        extract()
    assert server.asked == []


def test_a_session_that_runs_out_of_budget_is_gone_on_with_where_it_stopped(
    home: Path, server: Server
) -> None:
    long = [{"role": "user", "content": f"I live in Town{at}. " + "So. " * 600} for at in range(9)]
    configure(home, server, "tokens_per_session = 12000")
    server.acts.append(replies(Answer('{"items": []}', usage=Usage(9_000, 9))))
    with pytest.raises(OverBudgetError):
        extract(long)
    assert len(server.asked) == 1

    configure(home, server)
    assert extract(long)
    questions = [each["messages"][0]["content"] for each in server.asked]
    assert 1 < len(questions) == len(set(questions))


def test_a_quote_that_the_service_made_up_is_refused(home: Path, server: Server) -> None:
    configure(home, server)
    server.acts.append(replies(says_items(item(), item(quote="I live in Lisbon", content="x"))))
    kept, refused = verified(extract(), MESSAGES)

    assert [each.quote for each in kept] == ["I live in Porto"]
    assert len(refused) == 1


def test_the_judge_is_paid_once_for_both_orders(home: Path, server: Server) -> None:
    configure(home, server, "merge = true")
    server.acts.append(replies(says_json({"verdict": "same", "reason": "Both say so."})))
    one, other = "The train goes from Lille to Paris.", "The train runs from Lille to Paris."
    with open_context(os.environ) as context:
        assert context.language_model is not None
        judge = asking_judge(
            context.language_model.on(Occasion("local", "user:ana", "monday", "merge"))
        )
        assert judge(one, other) == judge(other, one)
        assert judge(one, other).verdict is Verdict.SAME

    assert len(server.asked) == 1
