"""What a model wrote is the JSON that was asked for, or it is nothing."""

import pytest

from perdure.errors import AnswerMalformedError
from perdure.llm.client import parse_object

SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"b": {"a": 1, "a": 2}}',
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        '{"a": Infinity}',
        '{"a": 1e999999}',
        "[" * 100_000,
        "\ud800",
        '{"a": ' + "9" * 5_000 + "}",
        "{'a': 1}",
        '{"a": 1} {"a": 1}',
    ],
)
def test_what_others_would_read_otherwise_is_refused(text: str) -> None:
    with pytest.raises(AnswerMalformedError, match="Fix: "):
        parse_object(text, SCHEMA, "small")


def test_a_refusal_quotes_little() -> None:
    with pytest.raises(AnswerMalformedError) as caught:
        parse_object(
            '{"' + "x" * 10_000 + '": 1}', {**SCHEMA, "additionalProperties": False}, "small"
        )

    assert len(str(caught.value)) < 400
