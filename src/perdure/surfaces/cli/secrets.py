"""Secrets in what is written: the options that allow them, and what is printed of masked ones."""

from typing import TYPE_CHECKING

import click

from perdure.surfaces.asking import Command
from perdure.surfaces.telling import counted, mention

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perdure import Note

_MOST = 10


def with_secrets(command: Command) -> Command:
    masks = click.option(
        "--mask-secrets", is_flag=True, help="Write it without the secrets that are in it."
    )
    keeps = click.option(
        "--as-is", is_flag=True, help="Write it to the letter, with the secrets in it."
    )
    return masks(keeps(command))


def mention_masked(notes: "Iterable[Note]") -> None:
    """Print where secrets were masked, and of which kind; never the secrets."""
    places = [f"{each.where}, line {each.line} ({each.secret})" for each in notes if each.secret]
    mention_number_masked(len(places), places)


def mention_number_masked(number: int, places: list[str]) -> None:
    if number:
        were = "was" if number == 1 else "were"
        more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
        listed = ": " + ", ".join(places[:_MOST]) if places else ""
        mention(f"{counted(number, 'secret')} {were} masked{listed}{more}")


def masked_json(notes: "Iterable[Note]") -> list[dict[str, object]]:
    return [
        {"where": each.where, "line": each.line, "kind": each.secret}
        for each in notes
        if each.secret
    ]
