"""What a result says of itself, as texts."""

from perdure import RecallResult


def texts_of(result: RecallResult) -> tuple[str, ...]:
    return tuple(hint.text for hint in result.hints)
