"""Temporary failures are retried, within the time limit and with increasing waits."""

from collections.abc import Iterator

import pytest

from perdure.errors import (
    AnswerMalformedError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.llm.client import LLMClient
from perdure.llm.contract import Answer, ChatMessage, Request
from perdure.llm.http_services import OpenAICompleter
from tests.llm.fake_services import USAGE, Server, breaks_off, fails, says, serving

HELLO = Request((ChatMessage("user", "Hello."),))


class Time:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def asking(server: Server, time: Time) -> LLMClient:
    return LLMClient(OpenAICompleter(server.openai()), sleep=time.sleep, clock=time.clock)


def test_a_failure_that_passes_is_not_noticed(
    server: Server, asking: LLMClient, time: Time
) -> None:
    server.acts.extend([fails(500), breaks_off])
    server.script.add(Answer("Hi."))

    assert asking.ask(HELLO) == Answer("Hi.", usage=USAGE)
    assert len(time.slept) == 2


def test_after_five_attempts_the_failure_is_raised(
    server: Server, asking: LLMClient, time: Time
) -> None:
    server.acts.extend([fails(500)] * 9)

    with pytest.raises(ServiceUnreachableError, match="status 500"):
        asking.ask(HELLO)
    assert len(server.asked) == 5
    for wait, least in zip(time.slept, (1, 2, 4, 8), strict=True):
        assert least <= wait <= least + 1


def test_waits_differ_so_that_not_all_come_back_at_once(
    server: Server, asking: LLMClient, time: Time
) -> None:
    for _ in range(3):
        server.acts.append(fails(500))
        server.script.add(Answer("Hi."))
        asking.ask(HELLO)

    assert len(set(time.slept)) == 3


def test_the_wait_that_a_service_asks_for_is_respected(
    server: Server, asking: LLMClient, time: Time
) -> None:
    server.acts.append(fails(429, Retry_After="77"))
    server.script.add(Answer("Hi."))

    asking.ask(HELLO)

    assert time.slept == [77.0]


def test_a_wait_past_the_end_of_the_time_is_not_begun(
    server: Server, asking: LLMClient, time: Time
) -> None:
    server.acts.append(fails(429, Retry_After="301"))

    with pytest.raises(ServiceUnreachableError, match="status 429"):
        asking.ask(HELLO)
    assert (time.slept, len(server.asked)) == ([], 1)


def test_all_attempts_together_have_the_time_of_one_call(server: Server, time: Time) -> None:
    server.acts.extend([fails(500)] * 9)
    completer = OpenAICompleter(server.openai())

    with pytest.raises(ServiceUnreachableError):
        LLMClient(completer, seconds=4, sleep=time.sleep, clock=time.clock).ask(HELLO)
    assert time.now < 4
    assert len(server.asked) in {2, 3}  # for the waits vary


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_can_not_succeed_is_not_tried_again(
    server: Server, asking: LLMClient, time: Time, status: int
) -> None:
    server.acts.append(fails(status, Retry_After="1"))

    with pytest.raises(RequestRefusedError):
        asking.ask(HELLO)
    assert (time.slept, len(server.asked)) == ([], 1)


def test_an_answer_that_is_none_is_not_paid_for_again(server: Server, asking: LLMClient) -> None:
    server.acts.append(says(b"oops"))

    with pytest.raises(AnswerMalformedError):
        asking.ask(HELLO)
    assert len(server.asked) == 1
