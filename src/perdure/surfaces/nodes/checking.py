"""Secrets in what is written by hand: refused, masked, or kept because their owner says so."""

from collections.abc import Iterable

import click

from perdure.engine.validate.owned import Owned
from perdure.engine.validate.secrets import SecretPolicy, secrets_in
from perdure.engine.validate.texts import MASKED, Note, refuse_secrets
from perdure.surfaces.asking import Command
from perdure.surfaces.telling import counted, mention

_FIX = "leave it out, add --mask-secrets, or keep it all the same with --as-is."
_MOST = 10


def with_secrets(command: Command) -> Command:
    masks = click.option(
        "--mask-secrets", is_flag=True, help="Write it without the secrets that are in it."
    )
    keeps = click.option(
        "--as-is", is_flag=True, help="Write it to the letter, with the secrets in it."
    )
    return masks(keeps(command))


def owned_by(*, mask_secrets: bool, as_is: bool) -> Owned | None:
    """Return who looks for secrets; None if they are to be kept."""
    if mask_secrets and as_is:
        raise click.UsageError("--mask-secrets and --as-is contradict each other. Fix: give one.")
    if as_is:
        return None
    return Owned(SecretPolicy.MASK if mask_secrets else SecretPolicy.REFUSE, _FIX)


def refuse_new(text: str, before: str, where: str, fix: str) -> None:
    """Refuse a text with a secret that was not in it before."""
    found = {text[each.start : each.end] for each in secrets_in(text)}
    if any(each not in before for each in found):
        refuse_secrets(text, where, fix)


def mention_masked(notes: Iterable[Note]) -> None:
    """Say where secrets were masked, and of which kind; never what they said."""
    found = [each for each in notes if each.what.startswith(MASKED)]
    told = [f"{each.where}, line {each.line} ({_kind(each)})" for each in found]
    tell_masked(len(found), told)


def tell_masked(number: int, told: list[str]) -> None:
    if number:
        were = "was" if number == 1 else "were"
        more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
        listed = ": " + ", ".join(told[:_MOST]) if told else ""
        mention(f"{counted(number, 'secret')} {were} masked{listed}{more}")


def as_json(notes: Iterable[Note]) -> list[dict[str, object]]:
    return [
        {"where": each.where, "line": each.line, "kind": _kind(each)}
        for each in notes
        if each.what.startswith(MASKED)
    ]


def _kind(note: Note) -> str:
    return note.what.removeprefix(MASKED)
