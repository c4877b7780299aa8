"""Precision and recall for secrets and instructions, on texts that no rule was written with."""

from pathlib import Path

import pytest

from perdure.safety.injection import instructions_in
from perdure.safety.secrets import Secret, mask, secrets_in
from tests.support.validate.scoring import Score, labelled, score
from tests.support.validate.tokens import token

DATA = Path(__file__).parents[1] / "data"
SECRETS, INSTRUCTIONS = DATA / "secrets.json", DATA / "instructions.json"


@pytest.mark.parametrize("half", ["tune", "held"])
def test_secrets_are_found_whole_and_little_else(half: str) -> None:
    found = score(secrets_in, labelled(SECRETS, half), whole=True)

    assert found.precision >= 0.98, found.lines
    assert found.recall >= 0.95, found.lines


@pytest.mark.parametrize("half", ["tune", "held"])
def test_instructions_are_found_and_little_else(half: str) -> None:
    found = score(instructions_in, labelled(INSTRUCTIONS, half), whole=False)

    assert found.precision >= 0.95, found.lines
    assert found.recall >= 0.8, found.lines


@pytest.mark.parametrize("text", labelled(SECRETS), ids=lambda each: each.name)
def test_no_part_of_a_secret_that_was_found_is_left(text: object) -> None:
    given = text.text  # type: ignore[attr-defined]
    result, found = mask(given)

    for each in found:
        assert given[each.start : each.end] not in result


# ---------------------------------------------------------------- the texts


@pytest.mark.parametrize("file", [SECRETS, INSTRUCTIONS, Path(token.__code__.co_filename)])
def test_no_secret_is_written_out_in_the_repository(file: Path) -> None:
    services = {"secret value", "password", "password in an address", "authorization header"}
    found = secrets_in(file.read_text(encoding="utf-8"))

    assert [each.kind for each in found if each.kind not in services] == []


# ---------------------------------------------------------------- the score
def test_half_a_secret_is_missed_and_what_is_found_elsewhere_is_wrong() -> None:
    (text,) = (each for each in labelled(SECRETS) if each.name == "secret-001")
    start, end = text.wanted[0]

    def found(*places: Secret) -> Score:
        return score(lambda _: places, [text], whole=True)

    assert found(Secret("x", start, end)).recall == 1
    assert found(Secret("x", start + 1, end)).recall == 0
    assert found(Secret("x", 0, 1)).precision == 0
    assert found().precision == 1
