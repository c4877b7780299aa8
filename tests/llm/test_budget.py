"""What a call may come to."""

import pytest

from perdure.errors import InvalidValueError
from perdure.llm.contract import ChatMessage, Request, ToolDefinition
from perdure.llm.ledger import Budget, max_usage


def estimate(text: str) -> int:
    """Return how many tokens a text is counted as, without what is around it."""
    bare = max_usage(Request((ChatMessage("user", "."),)), 0).input_tokens
    return max_usage(Request((ChatMessage("user", f".{text}"),)), 0).input_tokens - bare


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 20, 10 * 20),
        ("日本語のメモ", 12),
        ("1234567890", 10),
        ("🏳️‍🌈" * 10, 60),
        ("{}[]();" * 10, 70),
    ],
)
def test_a_text_is_counted_as_more_tokens_than_models_make_of_it(text: str, least: int) -> None:
    assert estimate(text) >= least


def test_an_estimate_is_at_most_twice_the_tokens_of_english() -> None:
    words = "Ana moved to Berlin last spring and she prefers tabs over spaces in code " * 50

    assert estimate(words) <= len(words) / 4 * 2


def test_tools_and_what_may_be_written_are_counted() -> None:
    bare = Request((ChatMessage("user", "Hello."),))
    tool = ToolDefinition("save", "Save." * 100, {"type": "object"})

    assert max_usage(Request(bare.messages, (tool,)), 7).input_tokens > (
        max_usage(bare, 7).input_tokens + 1_100
    )
    assert max_usage(bare, 7).output_tokens == 7


@pytest.mark.parametrize("wrong", [-1, 1.5, True])
def test_a_limit_that_is_none_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        Budget(tokens=wrong)
    with pytest.raises(InvalidValueError, match="Fix: "):
        Budget(runs=wrong)
