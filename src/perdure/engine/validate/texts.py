"""Single texts on their way into memory, and on their way to who reads them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from perdure.dataclass import dataclass
from perdure.engine.validate.characters import visible
from perdure.engine.validate.instructions import Instruction, instructions_in, quoted, quoted_inline
from perdure.engine.validate.markup import inert
from perdure.engine.validate.secrets import Secret, SecretPolicy, masked, secrets_in
from perdure.errors import SecretRefusedError
from perdure.model.values import JSON

HIDDEN = "hidden and control characters are gone or shown"
INERT = "HTML or a link does nothing any more"
ORDER = "an instruction is marked as quoted"
MASKED = "masked: "


@dataclass(frozen=True, slots=True)
class Note:
    """What validation changed, and where. It never tells a secret."""

    where: str
    what: str
    line: int = 1

    @property
    def secret(self) -> str:
        """The kind of the secret that was masked; empty if something else was changed."""
        return self.what.removeprefix(MASKED) if self.what.startswith(MASKED) else ""


@dataclass(frozen=True, slots=True)
class CleanText:
    text: str
    notes: tuple[Note, ...] = ()


def count_masked(notes: Iterable[Note]) -> int:
    return sum(each.what.startswith(MASKED) for each in notes)


def cleaned(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
    """Return a text of any length as it may be stored, and what was changed in it.

    With a secret in it, it is masked or refused (`SecretRefusedError`), as the policy says.
    Cleaning twice is cleaning once.
    """
    return _cleaned(text, where, policy, one_line=False)


def cleaned_line(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
    """Return a short text, such as an abstract or a name, as it may be stored."""
    return _cleaned(text, where, policy, one_line=True)


def presentable(text: str) -> str:
    """Return a text for who reads it, if it is stored to the letter, such as a quote."""
    return inert(quoted(masked(visible(text))[0]))


def presentable_line(text: str) -> str:
    """Return a name or a title as `presentable`, and on one line."""
    line = " ".join(visible(text).split())
    return inert(quoted_inline(masked(line)[0]))


def without_secrets(text: str, where: str, policy: SecretPolicy, fix: str) -> str:
    """Return a text that is kept to the letter but for its secrets, masked or refused."""
    if policy is SecretPolicy.MASK:
        return masked(text)[0]
    refuse_secrets(text, where, fix)
    return text


def refuse_secrets(
    text: str, where: str, fix: str = "leave it out", *, options: Sequence[str] = ()
) -> None:
    """Raise `SecretRefusedError` for a text with a secret; the message never has its value.

    `options` are the arguments that would allow it.
    """
    found = secrets_in(visible(text))
    if found:
        first = found[0]
        line = visible(text).count("\n", 0, first.start) + 1
        more = f", and {len(found) - 1} more secrets" if found[1:] else ""
        raise SecretRefusedError(
            f"the {where} holds {with_article(first.kind)} in line {line}{more}. Fix: {fix}",
            options=dict.fromkeys(options, True),
        )


def with_article(kind: str) -> str:
    spoken = kind[0] in "AEIOUaeiou" and not kind.startswith("one")
    return f"{'an' if spoken else 'a'} {kind}"


def strings_in(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from strings_in(each)


def _cleaned(text: str, where: str, policy: SecretPolicy, *, one_line: bool) -> CleanText:
    seen = visible(text)
    if policy is SecretPolicy.REFUSE:
        refuse_secrets(seen, where, options=("mask_secrets",))
    plain, secrets = masked(seen) if policy is SecretPolicy.MASK else (seen, [])
    marked = quoted_inline(plain) if one_line else quoted(plain)
    result = inert(marked)
    notes = [Note(where, HIDDEN)] * (seen != text)
    notes += _lines(where, seen, ((MASKED + each.kind, each) for each in secrets))
    if marked != plain:
        notes += _lines(where, plain, ((ORDER, each) for each in instructions_in(plain)))
    notes += [Note(where, INERT)] * (result != marked)
    return CleanText(result, tuple(notes))


def _lines(where: str, text: str, found: Iterable[tuple[str, Secret | Instruction]]) -> list[Note]:
    notes: list[Note] = []
    line, at = 1, 0
    for what, place in found:
        line, at = line + text.count("\n", at, place.start), place.start
        notes.append(Note(where, what, line))
    return notes
